# N-4, N-12 and N-13: floods, proxies that listen, and answers that come too late.
# With IPW_LONG=1 the flood of tiny events has a million of them.
# Sanitizer: floods and late answers.
. "$(dirname "$0")/lib.sh"

printf '{"question":"First: flood","answer":"42"}\n{"question":"Second: plain","answer":"42"}\n' >two.jsonl
head -1 two.jsonl >first.jsonl
tail -1 two.jsonl >second.jsonl

# serve NAME: a Python server; sets URL, LOG (a line for each request: its first line and the key, if any).
cat >server.py <<'PY'
import http.server, json, os, sys, threading, time
kind, log, events = sys.argv[1], sys.argv[2], int(sys.argv[3])
lock = threading.Lock()
def chunk(text, finish=None):
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]}).encode() + b"\n\n"
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def note(self, text):
        with lock, open(log, "a") as f:
            f.write(text + "\n")
    def begin(self, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
    def seen(self):
        self.note("%s %s %s" % (self.command, self.path, "KEY" if self.headers["Authorization"] else "-"))
    def do_GET(self):
        self.seen()
        self.begin("application/json")
        self.wfile.write(b'{"data":[{"id":"m"}]}')
    do_CONNECT = do_GET
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.seen()
        self.begin("text/event-stream")
        sent = 0
        try:
            if b"First" in body and kind == "line":
                self.wfile.write(b'data: {"choices":[{"index":0,"delta":{"content":"')
                for _ in range(1024):              # 1 GB, if anybody took it
                    self.wfile.write(b"x" * 1048576)
                    sent += 1
            elif b"First" in body and kind == "tiny":
                block = chunk("x") * 1000
                for _ in range(events // 1000):
                    self.wfile.write(block)
                self.wfile.write(chunk("\nFINAL ANSWER: 42", "stop"))
            else:
                self.wfile.write(chunk("FINAL ANSWER: 42", "stop"))
            self.wfile.write(b"data: [DONE]\n\n")
        except OSError:
            self.note("gone after %d MB" % sent)
    def log_message(self, *args):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
PY
serve() {
    LOG=$WORK/$1.log
    : >"$LOG"
    mkfifo "$1.port"
    python3 server.py "$1" "$LOG" "${EVENTS-0}" >"$1.port" 2>"$1.err" &
    FAKES="$FAKES $!"
    read -r PORT <"$1.port"
    URL=http://127.0.0.1:$PORT/v1
}
# The most memory that a command used, in MB, on its last line of output.
cat >peak.py <<'PY'
import resource, subprocess, sys
code = subprocess.run(sys.argv[2:]).returncode
with open(sys.argv[1], "w") as f:
    f.write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024))
sys.exit(code)
PY
flood() { # DIR: both queries at once; the plain one is answered while the other floods
    IPW_WRAP="python3 peak.py $1.peak" expect_exit 0 agent run single --dataset two.jsonl --base-url "$URL" \
        --model m --concurrency 2 --output "$1"
    assert_json "$1/traces.jsonl" '[q["answer"] for q in d if q["query_id"].endswith("1")] == ["42"]'
    [ -n "${IPW_SANITIZE-}" ] || [ "$(cat "$1.peak")" -le "$2" ] || fail "$(cat "$1.peak") MB of memory"
}
ENDS='[e for e in d if e["event"] == "lm_inference_end"]'

step "N-4 one line of 1 GB: ended at 16 MiB"
serve line
flood line 120
assert_json line/events.jsonl "[e['outcome'] for e in $ENDS if e['query'] == 0] == ['too_large']"
assert_json line/events.jsonl "[16 << 20 <= e['bytes_received'] < 18 << 20 for e in $ENDS if e['query'] == 0] == [True]"
for _ in $(seq 200); do
    grep -q 'gone after' "$LOG" && break
    sleep 0.05
done
grep -q 'gone after' "$LOG" || fail "the server was left sending"

