"""The kinds of faults. Each chooses its target and duration, begins, and ends."""

import time

from providers import STORMS
from workers import Restart

WORKERS, BROKERS = 4, 3


class Fault:
    """A fault. `target`: the affected part; `cut_off`: how many workers may lose their unacknowledged requests."""

    name = target = ""
    # Range of its duration in seconds.
    least = most = 0
    cut_off = 0
    # Unix times.
    began = ended = None
    # True if broker `number` leaves the cluster: it must see its peers again before the next fault.
    breaks_cluster = False

    def __init__(self, choose):
        self.seconds = round(choose.uniform(self.least, self.most), 1)
        self.aim(choose)

    def aim(self, choose):
        pass

    def begin(self, fleet):
        raise NotImplementedError

    def is_over(self, fleet):
        """Called repeatedly after its duration. Never waits."""
        return True

    def end(self, fleet):
        pass

    @property
    def may_double(self):
        """True if the fault may cause pushes to be sent twice."""
        return self.cut_off > 0

    @property
    def kind(self):
        """The name in tables, without numbers."""
        return f"{self.name} {self.target.rstrip('0123456789')}".strip()

    def __str__(self):
        return f"{self.name} {self.target}".strip() + (f" for {self.seconds} s" if self.seconds else "")


# Workers


class WorkerKilled(Fault):
    name, least, most, cut_off = "kill -9 of", 1, 4, 1

    def aim(self, choose):
        self.target = f"w{choose.randint(1, WORKERS)}"

    def begin(self, fleet):
        fleet.worker(self.target).process.kill()

    def end(self, fleet):
        fleet.worker(self.target).start()


class WorkerFrozen(WorkerKilled):
    name, least, most = "freeze of", 4, 20

    def begin(self, fleet):
        fleet.worker(self.target).process.freeze()

    def end(self, fleet):
        fleet.worker(self.target).process.resume()


class WorkerKilledUnderAlarm(WorkerKilled):
    """Kills a worker while publishing is blocked. The worker can't have confirms for its last deliveries, so it must not have acknowledged
    their requests.

    All workers are frozen first, so that requests are waiting when the alarm begins.
    """

    name, least, most = "memory alarm and then kill -9 of", 2, 2

    def begin(self, fleet):
        for worker in fleet.workers:
            worker.process.freeze()
        self.steps = [(1.5, self.block), (0, self.kill)]

    def is_over(self, fleet):
        """Runs the steps. Each is followed by its pause."""
        if not self.steps:
            return True
        if time.monotonic() >= getattr(self, "not_before", 0):
            seconds, step = self.steps.pop(0)
            step(fleet)
            self.not_before = time.monotonic() + seconds
        return False

    def block(self, fleet):
        fleet.cluster.raise_alarm()
        for worker in fleet.workers:
            worker.process.resume()

    def kill(self, fleet):
        fleet.worker(self.target).process.kill()

    def end(self, fleet):
        fleet.cluster.clear_alarm()
        super().end(fleet)


class WorkersReplaced(Fault):
    """Restarts the workers one after the other, like a deployment. Each must exit with status 0."""

    name, target = "restart one after the other of", "all workers"

    def begin(self, fleet):
        self.remaining, self.restart = list(fleet.workers), None

    def is_over(self, fleet):
        if self.restart is None:
            self.restart = Restart(self.remaining.pop(0))
        if self.restart.poll():
            if self.restart.trouble:
                fleet.note_trouble(self.restart.trouble)
            self.restart = None
        return self.restart is None and not self.remaining


# Brokers


class BrokerKilled(Fault):
    name, least, most, cut_off, breaks_cluster = "kill -9 of", 1, 6, WORKERS, True

    def aim(self, choose):
        self.number = choose.randint(1, BROKERS)
        self.target = f"broker{self.number}"

    def begin(self, fleet):
        fleet.cluster.node(self.number).process.kill()

    def end(self, fleet):
        fleet.cluster.node(self.number).start()


class BrokerFrozen(BrokerKilled):
    name, least, most = "freeze of", 4, 16

    def begin(self, fleet):
        fleet.cluster.node(self.number).process.freeze()

    def end(self, fleet):
        fleet.cluster.node(self.number).process.resume()


class BrokerIsolated(BrokerKilled):
    """Isolates a broker from its peers, not from its clients."""

    name, least, most = "partition of", 5, 12

    def begin(self, fleet):
        fleet.cluster.isolate(fleet.cluster.node(self.number))

    def end(self, fleet):
        fleet.cluster.rejoin(fleet.cluster.node(self.number))


