"""The workers of the fleet. Each has separate links to all services."""

import json
import os
import signal
import subprocess
import time

from devices import APP
from process import Process, eventually

PREFETCH, PAGES = 50, 2
# Seconds for a stopping worker to finish its requests, and extra seconds that this program waits.
DRAIN, PATIENCE = 10, 15
# Seconds to wait at most for a started worker to handle signals.
LONGEST_LOADING = 10


class Worker:
    def __init__(self, number, fleet):
        self.number, self.fleet = number, fleet
        self.name = f"w{number}"
        self.generation = 0
        self.log_begin = 0
        self.folder = fleet.folder / self.name
        self.folder.mkdir()
        self.brokers = [fleet.proxy.link(f"{self.name}-broker{node.number}", node.port) for node in fleet.cluster.nodes]
        self.postgres = fleet.proxy.link(f"{self.name}-postgres", str(fleet.postgres.socket))
        # The address of web push is in each subscription, so all workers have the same.
        self.providers = {name: fleet.proxy.link(f"{self.name}-{name}", fleet.providers[name].port) for name in ("apns", "fcm")}
        self.rotate()
        self.process = Process(self.name, [fleet.pushfleet, "worker", "--config", self.folder / "config.json5"], fleet.folder)

    def rotate(self):
        """Replaces the key like an operator: first the key file, then the configuration with the new id."""
        self.generation += 1
        key = self.folder / "AuthKey.p8"
        subprocess.run(["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", f"{key}.new"],
                       check=True, capture_output=True)
        os.replace(f"{key}.new", key)
        self._configure()

    def _configure(self):
        # Each worker starts with a different broker.
        order = [self.brokers[(self.number + step) % len(self.brokers)].port for step in range(len(self.brokers))]
        shared = self.fleet.folder
        settings = {
            "broker": [f"amqp://guest:guest@127.0.0.1:{port}/" for port in order],
            "registry": f"postgresql://postgres@127.0.0.1:{self.postgres.port}/postgres?sslmode=disable",
            # Log every step of every request, for the analysis of failures.
            "log": "debug", "results": "all", "prefetch": PREFETCH, "laneQueues": self.fleet.lane_queues, "drainTimeout": DRAIN,
            "fanOut": {"pageSize": self.fleet.page, "prefetch": PAGES},
            "retry": {"steps": ["1s", "3s", "10s"], "attempts": 20},
            "apps": {APP: {
                "apns": {"key": "AuthKey.p8", "keyID": f"KEY{self.number}{self.generation:06d}", "teamID": "DEF123GHIJ", "topic": APP,
                         "endpoint": f"https://127.0.0.1:{self.providers['apns'].port}", "ca": str(shared / "ca.pem"), "timeout": 5},
                "fcm": {"serviceAccount": str(shared / "service-account.json"),
                        "endpoint": f"https://127.0.0.1:{self.providers['fcm'].port}", "ca": str(shared / "ca.pem")},
                "webpush": {"key": str(shared / "vapid.pem"), "subject": "mailto:chaos@example.com", "hosts": ["localhost"],
                            "ca": str(shared / "ca.pem")}}}}
        path = self.folder / "config.new"
        path.write_text(json.dumps(settings, indent=1))
        os.replace(path, self.folder / "config.json5")

    def start(self):
        self.log_begin = self.process.log.stat().st_size if self.process.log.exists() else 0
        self.process.start()

    def reload(self):
        """Sends SIGHUP to a running worker, once it handles signals: the signal would end a process that is still being loaded."""
        if eventually(lambda: self.has_logged("worker starts") or not self.process.is_running or self.process.is_frozen, LONGEST_LOADING):
            self.process.signal(signal.SIGHUP)
        else:
            self.fleet.note_trouble(f"{self.name} has not logged its start after {LONGEST_LOADING} s")

    @property
    def is_consuming(self):
        return self.has_logged("consuming")

    def has_logged(self, message):
        """True if the process has logged the message since its latest start."""
        return f'"{message}"'.encode() in self.process.log.read_bytes()[self.log_begin:]


class Restart:
    """Restarts a worker with SIGTERM, and waits until it consumes as far as the brokers allow. `poll` returns true when done; it never waits."""

    # Seconds before the next worker is restarted.
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
            self.worker.start()
            self.started_at = now
        return self.worker.is_consuming or not process.is_running or now - self.started_at > self.longest_start
