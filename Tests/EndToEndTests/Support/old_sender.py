#!/usr/bin/python3
"""A sender of APNs' binary interface that shares no code with pushfleet.

send:     writes notifications and prints the server's answer: the error response {"status": …, "identifier": …}, {"closed": true} after
          a close without a response, or {"silent": true} if nothing came within --wait seconds. Each line of standard input is
          {"token": hex, "payload": …}, optionally with "command" (default 2), "id", "expiry" and "priority". A payload that isn't a
          string is sent as JSON. {"raw": hex} is written unchanged. --cut divides the data into writes: "frame" (one per frame), "all"
          (one write), or a number of bytes per write. With --leave it closes right after the last write and prints {"left": true}.
feedback: prints each entry of the feedback list as {"time": …, "token": hex}. With --first it closes the connection after that many
          entries, without reading the rest.
idle:     opens --count connections, prints {"open": …}, and keeps them open until standard input ends.
"""

import argparse
import json
import select
import socket
import ssl
import struct
import sys


def connect(options):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(options.ca)
    if options.certificate:
        context.load_cert_chain(options.certificate, options.key)
    plain = socket.create_connection(("127.0.0.1", options.port), timeout=30)
    return context.wrap_socket(plain, server_hostname="127.0.0.1")


def frame(line):
    if "raw" in line:
        return bytes.fromhex(line["raw"])
    token = bytes.fromhex(line["token"])
    payload = line["payload"] if isinstance(line["payload"], str) else json.dumps(line["payload"], ensure_ascii=False)
    payload = payload.encode()
    command = line.get("command", 2)
    if command < 2:
        head = struct.pack(">BII", 1, line["id"], line.get("expiry", 0)) if command == 1 else b"\0"
        return head + struct.pack(">H", len(token)) + token + struct.pack(">H", len(payload)) + payload
    items = [(1, token), (2, payload)]
    if "id" in line:
        items.append((3, struct.pack(">I", line["id"])))
    if "expiry" in line:
        items.append((4, struct.pack(">I", line["expiry"])))
    if "priority" in line:
        items.append((5, bytes([line["priority"]])))
    body = b"".join(struct.pack(">BH", number, len(data)) + data for number, data in items)
    return struct.pack(">BI", 2, len(body)) + body


def write(link, frames, cut):
    if cut == "frame":
        pieces = frames
    else:
        whole = b"".join(frames)
        size = len(whole) if cut == "all" else int(cut)
        pieces = [whole[at:at + size] for at in range(0, len(whole), max(size, 1))]
    for piece in pieces:
        # A sender that reads only after its last write could lose the answer together with the connection.
        if (answer := received(link)) is not None:
            return answer
        link.sendall(piece)
    return b""


def received(link):
    """The bytes that the server has sent so far, empty after a close, or None. A readable socket alone says nothing: the session tickets
    of TLS 1.3 make it readable too."""
    if not link.pending() and not select.select([link], [], [], 0)[0]:
        return None
    link.setblocking(False)
    try:
        return link.recv(6)
    except ssl.SSLWantReadError:
        return None
    finally:
        link.settimeout(30)


def send(options):
    frames = [frame(json.loads(line)) for line in sys.stdin]
    link = connect(options)
    answer = b""
    try:
        answer = write(link, frames, options.cut)
    except (BrokenPipeError, ConnectionResetError):
        pass
    if options.leave:
        link.close()
        return {"left": True}
    link.settimeout(options.wait)
    try:
        while len(answer) < 6:
            more = link.recv(6 - len(answer))
            if not more:
                return {"closed": True}
            answer += more
        command, status, identifier = struct.unpack(">BBI", answer)
        assert command == 8, answer
        assert link.recv(1) == b"", "more after the error response"
        return {"status": status, "identifier": identifier}
    except TimeoutError:
        assert not answer, answer
        return {"silent": True}


def feedback(options):
    link = connect(options)
    data = b""
    while more := link.recv(65536 if not options.first else 38 * options.first - len(data)):
        data += more
        if options.first and len(data) == 38 * options.first:
            break
    link.close()
    while data:
        when, size = struct.unpack(">IH", data[:6])
        print(json.dumps({"time": when, "token": data[6:6 + size].hex()}))
        data = data[6 + size:]


def idle(options):
    links = []
    for _ in range(options.count):
        links.append(connect(options))
    print(json.dumps({"open": len(links)}), flush=True)
    sys.stdin.read()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--ca", required=True)
    parser.add_argument("--certificate")
    parser.add_argument("--key")
    parser.add_argument("do", choices=["send", "feedback", "idle"])
    parser.add_argument("--cut", default="frame")
    parser.add_argument("--wait", type=float, default=60)
    parser.add_argument("--leave", action="store_true")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1)
    options = parser.parse_args()
    try:
        if options.do == "send":
            print(json.dumps(send(options)))
        elif options.do == "feedback":
            feedback(options)
        else:
            idle(options)
    except ssl.SSLError as error:
        print(json.dumps({"refused": str(error)}))


if __name__ == "__main__":
    main()
