"""Child processes that die with this program. They can be killed, frozen and restarted, and log to the round's folder."""

import os
import signal
import socket
import subprocess
import time

running = []


class Failure(Exception):
    """The round can't continue, because a part of the test itself has failed."""


class Process:
    """A program that can be restarted with the same command and log. The process id changes."""

    def __init__(self, name, command, folder, environment=None, user=None):
        self.name, self.command, self.environment = name, command, environment
        self.log = folder / f"{name}.log"
        # Children always end with this program.
        self.prefix = ["setpriv", "--pdeathsig", "KILL"]
        if user:
            self.prefix += ["--reuid", user, "--regid", user, "--clear-groups"]
        self.child = None
        self.is_frozen = False

    def start(self):
        """Call it in the main thread: a child dies with the thread that started it."""
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
        """The ids of the process and all its descendants, children last."""
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
        """Sends SIGKILL to the process and its descendants at once, like a power cut."""
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
        """Sends SIGTERM. Returns the exit status, or None if the time was over and the process was killed."""
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
    """Kills all processes in reverse order."""
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
    """Waits for a condition. Returns false if the time is over."""
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
    """Waits until a process has met a condition. Fails with the end of its log."""
    if not eventually(lambda: condition() or not process.is_running, seconds) or not process.is_running:
        raise Failure(f"{process.name} did not {what}:\n{process.log_tail()}")
