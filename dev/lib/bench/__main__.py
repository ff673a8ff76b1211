"""Runs the parts of dev/bench, and prints the report and the checks."""

import argparse
import json
import pathlib
import signal
import sys

import measure
import plot
from acknowledgements import Acknowledgements
from applications import Applications
from fanout import Fanout, Postgres
from gateway import Gateway
from instructions import Instructions
from isolation import KINDS, Isolation
from million import Million
from registry import Import, Registries
from services import Site
from single import Translation, Worker
from webpush import WebPush

PARTS = ["worker", "translation", "import", "fanout", "webpush", "postgres", "isolation", "million", "apps", "acks", "gateway", "instructions"]


def parse(arguments):
    parser = argparse.ArgumentParser(prog="dev/bench")
    for path in ("--folder",):
        parser.add_argument(path, type=pathlib.Path, required=True)
    for text in ("--pushfleet", "--benchmarks", "--postgres"):
        parser.add_argument(text)
    parser.add_argument("--ports", type=int, nargs=3)
    parser.add_argument("parts", nargs="*", choices=[[], "all", *PARTS])
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--devices", type=int, default=1_000_000)
    parser.add_argument("--ahead", type=int, default=100_000)
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=[])
    parser.add_argument("--apps", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--plot", type=pathlib.Path)
    parser.add_argument("--functions", type=pathlib.Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    names = [kind.name for kind in KINDS]
    if not set(options.kinds) <= set(names):
        parser.error(f"--kinds: known are {', '.join(names)}")
    return options


def main(options):
    site = Site(options)
    registries = Registries(site)
    make = {"worker": lambda: Worker(site), "translation": lambda: Translation(site), "import": lambda: Import(site, registries),
            "fanout": lambda: Fanout(site, registries), "webpush": lambda: WebPush(site),
            "postgres": lambda: Postgres(site, registries), "isolation": lambda: Isolation(site), "million": lambda: Million(site),
            "apps": lambda: Applications(site), "acks": lambda: Acknowledgements(site),
            "gateway": lambda: Gateway(site), "instructions": lambda: Instructions(site)}
    wanted = PARTS if not options.parts or "all" in options.parts else [name for name in PARTS if name in options.parts]
    parts = []
    for name in wanted:
        part = make[name]()
        part.measure(options.rounds)
        parts.append(part)
    if options.plot:
        options.plot.mkdir(parents=True, exist_ok=True)
        for part in parts:
            (options.plot / f"{part.name}.svg").write_text(plot.svg(*part.plot()), encoding="utf-8")
    checks = [check for part in parts for check in part.checks()]
    if options.json:
        print(json.dumps({
            "machine": measure.machine(), "count": options.count, "devices": options.devices,
            "parts": {part.name: {"rounds": part.rounds, "median": part.median} for part in parts},
            "checks": [{key: check[key] for key in ("part", "what", "value", "limit", "holds")} for check in checks]}))
    else:
        print(measure.machine())
        for part in parts:
            part.table()
        measure.bars(checks)
    exceeded = [check["what"] for check in checks if not check["holds"]]
    if options.check and exceeded:
        sys.exit(f"bench: not within the limits: {', '.join(exceeded)}")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        main(parse(sys.argv[1:]))
    finally:
        measure.kill_what_is_left()
