"""What came out: the outcomes on their queues and the providers' journals, read once everything is at rest."""

import collections
import datetime
import json

import pika

from process import Failure

OUTCOMES = ["results", "feedback", "dead"]
# Everything through which requests travel, and where nothing may be left.
LANES = ["send.high", "send.normal", "fanout.high", "fanout.normal", "quarantine", "registry", "retry.1s", "retry.3s", "retry.10s"]


class Visit:
    """A connection of this program's own, straight to a node."""

    def __init__(self, port):
        self.connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port, heartbeat=0, socket_timeout=10))
        self.channel = self.connection.channel()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.connection.close()
        except pika.exceptions.AMQPError:
            pass

    def ready(self, names):
        """Messages that wait in these queues."""
        return {name: self.channel.queue_declare(f"push.{name}", passive=True).method.message_count for name in names}

    def take(self, name, path):
        """All messages of a queue that is at rest, kept as one line of JSON each in a file and returned."""
        taken, count = [], self.ready([name])[name]
        messages = self.channel.consume(f"push.{name}", auto_ack=True, inactivity_timeout=10)
        with open(path, "w", encoding="utf-8") as file:
            while len(taken) < count:
                method, properties, body = next(messages)
                if method is None:
                    raise Failure(f"push.{name} says that it holds {count} messages, and gives {len(taken)}")
                headers = {key: value for key, value in (properties.headers or {}).items() if key.startswith("x-")}
                taken.append({"id": properties.message_id, "body": body.decode("utf-8", "backslashreplace"), "headers": headers})
                file.write(json.dumps(taken[-1], default=str) + "\n")
        self.channel.cancel()
        return taken


class Journal:
    """What a provider was asked and what it said: `delivered` has (request, device token, Unix time) of each push that it took, in order;
    `others` how often it said something else; `violations` what no client of the real one must do."""

    def __init__(self, path):
        self.delivered, self.others, self.violations = [], collections.Counter(), []
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                self._read(json.loads(line))

    def _read(self, entry):
        self.violations += entry.get("violations", []) + [entry[key] for key in ("violation",) if key in entry]
        answer = entry.get("answer", {})
        if not entry.get("token"):
            return
        if answer.get("status") == 200:
            payload = entry["payload"]
            data = payload["message"]["data"] if "message" in payload else payload
            at = datetime.datetime.fromisoformat(entry["time"]).timestamp()
            self.delivered.append((data["request"], entry["token"], at))
        else:
            self.others[answer.get("fault") or f"{answer.get('status')} {answer.get('reason', '')}"] += 1
