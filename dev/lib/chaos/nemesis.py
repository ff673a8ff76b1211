"""The schedule of faults, which depends only on the seed, and its execution.

There are three parallel tracks: machines and networks, workers, providers and credentials. Within a track one fault ends before the next
one begins, so two of the three brokers are never away at once. On a slow machine times may slip, and late faults are left out. Kinds,
targets and order within a track stay the same.
"""

import random
import time

from cluster import Recovery
from faults import TRACKS

# Seconds without new faults at the beginning and end of a round, and range of the pause between two faults of a track.
QUIET_BEGINNING, QUIET_END = 2, 6
PAUSE = {"machines": (1, 4), "workers": (3, 10), "providers": (1, 4)}


class Planned:
    def __init__(self, at, track, fault):
        self.at, self.track, self.fault = at, track, fault


def schedule(seed, seconds, kinds=None):
    """All faults of a round, ordered by start. Each kind occurs once before any kind repeats."""
    planned = []
    for track, members in TRACKS.items():
        choose = random.Random(f"{seed} {track}")
        members = [member for member in members if kinds is None or member.__name__ in kinds]
        at, bag = QUIET_BEGINNING + choose.uniform(0, 2), []
        while members and at < seconds - QUIET_END:
            bag = bag or choose.sample(members, len(members))
            fault = bag.pop()(choose)
            planned.append(Planned(round(at, 1), track, fault))
            at += fault.seconds + choose.uniform(*PAUSE[track])
    return sorted(planned, key=lambda one: one.at)


class Nemesis:
    """Executes a schedule. Use it in the main thread, because child processes die with the thread that started them."""

    def __init__(self, fleet, planned, seconds, say):
        self.fleet, self.seconds, self.say = fleet, seconds, say
        self.waiting = {track: [one for one in planned if one.track == track] for track in TRACKS}
        self.current, self.free_at = {}, dict.fromkeys(TRACKS, 0)
        self.done = []
        # The recovery of a broker, until it is part of the cluster again.
        self.recovery = self.recovering = None
        self.log = open(fleet.folder / "nemesis.log", "w", encoding="utf-8")
        self.begun = time.monotonic()

    @property
    def now(self):
        return time.monotonic() - self.begun

    def run(self):
        """Runs until the round's time is over, every fault has ended, and the cluster is complete."""
        while self.now < self.seconds or self.current or self.recovery:
            for track in TRACKS:
                self.turn(track)
            self.say(self.now, [str(fault) for fault, _ in self.current.values()])
            time.sleep(0.05)
        self.log.close()

    def turn(self, track):
        """Ends a finished fault, or begins a due one."""
        if track in self.current:
            fault, until = self.current[track]
            if self.now >= until and fault.is_over(self.fleet):
                fault.end(self.fleet)
                fault.ended = time.time()
                self.note(f"end    {fault}")
                del self.current[track]
                self.free_at[track] = self.now + PAUSE[track][0]
                if fault.breaks_cluster:
                    self.recovery, self.recovering = Recovery(self.fleet.cluster.node(fault.number)), fault
        elif track == "machines" and self.recovery:
            if self.recovery.poll():
                self.recovered()
                self.free_at[track] = self.now + PAUSE[track][0]
        elif self.waiting[track] and self.now >= max(self.waiting[track][0].at, self.free_at[track]):
            if self.now < self.seconds - QUIET_END / 2:
                self.begin(track, self.waiting[track].pop(0).fault)

    def recovered(self):
        node, restarts = self.recovery.node, self.recovery.restarts
        self.note(f"whole  broker{node.number} sees the others again" + (f" after {restarts} restarts" if restarts else ""))
        node.is_away = False
        self.fleet.cluster.clear_alarm()
        self.recovering.ended = time.time()
        self.recovery = self.recovering = None

    def begin(self, track, fault):
        self.note(f"begin  {fault}")
        fault.began = time.time()
        if fault.breaks_cluster:
            self.fleet.cluster.node(fault.number).is_away = True
        fault.begin(self.fleet)
        self.done.append(fault)
        self.current[track] = fault, self.now + fault.seconds

    def note(self, words):
        self.log.write(f"{time.strftime('%H:%M:%S', time.gmtime())} {self.now:7.1f} s  {words}\n")
        self.log.flush()
