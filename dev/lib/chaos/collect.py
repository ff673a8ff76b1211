"""Reads the outcomes: the outcome queues and the providers' journals, once everything is at rest."""

import collections
import datetime
import json

import pika

from process import Failure

OUTCOMES = ["results", "feedback", "dead"]


def lanes(queues):
    """All queues of requests, which must be empty at the end, with this number of queues for each lane of requests."""
    send = [f"send.{lane}{'' if number == 0 else f'.{number}'}" for lane in ("high", "normal") for number in range(queues)]
    return send + ["fanout.high", "fanout.normal", "quarantine", "registry", "retry.1s", "retry.3s", "retry.10s"]


class Visit:
    """A connection directly to a node."""

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
        """Number of ready messages in these queues."""
        return {name: self.channel.queue_declare(f"push.{name}", passive=True).method.message_count for name in names}

    def take(self, name, path):
        """Consumes all messages of a queue at rest, writes them to a file as NDJSON and returns them."""
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
    """A provider's requests and answers. `delivered`: (request, device token, Unix time) of each accepted push, in order; `others`: the
    numbers of other answers; `violations`: violations of the provider's rules. `tokens`: the tokens of devices by their names here."""

    def __init__(self, path, tokens):
        self.tokens = tokens
        self.delivered, self.others, self.violations = [], collections.Counter(), []
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                self._read(json.loads(line))

    def _read(self, entry):
        self.violations += entry.get("violations", []) + [entry[key] for key in ("violation",) if key in entry]
        answer = entry.get("answer", {})
        if not entry.get("token"):
            return
        if 200 <= answer.get("status", 0) < 300:
            payload = entry["payload"]
            data = payload.get("message", payload).get("data", payload)
            at = datetime.datetime.fromisoformat(entry["time"]).timestamp()
            self.delivered.append((data["request"], self.tokens.get(entry["token"], entry["token"]), at))
        else:
            self.others[answer.get("fault") or f"{answer.get('status')} {answer.get('reason', '')}"] += 1
