#!/usr/bin/python3
"""A server of FCM HTTP v1 with Google's token endpoint, written after Google's reference. It shares no code with pushfleet.

It issues an access token only for an assertion with correct claims and signature (checked by `openssl`). It answers a message with
200 only if the message has that token, is valid by FCM's schema, and the connection has no more streams than SETTINGS allow. It
prints the same lines as h2_server.py; a send's line also has "token", "message" and, if there are any, "faults".
"""

import argparse
import asyncio
import base64
import json
import re
import subprocess
import tempfile
import time
import urllib.parse

import h2_server
from h2_server import report

SCOPES = {"https://www.googleapis.com/auth/firebase.messaging", "https://www.googleapis.com/auth/cloud-platform"}
GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
TYPES = "type.googleapis.com/google."
TARGETS = {"token", "fid", "topic", "condition"}
MESSAGE = {"data", "notification", "android", "android_v2", "webpush", "apns", "fcm_options"} | TARGETS
NOTIFICATION = {"title", "body", "image"}
ANDROID = {"collapse_key", "priority", "ttl", "restricted_package_name", "data", "notification", "fcm_options", "direct_boot_ok",
           "bandwidth_constrained_ok", "restricted_satellite_ok"}
TEXTS = {"title", "body", "icon", "color", "sound", "tag", "click_action", "body_loc_key", "title_loc_key", "channel_id", "ticker",
         "event_time", "notification_priority", "visibility", "image", "proxy"}
ANDROID_V2 = (ANDROID - {"priority", "notification"}) | {"remote_notification", "background_sync"}
REMOTE = {"notification", "mutable_content", "use_as_v1_data_message"}
LISTS = {"body_loc_args", "title_loc_args", "vibrate_timings"}
OTHERS = {"sticky", "local_only", "default_sound", "default_vibrate_timings", "default_light_settings", "notification_count",
          "light_settings", "bypass_proxy_notification"}
APNS = {"headers", "payload", "fcm_options", "live_activity_token"}


def decode(part):
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def assertion_faults(body, options):
    """The faults of a request for an access token."""
    form = urllib.parse.parse_qs(body, strict_parsing=True)
    if form.get("grant_type") != [GRANT] or len(form.get("assertion", [])) != 1:
        return ["the form"]
    head, claims, signature = form["assertion"][0].split(".")
    header, values = json.loads(decode(head)), json.loads(decode(claims))
    now = time.time()
    wrong = [name for name, right in {
        "alg": header.get("alg") == "RS256", "typ": header.get("typ", "JWT") == "JWT",
        "kid": header.get("kid", options.key_id) == options.key_id, "iss": values.get("iss") == options.account,
        "scope": set(values.get("scope", "").split()) & SCOPES, "aud": values.get("aud") == options.audience,
        "iat": abs(values.get("iat", 0) - now) < 300, "exp": now < values.get("exp", 0) <= values.get("iat", 0) + 3600,
    }.items() if not right]
    with tempfile.NamedTemporaryFile() as file:
        file.write(decode(signature))
        file.flush()
        verify = ["openssl", "dgst", "-sha256", "-prverify", options.account_key, "-signature", file.name]
        if subprocess.run(verify, input=f"{head}.{claims}".encode(), capture_output=True).returncode:
            wrong.append("signature")
    return wrong


def texts(values):
    return isinstance(values, dict) and all(isinstance(value, str) for value in values.values())


def shown_fault(shown, texts_of, others):
    """True if an Android notification has another field, or a value of a wrong type."""
    return not (set(shown) <= texts_of | LISTS | others
                and texts({key: value for key, value in shown.items() if key in texts_of})
                and all(isinstance(value, list) and all(isinstance(one, str) for one in value)
                        for key, value in shown.items() if key in LISTS))


def target(message):
    """The target of a message: a token, or another target with a prefix for its field."""
    for field, prefix in (("token", ""), ("fid", "fid:"), ("topic", "/topics/"), ("condition", "")):
        if field in message:
            return prefix + message[field]
    return None


def message_faults(request):
    """The fields that FCM would refuse."""
    if not set(request) <= {"message", "validate_only"} or not isinstance(request.get("message"), dict):
        return ["request"]
    message = request["message"]
    android, apns = message.get("android", {}), message.get("apns", {})
    shown, headers = android.get("notification", {}), apns.get("headers", {})
    second = message.get("android_v2", {})
    remote = second.get("remote_notification", {})
    shown_v2 = remote.get("notification", {})
    data = message.get("data", {})
    return [name for name, right in {
        "validate_only": isinstance(request.get("validate_only", False), bool),
        "message": set(message) <= MESSAGE and len(TARGETS & set(message)) == 1,
        "message.fid": re.fullmatch(r"[cdef][A-Za-z0-9_-]{21}", message.get("fid", "c" * 22)) is not None,
        "message.topic": re.fullmatch(r"[a-zA-Z0-9_.~%-]{1,900}", message.get("topic", "t")) is not None,
        "message.notification": set(message.get("notification", {})) <= NOTIFICATION and texts(message.get("notification", {})),
        "message.data": texts(data) and not any(
            key in ("from", "message_type") or key.startswith(("google", "gcm")) for key in data),
        "message.android": set(android) <= ANDROID,
        "message.android.priority": android.get("priority", "NORMAL") in ("NORMAL", "HIGH", "normal", "high"),
        "message.android.ttl": re.fullmatch(r"\d+(\.\d+)?s", android.get("ttl", "0s")) is not None,
        "message.android.data": texts(android.get("data", {})),
        "message.android.notification": not shown_fault(shown, TEXTS, OTHERS),
        "message.android_v2": "android_v2" not in message or "android" not in message and set(second) <= ANDROID_V2
        and ("remote_notification" in second) != ("background_sync" in second) and second.get("background_sync", {}) == {}
        and texts(second.get("data", {})),
        "message.android_v2.ttl": re.fullmatch(r"\d+(\.\d+)?s", second.get("ttl", "0s")) is not None,
        "message.android_v2.remote_notification": set(remote) <= REMOTE
        and all(isinstance(remote[key], bool) for key in REMOTE - {"notification"} if key in remote)
        and not shown_fault(shown_v2, TEXTS - {"proxy"}, (OTHERS - {"bypass_proxy_notification"}) | {"id"})
        and isinstance(shown_v2.get("id", 0), int),
        "message.apns": set(apns) <= APNS and texts(headers) and isinstance(apns.get("payload", {}), dict),
    }.items() if not right]


