"""An agent whose instrumentation tells when its tools ran: told_spans.py json|protobuf|gzip|sdk

It asks, waits, runs each tool for 30 ms, waits again, and asks with the result. Spans are sent by hand, in one request
before the next call and one at the end; with sdk by opentelemetry's own exporter, which sends when it ends."""
import gzip
import json
import os
import struct
import sys
import time
import urllib.request

how = sys.argv[1]
TRACE, sent = bytes(range(16)), []


def field(number, value):
    if isinstance(value, int):
        return bytes([number << 3]) + varint(value)
    return bytes([number << 3 | 2]) + varint(len(value)) + value


def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def protobuf(spans):
    def attribute(key, value):
        return field(9, field(1, key.encode()) + field(2, field(1, value.encode())))

    def span(s):
        return (field(1, TRACE) + field(2, s["id"]) + field(5, s["name"].encode()) + field(6, 1)
                + bytes([7 << 3 | 1]) + struct.pack("<Q", s["from"]) + bytes([8 << 3 | 1]) + struct.pack("<Q", s["to"])
                + b"".join(attribute(k, v) for k, v in s["attributes"].items()) + field(15, field(3, 1)))
    return field(1, field(2, b"".join(field(2, span(s)) for s in spans)))


def as_json(spans):
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [
        {"traceId": TRACE.hex(), "spanId": s["id"].hex(), "name": s["name"], "startTimeUnixNano": str(s["from"]),
         "endTimeUnixNano": str(s["to"]), "status": {},
         "attributes": [{"key": k, "value": {"stringValue": v}} for k, v in s["attributes"].items()]}
        for s in spans]}]}]}).encode()


def send(spans):
    body = as_json(spans) if how == "json" else protobuf(spans)
    headers = {"Content-Type": "application/json" if how == "json" else "application/x-protobuf"}
    if how == "gzip":
        body, headers["Content-Encoding"] = gzip.compress(body), "gzip"
    url = os.environ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"]
    with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as r:
        assert r.status == 200 and r.headers["Content-Type"] == headers["Content-Type"], r.headers


def by_hand(name, attributes):
    class Span:
        def __enter__(self):
            self.start = time.time_ns()

        def __exit__(self, *_):
            sent.append({"id": os.urandom(8), "name": name, "attributes": attributes, "from": self.start,
                         "to": time.time_ns()})
            if len(sent) % 2:
                send(sent[-1:])
    return Span()


def by_sdk():
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    trace.set_tracer_provider(TracerProvider())
    trace.get_tracer_provider().add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    tracer = trace.get_tracer("agent")
    return lambda name, attributes: tracer.start_as_current_span(name, attributes=attributes)


def ask(thread):
    body = json.dumps({"model": "fake-model", "messages": thread}).encode()
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, {
        "Content-Type": "application/json", "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]})
    return json.load(urllib.request.urlopen(request))["choices"][0]["message"]


span_of = by_sdk() if how == "sdk" else by_hand
thread = [{"role": "user", "content": "hello"}]
while True:
    reply = ask(thread)
    thread.append(reply)
    if not reply.get("tool_calls"):
        break
    for call in reply["tool_calls"]:
        name = call["function"]["name"]
        time.sleep(0.1)
        with span_of("execute_tool " + name, {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name,
                                              "gen_ai.tool.call.id": call["id"]}):
            time.sleep(0.03)
        time.sleep(0.1)
        thread.append({"role": "tool", "tool_call_id": call["id"], "content": "5"})
with span_of("look it up", {"openinference.span.kind": "TOOL", "tool.name": "own"}):
    time.sleep(0.02)
if how != "sdk":
    send(sent)  # all once more, as an exporter may
print(reply["content"])
