# run --listen: the metrics of a run while it goes on. The last query waits at a gate that the test opens, so the page
# is read at a known point. Clients that are slow or hostile do not disturb the run.
. "$(dirname "$0")/lib.sh"

step "addresses"
for where in nonsense 300.1.1.1:1 127.0.0.1:99999 127.0.0.1: localhost 0.0.0.0:0 192.0.2.1:9441; do
    expect_exit 2 agent run single --dataset rows.jsonl --model demo --listen $where -o never
    one_message
    check_err "--listen $where: "
done
check_err "listen on 127.0.0.1"
[ ! -e never ] || fail "a run was begun"

. "$(dirname "$0")/gate.sh"

# begin DIR ARGS: the run in the background; URL.
begin() {
    dir=$1
    shift
    rm -f said
    "$IPW_AGENT" run gated.lua --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --web-allow "$GATE" \
        --listen 127.0.0.1:0 -q -o "$dir" "$@" >ran 2>said &
    RUN=$!
    await_lines said
    URL=$(sed -n 's/^ipw-agent: listening \(http:.*\)$/\1/p' said)
    case $URL in http://127.0.0.1:[1-9]*/metrics) ;; *) fail "the address: $(cat said)" ;; esac
}

step "the page of a run"
start_tree tree --watts-package 80 --watts-dram 5 --interval-ms 1
export IPW_POWERCAP_ROOT="$WORK/tree"
start_fake --bench 2 --delay-ms 20
begin measured --sample-interval 20ms
python3 - "$URL" <<'PY' >out 2>err || fail "the page"
import re, sys, time, urllib.request
LABEL = r'[a-z_]+="(?:[^"\\\n]|\\.)*"'
def read():
    answer = urllib.request.urlopen(sys.argv[1], timeout=60)
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    text, values, types, family = answer.read().decode(), {}, {}, None
    for line in text.splitlines():
        if line.startswith("# HELP "):
            family = line.split(" ")[2]
            assert family not in types and len(line.split(" ", 3)[3]) > 10, line
        elif line.startswith("# TYPE "):
            _, _, name, types[family] = line.split(" ")
            assert name == family and (types[name] == "counter") == name.endswith("_total"), line
        else:
            name, labels, value = re.fullmatch(r"([a-z_]+)(?:\{(%s(?:,%s)*)\})? (\S+)" % (LABEL, LABEL), line).groups()
            base = re.sub("_(bucket|sum|count)$", "", name) if types[family] == "histogram" else name
            assert base == family, line
            assert (name, labels) not in values
            values[name, labels] = float(value)
    return text, values
before = {}
deadline = time.time() + 120
while True:  # until the last query waits at the gate, and the sensors were read for a second
    text, now = read()
    for (name, labels), value in before.items():  # what counts, counts up
        if name.endswith(("_total", "_bucket", "_count", "_sum")):
            assert now[name, labels] >= value, (name, labels)
    before = now
    if now.get(("ipw_run_queries_started_total", None)) == 5 and now.get(("ipw_run_power_watts", 'domain="cpu"'), 0) > 0: break
    assert time.time() < deadline, text
    time.sleep(0.05)
ended = {labels: value for (name, labels), value in now.items() if name == "ipw_run_queries_ended_total"}
assert ended == {'outcome="%s"' % w: n for w, n in dict(answered=2, error=1, other=1, max_turns=0, no_answer=0, limit=0, interrupted=0).items()}
want = {"queries_in_flight": 1, "input_tokens_total": 600, "calls_unknown_tokens_total": 0, "failed_attempts_total": 0,
        "failed_tool_calls_total": 0, "planned_queries": 5, "call_duration_seconds_count": 6, "first_token_seconds_count": 6,
        "tool_call_duration_seconds_count": 4, "query_duration_seconds_count": 4}
assert {k: now["ipw_run_" + k, None] for k in want} == want, now
assert now["ipw_run_output_tokens_total", None] > 0
assert now["ipw_run_call_duration_seconds_sum", None] >= 6 * 0.020
assert now["ipw_run_call_duration_seconds_bucket", 'le="0.01"'] == 0 and now["ipw_run_call_duration_seconds_bucket", 'le="+Inf"'] == 6
assert now["ipw_run_info", 'agent="gated",dataset="rows",model="fake-model"'] == 1
assert abs(now["ipw_run_start_time_seconds", None] - time.time()) < 600
# Known domains, and no others: unknown is absent, never 0.
for name in "ipw_run_energy_joules_total", "ipw_run_power_watts":
    assert {l for n, l in now if n == name} == {'domain="cpu"', 'domain="dram"'}, now
assert not re.search("question|http://|reason of its own", text)
open("page", "w").write(text)
PY
if command -v promtool >/dev/null; then
    promtool check metrics <page >out 2>err || fail "promtool"
    assert_eq "$(cat out err)" "" "(promtool's remarks)"
else
    echo "NOT CHECKED by promtool: it is not installed (package prometheus)"
fi

step "slow and hostile clients, while the run goes on; then it ends, with its page"
python3 - "$URL" <<'PY' >out 2>err || fail "clients"
import socket, sys, urllib.request
address = sys.argv[1].split("//")[1].split("/")[0].split(":")
def talk(text):
    s = socket.create_connection((address[0], int(address[1])), timeout=60)
    try: s.sendall(text)
    except OSError: pass
    return s
held = [talk(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: ") for _ in range(150)]
held += [talk(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n") for _ in range(50)]  # and do not read
for bad in (b"\0" * 100000, b"GET " + b"/" * 100000, b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n" + b"x" * 200000):
    held.append(talk(bad))
s = talk(b"GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n")
assert s.recv(12) == b"HTTP/1.1 403"
assert b"ipw_run_info" in urllib.request.urlopen(sys.argv[1], timeout=60).read()
PY
open_gate || fail "the gate"
wait $RUN || fail "the run: $(cat said)"
assert_file_lines said 1
assert_json measured/summary.json "d['ledger']['cpu']['balanced'] is True"
assert_json measured/traces.jsonl "len(d) == 5 and sum(q['completed'] for q in d) == 3"
assert_json measured/manifest.json "not any('listen' in a for a in d['command']['args'])"

step "the process that answers is killed: the run goes on, and says so in a line"
begin alone
kill -9 "$(pgrep -P $RUN -f __follow)" || fail "there is no such process"
wait $RUN || fail "the run: $(cat said)"
assert_file_lines said 2
assert_contains said "ended early: their process was ended by signal 9"
assert_json alone/traces.jsonl "len(d) == 5"

step "a port that is taken"
begin taken
expect_exit 1 agent run single --dataset rows.jsonl --model demo --listen "$(echo "$URL" | sed 's,http://\(.*\)/metrics,\1,')" -o never
one_message
check_err "Address already in use"
wait $RUN || fail "the run: $(cat said)"

end_test
