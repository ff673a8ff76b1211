"""What the code costs on six paths: instructions and reference counting as valgrind counts them, allocations as jemalloc does, and
system calls as strace does."""

import collections
import http.client
import json
import pathlib
import re
import socket

from applications import until_ready
from measure import Part, Running, measured
from registry import token
from services import APNS_TOKEN, APP, DEVICES, request

# The cost of a request on each path. A check allows 3% more: the size of batches, and with it the same program's counts, differ by 2%
# between machines. System calls depend on how busy the machine is: their budget is a ceiling.
BUDGET = json.loads(pathlib.Path(__file__).with_name("budget.json").read_text())
MARGIN = 1.03
# A single arena, and nothing that happens by the clock.
ALLOCATOR = "narenas:1,background_thread:false,dirty_decay_ms:-1,muzzy_decay_ms:-1"
# The broker and the provider come first on a busy machine, so batches differ less.
CALLGRIND = ["env", f"MALLOC_CONF={ALLOCATOR}", "nice", "-n", "5", "valgrind", "--quiet", "--tool=callgrind", "--compress-strings=no"]
# Devices of the two topics. Connections to the gateway: the counts of requests to it are multiples of this.
TOPICS, TOGETHER = (4_000, 16_000), 64
FORM = {"instructions": "{:,.0f}", "retains and releases": "{:,.1f}", "allocations": "{:.2f}", "system calls": "{:.3f}"}


