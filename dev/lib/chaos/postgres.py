"""A private, durable PostgreSQL, reached through a socket in its folder."""

import glob
import os
import shutil
import subprocess

from process import Failure, Process, wait_for


class Postgres:
    """PostgreSQL refuses to run as root, so root runs it as the user postgres."""

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
        # Left by a killed server, whose processes have all ended.
        (self.home / "data" / "postmaster.pid").unlink(missing_ok=True)
        self.process.start()

    def wait(self, seconds=120):
        wait_for(self.is_ready, self.process, seconds, "start")

    def is_ready(self):
        return subprocess.run([f"{self.binaries}/pg_isready", "-q", "-h", str(self.home)], check=False).returncode == 0
