"""The fleet of one round: its folder and all processes."""

import functools
import json
import subprocess

import pika.exceptions

from cluster import Cluster
from collect import OUTCOMES, Journal, Visit, lanes
from devices import BROWSERS, PROJECT, Devices, endpoint_of
from faults import WORKERS
from books import Bound, Outcomes
from postgres import Postgres
from process import Failure, eventually
from producer import LIST, Producer
from providers import Provider
from proxy import Proxy
from workers import DRAIN, PAGES, PATIENCE, PREFETCH, Worker

# Numbers of devices addressed by token, and of members of the topic.
RAW, MEMBERS = 2000, 1000
PRODUCERS = 3


class Fleet:
    def __init__(self, folder, pushfleet, lane_queues, page):
        self.folder, self.pushfleet, self.lane_queues, self.page = folder, pushfleet, lane_queues, page
        self.lanes = lanes(lane_queues)
        self.trouble = []
        self.devices = Devices(RAW, MEMBERS, BROWSERS)
        self.cluster, self.postgres, self.proxy = Cluster(folder), Postgres(folder), Proxy()
        self.providers = {name: Provider(name, self) for name in ("apns", "fcm", "webpush")}
        self.workers, self.producers = [], []

    def note_trouble(self, words):
        """Notes a violation that the checks of outcomes don't find."""
        self.trouble.append(words)

    def worker(self, name):
        return self.workers[int(name[1:]) - 1]

    # Start

    def start(self):
        self.postgres.make()
        self.postgres.start()
        for provider in self.providers.values():
            provider.start()
        self.cluster.start()
        self.postgres.wait()
        if not eventually(lambda: self.devices.subscribe(self.providers["webpush"].subscriptions), 30):
            raise Failure("the simulator has not written the subscriptions of all browsers")
        self.write_account()
        self.write_vapid_key()
        self.workers = [Worker(number, self) for number in range(1, WORKERS + 1)]
        self.command("topology")
        self.devices.write_members(self.folder / "devices.ndjson")
        self.command("devices", "import", operands=[str(self.folder / "devices.ndjson")])
        for worker in self.workers:
            worker.start()
        if not eventually(lambda: all(worker.is_consuming for worker in self.workers), 60):
            raise Failure("a worker did not begin to consume: " + "\n".join(worker.process.log_tail(3) for worker in self.workers))

    def write_account(self):
        key = subprocess.run(["openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"], check=True,
                             capture_output=True, text=True).stdout
        (self.folder / "service-account.json").write_text(json.dumps({
            "type": "service_account", "project_id": PROJECT, "private_key_id": "chaos", "private_key": key,
            "client_email": f"chaos@{PROJECT}.iam.example", "token_uri": "https://oauth2.googleapis.com/token"}))

    def write_vapid_key(self):
        subprocess.run(["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out",
                        self.folder / "vapid.pem"], check=True, capture_output=True)

    def command(self, *words, operands=()):
        """Runs a command of pushfleet with the first worker's configuration."""
        done = subprocess.run([self.pushfleet, *words, "--config", str(self.workers[0].folder / "config.json5"), *operands],
                              capture_output=True, text=True, timeout=120, check=False)
        if done.returncode != 0:
            raise Failure(f"pushfleet {' '.join(words)} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def start_producing(self, seed, rate):
        self.producers = [Producer(number, self, seed, rate / PRODUCERS) for number in range(1, PRODUCERS + 1)]
        for producer in self.producers:
            producer.start()

    # End

    def finish_producing(self, seconds=120):
        """Stops new requests. Current ones are repeated until they are confirmed."""
        for producer in self.producers:
            producer.stop()
        for producer in self.producers:
            producer.join(seconds)
            if producer.is_alive():
                self.note_trouble(f"{producer.name} has not had its last request confirmed after {seconds} s")
            elif producer.fault:
                self.note_trouble(f"{producer.name} ended: {type(producer.fault).__name__}: {producer.fault}")

    def waiting(self):
        """Number of ready messages in the lanes."""
        with Visit(self.cluster.nodes[0].port) as visit:
            return visit.ready(self.lanes)

    def is_empty(self):
        """True if no message is ready or unacknowledged. False if that can't be determined."""
        try:
            if any(self.waiting().values()):
                return False
            depths = self.cluster.depths()
        except (Failure, OSError, pika.exceptions.AMQPError):
            return False
        return not any(depths.get(f"push.{name}", 1) for name in self.lanes)

    def left_by_broker(self):
        """Lanes with messages that the broker counts as unacknowledged although no worker holds a request. Empty if that can't be
        determined."""
        try:
            if any(self.waiting().values()):
                return []
            reports = map(json.loads, self.command("status", "--json").splitlines())
            workers = [one for one in reports if one["kind"] == "worker"]
            if len(workers) < len(self.workers) or any(one["in_hand"] for one in workers):
                return []
            depths = self.cluster.depths()
        except (Failure, OSError, pika.exceptions.AMQPError):
            return []
        return [f"push.{name}" for name in self.lanes if depths.get(f"push.{name}")]

    def stop_workers(self):
        """Stops the workers. Each must exit with status 0."""
        for worker in self.workers:
            status = worker.process.terminate(DRAIN + PATIENCE)
            if status != 0:
                self.note_trouble(f"{worker.name} ended with {'SIGKILL, too late' if status is None else status}")

    # Outcomes

    @property
    def requests(self):
        return [request for producer in self.producers for request in producer.requests]

    def write_requests(self):
        """Writes all requests to a file, for the analysis of failures."""
        with open(self.folder / "requests.ndjson", "w", encoding="utf-8") as file:
            for one in self.requests:
                file.write(json.dumps({"id": one.id, "kind": one.kind, "lane": one.lane, "published": one.attempts,
                                       "accepted": one.is_accepted, "at": one.accepted_at, "body": one.body}) + "\n")

    def outcomes(self):
        tokens = self.devices.tokens
        journals = {name: Journal(provider.journal, tokens) for name, provider in self.providers.items()}
        self.said = {name: journal.others for name, journal in journals.items()}
        with Visit(self.cluster.nodes[0].port) as visit:
            left = visit.ready(self.lanes)
            taken = {name: visit.take(name, self.folder / f"{name}.ndjson") for name in OUTCOMES}
        listed = self.command("campaigns", "--json", "--limit", "10000").splitlines()
        campaigns = {one["message_id"]: one["state"] for one in map(json.loads, listed)}
        return Outcomes(delivered=[push for journal in journals.values() for push in journal.delivered],
                        violations=[words for journal in journals.values() for words in journal.violations],
                        feedback=taken["feedback"], dead=taken["dead"], results=taken["results"], left=left,
                        campaigns=campaigns, resolve=functools.cache(self.token_of))

    def token_of(self, target):
        """The provider token of a registered device, or the endpoint of a browser that isn't registered."""
        if target.startswith("webpush:"):
            return endpoint_of(target)
        shown = json.loads(self.command("devices", "show", "--json", "--registration", target))
        return shown["token"]

    def bound(self, faults):
        """The most pushes that may be sent twice: everything in progress at each loss of a worker and of each provider connection."""
        cuts = sum(fault.cut_off for fault in faults)
        drops = sum(said["close"] for said in self.said.values())
        return Bound(requests=(cuts + drops) * (2 * PREFETCH + 1), devices=(cuts + drops) * 2 * PAGES * self.page, longest=LIST)
