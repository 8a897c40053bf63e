#!/usr/bin/env python3
"""A fake MCP server: plays a captured exchange to another client, or misbehaves in one named way.

  mcp.py stdio CAPTURE        answers each request as the capture did, whatever number it has
  mcp.py http CAPTURE         the same over HTTP; prints "listening PORT" first
  mcp.py calls CAPTURE        prints the capture's tool calls as JSON: [{name, arguments, expect}]
  mcp.py bad-http [FILE]      a legacy server over HTTP whose path names its fault; FILE: what it was told
  mcp.py bad WAY [FILE]       a small legacy server with one fault; FILE counts its starts

A capture is a file of tests/data/mcp: lines {t_ms, dir, raw} (stdio) or {request, response} (http).
"""
import http.server
import json
import os
import sys
import time

TOOLS = [{"name": "echo", "description": "Says it again.", "inputSchema": {
    "$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
    "properties": {"text": {"type": "string", "description": "What."}}, "required": ["text"]}}]


def load(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def essence(message):
    """What makes two requests the same: neither number nor client nor progress token."""
    params = {k: v for k, v in (message.get("params") or {}).items()
              if k not in ("_meta", "clientInfo", "capabilities", "protocolVersion")}
    return json.dumps([message.get("method"), params], sort_keys=True)


def say(message):
    sys.stdout.write(message if isinstance(message, str) else json.dumps(message, ensure_ascii=False))
    sys.stdout.write("\n")
    sys.stdout.flush()


def parsed(frame):
    try:
        return json.loads(frame["raw"])
    except ValueError:
        return {}


# ---- a capture over stdio --------------------------------------------------------------------

def stdio(path):
    frames = [(f["dir"], parsed(f)) for f in load(path) if f["dir"] in ("c2s", "s2c")]
    used = set()
    for line in sys.stdin:
        asked = json.loads(line)
        if "method" not in asked:
            continue  # an answer to a request of ours
        at = next((i for i, (d, m) in enumerate(frames) if d == "c2s" and i not in used and m.get("method")
                   and essence(m) == essence(asked)), None)
        if at is None:
            if "id" in asked:
                say({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "Method not found"}})
            continue
        used.add(at)
        number = frames[at][1].get("id")
        token = ((asked.get("params") or {}).get("_meta") or {}).get("progressToken")
        for d, m in frames[at + 1:]:
            if d == "c2s" and number is None:
                break
            if d != "s2c":
                continue
            if m.get("method"):
                m = json.loads(json.dumps(m))
                if "progressToken" in (m.get("params") or {}):
                    m["params"]["progressToken"] = token
                say(m)
            elif m.get("id") == number:
                say(dict(m, id=asked["id"]))
                break


# ---- a capture over HTTP ---------------------------------------------------------------------

