"""Runs a round of dev/chaos: services, load, faults, rest, checks, report."""

import argparse
import json
import pathlib
import secrets
import signal
import sys
import time

import faults
from books import Books, blame
from nemesis import Nemesis, schedule
from process import Failure, end_all, eventually
from report import Progress, table
from fleet import Fleet

# Seconds for the fleet to come to rest, and seconds after which an operator looks for messages that only the broker counts as delivered.
PATIENCE, LOOK = 180, 90


def parse(arguments):
    kinds = [member.__name__ for members in faults.TRACKS.values() for member in members]
    parser = argparse.ArgumentParser(prog="dev/chaos", add_help=False, usage="dev/chaos [OPTIONS]; see --help")
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--pushfleet")
    parser.add_argument("--minutes", type=float, default=2)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--rate", type=float, default=150)
    parser.add_argument("--faults", type=lambda text: [name for name in text.split(",") if name != "none"], default=None)
    parser.add_argument("--schedule", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    if not 0 < options.minutes <= 24 * 60:
        parser.error("--minutes is more than 0 and at most a day")
    if not 1 <= options.rate <= 1000:
        parser.error("--rate is from 1 to 1000")
    for name in options.faults or []:
        if name not in kinds:
            parser.error(f"--faults: there is no {name}; there are {', '.join(dict.fromkeys(kinds))}, and none")
    if options.seed is None:
        options.seed = secrets.randbelow(1_000_000)
    return options


class Round:
    """One round: load and faults, rest, checks."""

    def __init__(self, options, planned):
        self.options, self.planned, self.seconds = options, planned, options.minutes * 60
        self.progress = Progress(self.seconds)
        # The 1,200 members of the topic, three on a page, are two chains.
        self.fleet = Fleet(options.folder, options.pushfleet, lane_queues=3 if options.seed % 2 else 1, page=3 if options.seed & 2 else 100)

    def play(self):
        self.progress.step(f"seed {self.options.seed}: {len(self.planned)} faults in {self.seconds:.0f} s")
        begun = time.monotonic()
        self.fleet.start()
        self.progress.step(f"three brokers, PostgreSQL, {len(self.fleet.workers)} workers and three providers run after "
                           f"{time.monotonic() - begun:.0f} s")
        self.fleet.start_producing(self.options.seed, self.options.rate)
        nemesis = Nemesis(self.fleet, self.planned, self.seconds, self.progress)
        nemesis.run()
        self.faults = nemesis.done
        self.rest()
        self.fleet.stop_workers()
        self.progress.step("reading the outcomes")
        self.fleet.write_requests()
        self.books = Books(self.fleet.requests, self.fleet.outcomes(), self.fleet.bound(self.faults))
        self.blamed = blame(self.books.doubled_pushes, [(fault.began, fault.ended, fault.may_double) for fault in self.faults])
        self.trouble = [(words, []) for words in self.fleet.trouble] + self.books.trouble

    def rest(self):
        """Waits until the fleet is at rest, after all repairs."""
        self.progress.step("no more faults; waiting until the fleet is at rest")
        begun = time.monotonic()
        self.fleet.finish_producing()
        self.led_anew = []
        if not eventually(self.fleet.is_empty, LOOK, every=0.5):
            # If a node was frozen and then died, RabbitMQ 3.10 may keep its consumers: docs/operate/runbook.md.
            self.led_anew = self.fleet.left_by_broker()
            for queue in self.led_anew:
                self.progress.step(f"no worker has the messages of {queue}: its leader is moved")
                self.fleet.cluster.move_leader(queue)
            if not eventually(self.fleet.is_empty, PATIENCE - LOOK, every=0.5):
                waiting = {name: count for name, count in self.fleet.cluster.depths().items() if count}
                self.fleet.note_trouble(f"the lanes were not empty {PATIENCE} s after the last fault: {json.dumps(waiting)}")
        self.rested_after = round(time.monotonic() - begun, 1)

    def report(self):
        figures = {"seed": self.options.seed, "minutes": self.options.minutes, **self.books.figures, "rested_after": self.rested_after,
                   "led_anew": self.led_anew,
                   "said": self.fleet.said, "trouble": self.trouble,
                   "faults": [{"fault": str(fault), "began": fault.began, "ended": fault.ended, "doubled_pushes": self.blamed[place]}
                              for place, fault in enumerate(self.faults)]}
        (self.options.folder / "report.json").write_text(json.dumps(figures, indent=1, default=str))
        if self.options.json:
            print(json.dumps(figures, default=str))
        else:
            table(figures, self.faults, self.blamed, self.trouble)
        if self.trouble:
            self.progress.step(f"to repeat: {self.again}")

    @property
    def again(self):
        """The command line that repeats this round's schedule."""
        options = self.options
        words = f"dev/chaos --minutes {options.minutes:g} --seed {options.seed} --rate {options.rate:g}"
        return words if options.faults is None else f"{words} --faults {','.join(options.faults) or 'none'}"


def main(options):
    planned = schedule(options.seed, options.minutes * 60, options.faults)
    if options.schedule:
        print(f"seed {options.seed}")
        for one in planned:
            print(f"{one.at:7.1f} s  {one.track:<10}{one.fault}")
        return 0
    one = Round(options, planned)
    one.play()
    one.report()
    return 1 if one.trouble else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(main(parse(sys.argv[1:])))
    except Failure as failure:
        print(f"chaos: {failure}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        end_all()
