#!/usr/bin/python3
"""A server of APNs' channel management, written after Apple's table with python3-h2 and ssl. It shares no code with pushfleet.

https://developer.apple.com/documentation/usernotifications/sending-channel-management-requests-to-apns
"""

import asyncio
import base64
import json
import re
import uuid

import h2_server
from h2_server import report

CHANNELS = {}  # id: [bundle, body of the create request]


def refused(reason):
    return 400, {"reason": reason}, {}


def made(bundle, body):
    try:
        asked = json.loads(body)
    except ValueError:
        return refused("BadMessage")
    if set(asked) != {"message-storage-policy", "push-type"} or type(asked["message-storage-policy"]) is not int \
            or asked["message-storage-policy"] not in (0, 1):
        return refused("MissingChannelQueueSize")
    if asked["push-type"] != "LiveActivity":
        return refused("InvalidPushType")
    channel = base64.b64encode(uuid.uuid4().bytes).decode()
    CHANNELS[channel] = [bundle, asked]
    return 201, None, {"apns-channel-id": channel}


def managed(method, bundle, place, channel, body):
    if place == "all-channels":
        own = [one for one, (owner, _) in CHANNELS.items() if owner == bundle]
        return (200, {"channels": own}, {}) if method == "GET" and not body else refused("BadPath")
    if method == "POST":
        return made(bundle, body)
    if body or method not in ("GET", "DELETE"):
        return refused("MethodNotAllowed")
    if not channel:
        return refused("MissingChannelId")
    if CHANNELS.get(channel, [None])[0] != bundle:
        return refused("ChannelNotRegistered")
    if method == "GET":
        return 200, CHANNELS[channel][1], {}
    del CHANNELS[channel]
    return 204, None, {}


class Session(h2_server.Session):
    def answer(self, stream):
        headers, body = self.requests.pop(stream)
        named = dict(headers)
        place = re.fullmatch(r"/1/apps/([A-Za-z0-9.-]+)/(channels|all-channels)", named[":path"])
        if not place:
            status, answer, more = 404, {"reason": "BadPath"}, {}
        elif not named.get("authorization", "").startswith("bearer "):
            status, answer, more = 403, {"reason": "MissingProviderToken"}, {}
        else:
            status, answer, more = managed(named[":method"], *place.groups(), named.get("apns-channel-id"), body)
        payload = json.dumps(answer).encode() if answer is not None else b""
        self.connection.send_headers(stream, [(":status", str(status)), *more.items()], end_stream=not payload)
        if payload:
            self.connection.send_data(stream, payload, end_stream=True)
        report(event="request", connection=self.number, protocol=self.protocol, stream=stream, headers=headers,
               body=body.decode("utf-8", "backslashreplace"), answer=status)


if __name__ == "__main__":
    asyncio.run(h2_server.main(h2_server.parse_arguments(), Session))
