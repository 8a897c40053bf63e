# merge: clients of one scraped server on several machines.  The server is this machine by its own
# address; the second client's files are moved to another boot, whose clock began elsewhere.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/exporter.sh"

ADDRESS=$(hostname -I 2>/dev/null | tr ' ' '\n' | grep -m 1 '^[0-9.]*$')
[ -n "$ADDRESS" ] || skip "this machine has no address but the loopback"

awk 'BEGIN { for (i = 1; i <= 8; i++) printf "{\"id\":\"t%d\",\"question\":\"Question %d?\",\"answer\":\"42\"}\n", i, i }' >rows.jsonl
start_tree tree --watts-package 30
export IPW_POWERCAP_ROOT="$WORK/tree"
serve_pages "$ADDRESS"
start_fake --bench 3 --delay-ms 200
exporter dcgm

step "two clients, side by side"
for i in 0 1; do
    "$IPW_AGENT" run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --model-host remote \
        --telemetry rapl --telemetry "prometheus=$PAGE" --output near --shard $i/2 -q >/dev/null &
    pids="${pids-} $!"
done
for pid in $pids; do wait "$pid" || fail "a shard: exit status $?"; done
expect_exit 0 agent merge near.shards
assert_json near/manifest.json "len(d['segments']) == 1 and 'ahead_ns' not in d['segments'][0]['merged'][1]"

step "on two machines: joined by their wall clocks, with wider bounds"
cp -r near.shards far.shards
python3 - far.shards/1-of-2 <<'PY' || fail "move"
import json, re, sys
folder, ahead = sys.argv[1], 5000 * 10**9
instants = "t|start|end|from|to|read|sent|headers|first_byte|first_event|first_token|second_token|last_token|first_text|first_reasoning|first_call"
def moved(text):
    text = re.sub(r'"((?:%s)_ns|mono_ns)":([1-9]\d*)' % instants, lambda m: '"%s":%d' % (m[1], int(m[2]) + ahead), text)
    text = re.sub(r'"boot_id":"[^"]*"', '"boot_id":"far"', text)
    text = re.sub(r'("boot_id":"far","clock_error_ns":)[^,}]*', r'\g<1>30000000', text)
    return text
for name in ("manifest.json", "events.jsonl"):
    text = open("%s/%s" % (folder, name)).read()
    open("%s/%s" % (folder, name), "w").write(moved(text))
lines = open(folder + "/power.jsonl").read().splitlines()
with open(folder + "/power.jsonl", "w") as file:
    print(moved(lines[0]), file=file)
    for line in lines[1:]:
        row = json.loads(line)
        print(json.dumps([row[0] + ahead] + row[1:], separators=(",", ":")), file=file)
PY
damaged far.shards/0-of-2
expect_exit 0 agent merge far.shards
check_out "they shared devices"
python3 - <<'PY' || fail "other books"
import json, trace_lines
def read(run):
    return json.load(open(run + "/manifest.json")), {t["query_id"]: t for t in map(trace_lines.loads, open(run + "/traces.jsonl"))}
(near, a), (far, b) = read("near"), read("far")
[one], [session] = near["segments"], far["segments"]
moved = [m for m in session["merged"] if "ahead_ns" in m]
assert len(moved) == 1 and abs(abs(moved[0]["ahead_ns"]) - 5000e9) < 1e6, session["merged"]
assert moved[0]["clock_error_ns"] >= 30e6 and moved[0]["clock_error_by"] in ("system", "assumed")
# One GPU, once; a processor for each client, each with the joules of its own queries.
gpu, cpu = session["ledger"]["gpu"], session["ledger"]["cpu"]
assert "devices" not in gpu and abs(gpu["total_j"] - one["ledger"]["gpu"]["total_j"]) < 0.2 * gpu["total_j"], (gpu, one["ledger"]["gpu"])
assert sorted(n.split("@")[0] for n in cpu["devices"]) == ["package-0", "package-0"], cpu
wider = 0
for i, t in b.items():
    g, was = t["energy"]["gpu"], a[i]["energy"]["gpu"]
    assert g["lo"] <= was["joules"] <= g["hi"], (i, g, was)
    wider += g["hi"] - g["lo"] > was["hi"] - was["lo"]
assert wider > len(b) / 2
assert all(len(t["energy"]["cpu"]["devices"]) == 1 for t in b.values())
PY
expect_exit 0 agent validate far
expect_exit 0 agent ledger far --check

step "without a wall clock nothing tells when they read it"
sed -i 's/"wall_ns":[0-9]*/"wall_ns":0/g' far.shards/1-of-2/manifest.json
damaged far.shards/1-of-2
expect_exit 3 agent merge far.shards --output other
check_err "the wall clock of one is unknown: run the clients of one server on one host"
stop_exporter

end_test
