"""Receives webhooks over TLS, verifies each call as Standard Webhooks says, and prints it as a line of JSON.

Usage: webhook_receiver.py CERTIFICATE KEY SECRET
Prints the port first. The status of the next answers is read from standard input, a line each; without one it is 204. A status may have a
Retry-After: "503 1".
"""

import base64
import hashlib
import hmac
import http.server
import json
import queue
import ssl
import sys
import threading
import time

certificate, key, secret = sys.argv[1:]
statuses = queue.Queue()


class Receiver(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        name, moment = self.headers["webhook-id"], self.headers["webhook-timestamp"]
        expected = hmac.new(base64.b64decode(secret.removeprefix("whsec_")), f"{name}.{moment}.".encode() + body, hashlib.sha256)
        signatures = self.headers["webhook-signature"].split()
        is_signed = "v1," + base64.b64encode(expected.digest()).decode() in signatures
        status, _, after = (statuses.get() if not statuses.empty() else "204").partition(" ")
        print(json.dumps({
            "id": name, "signed": is_signed, "signatures": len(signatures), "fresh": abs(time.time() - int(moment)) < 300,
            "status": int(status), "path": self.path, "body": json.loads(body),
        }), flush=True)
        self.send_response(int(status))
        if after:
            self.send_header("Retry-After", after)
        if status == "302":
            self.send_header("Location", self.path + "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def read():
    for line in sys.stdin:
        statuses.put(line.strip())


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
threading.Thread(target=read, daemon=True).start()
server.serve_forever()
