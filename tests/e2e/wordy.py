"""A model of which one word is one token, as one of the servers would serve it: for the tests of workload
replays, whose lengths can be checked word by word.

    python3 wordy.py vllm|sglang|llamacpp|ollama|any [LOG]

The first line on stdout is its port.  A reply has as many words as `max_tokens` when the server is asked in a
way that it knows to go on beyond the end (ignore_eos), else 3 at most.  `any` does not say what it is and
knows no such way.  LOG gets a line of JSON for each request: {"prompt": words, "body": {...}}."""
import http.server, json, sys, threading

kind = sys.argv[1]
log = open(sys.argv[2], "a", buffering=1) if len(sys.argv) > 2 else None
OWNER = {"vllm": "vllm", "sglang": "sglang", "llamacpp": "llamacpp", "ollama": "library", "any": "someone"}


def words(messages):
    return sum(len((m.get("content") or "").split()) for m in messages)


class Wordy(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, body, kind="application/json"):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer(json.dumps({"object": "list", "data": [{"id": "wordy", "owned_by": OWNER[kind]}]}).encode())

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        n_prompt, most = words(body["messages"]), body.get("max_tokens", 3)
        n = most if kind in ("vllm", "sglang", "llamacpp") and body.get("ignore_eos") else min(3, most)
        if log:
            log.write(json.dumps({"prompt": n_prompt, "body": body}) + "\n")
        events = [{"choices": [{"index": 0, "delta": {"content": "word "}}]} for _ in range(n)]
        events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "length" if n == most else "stop"}]})
        events.append({"choices": [], "usage": {"prompt_tokens": n_prompt, "completion_tokens": n}})
        self.answer("".join("data: %s\n\n" % json.dumps(e) for e in events).encode() + b"data: [DONE]\n\n",
                    "text/event-stream")


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Wordy)
server.daemon_threads = True
print(server.server_address[1], flush=True)
server.serve_forever()