def serve(path):
    pairs, used = [p for p in load(path) if p["response"]["status"] < 300], set()
    if not any(p["request"]["method"] == "POST" and p["request"]["body"].get("method") == "tools/list" for p in pairs):
        # The capture asked for the list only in wrong ways: the same server's list over stdio is the right answer.
        said = [parsed(f) for f in load(path.replace("-http", "-stdio")) if f["dir"] == "s2c"]
        lists = [m for m in said if "tools" in m.get("result", {})]
        was = next(p for p in pairs if (p["request"]["body"] or {}).get("method") == "tools/call")
        pairs.append({"request": dict(was["request"], body={"method": "tools/list", "id": lists[0]["id"]}),
                      "response": {"status": 200, "headers": {"content-type": "application/json"},
                                   "body": json.dumps(lists[0])}})

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args):
            pass

        def fits(self, asked, pair):
            was = pair["request"]
            if was["method"] != "POST" or not was["body"] or essence(was["body"]) != essence(asked):
                return False
            # The headers that decide; those of the body's kind are the same in every good request.
            for name in ("MCP-Protocol-Version", "Mcp-Method", "Mcp-Name", "Mcp-Session-Id", "Accept"):
                if was["headers"].get(name) != self.headers.get(name):
                    return False
            return True

        def do_POST(self):
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            at = next((i for i, p in enumerate(pairs) if i not in used and self.fits(asked, p)), None)
            if at is None:
                body = json.dumps({"jsonrpc": "2.0", "id": asked.get("id"),
                                   "error": {"code": -32600, "message": "not in the capture"}})
                return self.answer(400, {"content-type": "application/json"}, body)
            if "id" in asked and asked["method"] != "server/discover":
                used.add(at)
            r, number = pairs[at]["response"], pairs[at]["request"]["body"].get("id")
            body = r["body"] or ""
            if number is not None:
                for spaced in ('"id":%d' % number, '"id": %d' % number):
                    body = body.replace(spaced, '"id":%s' % json.dumps(asked.get("id")))
            self.answer(r["status"], r["headers"], body)

        def answer(self, status, headers, body):
            data = body.encode()
            self.send_response(status)
            for name, value in headers.items():
                if name.lower() not in ("transfer-encoding", "connection", "keep-alive", "content-length"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print("listening", server.server_address[1], flush=True)
    server.serve_forever()


# ---- what the calls of a capture come to -----------------------------------------------------

def expect(result):
    parts = []
    for part in result["content"]:
        if part["type"] == "text":
            parts.append(part["text"])
        elif part["type"] == "resource":
            parts.append(part["resource"]["text"])
        elif part["type"] == "resource_link":
            parts.append("[link to %s: %s]" % (part["name"], part["uri"]))
        else:
            parts.append("[%s, " % part["mimeType"])
    return parts


def calls(path):
    out, frames = [], load(path)
    if "request" in frames[0]:
        for p in frames:
            body, text = p["request"]["body"] or {}, p["response"]["body"]
            if body.get("method") != "tools/call" or p["response"]["status"] != 200:
                continue
            data = [l[6:] for l in text.split("\n") if l.startswith("data: ") and '"result"' in l]
            out.append((body["params"], json.loads(data[0] if data else text)))
    else:
        messages = [parsed(f) for f in frames if f["dir"] in ("c2s", "s2c")]
        for m in messages:
            answers = [a for a in messages if a.get("id") == m.get("id") and "method" not in a]
            if m.get("method") == "tools/call" and answers:
                out.append((m["params"], answers[-1]))
    print(json.dumps([{"name": p["name"], "arguments": p["arguments"],
                       "error": a["error"]["message"] if "error" in a else "",
                       "failed": "error" in a or bool(a["result"].get("isError")),
                       "expect": [] if "error" in a else expect(a["result"])} for p, a in out]))


# ---- faults ----------------------------------------------------------------------------------

class Bad:
    """A legacy server that is right but for the method of its fault."""

    def __init__(self, way, counter):
        self.way, self.starts, self.ready = way, 1, False
        if counter:
            with open(counter, "a") as f:
                f.write("start\n")
            with open(counter) as f:
                self.starts = len(f.readlines())

    def reply(self, m, result):
        say({"jsonrpc": "2.0", "id": m["id"], "result": result})

    def fail(self, m, code, text):
        say({"jsonrpc": "2.0", "id": m["id"], "error": {"code": code, "message": text}})

    def discover(self, m):
        if self.way == "dies_at_discover" and self.starts == 1:
            sys.exit(9)
        if self.way == "silent_at_discover":
            return
        if self.way == "slow_and_modern":
            if not self.ready:
                time.sleep(2.5)
            self.ready = True
            return self.reply(m, {"supportedVersions": ["2026-07-28"], "capabilities": {}, "_meta": {
                "io.modelcontextprotocol/serverInfo": {"name": "bad", "version": "1"}}})
        self.fail(m, -32601, "Method not found")

    def initialize(self, m):
        if self.way == "dies_at_initialize" or (self.way == "dies_at_restart" and self.starts > 1):
            sys.exit(5)
        if self.way == "slow_and_modern":
            return self.fail(m, -32601, "Method not found")
        version = "1999-01-01" if self.way == "old" else "2025-06-18"
        if self.way == "asks_back":
            say({"jsonrpc": "2.0", "id": "p", "method": "ping"})
            assert json.loads(sys.stdin.readline()) == {"jsonrpc": "2.0", "id": "p", "result": {}}
            say({"jsonrpc": "2.0", "id": 7, "method": "roots/list"})
            assert json.loads(sys.stdin.readline())["error"]["code"] == -32601
        if self.way == "result_is_text":
            return say({"jsonrpc": "2.0", "id": m["id"], "result": "fine"})
        self.reply(m, {"protocolVersion": version, "capabilities": {"tools": {}},
                       "serverInfo": {"name": "bad", "version": "1"}})

    def list(self, m):
        cursor = (m.get("params") or {}).get("cursor")
        if self.way == "dies_at_list":
            sys.exit(6)
        if self.way == "pages_for_ever":
            return self.reply(m, {"tools": TOOLS if not cursor else [], "nextCursor": str(int(cursor or 0) + 1)})
        if self.way == "pages_in_a_circle":
            return self.reply(m, {"tools": [], "nextCursor": "again"})
        if self.way == "two_pages":  # the empty string is a cursor as well
            tools = TOOLS if cursor is None else [dict(TOOLS[0], name="second")]
            return self.reply(m, {"tools": tools, "nextCursor": ""} if cursor is None else {"tools": tools})
        if self.way == "many_tools":
            return self.reply(m, {"tools": [dict(TOOLS[0], name="t%d" % i) for i in range(600)]})
        if self.way == "odd_tools":
            return self.reply(m, {"tools": [
                dict(TOOLS[0], name="a b/c\n" + "x" * 100), dict(TOOLS[0], name="a b/c\n" + "x" * 100), 5,
                {"name": ""}, {"name": "bare"}, {"name": "big", "inputSchema": {"description": "y" * 100000}},
                {"name": "ro", "annotations": {"readOnlyHint": True}, "inputSchema": {"properties": []}}]})
        if self.way == "tools_is_text":
            return self.reply(m, {"tools": "none"})
        self.reply(m, {"tools": TOOLS})

    def call(self, m):
        text, way = m["params"]["arguments"].get("text"), self.way
        if text == "fault" or way == "dies_again":
            if way in ("dies", "dies_again", "dies_at_restart"):
                sys.stderr.write("out of luck\n")
                sys.exit(4)
            if way == "silent":
                say({"jsonrpc": "2.0", "method": "notifications/progress", "params": {
                    "progressToken": m["params"]["_meta"]["progressToken"], "progress": 2, "total": 5}})
                return None
            if way == "late":
                time.sleep(1.2)
            if way == "floods":
                line = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "x" * 50}})
                while True:
                    say(line)
            if way == "long_line":
                while True:
                    sys.stdout.write("x" * 65536)
            if way == "lies":
                for number in (m["id"] + 1, str(m["id"]), None, 99999, [m["id"]]):
                    say({"jsonrpc": "2.0", "id": number, "result": {"content": [{"type": "text", "text": "a lie"}]}})
                say("this is no JSON")
                say("[1, 2]")
            if way == "content":
                return self.reply(m, {"content": ["x", {"type": "text"}, {"type": "hologram"}, {"type": "image"},
                                                  {"type": "image", "data": "%%%", "mimeType": "image/png"},
                                                  {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
                                                  {"type": "resource"}, {"type": "text", "text": "end"}]})
            if way == "too_deep":
                deep = "[" * 200 + "]" * 200
                print('{"jsonrpc": "2.0", "id": %d, "result": {"content": [], "structuredContent": %s}}' % (m["id"], deep),
                      flush=True)
                return None
            if way == "structured":
                return self.reply(m, {"content": [], "structuredContent": {"b": [], "a": 1}})
            if way == "input_required":
                return self.reply(m, {"resultType": "input_required", "inputRequests": {
                    "q": {"method": "sampling/createMessage", "params": {}}}})
            if way == "asks_again":
                return self.reply(m, {"resultType": "input_required", "requestState": "for ever"})
            if way == "asks_a_person" and "inputResponses" not in m["params"]:
                return self.reply(m, {"resultType": "input_required", "requestState": "s", "inputRequests": {
                    "q": {"method": "elicitation/create", "params": {"message": "Sure?"}}}})
            if way == "asks_a_person":
                text = json.dumps([m["params"]["inputResponses"], m["params"]["requestState"]])
            if way == "error":
                return self.fail(m, -32603, "it broke")
        self.reply(m, {"content": [{"type": "text", "text": "again: %s" % text}]})
        if way == "dies_idle" and text == "fault":
            sys.exit(7)

    def run(self):
        if self.way == "silent_at_start":
            time.sleep(600)
        for line in sys.stdin:
            m = json.loads(line)
            answer = {"server/discover": self.discover, "initialize": self.initialize, "tools/list": self.list,
                      "tools/call": self.call}.get(m.get("method"))
            if m.get("method") == "notifications/cancelled":
                with open(os.environ.get("TOLD", os.environ["IPW_WORKSPACE"]) + "/cancelled", "a") as f:
                    f.write("%s\n" % m["params"]["reason"])
            if answer:
                answer(m)


def bad_http(log):
    """Faults over HTTP; the path is the way, and each way is a server of its own."""
    states = {}
    told = open(log, "a", buffering=1)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args):
            pass

        def parse_request(self):
            good = super().parse_request()
            self.way = self.path.strip("/") if good else ""
            self.state = states.setdefault(self.way, {})
            return good

        def tell(self, text):
            told.write("%s %s\n" % (self.way, text))

        def answer(self, status, body="", kind="application/json", **headers):
            data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
            self.send_response(status)
            for name, value in {"Content-Type": kind, "Content-Length": len(data), **headers}.items():
                self.send_header(name.replace("_", "-"), str(value))
            self.end_headers()
            self.wfile.write(data)

        def result(self, m, result, **headers):
            self.answer(200, {"jsonrpc": "2.0", "id": m["id"], "result": result}, **headers)

        def stream(self, *events, then=None):  # without an end, unless the connection is closed
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            for event in events:
                self.wfile.write(("data: %s\n\n" % json.dumps(event)).encode())
            if then:
                then()
            self.close_connection = True

        def text(self, m, text):
            return {"jsonrpc": "2.0", "id": m["id"], "result": {"content": [{"type": "text", "text": text}]}}

        def do_DELETE(self):
            self.tell("DELETE %s" % self.headers["Mcp-Session-Id"])
            self.answer(405 if self.way == "slow" else 200)

        def do_GET(self):  # a stream is read on
            state, way, last = self.state, self.way, self.headers["Last-Event-ID"]
            state["reads"] = state.get("reads", 0) + 1
            if way == "never_ends" or state["reads"] < 2:
                return self.answer(200, "id: %s0\nretry: 1\ndata: \n\n" % last, "text/event-stream")
            message = {"jsonrpc": "2.0", "id": state["asked"], "result": {"content": [
                {"type": "text", "text": "read on after %s" % last}]}}
            self.answer(200, "data: %s\n\n" % json.dumps(message), "text/event-stream")

        def do_POST(self):
            m, way, state = json.loads(self.rfile.read(int(self.headers["Content-Length"]))), self.way, self.state
            session = self.headers["Mcp-Session-Id"]
            if m["method"] == "server/discover":
                return self.answer(404, "not found", "text/plain")
            if m["method"] == "initialize":
                if way == "html":
                    return self.answer(200, "<html>", "text/html")
                if way == "refuses":
                    return self.answer(401, {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "who?"}})
                state["session"] = state.get("session", 0) + 1
                return self.result(m, {"protocolVersion": "2025-03-26", "capabilities": {}, "serverInfo": {
                    "name": "bad", "version": "1"}}, Mcp_Session_Id="s%d" % state["session"])
            if session != "s%d" % state["session"]:
                return self.answer(404, {"jsonrpc": "2.0", "id": m.get("id"), "error": {"code": -32001, "message": "no session"}})
            if "id" not in m:
                self.tell(m["method"])
                return self.answer(202)
            if m["method"] == "tools/list" and way == "pages_for_ever":
                return self.result(m, {"tools": [], "nextCursor": str(m["id"])})
            if m["method"] == "tools/list":
                return self.result(m, {"tools": TOOLS})
            state["calls"] = state.get("calls", 0) + 1
            if way == "session_ends" and state["calls"] in (1, 3) or way == "session_ends_always":
                state["session"] += 1  # the next handshake makes another one
                return self.answer(404, {"jsonrpc": "2.0", "id": m["id"], "error": {"code": -32001, "message": "no session"}})
            if way in ("stream_stops", "never_ends"):
                state["asked"] = m["id"]
                return self.answer(200, "id: e1\nretry: 1\ndata: \n\n", "text/event-stream")
            if way == "other_number":
                return self.answer(200, "data: %s\n\n" % json.dumps({"jsonrpc": "2.0", "id": 999, "result": {}}),
                                   "text/event-stream")
            if way in ("too_deep", "too_deep_stream"):
                body = '{"jsonrpc": "2.0", "id": %d, "result": %s}' % (m["id"], "[" * 200 + "]" * 200)
                stream = way == "too_deep_stream"
                return self.answer(200, "data: %s\n\n" % body if stream else body,
                                   "text/event-stream" if stream else "application/json")
            if way == "stays_open":
                return self.stream(self.text(m, "said"), then=lambda: time.sleep(600))
            if way == "lies":
                lies = [dict(self.text(m, "a lie"), id=number) for number in (m["id"] + 1, str(m["id"]), None)]
                return self.stream("text", [1], *lies, self.text(m, "the truth"))
            if way == "dies":
                self.close_connection = True
                return self.answer(200, "{", **{"Content-Length": 100})
            if way == "floods":
                event = ("data: %s\n\n" % json.dumps({"jsonrpc": "2.0", "method": "notifications/message",
                                                      "params": {"data": "x" * 60000}})).encode()
                return self.stream(then=lambda: [self.wfile.write(event) for _ in range(1000)])
            if way == "crashes":
                return self.answer(500, "oops", "text/plain")
            if way == "slow":
                time.sleep(4)
            self.result(m, {"content": [{"type": "text", "text": "again: %s" % m["params"]["arguments"]["text"]}]})

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print("listening", server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        stdio(sys.argv[2])
    elif sys.argv[1] == "http":
        serve(sys.argv[2])
    elif sys.argv[1] == "bad-http":
        bad_http(sys.argv[2])
    elif sys.argv[1] == "calls":
        calls(sys.argv[2])
    else:
        Bad(sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None).run()