EVENTS=50000
[ -z "${IPW_LONG-}" ] || EVENTS=1000000
step "N-4 $EVENTS tiny events: all are taken, none is kept"
serve tiny
flood tiny 120
assert_json tiny/traces.jsonl 'all(q["completed"] and q["answer"] == "42" for q in d)'
assert_json tiny/events.jsonl "[e['chunks'] for e in $ENDS if e['query'] == 0] == [$EVENTS + 1] and [e['gaps'] for e in $ENDS if e['query'] == 0] == [$EVENTS]"

step "N-12 a proxy that listens: nothing for loopback"
serve proxy
PROXY=http://127.0.0.1:$PORT
start_fake --bench 0
http_proxy=$PROXY https_proxy=$PROXY all_proxy=$PROXY OPENAI_API_KEY=sk-canary-4711-proxy \
    expect_exit 0 agent run single --dataset second.jsonl --base-url "$BASE_URL" --model m --output loop
no_err "through the proxy"
assert_file_lines "$LOG" 0
step "N-12 a key is not sent where the proxy would read it, wherever it goes"
for more in "" --insecure-key; do
    http_proxy=$PROXY OPENAI_API_KEY=sk-canary-4711-proxy expect_exit 2 agent run single \
        --dataset second.jsonl --base-url http://model.example:8000/v1 --model m --output never $more
    [ -n "$more" ] || check_err "the API key would cross the network unencrypted"
done
check_err "would read the API key"
assert_file_lines "$LOG" 0
step "N-12 elsewhere it is announced, even to those who asked for quiet, and sees what it must"
http_proxy=$PROXY expect_exit 0 agent run single --dataset second.jsonl --quiet \
    --base-url http://model.example:8000/v1 --model m --output proxied
check_err "requests to http://model.example:8000/v1 go through the proxy $PROXY"
assert_eq "$(cat "$LOG")" "GET http://model.example:8000/v1/models -
POST http://model.example:8000/v1/chat/completions -"
step "N-12 no_proxy, and a proxy that is not there"
http_proxy=$PROXY no_proxy=.example expect_exit 1 agent run single --dataset second.jsonl \
    --base-url http://model.example:8000/v1 --model m --connect-timeout 2s --output direct
no_err "through the proxy"
assert_file_lines "$LOG" 2
http_proxy=http://127.0.0.1:1 expect_exit 1 agent run single --dataset second.jsonl \
    --base-url http://model.example:8000/v1 --model m --output wrong
check_err "through the proxy http://127.0.0.1:1"

step "N-13 an answer that comes after its deadline is nobody's; each attempt has its own joules"
start_tree tree --watts-package 80 --interval-ms 1
cat >late <<'C'
delay 900
text FINAL ANSWER: 13
---
delay 200
text FINAL ANSWER: 42
C
start_fake --script late
IPW_POWERCAP_ROOT="$WORK/tree" expect_exit 0 agent run single --dataset second.jsonl --base-url "$BASE_URL" \
    --model fake-model --first-token-timeout 600ms --output late-run --sample-interval 5ms
assert_json late-run/traces.jsonl 'd[0]["answer"] == "42"'
assert_json late-run/events.jsonl "[(e['attempt'], e['outcome'], e['bytes_received'] > 0) for e in $ENDS] == [(1, 'timeout', False), (2, 'ok', True)]"
cat >joules.py <<'PY'
import json, trace_lines
q = trace_lines.loads(open("late-run/traces.jsonl", encoding="utf-8").readline())
first, second = [s for t in q["turns"] for s in t["spans"] if s["kind"] == "lm"]
assert (first["outcome"], second["outcome"]) == ("timeout", "ok")
assert first["end_s"] <= second["start_s"]
for span in (first, second):
    cpu, seconds = span["energy"]["cpu"], span["end_s"] - span["start_s"]
    assert cpu["lo"] <= cpu["joules"] <= cpu["hi"] and cpu["joules"] > 0.5 * 80 * seconds, span
assert first["energy"]["cpu"]["joules"] > second["energy"]["cpu"]["joules"]
PY
python3 joules.py || fail "the joules of the attempts"

end_test
