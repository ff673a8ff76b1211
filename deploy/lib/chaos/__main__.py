"""The part of deploy/chaos that runs a round: services, load, faults, rest, books, report."""

import argparse
import json
import pathlib
import secrets
import signal
import sys
import time

import faults
import process
from books import Books, blame
from nemesis import Nemesis, schedule
from process import Failure
from report import Progress, table
from fleet import Fleet


def parse(arguments):
    kinds = [member.__name__ for members in faults.TRACKS.values() for member in members]
    parser = argparse.ArgumentParser(prog="deploy/chaos", add_help=False, usage="deploy/chaos [OPTIONS]; see --help")
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


def rest(fleet, seconds):
    """Everything is mended; the fleet as it is has so long to come to rest. Returns how long it took."""
    begun = time.monotonic()
    fleet.finish_producing()
    if not process.eventually(fleet.is_empty, seconds, every=0.5):
        fleet.note_trouble(f"the lanes were not empty {seconds} s after the last fault: " + json.dumps(
            {name: count for name, count in fleet.cluster.depths().items() if count}))
    return time.monotonic() - begun


def main(options):
    seconds = options.minutes * 60
    planned = schedule(options.seed, seconds, options.faults)
    if options.schedule:
        print(f"seed {options.seed}")
        for one in planned:
            print(f"{one.at:7.1f} s  {one.track:<10}{one.fault}")
        return 0
    again = f"deploy/chaos --minutes {options.minutes:g} --seed {options.seed}"
    progress = Progress(seconds)
    progress.step(f"seed {options.seed}: {len(planned)} faults in {seconds:.0f} s")
    fleet = Fleet(options.folder, options.pushfleet)
    begun = time.monotonic()
    fleet.start()
    progress.step(f"three brokers, PostgreSQL, {len(fleet.workers)} workers and two providers run after {time.monotonic() - begun:.0f} s")
    fleet.start_producing(options.seed, options.rate)
    nemesis = Nemesis(fleet, planned, seconds, progress)
    nemesis.run()
    progress.step("no more faults; waiting until everything is at rest")
    drained = rest(fleet, 180)
    fleet.stop_workers()
    progress.step("reading what came out")
    fleet.write_requests()
    outcomes = fleet.outcomes()
    books = Books(fleet.requests, outcomes, fleet.bound(nemesis.done))
    blamed = blame(books.doubled_pushes, [(fault.began, fault.ended) for fault in nemesis.done])
    trouble = [(words, []) for words in fleet.trouble] + books.trouble
    figures = {"seed": options.seed, "minutes": options.minutes, **books.figures,
               "drain_seconds": round(drained, 1), "said": fleet.said,
               "faults_done": [{"fault": str(fault), "began": fault.began, "ended": fault.ended, "doubled_pushes": blamed[place]}
                               for place, fault in enumerate(nemesis.done)]}
    (options.folder / "report.json").write_text(json.dumps(figures | {"trouble": trouble}, indent=1, default=str))
    if options.json:
        print(json.dumps(figures | {"trouble": trouble}, default=str))
    else:
        table(figures, nemesis.done, blamed, trouble)
    if trouble:
        print(f"chaos: what went wrong is in {options.folder} (nemesis.log, report.json, journals, logs); again: {again}", file=sys.stderr)
    return 1 if trouble else 0


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
        process.end_all()