def error(status, word, code=None, field=None, text="refused"):
    details = [{"@type": TYPES + "firebase.fcm.v1.FcmError", "errorCode": code}] if code else []
    if field:
        details.append({"@type": TYPES + "rpc.BadRequest", "fieldViolations": [{"field": field, "description": text}]})
    return status, {"error": {"code": status, "message": text, "status": word, "details": details}}


class Session(h2_server.Session):
    def answer(self, stream):
        headers, body = self.requests.pop(stream)
        named, streams = dict(headers), len(self.requests) + 1
        fields = dict(event="request", connection=self.number, protocol=self.protocol, stream=stream, headers=headers,
                      body=body.decode("utf-8", "backslashreplace"))
        extra = {}
        if named[":path"] == self.options.token_path:
            status, answer = self.give_token(named, body, fields)
        else:
            status, answer, extra = self.take_message(named, body, streams, fields)
        payload = json.dumps(answer).encode()
        response = [(":status", str(status)), ("content-type", "application/json; charset=UTF-8"), *extra.items()]
        self.connection.send_headers(stream, response)
        self.connection.send_data(stream, payload, end_stream=True)
        report(**fields, answer=status, time=time.time())

    def give_token(self, named, body, fields):
        try:
            faults = assertion_faults(body.decode(), self.options)
        except (ValueError, KeyError) as fault:
            faults = [str(fault)]
        if named.get("content-type") != "application/x-www-form-urlencoded" or named[":method"] != "POST":
            faults.append("content-type")
        fields.update(faults=faults, body="")
        if faults:
            return 400, {"error": "invalid_grant", "error_description": ", ".join(faults)}
        self.options.tokens += 1
        return 200, {"access_token": f"ya29.{self.options.tokens}", "token_type": "Bearer", "expires_in": self.options.lifetime}

    def take_message(self, named, body, streams, fields):
        if named.get("authorization") != f"Bearer ya29.{self.options.tokens}":
            return *error(401, "UNAUTHENTICATED"), {}
        if named[":path"] != f"/v1/projects/{self.options.project}/messages:send" or named[":method"] != "POST":
            return *error(404, "NOT_FOUND"), {}
        request = json.loads(body)
        faults = message_faults(request)
        if named.get("content-type", "").partition(";")[0] != "application/json":
            faults.append("content-type")
        if streams > self.options.streams:
            faults.append("streams")
        message = request.get("message", {})
        fields.update(token=target(message), message=message, validate_only=request.get("validate_only", False))
        if faults:
            fields["faults"] = faults
            return *error(400, "INVALID_ARGUMENT", field=faults[0]), {}
        steps = self.options.script.get(target(message), [])
        if steps:
            step = steps.pop(0)
            if step.get("forget"):
                self.options.tokens += 1
            return *error(step["status"], step["word"], step.get("code"), step.get("field"), step.get("text", "refused")), \
                {name: str(step[name]) for name in ["retry-after"] if name in step}
        if request.get("validate_only"):
            return 200, {"name": f"projects/{self.options.project}/messages/fake_message_id"}, {}
        self.options.seen += 1
        return 200, {"name": f"projects/{self.options.project}/messages/0:{self.options.seen}"}, {}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--certificate", required=True)
    parser.add_argument("--key", required=True)
    parser.add_argument("--port", type=int, default=0, help="0: any free port")
    parser.add_argument("--streams", type=int, default=100, help="SETTINGS_MAX_CONCURRENT_STREAMS")
    parser.add_argument("--account", required=True, help="client_email")
    parser.add_argument("--account-key", required=True, help="PEM of the service account's private key")
    parser.add_argument("--key-id", required=True, help="private_key_id")
    parser.add_argument("--project", required=True)
    parser.add_argument("--audience", required=True, help="token_uri")
    parser.add_argument("--lifetime", type=int, default=3599)
    parser.add_argument("--script", type=json.loads, default={},
                        help='answers of each token before 200: {"<token>": [{"status": 404, "word": "NOT_FOUND", "code": "UNREGISTERED"}]}')
    options = parser.parse_args()
    options.token_path = urllib.parse.urlsplit(options.audience).path
    options.seen = options.tokens = 0
    return options


if __name__ == "__main__":
    asyncio.run(h2_server.main(parse_arguments(), Session))
