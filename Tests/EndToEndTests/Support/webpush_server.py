#!/usr/bin/python3
"""A push service for browsers with HTTP/1.1 only, independent of pushfleet's code: RFC 8291 and RFC 8292 by Python's cryptography,
and also by http-ece and py-vapid from PyPI if they are in .build/pypi.

Usage: webpush_server.py --certificate C --key K [--subscriptions N] [--script JSON]
Prints one line {"port": …, "subscriptions": [PushSubscription objects]} and then one line for each push: path, headers, claims,
plaintext, connection, answer, or what is wrong with it. The script maps a subscription's number to an answer:
{"3": {"status": 410, "headers": {"Retry-After": "7"}, "body": "gone", "close": true, "seconds": 2}}.
Ends when its standard input ends.
"""
import argparse
import base64
import http.server
import json
import os
import pathlib
import ssl
import sys
import threading
import time

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, hmac, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

sys.path.append(str(pathlib.Path(__file__).resolve().parents[3] / ".build" / "pypi"))
try:
    import http_ece
    import py_vapid
except ImportError:
    http_ece = py_vapid = None


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def mac(key, data):
    code = hmac.HMAC(key, hashes.SHA256())
    code.update(data)
    return code.finalize()


def point(key):
    return key.public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)


def public_key(data):
    return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), data)


class Subscription:
    def __init__(self, number, origin):
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.auth = os.urandom(16)
        self.path = f"/push/{number}/{encode(os.urandom(12))}?token={encode(os.urandom(9))}"
        self.public = {
            "endpoint": origin + self.path,
            "expirationTime": None,
            "keys": {"p256dh": encode(point(self.key.public_key())), "auth": encode(self.auth)},
        }

    def decrypt(self, body):
        salt, size, length = body[:16], int.from_bytes(body[16:20], "big"), body[20]
        sender, record = body[21 : 21 + length], body[21 + length :]
        assert length == 65 and len(record) <= size, "the header is wrong"
        shared = self.key.exchange(ec.ECDH(), public_key(sender))
        secret = mac(mac(self.auth, shared), b"WebPush: info\0" + point(self.key.public_key()) + sender + b"\1")
        pseudorandom = mac(salt, secret)
        key = mac(pseudorandom, b"Content-Encoding: aes128gcm\0\1")[:16]
        nonce = mac(pseudorandom, b"Content-Encoding: nonce\0\1")[:12]
        text = AESGCM(key).decrypt(nonce, record, None).rstrip(b"\0")
        assert text[-1:] == b"\2", "the delimiter is wrong"
        if http_ece:
            assert http_ece.decrypt(body, private_key=self.key, auth_secret=self.auth) == text[:-1], "http-ece disagrees"
        return text[:-1].decode()


def claims(authorization, origin):
    scheme, _, rest = authorization.partition(" ")
    fields = dict(part.strip().split("=", 1) for part in rest.split(","))
    header, body, signature = fields["t"].split(".")
    assert scheme == "vapid" and json.loads(decode(header)) == {"typ": "JWT", "alg": "ES256"}, "the scheme is wrong"
    raw = decode(signature)
    assert len(raw) == 64, "the signature has another length"
    numbers = int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big")
    public_key(decode(fields["k"])).verify(
        encode_dss_signature(*numbers), f"{header}.{body}".encode(), ec.ECDSA(hashes.SHA256()))
    if py_vapid:
        assert py_vapid.Vapid02.verify(authorization), "py-vapid refuses the token"
    found = json.loads(decode(body))
    assert found["aud"] == origin, "the audience is wrong"
    assert 0 < found["exp"] - time.time() <= 24 * 3600, "the expiry is wrong"
    return {**found, "k": fields["k"]}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self):
        server = self.server
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        found = server.by_path.get(self.path)
        entry = {
            "path": self.path, "headers": {name.lower(): value for name, value in self.headers.items()},
            "connection": f"{self.client_address[1]}", "peers": http_ece is not None,
        }
        answer = {"status": 404}
        if found:
            number, subscription = found
            entry["number"] = number
            answer = server.script.get(str(number), {"status": 201, "headers": {"Location": f"/message/{encode(os.urandom(9))}"}})
            try:
                entry["claims"] = claims(self.headers["Authorization"], server.origin)
                entry["plaintext"] = subscription.decrypt(body)
            except (AssertionError, InvalidSignature, KeyError, ValueError) as error:
                entry["wrong"] = f"{type(error).__name__}: {error}"
                answer = {"status": 400}
        entry["status"] = answer["status"]
        with server.lock:
            print(json.dumps(entry), flush=True)
        time.sleep(answer.get("seconds", 0))
        text = answer.get("body", "").encode()
        self.send_response(answer["status"])
        for name, value in answer.get("headers", {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        if answer.get("close"):
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--certificate", required=True)
    options.add_argument("--key", required=True)
    options.add_argument("--subscriptions", type=int, default=1)
    options.add_argument("--script", default="{}")
    given = options.parse_args()
    server = Server(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(given.certificate, given.key)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.origin = f"https://localhost:{server.server_address[1]}"
    server.lock = threading.Lock()
    server.script = json.loads(given.script)
    subscriptions = [Subscription(number, server.origin) for number in range(given.subscriptions)]
    server.by_path = {one.path: (number, one) for number, one in enumerate(subscriptions)}
    print(json.dumps({"port": server.server_address[1], "subscriptions": [one.public for one in subscriptions]}), flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()


main()
