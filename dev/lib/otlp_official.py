#!/usr/bin/env python3
"""A collector that reads spans with OpenTelemetry's protobuf definitions (PyPI's opentelemetry-proto). Run it by hand.

Usage: python3 -m venv venv && venv/bin/pip install opentelemetry-proto && venv/bin/python dev/lib/otlp_official.py

Prints its address for the setting `traces` or OTEL_EXPORTER_OTLP_ENDPOINT, then each request as protobuf text. Unlike protobuf's JSON, OTLP's
JSON has hexadecimal ids.
"""

import base64
import http.server
import json

from google.protobuf import json_format, text_format
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2


def with_protobufs_ids(value):
    if isinstance(value, list):
        return [with_protobufs_ids(element) for element in value]
    if not isinstance(value, dict):
        return value
    ids = ("traceId", "spanId", "parentSpanId")
    return {
        key: base64.b64encode(bytes.fromhex(member)).decode() if key in ids else with_protobufs_ids(member)
        for key, member in value.items()
    }


class Collector(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        request = trace_service_pb2.ExportTraceServiceRequest()
        json_format.ParseDict(with_protobufs_ids(body), request, ignore_unknown_fields=False)
        print(text_format.MessageToString(request), flush=True)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
server.serve_forever()
