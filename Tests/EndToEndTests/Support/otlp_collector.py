#!/usr/bin/env python3
"""A strict collector of OTLP over HTTP. It accepts only fields that opentelemetry/proto/collector/trace/v1 and trace/v1 define, in the
JSON encoding of the OTLP specification (ids in hexadecimal, 64-bit integers as text, enumerations as numbers, names in lowerCamelCase).

Usage: otlp_collector.py [--status N] [--certificate PEM --key PEM] [--header NAME=VALUE]

Prints its port, then one line of JSON for each accepted span, with the attributes as an object, and {"refused": why} for each refused
request. With --status N it answers every request with N and reads none; --header names a header that each request must have.
"""

import argparse
import http.server
import json
import re
import ssl
import sys

HEX = re.compile(r"[0-9a-f]+")
NUMBER = re.compile(r"-?[0-9]{1,20}")


class Refused(Exception):
    pass


def require(condition, why):
    if not condition:
        raise Refused(why)


def members(value, where, known, needed=()):
    require(isinstance(value, dict), f"{where} is no object")
    require(set(value) <= set(known), f"{where} has {sorted(set(value) - set(known))}")
    require(set(needed) <= set(value), f"{where} lacks {sorted(set(needed) - set(value))}")
    return value


def elements(value, where):
    require(isinstance(value, list), f"{where} is no list")
    return value


def text(value, where):
    require(isinstance(value, str), f"{where} is no text")
    return value


def identity(value, where, length):
    require(len(text(value, where)) == length and HEX.fullmatch(value) and set(value) != {"0"}, f"{where} is no id: {value}")
    return value


def number(value, where):
    require(isinstance(value, str) and NUMBER.fullmatch(value), f"{where} is no 64-bit integer as text: {value!r}")
    return int(value)


def attributes(value, where):
    found = {}
    for entry in elements(value, where):
        members(entry, where, ["key", "value"], ["key", "value"])
        key = text(entry["key"], where)
        require(key and key not in found, f"{where} has {key!r} twice, or a key without a name")
        held = members(entry["value"], key, ["stringValue", "boolValue", "intValue", "doubleValue"])
        require(len(held) == 1, f"{key} has {len(held)} values")
        ((kind, content),) = held.items()
        if kind == "stringValue":
            found[key] = text(content, key)
        elif kind == "boolValue":
            require(isinstance(content, bool), f"{key} is neither true nor false")
            found[key] = content
        elif kind == "intValue":
            found[key] = number(content, key)
        else:
            require(isinstance(content, float), f"{key} is no double")
            found[key] = content
    return found


SPAN = [
    "traceId", "spanId", "traceState", "parentSpanId", "flags", "name", "kind", "startTimeUnixNano", "endTimeUnixNano",
    "attributes", "droppedAttributesCount", "events", "droppedEventsCount", "links", "droppedLinksCount", "status",
]


def span(value):
    members(value, "span", SPAN, ["traceId", "spanId", "name", "startTimeUnixNano", "endTimeUnixNano"])
    taken = {
        "trace": identity(value["traceId"], "traceId", 32),
        "span": identity(value["spanId"], "spanId", 16),
        "parent": identity(value["parentSpanId"], "parentSpanId", 16) if value.get("parentSpanId") else "",
        "name": text(value["name"], "name"),
        "kind": value.get("kind", 0),
        "start": number(value["startTimeUnixNano"], "startTimeUnixNano"),
        "end": number(value["endTimeUnixNano"], "endTimeUnixNano"),
        "attributes": attributes(value.get("attributes", []), "attributes"),
    }
    require(type(taken["kind"]) is int and 0 <= taken["kind"] <= 5, f"kind is {taken['kind']!r}")
    require(taken["name"], "a span without a name")
    require(taken["start"] <= taken["end"], "a span ends before it starts")
    status = members(value.get("status", {}), "status", ["message", "code"])
    text(status.get("message", ""), "status.message")
    taken["status"] = status.get("code", 0)
    require(type(taken["status"]) is int and 0 <= taken["status"] <= 2, f"status.code is {taken['status']!r}")
    return taken


def request(value):
    spans = []
    members(value, "request", ["resourceSpans"], ["resourceSpans"])
    for resource_spans in elements(value["resourceSpans"], "resourceSpans"):
        members(resource_spans, "resourceSpans", ["resource", "scopeSpans", "schemaUrl"])
        resource = members(resource_spans.get("resource", {}), "resource", ["attributes", "droppedAttributesCount"])
        described = attributes(resource.get("attributes", []), "resource.attributes")
        require(described.get("service.name"), "the resource has no service.name")
        for scope_spans in elements(resource_spans["scopeSpans"], "scopeSpans"):
            members(scope_spans, "scopeSpans", ["scope", "spans", "schemaUrl"])
            members(scope_spans.get("scope", {}), "scope", ["name", "version", "attributes", "droppedAttributesCount"])
            spans += [{**span(one), "resource": described} for one in elements(scope_spans["spans"], "spans")]
    return spans


class Collector(http.server.BaseHTTPRequestHandler):
    status = 200
    header = None

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        status = self.status
        if status == 200:
            try:
                require(self.path == "/v1/traces", f"the path is {self.path}")
                require(self.headers.get("Content-Type") == "application/json", "the content is no JSON by its type")
                if self.header:
                    name, value = self.header.split("=", 1)
                    require(self.headers.get(name) == value, f"{name} is {self.headers.get(name)!r}")
                for taken in request(json.loads(body)):
                    print(json.dumps(taken), flush=True)
            except (Refused, ValueError, KeyError) as why:
                print(json.dumps({"refused": str(why)}), flush=True)
                status = 400
        answer = b'{"partialSuccess":{}}' if status == 200 else b'{"code":3,"message":"refused"}'
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--status", type=int, default=200)
    parser.add_argument("--certificate")
    parser.add_argument("--key")
    parser.add_argument("--header")
    options = parser.parse_args()
    Collector.status = options.status
    Collector.header = options.header
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    if options.certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options.certificate, options.key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    sys.exit(main())
