"""The output of a round: a progress line, and a table at the end."""

import os
import sys
import time

COLOUR = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
BOLD, DIM, RED, GREEN, PLAIN = (f"\x1b[{code}m" if COLOUR else "" for code in (1, 2, 31, 32, 0))
WIDTH = 30


class Progress:
    """On a terminal, one line that is overwritten. Elsewhere, one line for each step on standard error."""

    def __init__(self, seconds):
        self.seconds, self.is_terminal = seconds, sys.stderr.isatty()
        self.shown = 0

    def step(self, words):
        self.clear()
        print(words, file=sys.stderr, flush=True)

    def __call__(self, now, faults):
        if not self.is_terminal or time.monotonic() - self.shown < 0.2:
            return
        self.shown = time.monotonic()
        done = min(1, now / self.seconds)
        bar = ("█" * round(done * WIDTH)).ljust(WIDTH, "░")
        columns = os.get_terminal_size(sys.stderr.fileno()).columns
        print(f"\r\x1b[K{f'{bar} {now:4.0f} s  ' + ', '.join(faults)}"[:columns + 3], end="", file=sys.stderr, flush=True)

    def clear(self):
        if self.is_terminal and self.shown:
            print("\r\x1b[K", end="", file=sys.stderr)


def table(figures, faults, blamed, trouble):
    """Prints figures and result. `blamed`: the number of doubled pushes that each fault caused."""
    def row(words, value):
        print(f"  {words:<58}{value:>14}")

    def count(value):
        return f"{value:,}"

    print(f"\n{BOLD}{'Faults':<50}{'times':>10}{'pushes doubled':>16}{PLAIN}")
    kinds = {}
    for place, fault in enumerate(faults):
        times, doubled = kinds.get(fault.kind, (0, 0))
        kinds[fault.kind] = times + 1, doubled + blamed[place]
    if blamed[-1]:
        kinds["none of these"] = 0, blamed[-1]
    for kind, (times, doubled) in sorted(kinds.items()):
        print(f"  {kind:<48}{times or '':>10}{doubled or '':>16}")
    print(f"\n{BOLD}Outcomes{PLAIN}")
    row("accepted requests, and broadcasts of these", f"{count(figures['requests'])}, {count(figures['broadcasts'])}")
    row("devices of these requests", count(figures["devices"]))
    for end, number in figures["ends"].items():
        row(f"  {end}", count(number))
    row("lost", count(figures["lost"]))
    row("with two ends, because an answer or a confirm was lost", count(figures["in_two_ends"]))
    row("pushes that a provider accepted twice", count(figures["doubled_pushes"]))
    row("  requests of these, and the limit", f"{count(figures['doubled_requests'])}, {count(figures['bound_requests'])}")
    row("  devices of broadcasts, and the limit", f"{count(figures['doubled_devices_of_broadcasts'])}, {count(figures['bound_devices'])}")
    row("results that came twice", count(figures["doubled_results"]))
    row("requests that producers published again", count(figures["published_again"]))
    row("requests that the broker gave up", count(figures["given_up_by_the_broker"]))
    if figures["led_anew"]:
        row("queues whose leader was moved", count(len(figures["led_anew"])))
    row("seconds until the fleet was at rest", f"{figures['rested_after']:.1f}")
    print()
    for words, what in trouble:
        shown = ", ".join(map(plain, what[:5])) + (f" and {len(what) - 5} more" if len(what) > 5 else "")
        print(f"  {RED}{words}{f': {shown}' if what else ''}{PLAIN}")
    if not trouble:
        print(f"  {GREEN}every request is accounted for{PLAIN}")


def plain(found):
    """An id for people: a request, or a request and the beginning of a device's token."""
    return found if isinstance(found, str) else " ".join(str(part)[:16] for part in found)
