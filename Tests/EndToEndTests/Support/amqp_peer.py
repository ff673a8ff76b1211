#!/usr/bin/python3
"""A producer and consumer that share no code with pushfleet: Debian's python3-pika.

publish: each line of standard input is {"body": …, "properties": {…}, "routing_key": "…", "exchange": "…"}; only `body` is
         required. A string body is sent unchanged, or with its backslash escapes decoded if `bytes` is true. Other bodies are
         sent as JSON. Waits for each confirm. An unroutable message ends the program with status 1. In the headers that `latin1`
         names, each character becomes one byte. --times prints for each message the Unix milliseconds of its publication.
move:    gets all waiting messages of a queue, sets the first byte of a header, and publishes them elsewhere.
ask:     publishes like publish, with its own reply_to, and prints --count replies like consume. Replies come directly, or to an
         exclusive queue: --queue names it; with "" the broker chooses the name.
try:     each line is {"do": "publish"|"get"|"declare"|"bind"|"unbind"|"purge"|"consume", …} and is done on its own channel.
         Prints "ok", or the code with which the broker closed the channel.
consume: prints each message of a queue as {"body": …, "properties": {…}, "redelivered": …} and acknowledges it. Ends after
         --count messages, or after --wait seconds without a message.
declare: declares a durable queue, with --arguments as JSON.
delete:  deletes a queue with its messages, or with --exchange an exchange.
serve:   prints a port on loopback, and runs these commands for its clients, until standard input ends. A client sends one line of
         JSON: the command's `words`, and the file of its `input`. The answer is what the command prints, and a last line with its
         status. Each command is a process of its own, in which pika is already imported: that takes longer than most commands.
"""

import argparse
import codecs
import datetime
import json
import os
import select
import signal
import socket
import sys
import time
import traceback

import pika
import pika.exceptions

PROPERTIES = ["app_id", "content_encoding", "content_type", "correlation_id", "delivery_mode", "expiration", "headers",
              "message_id", "priority", "reply_to", "timestamp", "type", "user_id"]


def body_bytes(line):
    body = line["body"]
    if not isinstance(body, str):
        return json.dumps(body, ensure_ascii=False).encode()
    return codecs.escape_decode(body)[0] if line.get("bytes") else body.encode()


class Bytes(str):
    """Text in which each character is one byte. pika writes only text as the string type that other clients use."""

    def encode(self, *_):
        return super().encode("latin-1")


def publish(channel, options):
    channel.confirm_delivery()
    for text in sys.stdin:
        line = json.loads(text)
        properties = pika.BasicProperties(**{"delivery_mode": 2, **line.get("properties", {})})
        for name in line.get("latin1", []):
            properties.headers[name] = Bytes(properties.headers[name])
        if options.times:
            print(int(time.time() * 1000), flush=True)
        channel.basic_publish(line.get("exchange", "push.send"), line.get("routing_key", "normal"), body_bytes(line),
                              properties, mandatory=True)


def move(channel, options):
    channel.confirm_delivery()
    count = channel.queue_declare(options.queue, passive=True).method.message_count
    for _ in range(count):
        method, properties, body = channel.basic_get(options.queue)
        value = properties.headers[options.header]
        octets = value.encode() if isinstance(value, str) else value
        properties.headers[options.header] = Bytes((bytes([options.first_byte]) + octets[1:]).decode("latin-1"))
        properties.headers.pop("x-death", None)
        channel.basic_publish(options.exchange, options.routing_key, body, properties, mandatory=True)
        channel.basic_ack(method.delivery_tag)
    print(count)


def plain(value):
    """A property's value in a form that JSON can represent."""
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=datetime.timezone.utc).isoformat()
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list) else value


def show(properties, body, redelivered):
    fields = {name: plain(getattr(properties, name)) for name in PROPERTIES if getattr(properties, name) is not None}
    print(json.dumps({"body": body.decode("utf-8", "backslashreplace"), "properties": fields, "redelivered": redelivered},
                     ensure_ascii=False), flush=True)


def ask(channel, options):
    channel.confirm_delivery()
    queue = "amq.rabbitmq.reply-to"
    if options.queue is not None:
        queue = channel.queue_declare(options.queue, exclusive=True).method.queue
    seen = []

    def reply(_, method, properties, body):
        seen.append(body)
        show(properties, body, method.redelivered)

    channel.basic_consume(queue, reply, auto_ack=True)
    for text in sys.stdin:
        line = json.loads(text)
        properties = pika.BasicProperties(**{"reply_to": queue, **line.get("properties", {})})
        channel.basic_publish(line.get("exchange", "push.send"), line.get("routing_key", "normal"), body_bytes(line),
                              properties, mandatory=True)
    end = time.monotonic() + options.wait
    while len(seen) < options.count and time.monotonic() < end:
        channel.connection.process_data_events(0.1)