class MemoryAlarm(Fault):
    """Blocks publishers of the whole cluster."""

    name, target, least, most = "memory alarm of", "a broker", 3, 8

    def begin(self, fleet):
        fleet.cluster.raise_alarm()

    def end(self, fleet):
        fleet.cluster.clear_alarm()


# The registry


class PostgresKilled(Fault):
    name, target, least, most, cut_off = "kill -9 of", "postgres", 1, 6, WORKERS

    def begin(self, fleet):
        fleet.postgres.process.kill()

    def end(self, fleet):
        fleet.postgres.start()


class PostgresFrozen(PostgresKilled):
    name, least, most = "freeze of", 3, 12

    def begin(self, fleet):
        fleet.postgres.process.freeze()

    def end(self, fleet):
        fleet.postgres.process.resume()


# Networks


class Network(Fault):
    """Disturbs the connections of some workers to one service."""

    least, most = 2, 12
    service = ""

    def aim(self, choose):
        self.hit = sorted(choose.sample(range(1, WORKERS + 1), choose.randint(1, WORKERS)))
        self.how = choose.choice(["cut", "stalled", "stalled, then reset", "reset", "slow"])
        self.cut_off = 0 if self.how == "slow" else len(self.hit)
        self.delay = round(choose.uniform(0.02, 0.4), 2)
        if self.how == "reset":
            self.seconds = 0
        self.name = "network slow" if self.how == "slow" else f"network {self.how}"
        self.target = f"between {', '.join(f'w{number}' for number in self.hit)} and {self.service}"

    @property
    def kind(self):
        return f"{self.name} to {self.service.rstrip('0123456789')}"

    def links(self, fleet):
        return [link for number in self.hit for link in fleet.proxy.some(worker=f"w{number}", service=self.service)]

    def begin(self, fleet):
        for link in self.links(fleet):
            {"cut": link.cut, "reset": link.reset, "slow": lambda link=link: link.slow(self.delay)}.get(self.how, link.stall)()

    def end(self, fleet):
        for link in self.links(fleet):
            if self.how == "stalled, then reset":
                link.reset()
            link.mend()


class BrokerNetwork(Network):
    service = "broker"


class OneBrokerNetwork(Network):
    """Some workers see only two of the three brokers."""

    def aim(self, choose):
        self.service = f"broker{choose.randint(1, BROKERS)}"
        super().aim(choose)


class PostgresNetwork(Network):
    service = "postgres"


class ProviderNetwork(Network):
    def aim(self, choose):
        self.service = choose.choice(["apns", "fcm"])
        super().aim(choose)


# Providers and credentials


class Storm(Fault):
    least, most = 3, 12

    def aim(self, choose):
        self.provider = choose.choice(sorted(STORMS))
        self.storm = choose.choice(sorted(set(STORMS[self.provider]) - {"refused token"}))
        self.name, self.target = f"{self.provider}:", self.storm

    @property
    def may_double(self):
        return self.storm == "closed connections"

    def begin(self, fleet):
        fleet.providers[self.provider].storm(self.storm)

    def end(self, fleet):
        fleet.providers[self.provider].calm()


class ProviderFrozen(Fault):
    name, least, most, cut_off = "freeze of", 3, 15, WORKERS

    def aim(self, choose):
        self.target = choose.choice(sorted(STORMS))

    def begin(self, fleet):
        fleet.providers[self.target].process.freeze()

    def end(self, fleet):
        fleet.providers[self.target].process.resume()


class KeysReplaced(Fault):
    """Replaces keys without a fault. No push may be affected."""

    name, target = "new keys for", "all workers"

    def begin(self, fleet):
        for worker in fleet.workers:
            worker.rotate()
            worker.reload()


class KeyRefused(Fault):
    """APNs refuses the key until an operator replaces it."""

    name, target, least, most = "apns:", "the key is refused, then replaced", 3, 10

    def begin(self, fleet):
        fleet.providers["apns"].storm("refused token")

    def end(self, fleet):
        fleet.providers["apns"].calm()
        for worker in fleet.workers:
            worker.rotate()
            worker.reload()


# Faults of one track never overlap.
TRACKS = {
    "machines": [BrokerKilled, BrokerFrozen, BrokerIsolated, MemoryAlarm, PostgresKilled, PostgresFrozen, BrokerNetwork, OneBrokerNetwork,
                 PostgresNetwork],
    "workers": [WorkerKilled, WorkerKilledUnderAlarm, WorkerFrozen, WorkersReplaced],
    "providers": [ProviderNetwork, Storm, Storm, Storm, ProviderFrozen, KeysReplaced, KeyRefused],
}
