"""A worker with thousands of applications: its start, and the delay of pushes during a reload."""

import base64
import json
import os
import random
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request

import pika

from fanout import unix_time
from measure import Part, Running, cpu
from services import APP, request

# Of each hundred applications, the numbers with a certificate and with a service account; the others have a key.
CERTIFICATES, ACCOUNTS = 1, 1
# Seconds between two requests, and seconds of sending around each reload: half before, half after.
PACE, SECONDS = 0.004, 4


class Applications(Part):
    name = "apps"
    rows = [
        ("from start to ready", "start_s", "{:.2f} s"),
        ("its CPU", "start_cpu_s", "{:.2f} s"),
        ("memory when ready", "rss_mib", "{:.0f} MiB"),
        ("memory after three reloads", "reloaded_rss_mib", "{:.0f} MiB"),
        ("from SIGHUP until the shard has a changed key", "reload_s", "{:.2f} s"),
        ("longest time without an arrival, before", "quiet_ms", "{:.0f} ms"),
        ("the same while a key is reloaded", "key_ms", "{:.0f} ms"),
        ("the same while a hundred applications are added", "added_ms", "{:.0f} ms"),
        ("the same while all credentials are reloaded", "all_ms", "{:.0f} ms"),
    ]
    limits = [
        ("from start to ready", "start_s", 10.0, "{:.2f} s"),
        ("longest pause while a key is reloaded", "key_ms", 100.0, "{:.0f} ms"),
        ("longest pause while applications are added", "added_ms", 100.0, "{:.0f} ms"),
    ]

    def title(self):
        return f"A worker with {self.site.apps:,} applications, a request each {PACE * 1000:.0f} ms for one of them"

    def round(self):
        site = self.site
        apps = {f"com.example.app{number:05}": self.application(number) for number in range(site.apps)}
        port = site.free_port()
        settings = {"metrics": f"127.0.0.1:{port}", "log": "info"}
        config = self.write(apps, settings)
        log = site.folder / "apps.log"
        with open(log, "wb") as errors:
            worker = Running([site.pushfleet, "worker", "--config", config], errors=errors)
        figures = {"start_s": until_ready(port, worker), "start_cpu_s": cpu(worker.child.pid), "rss_mib": resident(worker)}
        arrivals = Arrivals(site)
        figures["quiet_ms"] = arrivals.longest_pause(lambda: None)

        def reload_key():
            (site.folder / "keys" / "0.p8").write_bytes(key())
            self.reload(worker, log, figures)
        figures["key_ms"] = arrivals.longest_pause(reload_key)

        def add():
            for number in range(site.apps, site.apps + 100):
                apps[f"com.example.app{number:05}"] = self.application(number)
            self.write(apps, settings)
            self.reload(worker, log, {})
        figures["added_ms"] = arrivals.longest_pause(add)

        def reload_all():
            with open(site.folder / "ca.pem", "a", encoding="utf-8") as authorities:
                authorities.write("\n")
            self.reload(worker, log, {})
        figures["all_ms"] = arrivals.longest_pause(reload_all)
        figures["reloaded_rss_mib"] = resident(worker)
        arrivals.end()
        worker.end()
        return figures

    def write(self, apps, settings):
        """Writes a configuration with these applications and the one under load, whose provider keeps a journal."""
        port = self.site.simulator_port
        provider = {"endpoint": f"https://127.0.0.1:{port}", "ca": "ca.pem"}
        own = {"key": "AuthKey_ABC123DEFG.p8", "keyID": "ABC123DEFG", "teamID": "DEF123GHIJ", "topic": APP, **provider}
        return self.site.configure("apps", port, **settings, apps={APP: {"apns": own}, **apps})

    def application(self, number):
        folder = self.site.folder / "keys"
        folder.mkdir(exist_ok=True)
        provider = {"endpoint": "https://127.0.0.1:1", "ca": "ca.pem"}
        kind = number % 100
        if kind < 100 - CERTIFICATES - ACCOUNTS:
            (folder / f"{number}.p8").write_bytes(key())
            return {"apns": {"key": f"keys/{number}.p8", "keyID": "ABC123DEFG", "teamID": f"TEAM{number:06}", **provider}}
        if kind < 100 - ACCOUNTS:
            (folder / f"{number}.key").write_bytes(key())
            subprocess.run(
                ["openssl", "req", "-x509", "-key", f"{number}.key", "-out", f"{number}.pem", "-days", "90", "-subj", f"/CN=app{number}"],
                cwd=folder, check=True, capture_output=True)
            return {"apns": {"certificate": f"keys/{number}.pem", "key": f"keys/{number}.key", **provider}}
        account = json.loads((self.site.folder / "service-account.json").read_text()) | {"client_email": f"app{number}@example"}
        (folder / f"{number}.json").write_text(json.dumps(account))
        return {"fcm": {"serviceAccount": f"keys/{number}.json", **provider}}

    def reload(self, worker, log, figures):
        begun, seen = time.monotonic(), log.read_bytes().count(b'"message":"reloaded"')
        worker.child.send_signal(signal.SIGHUP)
        while log.read_bytes().count(b'"message":"reloaded"') == seen:
            if time.monotonic() - begun > 60:
                raise SystemExit("bench: not reloaded within a minute")
            time.sleep(0.02)
        figures["reload_s"] = time.monotonic() - begun


class Arrivals:
    """Sends continuously, and finds the longest time between two arrivals at the provider."""

    def __init__(self, site):
        self.site, self.sending = site, True
        self.thread = threading.Thread(target=self.send, daemon=True)
        self.thread.start()
        time.sleep(1)

    def send(self):
        connection, channel = self.site.channel()
        number, due = 0, time.monotonic()
        while self.sending:
            channel.basic_publish(
                "push.send", "normal", request(f"apns:{number:064x}"), pika.BasicProperties(app_id=APP, delivery_mode=2))
            number += 1
            due += PACE
            time.sleep(max(due - time.monotonic(), 0))
        connection.close()

    def longest_pause(self, action):
        begin = self.site.journal.stat().st_size
        time.sleep(SECONDS / 2)
        action()
        time.sleep(SECONDS / 2)
        with open(self.site.journal, encoding="utf-8") as journal:
            journal.seek(begin)
            times = [unix_time(json.loads(line)["time"]) for line in journal if '"token"' in line and line.endswith("\n")]
        return max(later - earlier for earlier, later in zip(times, times[1:])) * 1000

    def end(self):
        self.sending = False
        self.thread.join()


def key():
    """Makes a new signing key, PKCS#8 on P-256. OpenSSL computes its public key."""
    secret = bytes([random.randrange(1, 255)]) + os.urandom(31)
    inner = bytes.fromhex("3025020101" + "0420") + secret
    der = bytes.fromhex("020100301306072a8648ce3d020106082a8648ce3d030107" + "0427") + inner
    text = base64.b64encode(bytes([0x30, len(der)]) + der).decode()
    return f"-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n".encode()


def until_ready(port, worker):
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=1):
                return time.monotonic() - worker.begun
        except (urllib.error.URLError, OSError):
            if time.monotonic() - worker.begun > 300:
                raise SystemExit("bench: not ready within five minutes")
            time.sleep(0.02)


def resident(worker):
    for line in open(f"/proc/{worker.child.pid}/status"):
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0
