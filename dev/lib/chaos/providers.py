"""The simulated APNs, FCM and push service of browsers with their journals, and their faults, called storms."""

import json
import os
import signal

from devices import BROWSERS, PROJECT
from process import Process, eventually, free_ports, listens, wait_for

# Answers to all tokens that aren't always refused. APNs' 503 without Retry-After would mean a pause of 15 minutes.
STORMS = {
    "apns": {
        "goaway": {"goaway": {"last": "previous", "reason": "Shutdown"}, "every": 40},
        "goaway-none": {"goaway": {"last": "none"}, "every": 60},
        "too many requests": {"status": 429, "reason": "TooManyRequests", "retry_after": 1, "every": 2},
        "unavailable": {"status": 503, "reason": "ServiceUnavailable", "retry_after": 1},
        "shutdown": {"status": 503, "reason": "Shutdown", "every": 3},
        "refused streams": {"refuse": True, "every": 3},
        "reset streams": {"reset": True, "every": 5},
        "closed connections": {"close": True, "every": 50},
        "no answers": {"stall": True, "every": 4},
        "slow answers": {"delay_ms": 1500},
        "refused token": {"status": 403, "reason": "InvalidProviderToken"},
    },
    "fcm": {
        "goaway": {"goaway": True, "every": 40},
        "quota": {"status": 429, "reason": "QUOTA_EXCEEDED", "retry_after": 1, "every": 3},
        "unavailable": {"status": 503, "reason": "UNAVAILABLE", "retry_after": 1},
        "internal errors": {"status": 500, "reason": "INTERNAL", "every": 3},
        "refused streams": {"refuse": True, "every": 3},
        "closed connections": {"close": True, "every": 50},
        "no answers": {"stall": True, "every": 4},
        "unauthenticated": {"status": 401, "reason": "UNAUTHENTICATED", "every": 20},
        "token endpoint": {"status": 503},
    },
    "webpush": {
        "goaway": {"goaway": True, "every": 40},
        "too many requests": {"status": 429, "retry_after": 1, "every": 3},
        "unavailable": {"status": 503, "retry_after": 1},
        "internal errors": {"status": 500, "every": 3},
        "refused streams": {"refuse": True, "every": 3},
        "reset streams": {"reset": True, "every": 5},
        "closed connections": {"close": True, "every": 50},
        "no answers": {"stall": True, "every": 4},
        "slow answers": {"delay_ms": 1500},
    },
}


class Provider:
    def __init__(self, name, fleet):
        self.name, self.fleet = name, fleet
        self.port, = free_ports(1)
        self.journal = fleet.folder / f"{name}.ndjson"
        self.script = fleet.folder / f"{name}-script.json"
        self.subscriptions = fleet.folder / "subscriptions.ndjson"
        more = {"fcm": ["--project", PROJECT], "webpush": ["--subscriptions", str(BROWSERS), self.subscriptions]}.get(name, [])
        self.process = Process(name, [fleet.pushfleet, "simulate", name, "--listen", f"127.0.0.1:{self.port}", "--certificate",
                                      fleet.folder / "server.pem", "--key", fleet.folder / "server.key", "--journal", self.journal,
                                      "--script", self.script, *more], fleet.folder)
        self.scripts_played = 0

    def start(self):
        self._write(None)
        self.process.start()
        wait_for(lambda: listens(self.port), self.process, 60, "start")

    def storm(self, kind):
        """Starts a storm, which lasts until `calm`. Connections stay open."""
        step = STORMS[self.name][kind]
        self._play({"/token" if kind == "token endpoint" else "*": step})

    def calm(self):
        self._play(None)

    def _write(self, storm):
        path = self.script.with_suffix(".new")
        path.write_text(json.dumps(self.fleet.devices.script(self.name, storm)))
        os.replace(path, self.script)

    def _play(self, storm):
        """Loads a script. A frozen simulator reads it when it resumes."""
        self._write(storm)
        self.process.signal(signal.SIGHUP)
        self.scripts_played += 1
        if not self.process.is_frozen:
            eventually(lambda: self.process.log.read_text().count("plays its script") >= self.scripts_played, 30)
