#!/usr/bin/env python3
"""An HTTP proxy for tunnels, with the faults of real ones.

Usage: connect_proxy.py [--pieces] [--stall N] [--idle SECONDS [--silent]]

--pieces sends its answer byte by byte. --stall never answers the first N requests. --idle cuts a tunnel after this time without
a byte; with --silent it cuts only the first tunnel, and both sides keep their connections, but no byte passes any more.

Prints its port, then one line of JSON for each request, {"tunnel": "host:port"}, and for each cut tunnel, {"cut": "host:port"}.
"""

import argparse
import asyncio
import json
import sys


def report(**fields):
    print(json.dumps(fields), flush=True)


class Tunnel:
    def __init__(self, target, options, writers):
        self.target = target
        self.options = options
        self.writers = writers
        self.is_cut = False
        self.bytes = 0

    async def carry(self, reader, writer):
        while data := await reader.read(65536):
            self.bytes += len(data)
            if not self.is_cut:
                writer.write(data)
                await writer.drain()
        writer.close()

    async def watch(self):
        seen = -1
        while seen != self.bytes:
            seen = self.bytes
            await asyncio.sleep(self.options.idle)
        self.is_cut = True
        report(cut=self.target)
        if not self.options.silent:
            for writer in self.writers:
                writer.transport.abort()


class Proxy:
    def __init__(self, options):
        self.options = options
        self.requests = 0
        self.watches = set()

    async def serve(self, reader, writer):
        try:
            await self.lead(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def lead(self, reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        method, target, _ = head.split(b"\r\n")[0].decode().split(" ")
        assert method == "CONNECT", method
        report(tunnel=target)
        self.requests += 1
        if self.requests <= self.options.stall:
            await reader.read()
            return
        host, port = target.rsplit(":", 1)
        far_reader, far_writer = await asyncio.open_connection(host, int(port))
        answer = b"HTTP/1.1 200 Connection established\r\nVia: 1.1 proxy\r\n\r\n"
        size = 1 if self.options.pieces else len(answer)
        for start in range(0, len(answer), size):
            writer.write(answer[start : start + size])
            await writer.drain()
            await asyncio.sleep(0.002)
        tunnel = Tunnel(target, self.options, [writer, far_writer])
        if self.options.idle and (self.requests == 1 or not self.options.silent):
            watch = asyncio.create_task(tunnel.watch())
            self.watches.add(watch)
            watch.add_done_callback(self.watches.discard)
        await asyncio.gather(tunnel.carry(reader, far_writer), tunnel.carry(far_reader, writer), return_exceptions=True)


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pieces", action="store_true")
    parser.add_argument("--stall", type=int, default=0)
    parser.add_argument("--idle", type=float)
    parser.add_argument("--silent", action="store_true")
    server = await asyncio.start_server(Proxy(parser.parse_args()).serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
