#!/usr/bin/python3
"""The measuring part of deploy/bench.

bench.py prepare FOLDER PORT                         files that nghttpd serves, URIs for h2load, request bodies
bench.py run FOLDER PUSHFLEET BROKER-PORT [OPTIONS]  the rounds and the report
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

# Distinct devices, as paths differ from push to push at APNs too.
DEVICES = 1000
RATIO_LIMIT, MEMORY_LIMIT_MIB = 3.0, 64.0
QUEUE, FLOOR_QUEUE = "push.send.normal", "floor"
# Eight '@' become the number of the device.
REQUEST = {
    "to": "apns:" + "@" * 64,
    "priority": "high",
    "notification": {"title": "Portugal vs. Denmark", "body": "great match!", "sound": "default"},
    "data": {"Nick": "Mario", "Room": "PortugalVSDenmark", "url": "https://www.example.com/match/2659772?from=push&lang=en"},
}


def prepare(folder, port):
    """nghttpd answers a POST to an existing file with 200 and the file: empty ones, as APNs' answers are."""
    devices = folder / "www" / "3" / "device"
    devices.mkdir(parents=True)
    names = [f"{number:08x}" * 8 for number in range(DEVICES)]
    for name in names:
        (devices / name).touch()
    (folder / "uris").write_text("".join(f"https://127.0.0.1:{port}/3/device/{name}\n" for name in names))
    (folder / "post").write_bytes(b"x" * 140)
    (folder / "request").write_text(json.dumps(REQUEST, separators=(",", ":")))


def measured(command):
    """Runs a command; its standard output, CPU seconds (user and system), wall seconds and peak memory in MiB."""
    begun = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    output = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.monotonic() - begun
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"bench: {command[0]} ended with status {child.returncode}\n{output}")
    return output, usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024


class Bench:
    def __init__(self, folder, pushfleet, broker_port, count):
        self.folder, self.count = folder, count
        self.worker_command = [pushfleet, "worker", "--config", str(folder / "config.json5"), "--until-empty", "--json"]
        self.floor = str(folder / "amqp_floor")
        self.port = str(broker_port)
        # What starting, and making sure that all queues are empty, takes: not part of the rate of pushes.
        self.idle_wall = self.worker(0)[1]

    def amqp(self, mode, queue, *more):
        output, *_ = measured([self.floor, mode, self.port, queue, str(self.count), *more])
        return float(output.split()[1])

    def publish(self, queue):
        return self.amqp("publish", queue, str(self.folder / "request"), str(DEVICES))

    def http2(self):
        output, cpu, _, _ = measured([
            "h2load", "-n", str(self.count), "-c", "1", "-t", "1", "-m", "1000",
            "-d", str(self.folder / "post"), "-i", str(self.folder / "uris")])
        if f"status codes: {self.count} 2xx" not in output:
            sys.exit(f"bench: h2load was not answered as expected\n{output}")
        return cpu / self.count * 1e6

    def worker(self, expected):
        output, cpu, wall, memory = measured(self.worker_command)
        delivered = json.loads(output.splitlines()[-1])["delivered"]
        if delivered != expected:
            sys.exit(f"bench: {delivered} of {expected} requests were delivered\n{output}")
        return cpu, wall, memory

    def round(self):
        http2 = self.http2()
        self.publish(FLOOR_QUEUE)
        amqp = self.amqp("consume", FLOOR_QUEUE)
        self.publish(QUEUE)
        cpu, wall, memory = self.worker(self.count)
        worker = cpu / self.count * 1e6
        return {"h2load_us": http2, "amqp_us": amqp, "worker_us": worker, "ratio": worker / (http2 + amqp),
                "pushes_per_second": self.count / max(wall - self.idle_wall, 1e-3), "peak_rss_mib": memory}


def machine():
    """What kind of machine this is; nothing that names it."""
    cpu = [line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    return f"{cpu[0] if cpu else os.uname().machine}, {os.cpu_count()} CPUs"


def table(rounds, median, count):
    print(f"{machine()}\n{count} requests a round, {len(rounds)} rounds, median (least to most)\n")
    rows = [
        ("h2load, CPU per request", "h2load_us", "{:.2f} µs"),
        ("librabbitmq consume and ack, CPU per message", "amqp_us", "{:.2f} µs"),
        ("worker, CPU per push", "worker_us", "{:.2f} µs"),
        ("worker to floor", "ratio", "{:.2f}×"),
        ("worker, pushes per second", "pushes_per_second", "{:,.0f}"),
        ("worker, peak memory", "peak_rss_mib", "{:.1f} MiB"),
    ]
    for words, key, form in rows:
        values = [one[key] for one in rounds]
        print(f"{words:<46}{form.format(median[key]):>12}  ({form.format(min(values))} to {form.format(max(values))})")


def run(arguments):
    parser = argparse.ArgumentParser(prog="deploy/bench")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("pushfleet")
    parser.add_argument("broker_port", type=int)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    bench = Bench(options.folder, options.pushfleet, options.broker_port, options.count)
    rounds = []
    for number in range(1, options.rounds + 1):
        rounds.append(bench.round())
        print(f"round {number}: {rounds[-1]['worker_us']:.2f} µs a push, ratio {rounds[-1]['ratio']:.2f}", file=sys.stderr)
    median = {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}
    if options.json:
        print(json.dumps({"machine": machine(), "count": options.count, "rounds": rounds, "median": median}))
    else:
        table(rounds, median, options.count)
    if options.check and (median["ratio"] > RATIO_LIMIT or median["peak_rss_mib"] > MEMORY_LIMIT_MIB):
        sys.exit(f"bench: above the limit of {RATIO_LIMIT}× or of {MEMORY_LIMIT_MIB:.0f} MiB")


if __name__ == "__main__":
    if len(sys.argv) >= 4 and sys.argv[1] == "prepare":
        prepare(pathlib.Path(sys.argv[2]), sys.argv[3])
    elif len(sys.argv) >= 5 and sys.argv[1] == "run":
        run(sys.argv[2:])
    else:
        sys.exit(__doc__)
