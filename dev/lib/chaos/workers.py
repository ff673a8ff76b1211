"""The workers of the fleet, each with ways of its own to everything it talks to."""

import json
import os
import signal
import subprocess
import time

from devices import APP
from process import Process

PREFETCH, PAGE, PAGES = 50, 100, 2
# Seconds a stopping worker may take for what is on its way, and what this program waits beyond that.
DRAIN, PATIENCE = 10, 15


class Worker:
    def __init__(self, number, fleet):
        self.number, self.fleet = number, fleet
        self.name = f"w{number}"
        self.generation = 0
        self.folder = fleet.folder / self.name
        self.folder.mkdir()
        self.brokers = [fleet.proxy.link(f"{self.name}-broker{node.number}", node.port) for node in fleet.cluster.nodes]
        self.postgres = fleet.proxy.link(f"{self.name}-postgres", str(fleet.postgres.socket))
        self.providers = {name: fleet.proxy.link(f"{self.name}-{name}", provider.port) for name, provider in fleet.providers.items()}
        self.rotate()
        self.process = Process(self.name, [fleet.pushfleet, "worker", "--config", self.folder / "config.json5"], fleet.folder)

    def rotate(self):
        """A new key with a new id, as an operator replaces them: the key's file first, then what names it."""
        self.generation += 1
        key = self.folder / "AuthKey.p8"
        subprocess.run(["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", f"{key}.new"],
                       check=True, capture_output=True)
        os.replace(f"{key}.new", key)
        self._configure()

    def _configure(self):
        # Each begins with another broker.
        order = [self.brokers[(self.number + step) % len(self.brokers)].port for step in range(len(self.brokers))]
        shared = self.fleet.folder
        settings = {
            "broker": [f"amqp://guest:guest@127.0.0.1:{port}/" for port in order],
            "registry": f"postgresql://postgres@127.0.0.1:{self.postgres.port}/postgres?sslmode=disable",
            # Every step of every request, for those who look into what went wrong.
            "log": "debug", "results": "all", "prefetch": PREFETCH, "drainTimeout": DRAIN, "fanOut": {"pageSize": PAGE, "prefetch": PAGES},
            "retry": {"steps": ["1s", "3s", "10s"], "attempts": 20},
            "apps": {APP: {
                "apns": {"key": "AuthKey.p8", "keyID": f"KEY{self.number}{self.generation:06d}", "teamID": "DEF123GHIJ", "topic": APP,
                         "endpoint": f"https://127.0.0.1:{self.providers['apns'].port}", "ca": str(shared / "ca.pem"), "timeout": 5},
                "fcm": {"serviceAccount": str(shared / "service-account.json"),
                        "endpoint": f"https://127.0.0.1:{self.providers['fcm'].port}", "ca": str(shared / "ca.pem")}}}}
        path = self.folder / "config.new"
        path.write_text(json.dumps(settings, indent=1))
        os.replace(path, self.folder / "config.json5")

    def start(self):
        self.process.start()

    def reload(self):
        self.process.signal(signal.SIGHUP)

    def is_consuming(self, since=0):
        return self.process.log.read_bytes()[since:].find(b'"consuming"') >= 0


class Restart:
    """SIGTERM, wait, start, wait until it consumes as far as the brokers let it. `poll` returns whether it is over; it never waits."""

    # Seconds after which the next one goes on.
    longest_start = 5

    def __init__(self, worker):
        self.worker, self.trouble, self.started_at = worker, None, None
        self.stopped_at = time.monotonic()
        worker.process.signal(signal.SIGTERM)

    def poll(self):
        process, now = self.worker.process, time.monotonic()
        if self.started_at is None:
            if process.is_running:
                if now - self.stopped_at > DRAIN + PATIENCE:
                    process.kill()
                return False
            if process.child.returncode != 0:
                self.trouble = f"{self.worker.name} was asked to stop, and ended with {process.child.returncode}"
            self.log_begin = process.log.stat().st_size
            self.worker.start()
            self.started_at = now
        return self.worker.is_consuming(self.log_begin) or not process.is_running or now - self.started_at > self.longest_start
