"""The gateway's HTTP door, compared with a server of the same library plus a confirmed publication, under the same load."""

import pathlib
import re

from applications import until_ready
from measure import Part, Running, cpu, measured
from services import APNS_TOKEN, APP, request

# Parallel requests for the cost of a request, and for memory; seconds of each load.
TOGETHER, MANY, SECONDS = 64, 1000, 5
SCRIPT = pathlib.Path(__file__).with_name("gateway.lua")
FLOOR_QUEUE = "floor"


class Gateway(Part):
    name = "gateway"
    rows = [
        ("libmicrohttpd alone, CPU per request", "http_us", "{:.2f} µs"),
        ("librabbitmq publish and confirm, CPU per message", "amqp_us", "{:.2f} µs"),
        ("gateway, CPU per request", "gateway_us", "{:.2f} µs"),
        ("libmicrohttpd alone, requests per second", "http_per_second", "{:,.0f}"),
        ("librabbitmq, messages per second", "amqp_per_second", "{:,.0f}"),
        ("gateway, requests per second", "gateway_per_second", "{:,.0f}"),
        ("gateway, CPU per request with an Idempotency-Key", "keyed_us", "{:.2f} µs"),
        ("gateway, requests per second with an Idempotency-Key", "keyed_per_second", "{:,.0f}"),
        (f"gateway, half of the answers within, {TOGETHER} at once", "half_ms", "{:.2f} ms"),
        (f"gateway, requests per second, {MANY:,} connections", "many_per_second", "{:,.0f}"),
    ]
    limits = [
        ("POST /fcm/send, CPU to the floor", "ratio", 2.0, "{:.2f}×"),
        ("POST /fcm/send, by the clock, to the floor", "wall_ratio", 2.0, "{:.2f}×"),
        (f"peak memory, {MANY:,} connections", "peak_rss_mib", 64.0, "{:.1f} MiB"),
    ]

    def title(self):
        return f"POST /fcm/send until the broker has confirmed it, {TOGETHER} at once for {SECONDS} s"

    def __init__(self, site):
        super().__init__(site)
        self.sent = 0
        self.port = site.free_port()
        self.config = site.configure(
            "gateway", registry=f"sqlite:{site.folder / 'gateway.db'}", gateway={"http": {"listen": f"127.0.0.1:{self.port}", "wait": 0}})
        self.key = measured(
            [site.pushfleet, "keys", "create", "--config", self.config, "--app", APP, "--rights", "send", "--rate", "1000000"]).output.split()[0]
        self.body = site.folder / "gateway-body"
        self.body.write_text(request("apns:" + APNS_TOKEN))

    def round(self):
        site = self.site
        port = site.free_port()
        floor = Running([str(site.folder / "http_floor"), str(port)])
        until_ready(port, floor)
        http = self.load(floor.child.pid, port, TOGETHER)
        floor.end()
        count = max(http.count // 2, 1)
        amqp = measured([site.floor, "publish", str(site.broker_port), FLOOR_QUEUE, str(count), str(self.body), str(count), str(TOGETHER)])
        amqp_per_second, amqp_us = map(float, amqp.output.split())
        site.empty(FLOOR_QUEUE)
        gateway = Running([site.pushfleet, "gateway", "--config", self.config])
        until_ready(self.port, gateway)
        self.load(gateway.child.pid, self.port, TOGETHER, 1)
        own = self.load(gateway.child.pid, self.port, TOGETHER)
        site.purge()
        many = self.load(gateway.child.pid, self.port, MANY)
        site.purge()
        cost = gateway.end()
        # A new gateway, because the remembered idempotency keys must not count in the memory above.
        gateway = Running([site.pushfleet, "gateway", "--config", self.config])
        until_ready(self.port, gateway)
        keyed = self.load(gateway.child.pid, self.port, TOGETHER, how=["keyed"])
        site.purge()
        gateway.end()
        return {"http_us": http.us, "amqp_us": amqp_us, "gateway_us": own.us, "ratio": own.us / (http.us + amqp_us),
                "http_per_second": http.per_second, "amqp_per_second": amqp_per_second, "gateway_per_second": own.per_second,
                "wall_ratio": 1 / own.per_second / (1 / http.per_second + 1 / amqp_per_second),
                "keyed_us": keyed.us, "keyed_per_second": keyed.per_second, "half_ms": own.half_ms,
                "many_per_second": many.per_second, "peak_rss_mib": cost.memory}

    def load(self, pid, port, together, seconds=SECONDS, how=()):
        """Loads a process with connections that each have one request at a time."""
        before = cpu(pid)
        output = measured([
            "wrk", "-t", "1", "-c", str(together), "-d", f"{seconds}s", "--latency", "-s", str(SCRIPT), f"http://127.0.0.1:{port}", "--",
            self.key, str(self.body), str(self.sent), *how]).output
        load = Load(output, cpu(pid) - before)
        self.sent += load.count + together
        return load


class Load:
    def __init__(self, output, cpu_seconds):
        found = re.search(r"(\d+) requests in ([\d.]+)(m?s)", output)
        if not found or "Non-2xx" in output or "Socket errors" in output:
            raise SystemExit(f"bench: wrk was not answered as expected\n{output}")
        self.count = int(found[1])
        self.us = cpu_seconds / self.count * 1e6
        self.per_second = float(re.search(r"Requests/sec: +([\d.]+)", output)[1])
        half = re.search(r"50% +([\d.]+)(us|ms|s)", output)
        self.half_ms = float(half[1]) * {"us": 1e-3, "ms": 1, "s": 1e3}[half[2]]
