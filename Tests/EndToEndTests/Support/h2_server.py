#!/usr/bin/python3
"""An HTTP/2 server with python3-h2 and Debian's ssl module. It shares no code with pushfleet.

It answers POST /3/device/<token> like APNs and prints one JSON object per line: first {"event":"listening","port":N}, then
{"event":"request",…} for each request that it answers, refuses or ignores. It ends when standard input ends.
"""

import argparse
import asyncio
import json
import ssl
import sys

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings


def report(**fields):
    print(json.dumps(fields, ensure_ascii=False), flush=True)


class Session(asyncio.Protocol):
    """One connection."""

    count = 0

    def __init__(self, options):
        Session.count += 1
        self.number = Session.count
        self.options = options
        self.requests = {}  # stream: [headers, body]
        self.answered = 0
        self.leaving = False

    def connection_made(self, transport):
        self.transport = transport
        self.protocol = transport.get_extra_info("ssl_object").selected_alpn_protocol()
        configuration = h2.config.H2Configuration(client_side=False, header_encoding="utf-8")
        self.connection = h2.connection.H2Connection(configuration)
        streams = h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS
        self.connection.local_settings = h2.settings.Settings(client=False, initial_values={streams: self.options.streams})
        self.connection.initiate_connection()
        self.flush()

    def flush(self):
        self.transport.write(self.connection.data_to_send())

    def data_received(self, data):
        if self.leaving:
            return
        try:
            events = self.connection.receive_data(data)
        except h2.exceptions.ProtocolError as fault:
            report(event="protocol_error", connection=self.number, what=str(fault))
            self.flush()
            self.transport.close()
            return
        for event in events:
            if isinstance(event, h2.events.RequestReceived):
                self.requests[event.stream_id] = [event.headers, b""]
            elif isinstance(event, h2.events.DataReceived):
                self.requests[event.stream_id][1] += event.data
                self.connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, h2.events.StreamEnded):
                self.answer(event.stream_id)
            elif isinstance(event, h2.events.StreamReset):
                self.requests.pop(event.stream_id, None)
        # After GOAWAY the client closes the connection. If this side closed it with unread data, the kernel would discard answers.
        self.flush()

    def answer(self, stream):
        headers, body = self.requests.pop(stream)
        fields = dict(event="request", connection=self.number, protocol=self.protocol, stream=stream,
                      headers=headers, body=body.decode("utf-8", "backslashreplace"))
        if self.leaving:
            report(**fields, answer="none")
            return
        self.options.seen += 1
        if self.options.refuse_every and self.options.seen % self.options.refuse_every == 0:
            self.connection.reset_stream(stream, h2.errors.ErrorCodes.REFUSED_STREAM)
            report(**fields, answer="refused")
            return
        token = dict(headers).get(":path", "").rpartition("/")[2]
        topic = dict(headers).get("apns-topic", "")
        script = self.options.script
        status, reason = script.get(token, script.get(topic, (200, None)))
        answer = b"" if status == 200 else json.dumps({"reason": reason}).encode()
        identity = dict(headers).get("apns-id")
        response = [(":status", str(status))] + ([("apns-id", identity)] if identity else [])
        is_endless = token == self.options.endless
        self.connection.send_headers(stream, response, end_stream=not answer)
        if is_endless:
            for _ in range(3):
                self.connection.send_data(stream, answer.ljust(16384))
        elif answer:
            self.connection.send_data(stream, answer, end_stream=True)
        report(**fields, answer=status)
        self.answered += 1
        if self.answered == self.options.goaway_after:
            self.leaving = True
            self.flush()
            # The client must resend requests with higher stream ids that arrived together with this one.
            self.connection.close_connection(last_stream_id=stream)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("--certificate", required=True)
    parser.add_argument("--key", required=True)
    parser.add_argument("--port", type=int, default=0, help="0: any free port")
    parser.add_argument("--streams", type=int, default=1000, help="SETTINGS_MAX_CONCURRENT_STREAMS")
    parser.add_argument("--script", type=json.loads, default={}, help='{"<token or topic>": [410, "Unregistered"]}')
    parser.add_argument("--refuse-every", type=int, default=0, help="answer each nth request with REFUSED_STREAM")
    parser.add_argument("--endless", help="the token whose answer has a body of 48 KiB that never ends")
    parser.add_argument("--goaway-after", type=int, default=0, help="send GOAWAY after this many answers on a connection")
    options = parser.parse_args()
    options.seen = 0
    return options


async def main(options, session=Session):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(options.certificate, options.key)
    context.set_alpn_protocols(["h2"])
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: session(options), "127.0.0.1", options.port, ssl=context)
    report(event="listening", port=server.sockets[0].getsockname()[1])
    await loop.run_in_executor(None, sys.stdin.buffer.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(main(parse_arguments()))
