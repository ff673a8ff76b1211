"""A million devices, written as CSV and imported, and the import that it is compared with."""

import contextlib
import itertools
import shutil
import sqlite3

from measure import Part, measured, say

# The table for sqlite3's .import, with the same indexes.
FLOOR = """
CREATE TABLE devices (platform TEXT NOT NULL, token TEXT NOT NULL, installation TEXT NOT NULL, topics TEXT NOT NULL);
CREATE UNIQUE INDEX devices_by_token ON devices (platform, token);
CREATE UNIQUE INDEX devices_by_installation ON devices (installation);
CREATE INDEX devices_by_topics ON devices (topics);
"""
# The topic of all devices, and the topic of every tenth.
EVERYONE, TENTH = "everyone", "tenth"


def registrations(path):
    """The registrations of all devices in a SQLite registry: the number of the device and its random number in base 32."""
    digits = "0123456789abcdefghjkmnpqrstvwxyz"
    with contextlib.closing(sqlite3.connect(path)) as database:
        keys = [device << 64 | salt & (1 << 64) - 1 for device, salt in database.execute("SELECT id, salt FROM devices ORDER BY id")]
    return ["pf1r~" + "".join(digits[key >> place & 31] for place in range(125, -1, -5)) for key in keys]


def token(number):
    """A token that looks random, like the providers' tokens, and differs for each number."""
    return f"{(number * 0x9E3779B97F4A7C15 + 1) & (1 << 64) - 1:016x}" * 4


class Registries:
    """The registries shared by the parts. Each is imported once."""

    def __init__(self, site):
        self.site = site
        self.csv = site.folder / "devices.csv"
        self.tenth_csv = site.folder / "tenth.csv"
        self.made = {}

    def write(self):
        if self.csv.exists():
            return
        say(f"writing {self.site.devices:,} devices")
        with open(self.csv, "w", encoding="ascii") as file:
            file.write("platform,token,installation,topics\n")
            for number in range(self.site.devices):
                topics = f"{EVERYONE}|{TENTH}" if number % 10 == 0 else EVERYONE
                file.write(f"apns,{token(number)},i-{number:010d},{topics}\n")

    def load(self, name, location, csv=None):
        """Imports the devices into an empty registry. Returns its configuration and the cost."""
        self.write()
        config = self.site.configure(name, registry=location)
        cost = measured([self.site.pushfleet, "devices", "import", "--config", config, str(csv or self.csv)])
        self.made[name] = config
        return config, cost

    def sqlite(self):
        """A configuration with the devices in SQLite."""
        return self.made.get("sqlite") or self.load("sqlite", f"sqlite:{self.site.folder}/registry.db")[0]

    def tenth(self):
        """A configuration with only the first tenth of the devices in SQLite."""
        if "tenth" not in self.made:
            self.write()
            with open(self.csv, encoding="ascii") as file, open(self.tenth_csv, "w", encoding="ascii") as part:
                part.writelines(itertools.islice(file, 1 + (self.site.devices + 9) // 10))
            self.load("tenth", f"sqlite:{self.site.folder}/tenth.db", self.tenth_csv)
        return self.made["tenth"]

    def postgres(self):
        return self.made.get("postgres") or self.load("postgres", self.site.postgres)[0]


class Import(Part):
    name = "import"
    rows = [
        ("sqlite3's .import, CPU per row", "floor_us", "{:.2f} µs"),
        ("devices import, CPU per row", "import_us", "{:.2f} µs"),
        ("devices import, rows per second", "rows_per_second", "{:,.0f}"),
        ("devices import, peak memory", "peak_rss_mib", "{:.1f} MiB"),
        ("wall time, to sqlite3's", "wall_ratio", "{:.2f}×"),
    ]
    limits = [("CPU, to sqlite3's .import", "ratio", 3.0, "{:.2f}×")]

    def __init__(self, site, registries):
        super().__init__(site)
        self.registries = registries

    def title(self):
        return f"Importing {self.site.devices:,} devices with their topics into SQLite"

    def round(self):
        self.registries.write()
        folder = self.site.folder / "floor"
        folder.mkdir()
        path = folder / "floor.db"
        with sqlite3.connect(path) as database:
            database.executescript(FLOOR)
        database.close()
        floor = measured(["sqlite3", "-batch", str(path), "-cmd", ".bail on", f".import --csv --skip 1 {self.registries.csv} devices"])
        shutil.rmtree(folder)
        for leftover in self.site.folder.glob("registry.db*"):
            leftover.unlink()
        _, cost = self.registries.load("sqlite", f"sqlite:{self.site.folder}/registry.db")
        rows = self.site.devices
        return {"floor_us": floor.cpu / rows * 1e6, "import_us": cost.cpu / rows * 1e6, "ratio": cost.cpu / floor.cpu,
                "wall_ratio": cost.wall / floor.wall, "rows_per_second": rows / cost.wall, "peak_rss_mib": cost.memory}
