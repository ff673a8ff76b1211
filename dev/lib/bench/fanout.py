"""Broadcasts: one request that becomes a push to each of a million devices."""

import calendar
import json
import os
import time

from measure import Part, say
from registry import EVERYONE, TENTH, token


class Fanout(Part):
    name = "fanout"
    rows = [
        ("h2load, CPU per request", "h2load_us", "{:.2f} µs"),
        ("worker, CPU per device", "all_us", "{:.2f} µs"),
        ("worker, CPU per device, a tenth as many", "tenth_us", "{:.2f} µs"),
        ("worker, CPU per device, every tenth of them", "spread_us", "{:.2f} µs"),
        ("worker, CPU per device with a badge", "badge_us", "{:.2f} µs"),
        ("worker, devices per second", "devices_per_second", "{:,.0f}"),
        ("two workers, CPU per device", "two_us", "{:.2f} µs"),
    ]
    limits = [
        ("device, to h2load's request", "ratio", 1.5, "{:.2f}×"),
        ("device with a badge, to h2load's request", "badge_ratio", 1.4, "{:.2f}×"),
        ("first push after publishing", "first_push_ms", 200.0, "{:.0f} ms"),
        ("peak memory", "peak_rss_mib", 64.0, "{:.1f} MiB"),
        ("device among a tenth as many, to one of all", "flatness", 1.2, "{:.2f}×"),
        ("the busier of two workers has", "larger_share", 0.6, "{:.0%}"),
    ]

    def __init__(self, site, registries):
        super().__init__(site)
        self.registries = registries

    def title(self):
        return f"A broadcast to {self.site.devices:,} devices on SQLite"

    def round(self):
        site, devices = self.site, self.site.devices
        config = self.registries.sqlite()
        serve_devices(site, devices)
        before = site.h2load(devices)
        everyone = broadcast(site, config, EVERYONE, devices)
        # Measured before and after, because other load on the machine varies.
        h2load = (before + site.h2load(devices)) / 2
        tenths = (devices + 9) // 10
        tenth = broadcast(site, self.registries.tenth(), EVERYONE, tenths)
        spread = broadcast(site, config, TENTH, tenths)
        counted = broadcast(site, config, EVERYONE, devices, "auto")
        pair = two_workers(site, config, devices)
        each, each_of_tenth = everyone.cpu / devices * 1e6, tenth.cpu / tenths * 1e6
        with_badge = counted.cpu / devices * 1e6
        # Without the cost of starting, which is not a cost per device.
        flatness = (tenth.cpu - site.idle.cpu) / tenths / ((everyone.cpu - site.idle.cpu) / devices)
        return {"h2load_us": h2load, "all_us": each, "tenth_us": each_of_tenth, "spread_us": spread.cpu / tenths * 1e6,
                "badge_us": with_badge, "badge_ratio": with_badge / h2load, "ratio": each / h2load, "flatness": max(flatness, 1 / flatness),
                "devices_per_second": devices / max(everyone.wall - site.idle.wall, 1e-3),
                "peak_rss_mib": everyone.memory, **pair, "first_push_ms": first_push(site)}

    def plot(self):
        median = self.median
        kinds = [("all devices", "all_us"), ("a tenth as many", "tenth_us"), ("every tenth device", "spread_us"), ("two workers", "two_us")]
        return ("CPU per device of a broadcast", "µs", "{:.1f}", [(label, median[key], median["h2load_us"]) for label, key in kinds],
                f"h2load's request: {median['h2load_us']:.1f} µs")


class Postgres(Part):
    name = "postgres"
    rows = [
        ("SQLite, worker's CPU per device", "sqlite_us", "{:.2f} µs"),
        ("PostgreSQL, worker's CPU per device", "postgres_us", "{:.2f} µs"),
        ("PostgreSQL, devices per second", "devices_per_second", "{:,.0f}"),
    ]
    limits = [
        ("CPU per device, to SQLite's", "ratio", 1.5, "{:.2f}×"),
        ("peak memory", "peak_rss_mib", 64.0, "{:.1f} MiB"),
    ]

    def __init__(self, site, registries):
        super().__init__(site)
        self.registries = registries

    def title(self):
        return f"The same broadcast to {self.site.devices:,} devices, from PostgreSQL and from SQLite"

    def round(self):
        site, devices = self.site, self.site.devices
        embedded, served = self.registries.sqlite(), self.registries.postgres()
        serve_devices(site, devices)
        sqlite, postgres = broadcast(site, embedded, EVERYONE, devices), broadcast(site, served, EVERYONE, devices)
        return {"sqlite_us": sqlite.cpu / devices * 1e6, "postgres_us": postgres.cpu / devices * 1e6,
                "ratio": postgres.cpu / sqlite.cpu, "peak_rss_mib": postgres.memory,
                "devices_per_second": devices / max(postgres.wall - site.idle.wall, 1e-3)}


def serve_devices(site, devices):
    """Links the path of each device to one empty file, so that nghttpd answers 200."""
    folder = site.folder / "www" / "3" / "device"
    if (folder / token(devices - 1)).exists():
        return
    say(f"making files for {devices:,} devices")
    empty = folder / ("0" * 64)
    empty.touch()
    for number in range(devices):
        path = folder / token(number)
        if not path.exists():
            os.link(empty, path)


def broadcast(site, config, topic, devices, badge=None):
    site.publish(f"/topics/{topic}", badge)
    return site.work(devices, config)


def two_workers(site, config, devices):
    site.publish(f"/topics/{EVERYONE}")
    workers = [site.start_worker(config, "--until-empty", "--json") for _ in range(2)]
    costs = [worker.finish() for worker in workers]
    site.require_delivered(devices, *costs)
    share = max(json.loads(cost.output.splitlines()[-1])["delivered"] for cost in costs) / devices
    return {"larger_share": share, "two_us": sum(cost.cpu for cost in costs) / devices * 1e6}


def first_push(site):
    """Milliseconds from publishing a broadcast to its first push in the journal of the APNs simulator, for a worker that isn't
    connected to APNs yet. Drops the rest of the broadcast."""
    config = site.configure("first", port=site.simulator_port, registry=f"sqlite:{site.folder}/registry.db")
    begin = site.journal.stat().st_size if site.journal.exists() else 0
    worker = site.start_worker(config, "--json")
    time.sleep(2)
    published = site.publish(f"/topics/{EVERYONE}")
    while not site.journal.exists() or site.journal.stat().st_size == begin:
        time.sleep(0.05)
        if time.time() - published > 60:
            raise SystemExit("bench: no push arrived within a minute")
    with open(site.journal, encoding="utf-8") as journal:
        journal.seek(begin)
        arrived = unix_time(json.loads(journal.readline())["time"])
    worker.end()
    site.purge()
    return (arrived - published) * 1000


def unix_time(text):
    seconds, fraction = text.rstrip("Z").split(".")
    return calendar.timegm(time.strptime(seconds, "%Y-%m-%dT%H:%M:%S")) + float("0." + fraction)
