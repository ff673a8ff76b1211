"""Single pushes: the worker compared with its libraries alone, FCM with APNs, and translation alone."""

from measure import Part, measured
from registry import registrations
from services import APNS_TOKEN, DEVICES, FCM_TOKEN, request

QUEUE, FLOOR_QUEUE = "push.send.normal", "floor"


class Worker(Part):
    name = "worker"
    rows = [
        ("h2load, CPU per request", "h2load_us", "{:.2f} µs"),
        ("librabbitmq consume and ack, CPU per message", "amqp_us", "{:.2f} µs"),
        ("worker, CPU per push to APNs", "apns_us", "{:.2f} µs"),
        ("worker, CPU per push to FCM", "fcm_us", "{:.2f} µs"),
        ("worker, pushes per second", "pushes_per_second", "{:,.0f}"),
        ("worker, CPU per push with a badge, SQLite", "badge_us", "{:.2f} µs"),
        ("worker, CPU per push with a badge, PostgreSQL", "badge_postgres_us", "{:.2f} µs"),
        ("worker, pushes with a badge per second, SQLite", "badges_per_second", "{:,.0f}"),
        ("worker, CPU per push to a registration, SQLite", "registration_us", "{:.2f} µs"),
        ("push to a registration, to one to a token", "registration_ratio", "{:.2f}×"),
        ("push to a registration, to the floor", "registration_to_floor", "{:.2f}×"),
        ("worker, CPU per push with a result", "result_us", "{:.2f} µs"),
        ("push with a result, to one without", "result_ratio", "{:.2f}×"),
        ("push with a result, to the floor", "result_to_floor", "{:.2f}×"),
    ]
    limits = [
        ("push to APNs, to the floor", "ratio", 3.0, "{:.2f}×"),
        ("push to FCM, to one to APNs", "fcm_to_apns", 1.3, "{:.2f}×"),
        ("push with a badge, to one without, SQLite", "badge_ratio", 1.6, "{:.2f}×"),
        ("push with a badge, PostgreSQL, by the clock", "badge_postgres_wall_us", 100.0, "{:.1f} µs"),
        ("peak memory", "peak_rss_mib", 64.0, "{:.1f} MiB"),
        # This finds a leak of 64 bytes per request.
        ("peak memory, above that for a quarter of the requests", "growth_mib", 4.0, "{:.1f} MiB"),
    ]

    def title(self):
        return f"Single pushes, {self.site.count:,} a round"

    def round(self):
        site, count = self.site, self.site.count
        idle = site.idle
        h2load = site.h2load(count)
        site.publish_many(FLOOR_QUEUE, "apns:" + APNS_TOKEN, count)
        amqp = site.amqp("consume", FLOOR_QUEUE, count)
        quarter = self.deliver("apns:" + APNS_TOKEN, max(count // 4, 1))
        apns, fcm = self.deliver("apns:" + APNS_TOKEN, count), self.deliver("fcm:" + FCM_TOKEN, count)
        badges, served = self.count_badges("badges"), self.count_badges("badges-postgres", site.postgres)
        registered, result = self.address("registrations"), self.report("results")
        floor = h2load + amqp
        push, registration_us, result_us = (cost.cpu / count * 1e6 for cost in (apns, registered, result))
        return {"h2load_us": h2load, "amqp_us": amqp, "apns_us": push, "fcm_us": fcm.cpu / count * 1e6,
                "ratio": push / floor, "fcm_to_apns": fcm.cpu / apns.cpu,
                "badge_us": badges.cpu / count * 1e6, "badge_postgres_us": served.cpu / count * 1e6,
                "badge_ratio": badges.cpu / apns.cpu, "badges_per_second": count / max(badges.wall - idle.wall, 1e-3),
                "badge_postgres_wall_us": max(served.wall - idle.wall, 1e-3) / count * 1e6,
                "registration_us": registration_us, "registration_ratio": registration_us / push, "registration_to_floor": registration_us / floor,
                "result_us": result_us, "result_ratio": result_us / push, "result_to_floor": result_us / floor,
                "pushes_per_second": count / max(apns.wall - idle.wall, 1e-3),
                "peak_rss_mib": max(cost.memory for cost in (apns, fcm, badges, served, registered, result)), "growth_mib": max(apns.memory - quarter.memory, 0)}

    def plot(self):
        kinds = [("APNs", "apns_us"), ("FCM", "fcm_us"), ("to a registration, SQLite", "registration_us"), ("with a result", "result_us"),
                 ("with a badge, SQLite", "badge_us"), ("with a badge, PostgreSQL", "badge_postgres_us")]
        median = self.median
        floor = median["h2load_us"] + median["amqp_us"]
        return ("CPU per push", "µs", "{:.1f}", [(label, median[key], floor) for label, key in kinds],
                f"floor: h2load's request plus librabbitmq's message, {floor:.1f} µs")

    def deliver(self, target, count):
        self.site.publish_many(QUEUE, target, count)
        return self.site.work(count)

    def count_badges(self, name, location=None):
        """The same requests with a counting badge, for registered devices."""
        config, _ = self.site.register(name, DEVICES, location)
        self.site.publish_many(QUEUE, "apns:" + APNS_TOKEN, self.site.count, badge="auto")
        return self.site.work(self.site.count, config)

    def address(self, name):
        """The same requests to the registrations of the devices."""
        config, path = self.site.register(name, DEVICES)
        self.site.publish_many(QUEUE, registrations(path), self.site.count)
        return self.site.work(self.site.count, config)

    def report(self, name):
        """The same requests with a result for each."""
        self.site.publish_many(QUEUE, "apns:" + APNS_TOKEN, self.site.count)
        cost = self.site.work(self.site.count, self.site.configure(name, results="all"))
        self.site.empty("push.results")
        return cost


class Translation(Part):
    name = "translation"
    rows = [
        ("parse and translate for APNs", "apns_ns", "{:,.0f} ns"),
        ("parse and translate for FCM", "fcm_ns", "{:,.0f} ns"),
    ]
    limits = [
        ("for APNs", "apns_ns", 2000, "{:,.0f} ns"),
        ("for FCM", "fcm_ns", 2000, "{:,.0f} ns"),
    ]
    count = 200_000

    def title(self):
        size = len(request(self.target("apns")))
        return f"Parsing and translating a request of {size} bytes, without I/O, {self.count:,} times a round"

    @staticmethod
    def target(platform):
        return {"apns": "apns:" + APNS_TOKEN, "fcm": "fcm:" + FCM_TOKEN}[platform].replace("@", "a")

    def round(self):
        return {f"{platform}_ns": (self.cpu(platform, self.count) - self.cpu(platform, 0)) / self.count * 1e9
                for platform in ("apns", "fcm")}

    def cpu(self, platform, count):
        path = self.site.folder / "translation"
        path.write_text(request(self.target(platform)) + "\n")
        with open(path, "rb") as stdin:
            return measured([self.site.benchmarks, platform, str(count)], stdin).cpu
