"""An application with a fault, whose requests are queued before another's: the delay of the other's pushes, and the recovery."""

import collections
import contextlib
import json
import re
import signal
import socket
import threading
import time

from measure import Part, Running, measured, say

CALM, TROUBLED = "com.example.calm", "com.example.troubled"
OTHERS = 500
NORMAL = {}
TOKEN = re.compile(rb'"token":"([^"]+)"')
# Seconds for the application with the fault to recover after its provider is back, plus the time for the number of its requests.
RECOVERY = 120


class Simulator:
    """A simulated provider with a journal. Its script can be changed while it runs."""

    def __init__(self, site, name, provider, port, script=None):
        self.port = port
        self.journal = site.folder / f"{name}.ndjson"
        self.script = site.folder / f"{name}-script.json"
        self.journal.unlink(missing_ok=True)
        self.play(script or NORMAL)
        command = [site.pushfleet, "simulate", provider, "--listen", f"127.0.0.1:{port}", "--certificate", str(site.folder / "server.pem"),
                   "--key", str(site.folder / "server.key"), "--journal", str(self.journal), "--script", str(self.script)]
        if provider == "fcm":
            command += ["--project", "example"]
        self.running = Running(command)
        wait(lambda: listens(port), 20, f"the simulator {name}")

    def play(self, script):
        self.script.write_text(json.dumps(script))

    def calm(self):
        self.play(NORMAL)
        self.running.child.send_signal(signal.SIGHUP)

    def end(self):
        self.running.child.send_signal(signal.SIGTERM)
        self.running.finish()


class Devices:
    """The number of accepted pushes for each device, from a simulator's growing journal."""

    def __init__(self, journal):
        self.journal, self.offset, self.rest = journal, 0, b""
        self.counts = collections.Counter()

    def look(self):
        """Number of devices reached so far."""
        with contextlib.suppress(FileNotFoundError), open(self.journal, "rb") as file:
            file.seek(self.offset)
            data = self.rest + file.read()
            self.offset = file.tell()
            *lines, self.rest = data.split(b"\n")
            for line in lines:
                if b'"answer":{"status":200' in line and (found := TOKEN.search(line)):
                    self.counts[found[1]] += 1
        return len(self.counts)


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait(holds, seconds, what):
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise SystemExit(f"bench: {what}: not within {seconds} s")
        time.sleep(0.01)


@contextlib.contextmanager
def closed(port):
    """An outage: no process listens."""
    yield


def listener(port, backlog):
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.bind(("127.0.0.1", port))
    one.listen(backlog)
    return one


@contextlib.contextmanager
def black_hole(port):
    """An outage: the accept queue is full, so SYNs get no answer."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(listener(port, 0))
        for _ in range(4):
            one = stack.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
        yield


@contextlib.contextmanager
def silent(port):
    """An outage: accepts connections and never answers."""
    with contextlib.ExitStack() as stack:
        accepting = stack.enter_context(listener(port, 64))
        stop = threading.Event()
        accepted = []

        def accept():
            accepting.settimeout(0.2)
            while not stop.is_set():
                with contextlib.suppress(TimeoutError):
                    accepted.append(stack.enter_context(accepting.accept()[0]))

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()


class Kind:
    """A kind of fault: a `script` for the simulator, or an `outage` instead of it, or an operator's pause, and whether it ends."""

    def __init__(self, name, words, provider="apns", script=None, outage=None, ends=True, count=None, large=False, quota=None, paused=False):
        self.name, self.words, self.provider, self.script, self.outage = name, words, provider, script, outage
        self.ends, self.count, self.large, self.quota, self.paused = ends, count, large, quota, paused


KINDS = [
    Kind("refused", "connections refused", outage=closed),
    Kind("black_hole", "SYNs without an answer", outage=black_hole),
    Kind("mute", "accepts connections, then stays silent", outage=silent),
    Kind("silent", "accepts pushes and never answers", script={"*": {"stall": True}}, ends=False),
    Kind("slow", "answers after 20 s", script={"*": {"delay_ms": 20_000}}),
    Kind("revoked", "403 for all", script={"*": {"status": 403, "reason": "InvalidProviderToken"}}, ends=False),
    Kind("throttled", "429 for all", script={"*": {"status": 429, "reason": "TooManyRequests", "retry_after": 1}}),
    Kind("token", "a token endpoint that hangs", provider="fcm", script={"/token": {"stall": True}}),
    Kind("quota", "a quota of 60 a minute", provider="fcm", quota=60, ends=False),
    Kind("large", "bodies of 400 KB", large=True, count=500),
    Kind("paused", "paused by an operator", paused=True),
    Kind("fifty", "49 of 50 applications refused", outage=closed),
]


