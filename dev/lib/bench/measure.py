"""Measures commands and prints figures."""

import os
import signal
import statistics
import subprocess
import sys
import threading
import time


class Cost:
    """A finished command's standard output, CPU seconds (user and system), wall seconds and peak memory in MiB."""

    def __init__(self, output, cpu, wall, memory):
        self.output, self.cpu, self.wall, self.memory = output, cpu, wall, memory


class Running:
    """A running command. `finish` waits for it; `end` asks it to stop first."""

    def __init__(self, command, stdin=None, errors=None):
        self.command, self.begun = command, time.monotonic()
        self.child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, stdin=stdin, text=True)
        under_way.append(self)
        self.peak, self.is_over = 0, threading.Event()
        self.watch = threading.Thread(target=self.watch_memory, daemon=True)
        self.watch.start()

    def watch_memory(self):
        """Records the command's peak memory while it runs. The value of wait4 may be the peak of the parent process."""
        while not self.is_over.wait(0.05):
            try:
                with open(f"/proc/{self.child.pid}/status", encoding="ascii") as status:
                    self.peak = next((int(line.split()[1]) for line in status if line.startswith("VmHWM:")), self.peak)
            except OSError:
                return

    def finish(self):
        output = self.child.stdout.read()
        self.is_over.set()
        self.watch.join()
        _, status, usage = os.wait4(self.child.pid, 0)
        wall = time.monotonic() - self.begun
        under_way.remove(self)
        self.child.returncode = os.waitstatus_to_exitcode(status)
        if self.child.returncode != 0:
            sys.exit(f"bench: {' '.join(self.command[:3])} ended with status {self.child.returncode}\n{output[-2000:]}")
        return Cost(output, usage.ru_utime + usage.ru_stime, wall, self.peak / 1024)

    def end(self):
        self.child.send_signal(signal.SIGTERM)
        return self.finish()


under_way = []


def kill_what_is_left(*_):
    for one in under_way:
        one.child.kill()


def measured(command, stdin=None):
    return Running(command, stdin).finish()


def cpu(pid):
    """CPU seconds (user and system) of a running process."""
    fields = open(f"/proc/{pid}/stat", encoding="ascii").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def say(words):
    """Prints progress."""
    print(words, file=sys.stderr, flush=True)


def machine():
    """The kind of machine, without its name."""
    cpu = [line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    return f"{cpu[0] if cpu else os.uname().machine}, {os.cpu_count()} CPUs"


def medians(rounds):
    return {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}


class Part:
    """A measured part: the figures of its `rounds`, the `rows` of its table, and its `limits`."""

    # Text, key, format.
    rows = []
    # Text, key, limit, format.
    limits = []

    def __init__(self, site):
        self.site, self.rounds = site, []

    def measure(self, rounds):
        for number in range(1, rounds + 1):
            figures = self.round()
            self.rounds.append(figures)
            say(f"{self.name}, round {number} of {rounds}: " + ", ".join(
                f"{words} {form.format(figures[key])}" for words, key, _, form in self.limits))

    @property
    def median(self):
        return medians(self.rounds)

    def table(self):
        print(f"\n{self.title()}; {len(self.rounds)} rounds, median (minimum to maximum)\n")
        for words, key, form in self.rows:
            values = [one[key] for one in self.rounds]
            print(f"  {words:<52}{form.format(self.median[key]):>12}  ({form.format(min(values))} to {form.format(max(values))})")

    def checks(self):
        """Each limit with the median."""
        return [{"part": self.name, "what": words, "value": self.median[key], "limit": limit, "form": form,
                 "holds": self.median[key] <= limit} for words, key, limit, form in self.limits]

    def plot(self):
        """The arguments of `plot.svg`: each limit is 100%."""
        bars = [(check["what"], 100 * check["value"] / check["limit"], 100) for check in self.checks()]
        return self.title(), "% of the limit", "{:.0f}%", bars, "limit"


def bars(checks):
    """Prints a bar for each check; a full bar is the limit."""
    width = 30
    print("\nCompared with the limits\n")
    for check in checks:
        used = check["value"] / check["limit"]
        bar = ("█" * min(width, round(used * width))).ljust(width, "░") + ("▶" if used > 1 else " ")
        form = check["form"]
        print(f"  {check['part']:<14}{check['what']:<54}{bar} {form.format(check['value'])} of {form.format(check['limit'])}")