def attempt(channel, line):
    name = line.get("queue", "")
    if line["do"] == "publish":
        channel.confirm_delivery()
        properties = pika.BasicProperties(**line.get("properties", {}))
        channel.basic_publish(line["exchange"], line.get("routing_key", ""), b"{}", properties)
    elif line["do"] == "declare":
        channel.queue_declare(name, durable=True, arguments=line.get("arguments", {}))
    elif line["do"] == "bind":
        channel.queue_bind(name, line["exchange"], line.get("routing_key", ""))
    elif line["do"] == "unbind":
        channel.queue_unbind(name, line["exchange"], line.get("routing_key", ""), line.get("arguments", {}))
    elif line["do"] == "purge":
        channel.queue_purge(name)
    elif line["do"] == "consume":
        channel.basic_consume(name, lambda *_: None)
    else:
        channel.basic_get(name)


def try_all(channel, _):
    for text in sys.stdin:
        own = channel.connection.channel()
        try:
            attempt(own, json.loads(text))
            print("ok", flush=True)
            own.close()
        except pika.exceptions.ChannelClosedByBroker as closed:
            print(closed.reply_code, flush=True)
        except pika.exceptions.UnroutableError:
            print("ok", flush=True)


def consume(channel, options):
    channel.basic_qos(prefetch_count=100)
    remaining = options.count
    for method, properties, body in channel.consume(options.queue, inactivity_timeout=options.wait):
        if method is None:
            break
        show(properties, body, method.redelivered)
        if not options.give_back:
            channel.basic_ack(method.delivery_tag)
        remaining -= 1
        if remaining == 0:
            break
    channel.cancel()


def declare(channel, options):
    channel.queue_declare(options.queue, durable=True, arguments=options.arguments)


def delete(channel, options):
    if options.exchange:
        channel.exchange_delete(options.queue)
    else:
        channel.queue_delete(options.queue)


def answer(connection):
    """Runs a client's command in this process."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    request = json.loads(connection.makefile("rb").readline())
    os.dup2(os.open(request["input"] or os.devnull, os.O_RDONLY), 0)
    os.dup2(connection.fileno(), 1)
    os.dup2(connection.fileno(), 2)
    status = 0
    try:
        main(request["words"])
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
        if end.code != status:
            print(end.code)
    except BaseException:
        status = 1
        traceback.print_exc()
    print(status, flush=True)


def serve():
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.create_server(("127.0.0.1", 0)) as server:
        print(server.getsockname()[1], flush=True)
        while True:
            ready, _, _ = select.select([server, sys.stdin], [], [])
            if sys.stdin in ready:
                return
            connection, _ = server.accept()
            if os.fork() == 0:
                server.close()
                answer(connection)
                os._exit(0)
            connection.close()


def main(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--broker", default="amqp://guest:guest@127.0.0.1:5672/%2F")
    commands = parser.add_subparsers(required=True)
    publishing = commands.add_parser("publish")
    publishing.add_argument("--times", action="store_true")
    publishing.set_defaults(run=publish)
    moving = commands.add_parser("move")
    moving.add_argument("queue")
    moving.add_argument("--exchange", required=True)
    moving.add_argument("--routing-key", required=True)
    moving.add_argument("--header", required=True)
    moving.add_argument("--first-byte", type=int, required=True)
    moving.set_defaults(run=move)
    asking = commands.add_parser("ask")
    asking.add_argument("--queue")
    asking.add_argument("--count", type=int, default=1)
    asking.add_argument("--wait", type=float, default=30)
    asking.set_defaults(run=ask)
    trying = commands.add_parser("try")
    trying.set_defaults(run=try_all)
    consuming = commands.add_parser("consume")
    consuming.add_argument("queue")
    consuming.add_argument("--count", type=int, default=0, help="0: no limit")
    consuming.add_argument("--wait", type=float, default=0.3)
    consuming.add_argument("--give-back", action="store_true", help="acknowledge nothing, like a consumer that crashes")
    consuming.set_defaults(run=consume)
    declaring = commands.add_parser("declare")
    declaring.add_argument("queue")
    declaring.add_argument("--arguments", type=json.loads, default={})
    declaring.set_defaults(run=declare)
    deleting = commands.add_parser("delete")
    deleting.add_argument("queue")
    deleting.add_argument("--exchange", action="store_true")
    deleting.set_defaults(run=delete)
    commands.add_parser("serve").set_defaults(run=None)
    options = parser.parse_args(words)
    if options.run is None:
        return serve()
    try:
        connection = pika.BlockingConnection(pika.URLParameters(options.broker))
        options.run(connection.channel(), options)
        connection.close()
    except pika.exceptions.UnroutableError:
        sys.exit("unroutable: there is no such queue")
    except pika.exceptions.AMQPError as fault:
        sys.exit(f"{type(fault).__name__}: {fault}")


if __name__ == "__main__":
    main(sys.argv[1:])
