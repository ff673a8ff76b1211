"""Uses the services that dev/bench has started."""

import contextlib
import json
import pathlib
import socket
import subprocess
import sys
import time
import uuid

import pika

from measure import Running, measured, say

APP, PROJECT = "com.example.app", "example"
# Number of devices of single pushes. They differ, so that paths vary as with real providers.
DEVICES = 1000
STEPS = ["1s", "10s", "1m", "5m", "15m", "1h"]
# Each run of eight '@' becomes the number of the device.
APNS_TOKEN = "@" * 64
FCM_TOKEN = "@" * 24 + ":APA91b" + "b" * 109 + "@" * 24
PAYLOAD = {
    "priority": "high",
    "notification": {"title": "Portugal vs. Denmark", "body": "great match!", "sound": "default"},
    "data": {"Nick": "Mario", "Room": "PortugalVSDenmark", "url": "https://www.example.com/match/2659772?from=push&lang=en"},
}


def request(target, badge=None):
    notification = PAYLOAD["notification"] | ({"badge": badge} if badge else {})
    return json.dumps({"to": target, **PAYLOAD, "notification": notification}, separators=(",", ":"))


def device(number):
    """The APNs token of a device of single pushes."""
    return f"{number:08x}" * 8


class Site:
    def __init__(self, options):
        self.folder, self.pushfleet, self.benchmarks = options.folder, options.pushfleet, options.benchmarks
        self.broker_port, self.provider_port, self.simulator_port = options.ports
        self.count, self.devices, self.apps = options.count, options.devices, options.apps
        self.postgres = options.postgres
        self.functions = options.functions
        self.ahead, self.kinds = options.ahead, options.kinds
        self.floor = str(self.folder / "amqp_floor")
        self.journal = self.folder / "journal.ndjson"
        self._prepare_provider()
        self.config = self.configure("config")
        measured([self.pushfleet, "topology", "--config", self.config])

    def _prepare_provider(self):
        """Writes the files that nghttpd answers a POST with: empty ones for APNs, and FCM's answers."""
        www = self.folder / "www"
        for number in range(DEVICES):
            (www / "3" / "device" / device(number)).touch()
        sending = www / "v1" / "projects" / PROJECT
        sending.mkdir(parents=True)
        (sending / "messages:send").write_text(f'{{"name":"projects/{PROJECT}/messages/0:1500415314455276%31bd1c9631bd1c96"}}\n')
        (www / "token").write_text('{"access_token":"' + "ya29." + "c" * 200 + '","expires_in":3599,"token_type":"Bearer"}')
        (self.folder / "service-account.json").write_text(json.dumps({
            "type": "service_account", "project_id": PROJECT, "private_key_id": "bench",
            "private_key": (self.folder / "account.key").read_text(),
            "client_email": f"bench@{PROJECT}.iam.example", "token_uri": f"https://127.0.0.1:{self.provider_port}/token"}))
        uris = (f"https://127.0.0.1:{self.provider_port}/3/device/{number:08x}{f'{number:08x}' * 7}\n" for number in range(DEVICES))
        (self.folder / "uris").write_text("".join(uris))
        (self.folder / "post").write_bytes(b"x" * 140)

    def configure(self, name, port=None, **more):
        """Writes a configuration whose provider listens on `port`; returns its path."""
        endpoint = {"endpoint": f"https://127.0.0.1:{port or self.provider_port}", "ca": "ca.pem"}
        settings = {
            "broker": f"amqp://guest:guest@127.0.0.1:{self.broker_port}/", "log": "warning",
            "apps": {APP: {
                "apns": {"key": "AuthKey_ABC123DEFG.p8", "keyID": "ABC123DEFG", "teamID": "DEF123GHIJ", "topic": APP, **endpoint},
                "fcm": {"serviceAccount": "service-account.json", "messagesPerMinute": 100_000_000, **endpoint}}}}
        path = self.folder / f"{name}.json5"
        path.write_text(json.dumps(settings | more, indent=2))
        return str(path)

    def configure_apps(self, name, prefix, apps, **settings):
        """Writes a configuration of several applications, with queues of their own; returns its path."""
        path = self.folder / f"{name}.json5"
        path.write_text(json.dumps({
            "broker": f"amqp://guest:guest@127.0.0.1:{self.broker_port}/", "prefix": prefix, "log": "error", "apps": apps} | settings, indent=2))
        return str(path)

    def apns(self, topic, port):
        return {"key": "AuthKey_ABC123DEFG.p8", "keyID": "ABC123DEFG", "teamID": "DEF123GHIJ", "topic": topic,
                "endpoint": f"https://127.0.0.1:{port}", "ca": "ca.pem"}

    def fcm(self, port, quota):
        path = self.folder / f"account-{port}.json"
        account = json.loads((self.folder / "service-account.json").read_text())
        path.write_text(json.dumps(account | {"token_uri": f"https://127.0.0.1:{port}/token"}))
        return {"serviceAccount": path.name, "messagesPerMinute": quota, "endpoint": f"https://127.0.0.1:{port}", "ca": "ca.pem"}

    def free_port(self):
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            return one.getsockname()[1]

    # The floors

    def h2load(self, count):
        """CPU microseconds per request, for one TLS connection, 1,000 streams and POSTs of 140 bytes."""
        cost = measured([
            "h2load", "-n", str(count), "-c", "1", "-t", "1", "-m", "1000",
            "-d", str(self.folder / "post"), "-i", str(self.folder / "uris")])
        if f"status codes: {count} 2xx" not in cost.output:
            sys.exit(f"bench: h2load was not answered as expected\n{cost.output}")
        return cost.cpu / count * 1e6

    def amqp(self, mode, queue, count, *more):
        """CPU microseconds per message published or consumed with librabbitmq's blocking interface."""
        return float(measured([self.floor, mode, str(self.broker_port), queue, str(count), *more]).output.split()[1])

    def publish_many(self, queue, target, count, badge=None):
        """Publishes requests for a target, or for each target of a list in turn."""
        path = self.folder / "request"
        path.write_text("\n".join(request(one, badge) for one in ([target] if isinstance(target, str) else target)))
        return self.amqp("publish", queue, count, str(path), str(DEVICES))

    # The registry

    def register(self, name, count, location=None, **settings):
        """Fills a registry with `count` devices, in a new file or at `location`. Returns its configuration and the file."""
        path = self.folder / f"{name}.db"
        for leftover in self.folder.glob(f"{name}.db*"):
            leftover.unlink()
        config = self.configure(name, registry=location or f"sqlite:{path}", **settings)
        rows = self.folder / f"devices-{count}.csv"
        if not rows.exists():
            say(f"writing {count:,} devices")
            rows.write_text("platform,token,installation\n" + "".join(f"apns,{device(n)},i-{n:010d}\n" for n in range(count)))
        measured([self.pushfleet, "devices", "import", "--config", config, str(rows)])
        if location:
            self.ask_postgres("TRUNCATE pushfleet.notes, pushfleet.badges")
        return config, path

    def ask_postgres(self, statement):
        return subprocess.run(["psql", "-XqAt", "-c", statement, self.postgres], check=True, capture_output=True, text=True).stdout

    # The worker

    def start_worker(self, config=None, *more):
        return Running([self.pushfleet, "worker", "--config", config or self.config, *more])

    def work(self, expected, config=None):
        """Runs a worker until everything is delivered."""
        cost = self.start_worker(config, "--until-empty", "--json").finish()
        self.require_delivered(expected, cost)
        return cost

    def require_delivered(self, expected, *costs):
        delivered = sum(json.loads(cost.output.splitlines()[-1])["delivered"] for cost in costs)
        if delivered != expected:
            sys.exit(f"bench: {delivered} of {expected} pushes were delivered\n" + "\n".join(cost.output for cost in costs))

    @property
    def idle(self):
        """The cost of a worker that finds empty queues, which is not part of the rate of pushes."""
        if not hasattr(self, "_idle"):
            self._idle = self.work(0)
        return self._idle

    # The broker

    def channel(self):
        connection = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", self.broker_port, heartbeat=0))
        return connection, connection.channel()

    def publish(self, target, badge=None):
        """Publishes one request. Returns the Unix time of the publication."""
        connection, channel = self.channel()
        channel.confirm_delivery()
        now = time.time()
        properties = pika.BasicProperties(
            app_id=APP, message_id=str(uuid.uuid4()), timestamp=int(now), delivery_mode=2, content_type="application/json")
        now = time.time()
        channel.basic_publish("", "push.send.normal", request(target, badge), properties)
        connection.close()
        return now

    def depths(self, prefix, more):
        """Numbers of ready messages of all queues of requests, by name without the prefix; 0 for missing queues."""
        names = ["send.high", "send.normal", "quarantine", "dead", *(f"retry.{step}" for step in STEPS), *more]
        depths = dict.fromkeys(names, 0)
        for name in names:
            connection, channel = self.channel()
            with contextlib.suppress(pika.exceptions.ChannelClosedByBroker):
                depths[name] = channel.queue_declare(f"{prefix}.{name}", passive=True).method.message_count
            connection.close()
        return depths

    def empty(self, queue):
        connection, channel = self.channel()
        channel.queue_purge(queue)
        connection.close()

    def purge(self):
        connection, channel = self.channel()
        for queue in ["send.high", "send.normal", "fanout.high", "fanout.normal", *(f"retry.{step}" for step in STEPS)]:
            channel.queue_purge(f"push.{queue}")
        connection.close()
