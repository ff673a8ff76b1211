"""What the code of a push costs: its instructions, as valgrind counts them, and its allocations, as jemalloc does."""

import json
import pathlib
import re

from measure import Part, Running, measured
from services import APNS_TOKEN

BUDGET = json.loads(pathlib.Path(__file__).with_name("budget.json").read_text())
# One arena, and nothing that happens by the clock.
ALLOCATOR = "narenas:1,background_thread:false,dirty_decay_ms:-1,muzzy_decay_ms:-1"
FEW, MANY = 20_000, 40_000


class Instructions(Part):
    name = "instructions"
    rows = [("instructions per push", "instructions", "{:,.0f}"), ("allocations per push", "allocations", "{:.2f}")]
    limits = [
        ("instructions of a push", "instructions", BUDGET["instructions"] * 1.02, "{:,.0f}"),
        ("allocations of a push", "allocations", BUDGET["allocations"], "{:.2f}"),
    ]

    def __init__(self, site):
        super().__init__(site)
        # Valgrind can't read the program's debug information.
        self.program = str(site.folder / "stripped")
        # What is kept of each request depends on what else the machine does.
        self.config = site.configure("instructions", trace={"keep": "none"})
        measured(["strip", "--strip-debug", "-o", self.program, site.pushfleet])

    def title(self):
        return f"A worker that drains {MANY:,} requests, less one that drains {FEW:,}"

    def round(self):
        each = 1 / (MANY - FEW)
        return {"instructions": (self.instructions(MANY) - self.instructions(FEW)) * each,
                "allocations": (self.allocations(MANY) - self.allocations(FEW)) * each}

    def instructions(self, count):
        counts = self.site.folder / "callgrind.out"
        self.drain(count, ALLOCATOR, "valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={counts}")
        return int(re.search(r"^totals: (\d+)", counts.read_text(), re.M)[1])

    def allocations(self, count):
        said = self.drain(count, f"{ALLOCATOR},stats_print:true,stats_print_opts:Jgdablxe")
        return sum(int(number) for number in re.findall(r'"(?:small|large)":\{[^}]*"nrequests":(\d+)', said))

    def drain(self, count, allocator, *tool):
        """Publishes requests and has a worker deliver them all; returns what it wrote to standard error."""
        self.site.publish_many("push.send.normal", "apns:" + APNS_TOKEN, count)
        errors = self.site.folder / "errors"
        with open(errors, "w", encoding="utf-8") as file:
            worker = [self.program, "worker", "--config", self.config, "--until-empty", "--json"]
            cost = Running(["env", f"MALLOC_CONF={allocator}", *tool, *worker], errors=file).finish()
        self.site.require_delivered(count, cost)
        return errors.read_text(encoding="utf-8")
