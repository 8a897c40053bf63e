# run --otlp: spans and readings reach a collector while the run goes on, and are those of a later export. A collector
# that is dead, slow or hostile does not change the run; what it did not get is counted, and it alone gets the headers.
. "$(dirname "$0")/lib.sh"

step "addresses"
for url in ftp://127.0.0.1:1 --otlp=nonsense 'http://' 'http:///v1' 'http://a b'; do
    case $url in --*) ;; *) url="--otlp=$url" ;; esac
    expect_exit 2 agent run single --dataset rows.jsonl --model demo "$url" -o never
    one_message
    check_err "--otlp: expected the URL of a collector"
done
OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=localhost:4318 expect_exit 2 agent run --otlp single --dataset rows.jsonl --model demo -o never
check_err "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: expected"
OTEL_EXPORTER_OTLP_PROTOCOL=grpc expect_exit 2 agent run single --dataset rows.jsonl --model demo --otlp -o never
check_err "only http/json"
[ ! -e never ] || fail "a run was begun"

. "$(dirname "$0")/gate.sh"
start_fake --bench 2 --delay-ms 20
start_tree tree --watts-package 80 --watts-dram 5 --interval-ms 1
export IPW_POWERCAP_ROOT="$WORK/tree"

collector() { # KIND FOLDER: AT
    mkdir "$2"
    python3 "$IPW_SOURCE_DIR/tests/e2e/otlp_collector.py" "$@" &
    FAKES="$FAKES $!"
    await_lines "$2/port"
    AT=http://127.0.0.1:$(cat "$2/port")
}
# begin DIR ARGS: the run in the background.
begin() {
    dir=$1
    shift
    "$IPW_AGENT" run gated.lua --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --web-allow "$GATE" \
        --sample-interval 20ms -q -o "$dir" "$@" >ran 2>said &
    RUN=$!
}
# agents FOLDER N: waits until N queries have reached the collector.
agents() {
    tries=0
    until [ "$(cat "$1/traces" 2>/dev/null | grep -o '"name":"invoke_agent gated"' | wc -l)" -ge "$2" ]; do
        tries=$((tries + 1))
        [ $tries -lt 1500 ] || fail "$1: no $2 queries have come"
        sleep 0.02
    done
}

step "while the run goes on"
collector keep kept
export OTEL_EXPORTER_OTLP_HEADERS="x-key=a%20long%20secretword"
begin measured --otlp "$AT"
agents kept 4
grep -q invoke_workflow kept/traces && fail "the run's own span came before its end"
open_gate
wait $RUN || fail "the run: $(cat said)"
assert_eq "$(cat said)" ""
assert_json measured/summary.json "d['ledger']['cpu']['balanced'] is True"
assert_json measured/manifest.json "not any('otlp' in a or 'http://127.0.0.1:$(cat kept/port)' in a for a in d['command']['args'])"
expect_exit 0 agent export measured --format otlp -o later
python3 - <<'PY' >out 2>err || fail "the spans"
import json
def spans(path):
    return [s for l in open(path) for s in json.loads(l)["resourceSpans"][0]["scopeSpans"][0]["spans"]]
live, later = spans("kept/traces"), spans("later")
key = lambda s: s["spanId"]
assert len({key(s) for s in live}) == len(live) and sorted(live, key=key) == sorted(later, key=key)
points = {}
for line in open("kept/metrics"):
    for m in json.loads(line)["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]:
        for p in (m.get("sum") or m["gauge"])["dataPoints"]:
            points.setdefault((m["name"], p["attributes"][0]["value"]["stringValue"]), []).append((int(p["timeUnixNano"]), p["asDouble"]))
assert {n for n, _ in points} == {"hw.energy", "hw.power"}, points.keys()
for (name, _), values in points.items():
    assert len(values) >= 1 and values == sorted(values) if name == "hw.energy" else all(v >= 0 for _, v in values)
PY
assert_eq "$(cut -d' ' -f2-4 kept/headers | sort -u)" "a long secretword"
grep -rq "secretword" measured said ran && fail "the key was written down"

step "a dead collector: the run is the same, and the loss is counted"
begin dead --otlp=http://127.0.0.1:1
open_gate
wait $RUN || fail "the run: $(cat said)"
assert_file_lines said 1
spans=$("$IPW_AGENT" export dead --format otlp | grep -o '"spanId"' | wc -l)
assert_contains said "ipw-agent: otlp: 0 spans and 0 points sent; $spans spans and "
assert_contains said "could not be sent: http://127.0.0.1:1/v1/"
assert_json dead/summary.json "d['ledger']['cpu']['balanced'] is True"

step "a collector that refuses, one that sends elsewhere, one that never answers: by the environment"
collector keep other
for kind in refuse move hang; do
    collector $kind $kind
    echo "http://127.0.0.1:$(cat other/port)/v1/traces" >move.to
    [ $kind != move ] || cp move.to move/moved
    export OTEL_EXPORTER_OTLP_ENDPOINT=$AT OTEL_EXPORTER_OTLP_TIMEOUT=300
    begin by-$kind --otlp
    wait $RUN || fail "the run: $(cat said)"
    assert_file_lines said 1
    assert_contains said "ipw-agent: otlp: 0 spans and 0 points sent; "
    assert_contains said "$AT/v1/"
    assert_lacks said secretword
done
[ ! -e other/headers ] || fail "a header went elsewhere"
assert_lacks ran secretword
unset OTEL_EXPORTER_OTLP_ENDPOINT OTEL_EXPORTER_OTLP_TIMEOUT

step "a run that is killed: what it wrote is sent, and its own span; resumed, the rest"
collector keep cut
mv gate.port old.port
python3 gate.py & # a new one, which is closed
FAKES="$FAKES $!"
await_lines gate.port
OLD=$GATE GATE=127.0.0.1:$(cat gate.port)
sed -i "s,$OLD,$GATE," rows.jsonl
begin killed --otlp "$AT"
agents cut 4
kill -9 $RUN
wait $RUN 2>/dev/null
tries=0
until grep -q invoke_workflow cut/traces; do
    tries=$((tries + 1))
    [ $tries -lt 1500 ] || fail "nothing came after the kill"
    sleep 0.02
done
open_gate
collector keep rest
expect_exit 0 agent resume killed --otlp "$AT" -q
expect_exit 0 agent export killed --format otlp -o whole
python3 - <<'PY' >out 2>err || fail "the sessions"
import json
def spans(path):
    return {s["spanId"]: s for l in open(path) for s in json.loads(l)["resourceSpans"][0]["scopeSpans"][0]["spans"]}
cut, rest, whole = spans("cut/traces"), spans("rest/traces"), spans("whole")
assert set(cut) | set(rest) == set(whole), "each span once, in one of both"
both = [whole[i]["name"] for i in set(cut) & set(rest)]
assert both == ["invoke_workflow killed"], both
assert sum(s["name"] == "invoke_agent gated" for s in rest.values()) == 1
PY

end_test
