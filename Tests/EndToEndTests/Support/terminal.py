#!/usr/bin/python3
"""Runs a command on a terminal of a given size and prints what the terminal got, byte for byte.

Each --until has its --keys, which are typed once that text has come, one after the other; without any the command has to end by itself.
Exits as the command does.
"""

import argparse
import fcntl
import os
import pty
import select
import struct
import sys
import termios

PATIENCE = 600.0  # seconds of silence


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--columns", type=int, default=80)
    parser.add_argument("--lines", type=int, default=60)
    parser.add_argument("--until", action="append", default=[])
    parser.add_argument("--keys", action="append", default=[])
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    # The size stands before the command begins.
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
    # What the command leaves running may keep the terminal: once the command has ended, only what is there is read.
    ended = os.pidfd_open(child)
    while True:
        ready = select.select([master, ended], [], [], PATIENCE)[0]
        if not ready:
            sys.exit(f"nothing came for {PATIENCE} s after {got[-2000:]!r}")
        if master not in ready:
            break
        try:
            data = os.read(master, 65536)
        except OSError:  # EIO: nobody has the terminal any more
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