class Instructions(Part):
    name = "instructions"
    limits = [(f"{path}: {figure}", f"{path}: {figure}", budget * MARGIN, FORM[figure])
              for path, figures in BUDGET.items() for figure, budget in figures.items()]

    def __init__(self, site):
        super().__init__(site)
        # Valgrind can't read the program's debug information.
        self.program = str(site.folder / "stripped")
        measured(["strip", "--strip-debug", "-o", self.program, site.pushfleet])
        # Each cost is that of many requests less that of few, so starting and ending cancel out. Less precise counts need more requests:
        # the first pair is for valgrind, the second one for jemalloc and strace.
        self.paths = {"push": (self.push, (1_000, 5_000), (10_000, 30_000)),
                      "push with a badge": (self.badge, (1_000, 4_000), (10_000, 30_000)),
                      "push with a result": (self.result, (1_000, 4_000), (10_000, 30_000)),
                      "device of a broadcast": (self.broadcast, TOPICS, TOPICS),
                      "device of a broadcast with a badge": (self.broadcast_with_badge, TOPICS, TOPICS),
                      "gateway request": (self.gateway, (320, 1_600), (1_600, 8_000))}
        self.errors = site.folder / "errors"
        # Calls of each function.
        self.calls = collections.Counter()
        self.config = self.configure("push")
        self.config_of_results = self.configure("results", results="all")
        self.config_of_topics = self.register_topics("topics")
        self.port = site.free_port()
        self.config_of_gateway = self.configure(
            "gateway", registry=f"sqlite:{site.folder}/keys.db", gateway={"http": {"listen": f"127.0.0.1:{self.port}", "wait": 0}})
        self.key = measured([site.pushfleet, "keys", "create", "--config", self.config_of_gateway, "--app", APP, "--rights", "send",
                             "--rate", "1000000"]).output.split()[0]

    def configure(self, name, **settings):
        # How many requests the trace keeps depends on what else the machine does.
        return self.site.configure(f"instructions-{name}", trace={"keep": "none"}, **settings)

    def register_topics(self, name):
        """A new registry with two topics: all devices are in the larger one, the first of them in the smaller one too."""
        few, many = TOPICS
        for leftover in self.site.folder.glob(f"{name}.db*"):
            leftover.unlink()
        config = self.configure(name, registry=f"sqlite:{self.site.folder}/{name}.db")
        rows = self.site.folder / "topics.csv"
        rows.write_text("platform,token,installation,topics\n" + "".join(
            f"apns,{token(n)},i-{n:010d},of{many}{f'|of{few}' if n < few else ''}\n" for n in range(many)))
        measured([self.site.pushfleet, "devices", "import", "--config", config, str(rows)])
        for number in range(many):
            (self.site.folder / "www" / "3" / "device" / token(number)).touch()
        return config

    def measure(self, rounds):
        """Batches differ from run to run. A single round that exceeds a limit is repeated twice, and the median decides."""
        super().measure(rounds)
        if rounds == 1 and not self.site.functions and not all(check["holds"] for check in self.checks()):
            super().measure(2)
        if self.site.functions:
            own = set(measured(["nm", "--defined-only", "--format=just-symbols", self.program]).output.split())
            self.site.functions.write_text("".join(f"{name}\n" for name, _ in self.calls.most_common() if name in own), encoding="ascii")

    def title(self):
        return "Cost of one request on each path"

    def table(self):
        print(f"\n{self.title()}; {len(self.rounds)} rounds, median\n")
        print(f"  {'':<53}{'measured':>12}{'budget':>12}")
        for key, _, limit, form in self.limits:
            value, budget = self.median[key], limit / MARGIN
            print(f"  {key:<53}{form.format(value):>12}{form.format(budget):>12}{value / budget - 1:>+8.1%}{'  exceeded' * (value > limit)}")

    def plot(self):
        return plot_instructions({path: self.median[f"{path}: instructions"] for path in BUDGET})

    def round(self):
        figures = {}
        for path, budget in BUDGET.items():
            run, counted, native = self.paths[path]
            each = difference(lambda count: self.callgrind(run, count), *counted) | difference(lambda count: self.allocations(run, count), *native)
            if "system calls" in budget:
                each |= difference(lambda count: self.system_calls(run, count), *native)
            figures |= {f"{path}: {figure}": each[figure] for figure in budget}
        return figures

    def callgrind(self, run, count):
        counts = self.site.folder / "counts"
        run(count, *CALLGRIND, f"--callgrind-out-file={counts}")
        text = counts.read_text(encoding="utf-8")
        calls = re.findall(r"^cfn=swift_(?:retain|release)\ncalls=(\d+)", text, re.M)
        if not calls:
            raise SystemExit("bench: callgrind saw no call of swift_retain and swift_release")
        for name, count in re.findall(r"^cfn=([^'\n]+).*\ncalls=(\d+)", text, re.M):
            self.calls[name] += int(count)
        return {"instructions": int(re.search(r"^totals: (\d+)", text, re.M)[1]), "retains and releases": sum(map(int, calls))}

    def allocations(self, run, count):
        said = run(count, "env", f"MALLOC_CONF={ALLOCATOR},stats_print:true,stats_print_opts:Jgdablxe")
        return {"allocations": sum(int(number) for number in re.findall(r'"(?:small|large)":\{[^}]*"nrequests":(\d+)', said))}

    def system_calls(self, run, count):
        counts = self.site.folder / "counts"
        run(count, "strace", "-f", "-c", "-U", "name,calls", "-o", str(counts))
        return {"system calls": int(re.search(r"^total +(\d+)", counts.read_text(encoding="utf-8"), re.M)[1])}

    # The paths. Each runs the program under a tool with a number of requests, and returns its standard error.

    def push(self, count, *tool, config=None, badge=None):
        self.site.publish_many("push.send.normal", "apns:" + APNS_TOKEN, count, badge)
        return self.drain(count, tool, config or self.config)

    def badge(self, count, *tool):
        # A new registry, so that each run stores as many first badges.
        config, _ = self.site.register("instructions-badges", DEVICES, trace={"keep": "none"})
        return self.push(count, *tool, config=config, badge="auto")

    def result(self, count, *tool):
        said = self.push(count, *tool, config=self.config_of_results)
        self.site.empty("push.results")
        return said

    def broadcast(self, count, *tool, config=None, badge=None):
        self.site.publish(f"/topics/of{count}", badge)
        return self.drain(count, tool, config or self.config_of_topics)

    def broadcast_with_badge(self, count, *tool):
        return self.broadcast(count, *tool, config=self.register_topics("topics-with-badges"), badge="auto")

    def gateway(self, count, *tool):
        with self.errors.open("w") as file:
            gateway = Running([*tool, self.program, "gateway", "--config", self.config_of_gateway], errors=file)
            until_ready(self.port, gateway)
            self.post(count)
            gateway.end()
        self.site.purge()
        return self.errors.read_text(encoding="utf-8")

    def drain(self, count, tool, config):
        with self.errors.open("w") as file:
            worker = [self.program, "worker", "--config", config, "--until-empty", "--json"]
            self.site.require_delivered(count, Running([*tool, *worker], errors=file).finish())
        return self.errors.read_text(encoding="utf-8")

    def post(self, count):
        """Requests, each for another device: one on each connection, then all answers."""
        body = request("apns:" + APNS_TOKEN)
        head = (f"POST /fcm/send HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: key={self.key}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n")
        connections = [socket.create_connection(("127.0.0.1", self.port)) for _ in range(TOGETHER)]
        for first in range(0, count, TOGETHER):
            for number, connection in enumerate(connections, first):
                connection.sendall((head + body.replace("@" * 8, f"{number:08x}")).encode())
            for connection in connections:
                answer = http.client.HTTPResponse(connection)
                answer.begin()
                said = answer.read()
                if answer.status != 200:
                    raise SystemExit(f"bench: the gateway answered {answer.status}: {said}")
        for connection in connections:
            connection.close()


def plot_instructions(measured):
    """The arguments of `plot.svg` for the instructions on each path."""
    return ("Instructions for each request", "instructions", "{:,.0f}",
            [(path, measured[path], budget["instructions"]) for path, budget in BUDGET.items()], "budget")


def difference(cost, few, many):
    """What a request adds to each figure."""
    less, more = cost(few), cost(many)
    return {figure: (more[figure] - less[figure]) / (many - few) for figure in more}