class Isolation(Part):
    name = "isolation"
    rows = [(kind.words, kind.name, "{:.2f} s") for kind in KINDS] + [
        ("undisturbed", "undisturbed", "{:.2f} s"), ("beside a healthy application's steady load", "steady", "{:.2f} s"),
        ("beside the steady load of one in trouble", "steady_disturbed", "{:.2f} s")]
    limits = [(kind.words, kind.name, 2.0, "{:.2f} s") for kind in KINDS] + [
        ("beside a steady load, to a healthy one's", "steady_ratio", 1.5, "{:.2f}×"), ("peak memory", "peak_rss_mib", 96.0, "{:.1f} MiB")]

    def __init__(self, site):
        super().__init__(site)
        self.kinds = [kind for kind in KINDS if not site.kinds or kind.name in site.kinds]
        self.figures = {}

    def title(self):
        return f"The last of {OTHERS} pushes of an application behind {self.site.ahead:,} requests of another one in trouble"

    def round(self):
        self.figures = {"peak_rss_mib": 0.0}
        self.figures["undisturbed"] = self.behind(Kind("none", "undisturbed", count=0))
        for kind in self.kinds:
            self.figures[kind.name] = self.behind(kind)
        self.figures["steady"] = self.beside_steady_load(None)
        self.figures["steady_disturbed"] = self.beside_steady_load(KINDS[0])
        self.figures["steady_ratio"] = self.figures["steady_disturbed"] / self.figures["steady"]
        self.rows = [row for row in self.rows if row[1] in self.figures]
        self.limits = [limit for limit in self.limits if limit[1] in self.figures]
        return self.figures

    # One kind of fault

    def behind(self, kind):
        """Seconds from a worker's start to the last push of the calm application, whose requests are queued behind the other one's."""
        count = self.site.ahead if kind.count is None else kind.count
        with contextlib.ExitStack() as stack:
            scene = Scene(self.site, kind, stack)
            scene.publish(TROUBLED, 0, count)
            scene.publish(CALM, count, count + OTHERS)
            devices = Devices(scene.calm.journal)
            begun = time.monotonic()
            worker = self.site.start_worker(scene.config)
            wait(lambda: devices.look() >= OTHERS, 120, f"{kind.words}: the other application's pushes")
            seconds = time.monotonic() - begun
            say(f"isolation, {kind.words}: {seconds:.2f} s")
            if count and kind.ends:
                self.recover(scene, count, kind)
            self.finish(worker)
            scene.check(count, kind)
        return seconds

    def recover(self, scene, count, kind):
        scene.end_trouble()
        back = time.monotonic()
        devices = Devices(scene.troubled_journal)
        wait(lambda: devices.look() >= 1, RECOVERY, f"{kind.words}: the first push after the trouble")
        first = time.monotonic() - back
        wait(lambda: devices.look() >= count, RECOVERY + count / 1000, f"{kind.words}: all pushes after the trouble")
        say(f"isolation, {kind.words}: the first push {first:.2f} s after its end, the last {time.monotonic() - back:.1f} s after it")

    def finish(self, worker):
        memory = [line for line in open(f"/proc/{worker.child.pid}/status") if line.startswith("VmHWM")]
        self.figures["peak_rss_mib"] = max(self.figures["peak_rss_mib"], int(memory[0].split()[1]) / 1024)
        worker.end()

    # A steady load

    def beside_steady_load(self, kind):
        """Seconds for the calm application's pushes while another application gets a thousand requests a second."""
        with contextlib.ExitStack() as stack:
            scene = Scene(self.site, kind or Kind("none", "none"), stack)
            worker = self.site.start_worker(scene.config)
            load = stack.enter_context(scene.steady_load(TROUBLED))
            time.sleep(3)
            devices = Devices(scene.calm.journal)
            begun = time.monotonic()
            scene.publish(CALM, 10**6, 10**6 + OTHERS)
            wait(lambda: devices.look() >= OTHERS, 60, "the pushes beside a steady load")
            seconds = time.monotonic() - begun
            load.set()
            self.finish(worker)
        return seconds


