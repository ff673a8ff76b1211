"""The second part of deploy/demo: a sender for GCM, a sender for APNs' binary interface, and a device use a gateway.

python3 demo_doors.py FOLDER BROKER KEY HTTP-PORT APNS-PORT

Exits 1 if an answer is unexpected. Uses no code of pushfleet: HTTP with urllib, frames with the tests' old sender.
"""

import json
import pathlib
import subprocess
import sys
import time
import urllib.error
import urllib.request

from demo import DIM, PLAIN, RED, GREEN, heading, read_lines

APP = "com.example.old"
PLACE = f"/v1/apps/{APP}/installations/anna-phone"
PHONE = "0d" * 32
SUPPORT = pathlib.Path(__file__).resolve().parents[2] / "Tests" / "EndToEndTests" / "Support"
SENDER, PEER = SUPPORT / "old_sender.py", SUPPORT / "amqp_peer.py"


class Doors:
    def __init__(self, folder, broker, key, http, apns):
        self.folder, self.broker, self.key, self.http, self.apns = folder, broker, key, http, apns
        self.wrong = []

    def ask(self, method, path, credential, body=None):
        """Returns the status and the JSON object of the answer."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.http}{path}", method=method, data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"key={credential}", "Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, json.loads(answer.read() or b"{}")
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def expect(self, what, holds):
        if not holds:
            self.wrong.append(what)

    def journal(self, count):
        """The application's pushes at APNs, once there are this many."""
        deadline = time.monotonic() + 10
        while True:
            entries = [one for one in read_lines(self.folder / "apns.ndjson")
                       if one.get("headers", {}).get("apns-topic") == APP]
            if len(entries) >= count or time.monotonic() > deadline:
                return entries
            time.sleep(0.05)

    def receipts(self, count):
        """Prints the receipts, once there are this many."""
        receipts = []
        deadline = time.monotonic() + 10
        while len(receipts) < count and time.monotonic() < deadline:
            taken = subprocess.run([sys.executable, PEER, "--broker", self.broker, "consume", "old.receipts"],
                                   capture_output=True, text=True, check=True, timeout=30)
            receipts += [json.loads(json.loads(line)["body"]) for line in taken.stdout.splitlines()]
        for receipt in receipts:
            print(f"    receipt {receipt['event']} of {receipt['user']}"
                  + (f", badge {receipt['badge']}" if receipt.get("badge") is not None else ""))
        self.expect(f"expected {count} receipts, got {receipts}", len(receipts) == count)

    def gcm(self, number):
        """Sends like a GCM sender of 2012, with only host and key changed."""
        body = {"registration_ids": [PHONE], "collapse_key": "mail", "data": {"n": str(number)},
                "notification": {"body": f"{number} of Anna's mails", "badge": "auto"}}
        status, answer = self.ask("POST", "/gcm/send", self.key, body)
        shown = json.dumps({"notification": body["notification"]})[:-1]
        print(f"  POST /gcm/send {DIM}{shown}, …}}{PLAIN}")
        counts = {name: answer[name] for name in ("success", "failure")} if status == 200 else answer
        print(f"    {status} {json.dumps(counts)}")
        self.expect(f"/gcm/send answered {status} {answer}", status == 200 and answer["success"] == 1)

    def badge(self, expected, after):
        entries = self.journal(after)
        got = entries[-1]["payload"]["aps"].get("badge") if len(entries) == after else None
        print(f"    the phone shows the badge {got}")
        self.expect(f"expected the badge {expected}, got {got}", got == expected)
        return entries[-1]["payload"] if entries else {}

    def sends(self, *lines):
        """Sends through APNs' binary interface. Returns the answer."""
        done = subprocess.run(
            [sys.executable, SENDER, "--port", str(self.apns), "--ca", self.folder / "ca.pem", "--certificate",
             self.folder / "sender.pem", "--key", self.folder / "sender.key", "--wait", "0.5", "send"],
            input="\n".join(json.dumps(line) for line in lines), capture_output=True, text=True, check=True, timeout=30)
        return json.loads(done.stdout)


def main(folder, broker, key, http, apns):
    doors = Doors(pathlib.Path(folder), broker, key, int(http), int(apns))

    heading("The gateway: a device registers, and a sender for GCM sends to it")
    device = {"platform": "apns", "token": PHONE, "user": "anna", "name": "Anna"}
    status, answer = doors.ask("PUT", PLACE, key, device)
    secret = answer["secret"] if status == 200 else ""
    print(f"  PUT {PLACE}\n    {status} with a registration, and a secret for the device")
    doors.expect(f"the registration was answered {status} {answer}", bool(secret))
    doors.gcm(1)
    doors.badge(1, after=1)
    doors.gcm(2)
    push = doors.badge(2, after=2)
    for operation in ("received", "read"):
        status, answer = doors.ask("POST", PLACE + "/acks", secret, {"op": operation, "notification": push})
        print(f"  POST …/acks {DIM}{{\"op\": \"{operation}\", …}}{PLAIN}\n    {status}")
        doors.expect(f"{operation} was answered {status} {answer}", status == 202)
    doors.receipts(2)
    doors.gcm(3)
    doors.badge(2, after=3)

    heading("The gateway: a sender for APNs' binary interface")
    hello = {"aps": {"alert": "Sent as in 2012"}}
    answer = doors.sends({"id": 1, "token": "0f" * 32, "payload": hello}, {"command": 0, "token": "10" * 32, "payload": hello})
    print(f"  two frames, with the commands 2 and 0: {DIM}{json.dumps(answer)}{PLAIN}")
    doors.expect(f"the sender was answered {answer}", answer == {"silent": True})
    answer = doors.sends({"id": 7, "token": "11" * 32, "payload": hello}, {"id": 8, "token": "abcd", "payload": hello})
    print(f"  a good frame, then a token of two bytes: {DIM}{json.dumps(answer)}{PLAIN}, invalid token size")
    doors.expect(f"the sender was answered {answer}", answer == {"status": 5, "identifier": 8})
    entries = doors.journal(6)
    tokens = [entry["token"] for entry in entries]
    doors.expect(f"APNs got {tokens}", sorted(tokens) == sorted([PHONE] * 3 + ["0f" * 32, "10" * 32, "11" * 32]))
    alerts = {entry["payload"]["aps"].get("alert") for entry in entries if entry["token"] != PHONE}
    doors.expect(f"APNs got the alerts {alerts}", alerts == {hello["aps"]["alert"]})
    print(f"  APNs got {len(entries) - 3} notifications over HTTP/2")

    print()
    for line in doors.wrong:
        print(f"  {RED}{line}{PLAIN}")
    if not doors.wrong:
        print(f"  {GREEN}every old sender got the answers that it expects{PLAIN}")
    return 1 if doors.wrong else 0


if __name__ == "__main__":
    if len(sys.argv) != 6:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
