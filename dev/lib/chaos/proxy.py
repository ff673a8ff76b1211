"""A TCP proxy with faults. Each pair of worker and service has a separate link, which can be slow, silent or cut."""

import asyncio
import socket
import struct
import threading

# Makes a close send RST instead of FIN.
ABORT = struct.pack("ii", 1, 0)


class Link:
    """A listening port and its destination: a port on loopback, or the path of a Unix socket.

    Its methods may be called from any thread.
    """

    def __init__(self, name, upstream):
        self.name, self.upstream = name, upstream
        self.port = None
        self.delay = 0.0
        self.is_cut = False
        self.connections = set()
        self.loop = self.open_gate = None

    async def listen(self):
        self.loop = asyncio.get_running_loop()
        self.open_gate = asyncio.Event()
        self.open_gate.set()
        server = await asyncio.start_server(self._accepted, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]

    # Faults

    def slow(self, seconds):
        """Delays each piece of data by this many seconds."""
        self.delay = seconds

    def stall(self):
        """Silently stops both directions, like a half-open connection or a broken switch."""
        self._call(self.open_gate.clear)

    def reset(self):
        """Ends every connection with RST. Accepts new ones."""
        self._call(self._reset)

    def cut(self):
        """Ends every connection with RST, including new ones."""
        self.is_cut = True
        self.reset()

    def mend(self):
        """Removes all faults. Data of stalled connections arrives."""
        self.delay, self.is_cut = 0.0, False
        self._call(self.open_gate.set)

    def _call(self, function):
        self.loop.call_soon_threadsafe(function)

    def _reset(self):
        for writer in list(self.connections):
            abort(writer)

    # One connection

    async def _accepted(self, reader, writer):
        if self.is_cut:
            return abort(writer)
        self.connections.add(writer)
        try:
            await self.open_gate.wait()
            if isinstance(self.upstream, int):
                up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self.upstream)
            else:
                up_reader, up_writer = await asyncio.open_unix_connection(self.upstream)
        except OSError:
            # Refuse the connection, like a service that doesn't listen.
            self.connections.discard(writer)
            return abort(writer)
        self.connections.add(up_writer)
        for way in asyncio.as_completed([self._pump(reader, up_writer), self._pump(up_reader, writer)]):
            if not await way:
                break
        for one in (writer, up_writer):
            self.connections.discard(one)
            one.close()

    async def _pump(self, reader, writer):
        """Copies one direction until its end. Returns true after an orderly end, when the other direction may continue."""
        try:
            while piece := await reader.read(65536):
                if self.delay:
                    await asyncio.sleep(self.delay)
                await self.open_gate.wait()
                writer.write(piece)
                await writer.drain()
            await self.open_gate.wait()
            if writer.can_write_eof():
                writer.write_eof()
            return True
        except OSError:
            abort(writer)
            return False


def abort(writer):
    connection = writer.get_extra_info("socket")
    if connection and connection.family == socket.AF_INET:
        try:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORT)
        except OSError:
            pass
    writer.transport.abort()


class Proxy:
    """All links, served by one thread."""

    def __init__(self):
        self.links = {}
        self.loop = asyncio.new_event_loop()
        # Ended connections are intended.
        self.loop.set_exception_handler(lambda *_: None)
        threading.Thread(target=self.loop.run_forever, name="proxy", daemon=True).start()

    def link(self, name, upstream):
        link = Link(name, upstream)
        asyncio.run_coroutine_threadsafe(link.listen(), self.loop).result(10)
        self.links[name] = link
        return link

    def some(self, *, worker=None, service=None):
        """The links of a worker, of a service, or of both. Names are `w1-broker2`, `w1-postgres`, `w1-apns`, `w1-fcm`."""
        return [link for name, link in self.links.items()
                if worker in (None, name.split("-")[0]) and (service is None or name.split("-")[1].startswith(service))]

    def mend(self):
        for link in self.links.values():
            link.mend()
