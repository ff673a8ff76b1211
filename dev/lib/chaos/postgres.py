"""A PostgreSQL of its own, reached through a socket in its folder, durable as a server is."""

import glob
import os
import shutil
import subprocess

from process import Failure, Process, wait_for


class Postgres:
    """It refuses to run as root, and then runs as the system's user for it."""

    def __init__(self, folder):
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"), key=lambda path: int(path.split("/")[4]))
        if not found:
            raise Failure("PostgreSQL is missing: run deploy/install-dependencies")
        self.binaries = os.path.dirname(found[-1])
        self.home = folder / "postgres"
        self.user = "postgres" if os.getuid() == 0 else None
        self.socket = self.home / ".s.PGSQL.5432"
        self.process = Process("postgres", [found[-1], "-D", self.home / "data", "-k", self.home, "-p", 5432, "-c", "listen_addresses=",
                                            "-c", "max_connections=60"], folder, user=self.user)

    def make(self):
        self.home.mkdir()
        if self.user:
            shutil.chown(self.home, self.user)
            self.home.parent.chmod(0o711)
        done = subprocess.run([*self.process.prefix, f"{self.binaries}/initdb", "-D", str(self.home / "data"), "-U", "postgres", "-A",
                               "trust", "-E", "UTF8", "--no-locale", "--no-sync"], cwd="/", capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failure(f"PostgreSQL's cluster can't be made: {done.stderr}")

    def start(self):
        # Of one that was killed; every process of it is gone.
        (self.home / "data" / "postmaster.pid").unlink(missing_ok=True)
        self.process.start()

    def wait(self, seconds=120):
        wait_for(self.is_ready, self.process, seconds, "start")

    def is_ready(self):
        return subprocess.run([f"{self.binaries}/pg_isready", "-q", "-h", str(self.home)], check=False).returncode == 0
