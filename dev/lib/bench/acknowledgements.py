"""Acknowledgements of devices, stored in the registry: single messages, and lists of a thousand."""

import json
import sqlite3
import time

import pika

from measure import Part
from services import APP, device

TOGETHER = 1000


class Acknowledgements(Part):
    name = "acks"
    rows = [
        ("single messages, noted per second", "single_per_second", "{:,.0f}"),
        ("single messages, worker's CPU each", "single_us", "{:.1f} µs"),
        ("lists of 1,000, noted per second", "list_per_second", "{:,.0f}"),
        ("lists of 1,000, worker's CPU each", "list_us", "{:.1f} µs"),
        ("lists of 1,000 with receipts, noted per second", "receipts_per_second", "{:,.0f}"),
        ("lists of 1,000 with receipts, worker's CPU each", "receipts_us", "{:.1f} µs"),
        ("lists of 1,000 on PostgreSQL, noted per second", "postgres_per_second", "{:,.0f}"),
        ("lists of 1,000 on PostgreSQL, worker's CPU each", "postgres_us", "{:.1f} µs"),
        ("worker's peak memory", "peak_rss_mib", "{:.1f} MiB"),
    ]
    limits = [("each by the clock, in lists", "list_wall_us", 50.0, "{:.1f} µs")]

    def title(self):
        return f"{self.site.count:,} acknowledgements of as many devices, half of them reads, noted in SQLite and in PostgreSQL"

    def round(self):
        site = self.site
        single = self._noted("acks-single", self._publish_single)
        listed = self._noted("acks-list", self._publish_lists)
        receipts = self._noted("acks-receipts", self._publish_lists, receipts=True)
        served = self._noted("acks-postgres", self._publish_lists, location=site.postgres)
        return {"single_per_second": single[0], "single_us": single[1].cpu / site.count * 1e6, "list_per_second": listed[0],
                "list_us": listed[1].cpu / site.count * 1e6, "list_wall_us": 1e6 / listed[0], "receipts_per_second": receipts[0],
                "receipts_us": receipts[1].cpu / site.count * 1e6, "postgres_per_second": served[0],
                "postgres_us": served[1].cpu / site.count * 1e6,
                "peak_rss_mib": max(cost.memory for _, cost in (single, listed, receipts, served))}

    def _noted(self, name, publish, location=None, **settings):
        """Stored acknowledgements per second and their cost, for a worker with a full queue and a registry in a new file or at `location`."""
        count = self.site.count
        config, registry = self.site.register(name, count, location, **settings)
        publish(count)
        worker = self.site.start_worker(config, "--json")
        database = None if location else sqlite3.connect(f"file:{registry}?mode=ro", uri=True)
        first = last = (time.monotonic(), 0)
        end = time.monotonic() + 120
        while last[1] < count and time.monotonic() < end:
            time.sleep(0.05)
            if location:
                noted = int(self.site.ask_postgres("SELECT count(*) FROM pushfleet.notes"))
            else:
                noted = database.execute("SELECT count(*) FROM notes").fetchone()[0]
            last = (time.monotonic(), noted)
            if first[1] == 0:
                first = last
        if database:
            database.close()
        cost = worker.end()
        if last[1] != count:
            raise SystemExit(f"bench: {last[1]} of {count} acknowledgements were noted\n{cost.output[-2000:]}")
        connection, channel = self.site.channel()
        for queue in ("push.acks", "push.receipts"):
            channel.queue_purge(queue)
        connection.close()
        return (last[1] - first[1]) / max(last[0] - first[0], 1e-3), cost

    def _publish_single(self, count):
        path = self.site.folder / "ack"
        path.write_text(json.dumps({"op": "received", "token": "@" * 64, "message_id": "m", "app": APP}, separators=(",", ":")))
        self.site.amqp("publish", "push.acks", count, str(path), str(count))

    def _publish_lists(self, count):
        connection, channel = self.site.channel()
        channel.confirm_delivery()
        for start in range(0, count, TOGETHER):
            said = [{"op": "read" if n % 2 else "received", "token": device(n), "message_id": "m"} for n in range(start, min(start + TOGETHER, count))]
            channel.basic_publish(
                "push.acks", "ack", json.dumps(said, separators=(",", ":")), pika.BasicProperties(app_id=APP, delivery_mode=2))
        connection.close()
