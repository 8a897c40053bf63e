# Which model answers when none, one or several servers are there: on the usual ports of a network of its own, and at
# servers that list their models in their own way.
. "$(dirname "$0")/lib.sh"

printf '{"question":"Q?","answer":"42"}\n' >rows.jsonl

cat >lists.py <<'EOF'
"""lists.py PORT ANSWER: a server whose list of models is ANSWER (a status and a body); it answers every chat with 42."""
import http.server, json, sys
port, status, body = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *a): pass
    def say(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self): self.say(status, body.encode())
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.say(200, json.dumps({"choices": [{"message": {"role": "assistant", "content": "42"}, "finish_reason": "stop"}],
                                  "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}).encode())
s = http.server.ThreadingHTTPServer(("127.0.0.1", port), H)
print("listening", s.server_port, flush=True)
s.serve_forever()
EOF
# start_list NAME STATUS BODY: BASE_URL
start_list() {
    mkfifo "list.$1"
    python3 lists.py 0 "$2" "$3" >"list.$1" &
    FAKES="$FAKES $!"
    read -r word port <"list.$1"
    BASE_URL=http://127.0.0.1:$port/v1
}
run() { # CODE OUTPUT ARGS...
    code=$1 output=$2
    shift 2
    expect_exit "$code" agent run single --dataset rows.jsonl --output "$output" "$@"
}

step "several models: the first, said; not to those who asked for quiet"
start_list several 200 '{"data":[{"id":"alpha-7b"},{"id":"beta-7b"}]}'
run 0 several --base-url "$BASE_URL"
check_err "the server has 2 models; taking the first, 'alpha-7b'"
assert_json several/traces.jsonl "[q['model'] for q in d] == ['alpha-7b']"
run 0 several-quiet --base-url "$BASE_URL" -q
no_err "2 models"

step "a model that is not listed: perhaps another was meant; it is asked all the same"
run 0 near --base-url "$BASE_URL" --model alpha-8b
check_err "the server does not list the model 'alpha-8b': did you mean 'alpha-7b'?"
run 0 far --base-url "$BASE_URL" --model something-else-altogether
no_err "did you mean"
run 0 listed --base-url "$BASE_URL" --model beta-7b
no_err "did you mean"
run 0 near-quiet --base-url "$BASE_URL" --model alpha-8b -q
no_err "did you mean"

step "one model; none; no list at all; not allowed"
start_list one 200 '{"data":[{"id":"only"}]}'
run 0 one --base-url "$BASE_URL"
no_err "models"
start_list none 200 '{"data":[]}'
run 2 none --base-url "$BASE_URL"
check_err "does not list its models: name one with --model"
run 0 none-named --base-url "$BASE_URL" --model m
start_list missing 404 '{"error":"no such page"}'
run 2 missing --base-url "$BASE_URL"
check_err "does not list its models"
run 0 missing-named --base-url "$BASE_URL" --model m
start_list loading 503 '{"error":{"message":"Loading model"}}'
run 2 loading --base-url "$BASE_URL" --server-wait 1s
check_err "HTTP 503: Loading model: $BASE_URL: the server does not list its models; name one with --model"
cat >loads.llm <<'LLM'
path /v1/models
status 503
json {"error":{"message":"Loading model"}}
---
path /v1/models
always
json {"data":[{"id":"loaded"}]}
---
always
text 42
LLM
start_fake --script loads.llm
expect_exit 0 agent run single --dataset rows.jsonl --base-url "$BASE_URL" -o loads
check_err "waiting for $BASE_URL: HTTP 503: Loading model"
assert_json loads/manifest.json 'd["config"]["model"] == "loaded"'
for status in 401 403; do
    start_list $status $status '{"error":{"message":"who are you"}}'
    run 1 refused$status --base-url "$BASE_URL" --model m
    check_err "who are you"
done
start_list odd 200 '{"data":[{"id":7},{"name":"x"},null,{"id":""}]}'
run 0 odd --base-url "$BASE_URL" --model m
start_list broken 200 '{"data":'
run 0 broken --base-url "$BASE_URL" --model m

step "two servers, one of them gone: the other serves; both gone: the first one's fault"
start_list two 200 '{"data":[{"id":"only"}]}'
run 0 half --base-url http://127.0.0.1:1/v1 --base-url "$BASE_URL" --model only
run 1 gone --base-url http://127.0.0.1:1/v1 --base-url http://127.0.0.1:2/v1 --model only
match_err "connection refused.*127.0.0.1:1/|127.0.0.1:1/.*connection refused"

step "the environment's server and key"
OPENAI_BASE_URL=$BASE_URL expect_exit 0 agent run single --dataset rows.jsonl --output env
assert_json env/traces.jsonl "d[0]['turns'][0]['endpoint'] == '$BASE_URL'"
MY_KEY='' run 2 key --base-url "$BASE_URL" --api-key-env MY_KEY
check_err "--api-key-env MY_KEY: that variable is not set"
OPENAI_BASE_URL='' expect_exit 0 agent run single --dataset rows.jsonl --model demo --output empty

step "the usual ports, in a network of its own"
unshare -rn true 2>/dev/null || {
    echo "the usual ports are not tried: no network of its own here"
    end_test
}
cat >inside.sh <<'EOF'
python3 - <<'PY'
import fcntl, socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
fcntl.ioctl(s, 0x8914, struct.pack("16sh", b"lo", 0x1 | 0x40))  # SIOCSIFFLAGS: up, running
PY
"$IPW_AGENT" run single --dataset rows.jsonl --output nobody 2>err.nobody >out.nobody || exit 10
grep -q "no model server was named (-u URL) or found on this machine: the demo model answers" err.nobody || exit 11
"$IPW_AGENT" run single --dataset rows.jsonl --model some --output nobody2 2>err.nobody2 >out.nobody2 && exit 12
grep -q "no model server answers on this machine (looked at 127.0.0.1 ports 11434, 8080, 8000, 30000, 1234)" err.nobody2 || exit 13
"$IPW_AGENT" doctor >out.doctor 2>&1
grep -q "start one or use --base-url" out.doctor || exit 20
mkfifo found.out
python3 lists.py 8080 200 '{"data":[{"id":"local-7b"}]}' >found.out &
server=$!
read -r word port <found.out
"$IPW_AGENT" run single --dataset rows.jsonl --output found 2>err.found >out.found || exit 14
grep -q "found a model server at http://127.0.0.1:8080/v1, model 'local-7b'" err.found || exit 15
"$IPW_AGENT" run single --dataset rows.jsonl --model mine --output mine 2>err.mine >out.mine || exit 16
grep -q "found a model server at http://127.0.0.1:8080/v1, model 'mine'" err.mine || exit 17
"$IPW_AGENT" run single --dataset rows.jsonl --output quiet -q 2>err.quiet >out.quiet || exit 18
grep -q "found a model server" err.quiet && exit 19
"$IPW_AGENT" list models >out.models 2>&1 || exit 21
grep -q local-7b out.models || exit 22
"$IPW_AGENT" doctor >out.doctor2 2>&1
grep -q "(found)" out.doctor2 || exit 23
kill $server
EOF
export IPW_AGENT
timeout -k 5 120 unshare -rn sh inside.sh >out 2>err
assert_eq $? 0 "(of inside.sh; see its numbers)"

end_test
