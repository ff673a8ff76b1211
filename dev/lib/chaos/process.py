"""Child processes that die with this program, can be killed, frozen and started again, and log to the round's folder."""

import os
import signal
import socket
import subprocess
import time

running = []


class Failure(Exception):
    """The round can't go on: something of the test's own did not do what it must."""


class Process:
    """One program, again and again: the command and the log stay, the process id changes."""

    def __init__(self, name, command, folder, environment=None, user=None):
        self.name, self.command, self.environment = name, command, environment
        self.log = folder / f"{name}.log"
        # Whatever happens to this program, its children end with it.
        self.prefix = ["setpriv", "--pdeathsig", "KILL"]
        if user:
            self.prefix += ["--reuid", user, "--regid", user, "--clear-groups"]
        self.child = None
        self.is_frozen = False

    def start(self):
        """Only from the main thread: a child dies with the thread that began it."""
        with open(self.log, "ab") as log:
            self.child = subprocess.Popen([*self.prefix, *map(str, self.command)], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                          cwd="/", env=self.environment, start_new_session=True)
        self.is_frozen = False
        if self not in running:
            running.append(self)
        return self

    @property
    def is_running(self):
        return self.child is not None and self.child.poll() is None

    def signal(self, number):
        if self.is_running:
            os.kill(self.child.pid, number)

    def family(self):
        """The process and all that came of it, children last."""
        parents = {}
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    with open(f"/proc/{entry}/stat", encoding="ascii", errors="replace") as file:
                        parents[int(entry)] = int(file.read().rsplit(")", 1)[1].split()[1])
                except (FileNotFoundError, ProcessLookupError):
                    continue
        found = [self.child.pid]
        for member in found:
            found += [child for child, parent in parents.items() if parent == member]
        return found

    def _signal_all(self, number):
        if self.is_running:
            for member in self.family():
                try:
                    os.kill(member, number)
                except ProcessLookupError:
                    pass

    def kill(self):
        """As a power cut would: SIGKILL to it and to its children, all at once."""
        self._signal_all(signal.SIGKILL)
        if self.child:
            self.child.wait()

    def freeze(self):
        self._signal_all(signal.SIGSTOP)
        self.is_frozen = True

    def resume(self):
        self._signal_all(signal.SIGCONT)
        self.is_frozen = False

    def terminate(self, seconds):
        """SIGTERM; returns the exit status, or None when it took longer than the seconds given and was killed."""
        self.signal(signal.SIGTERM)
        try:
            return self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    def log_tail(self, lines=20):
        try:
            return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
        except FileNotFoundError:
            return ""


def end_all():
    """Last started, first ended."""
    for process in reversed(running):
        process.kill()
    running.clear()


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def eventually(condition, seconds, every=0.05):
    """Whether the condition came true within so many seconds."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(every)
    return True


def listens(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


def wait_for(condition, process, seconds, what):
    """Waits for what a process that was started must do; says what it printed last when it doesn't."""
    if not eventually(lambda: condition() or not process.is_running, seconds) or not process.is_running:
        raise Failure(f"{process.name} did not {what}:\n{process.log_tail()}")