class Scene:
    """Two applications with separate providers (or fifty, one of them calm), and their queues."""

    def __init__(self, site, kind, stack):
        self.site, self.kind, self.stack = site, kind, stack
        self.prefix = f"isolation-{time.monotonic_ns()}"
        self.calm = self._simulator("calm", "apns", site.free_port(), NORMAL)
        self.port = site.free_port()
        self.trouble = contextlib.ExitStack()
        stack.callback(self.trouble.close)
        self.troubled = None
        self.troubled_journal = site.folder / "troubled.ndjson"
        self.troubled_journal.unlink(missing_ok=True)
        if kind.outage:
            self.trouble.enter_context(kind.outage(self.port))
        else:
            self.troubled = self._simulator("troubled", kind.provider, self.port, kind.script or NORMAL)
        self.names = [TROUBLED] if kind.name != "fifty" else [f"{TROUBLED}-{number}" for number in range(49)]
        self.config = site.configure_apps(f"isolation-{kind.name}", self.prefix, {
            CALM: {"apns": site.apns(CALM, self.calm.port)},
            **{name: self._app(name) for name in self.names}}, **({"registry": f"sqlite:{self.prefix}.db"} if kind.paused else {}))
        measured([site.pushfleet, "topology", "--config", self.config])
        if kind.paused:
            # Creates the registry.
            measured([site.pushfleet, "keys", "create", "--config", self.config, "--app", TROUBLED, "--rights", "view"])
            self._operate("pause")

    def _app(self, name):
        if self.kind.provider == "apns":
            return {"apns": self.site.apns(name, self.port)}
        return {"fcm": self.site.fcm(self.port, self.kind.quota or 100_000_000)}

    def _simulator(self, name, provider, port, script):
        simulator = Simulator(self.site, name, provider, port, script)
        self.stack.callback(simulator.end)
        return simulator

    def _operate(self, verb):
        measured([self.site.pushfleet, "apps", verb, "--config", self.config, TROUBLED])

    def end_trouble(self):
        if self.kind.paused:
            return self._operate("resume")
        if self.troubled:
            self.troubled.calm()
        self.trouble.close()
        if not self.troubled:
            self._simulator("troubled", self.kind.provider, self.port, NORMAL)

    def publish(self, app, first, end):
        """Publishes a request for each device, for the application or, with many faulty ones, for each of them in turn."""
        names = self.names if app == TROUBLED else [app]
        for number, name in enumerate(names):
            # A thread with the steady load publishes at the same time.
            path = self.site.folder / f"requests-{threading.get_ident()}.ndjson"
            with open(path, "w") as file:
                for device in range(first + number, end, len(names)):
                    file.write(self._request(name, device))
            measured([self.site.pushfleet, "send", "--config", self.config, "--app", name, str(path)])

    def _request(self, app, device):
        target = f"{device:064x}" if app == CALM or self.kind.provider == "apns" else f"fcm:{device:032x}:APA91b{'b' * 100}"
        if self.kind.large and app != CALM:
            return json.dumps({"to": target, "notification": {"body": "hello"}}).replace("}}", "}" + " " * 400_000 + "}\n")
        return json.dumps({"to": target, "notification": {"body": "hello"}}) + "\n"

    @contextlib.contextmanager
    def steady_load(self, app):
        stop = threading.Event()

        def load():
            number = 0
            while not stop.is_set():
                begun = time.monotonic()
                self.publish(app, number, number + 1000)
                number += 1000
                stop.wait(max(0, 1 - (time.monotonic() - begun)))

        thread = threading.Thread(target=load)
        thread.start()
        try:
            yield stop
        finally:
            stop.set()
            thread.join()

    def check(self, count, kind):
        """Checks that nothing is lost, dead-lettered or sent twice."""
        queues = self.site.depths(self.prefix, [f"hold.{name}" for name in self.names])
        devices = Devices(self.troubled_journal)
        delivered = devices.look()
        twice = sum(number > 1 for number in devices.counts.values())
        waiting = sum(depth for queue, depth in queues.items() if queue != "dead")
        if queues["dead"] or twice or (kind.ends and (waiting or delivered != count)) or delivered + waiting < count:
            raise SystemExit(f"bench: {kind.words}: of {count}, {delivered} delivered, {twice} of them more than once; queues: {queues}")
