#!/usr/bin/python3
"""Runs a command on a terminal of a given size and prints the command's output unchanged.

Each --until belongs to one --keys: the keys are typed after that text has appeared, one pair after the other. Without them the command
must end by itself. Exits with the command's status.
"""

import argparse
import fcntl
import os
import pty
import select
import struct
import sys
import termios

PATIENCE = 600.0  # seconds without output


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--columns", type=int, default=80)
    parser.add_argument("--lines", type=int, default=60)
    parser.add_argument("--until", action="append", default=[])
    parser.add_argument("--keys", action="append", default=[])
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    # Set the size before the command starts.
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", options.lines, options.columns, 0, 0))
    child = os.fork()
    if child == 0:
        os.close(master)
        os.login_tty(slave)
        os.execv(options.command[0], options.command)
    os.close(slave)
    got, typed = b"", 0
    awaited = list(zip(options.until, options.keys, strict=True))
    # Processes that the command leaves may keep the terminal open. So after the command has ended, read only the available output.
    ended = os.pidfd_open(child)
    while True:
        ready = select.select([master, ended], [], [], PATIENCE)[0]
        if not ready:
            sys.exit(f"nothing came for {PATIENCE} s after {got[-2000:]!r}")
        if master not in ready:
            break
        try:
            data = os.read(master, 65536)
        except OSError:  # EIO: no process has the terminal open
            data = b""
        if not data:
            break
        got += data
        while awaited and (place := got.find(awaited[0][0].encode(), typed)) >= 0:
            typed = place + len(awaited[0][0].encode())
            os.write(master, awaited.pop(0)[1].encode())
    sys.stdout.buffer.write(got)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


if __name__ == "__main__":
    main()
