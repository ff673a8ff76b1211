"""An independent backend: Python's pika, with confirms. It repeats unconfirmed requests with the same message id."""

import json
import logging
import random
import threading
import time

import pika
import pika.exceptions

from devices import APP, TOPIC

# Lost connections are expected here.
logging.getLogger("pika").setLevel(logging.CRITICAL)
# Devices of the longest list.
LIST = 10


class Request:
    """A request to `devices` in this order, or to the topic's members. `id` is its message id."""

    def __init__(self, name, kind, devices, body, lane):
        self.id, self.kind, self.devices, self.body, self.lane = name, kind, devices, body, lane
        self.attempts = 0
        self.is_accepted, self.accepted_at = False, None


class Producer(threading.Thread):
    """Publishes one request at a time on one connection, and repeats it on any node until it is confirmed."""

    def __init__(self, number, fleet, seed, rate):
        super().__init__(name=f"producer{number}", daemon=True)
        self.number, self.rate = number, rate
        self.ports = [node.port for node in fleet.cluster.nodes]
        self.devices = fleet.devices
        # Small pages cost more.
        self.broadcasts = 1 if fleet.page < 10 else 4
        self.random = random.Random(f"{seed} producer {number}")
        self.requests = []
        self.stopping = threading.Event()
        self.fault = None
        self.connection = self.channel = None

    def stop(self):
        """Stops new requests. The current one is repeated until it is confirmed."""
        self.stopping.set()

    # Requests

    def next_request(self):
        name = f"chaos-{self.number}-{len(self.requests)}"
        kind = self.random.choices(["single", "list", "topic"], [800, 200, self.broadcasts])[0]
        raw, random_lane = self.devices.raw, self.random.choices(["high", "normal"], [1, 4])[0]
        if kind == "topic":
            devices, target = self.devices.members, {"to": f"/topics/{TOPIC}"}
        elif kind == "single":
            devices = [self.random.choice(raw)]
            target = {"to": devices[0].target}
        else:
            devices = self.random.sample(raw, self.random.randint(2, LIST))
            target = {"registration_ids": [device.target for device in devices]}
        body = {**target, "notification": {"title": "Portugal vs. Denmark", "body": "great match!"}, "data": {"request": name}}
        # Broadcasts don't report for which devices they expired.
        if kind != "topic" and self.random.random() < 0.1:
            body["time_to_live"] = self.random.choice([3, 10, 60])
        return Request(name, kind, devices, json.dumps(body, separators=(",", ":")), random_lane)

    def run(self):
        begun = time.monotonic()
        try:
            while not self.stopping.is_set():
                request = self.next_request()
                self.requests.append(request)
                self.publish(request)
                # After a fault, don't send all delayed requests at once.
                begun = max(begun, time.monotonic() - len(self.requests) / self.rate - 1)
                time.sleep(max(0, begun + len(self.requests) / self.rate - time.monotonic()))
            self.close()
        except Exception as fault:  # pylint: disable=broad-except
            self.fault = fault

    # Publishing

    def publish(self, request):
        while True:
            request.attempts += 1
            try:
                if self.channel is None:
                    self.connect(request.attempts)
                properties = pika.BasicProperties(app_id=APP, message_id=request.id, delivery_mode=2, timestamp=int(time.time()),
                                                  content_type="application/json")
                self.channel.basic_publish("push.send", request.lane, request.body.encode(), properties, mandatory=True)
                request.is_accepted, request.accepted_at = True, time.strftime("%H:%M:%S", time.gmtime())
                return
            except (pika.exceptions.AMQPError, OSError):
                self.close()
                time.sleep(0.2)

    def connect(self, attempt):
        port = self.ports[(self.number + attempt) % len(self.ports)]
        self.connection = pika.BlockingConnection(pika.ConnectionParameters(
            "127.0.0.1", port, heartbeat=6, socket_timeout=5, stack_timeout=8, blocked_connection_timeout=15))
        self.channel = self.connection.channel()
        self.channel.confirm_delivery()

    def close(self):
        connection, self.connection, self.channel = self.connection, None, None
        try:
            if connection and connection.is_open:
                connection.close()
        except (pika.exceptions.AMQPError, OSError):
            pass
