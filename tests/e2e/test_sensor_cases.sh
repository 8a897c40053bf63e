# Cases of tests/cases.txt that need the whole program: a wall clock that is set back
# while a run goes on (29), the record's lines put into another order (49, 23), a counter that nobody
# may read (15).
. "$(dirname "$0")/lib.sh"
FAKES_DIR=$(dirname "$IPW_FAKE")
export IPW_NVML_LIBRARY="$FAKES_DIR/libnvidia-ml-stub.so" IPW_STUB_NVML="$WORK/gpu.txt"

cat >gpu.txt <<'TXT'
device GPU-aa Stub_H200 700000
energy 0 counter watts=300 period_ms=20
TXT
awk 'BEGIN { for (i = 1; i <= 4; i++) printf "{\"question\":\"Question %d?\",\"answer\":\"42\"}\n", i }' >rows.jsonl

# LD_PRELOAD is cut at blanks, and the folder of the build may have one in its name: a copy is loaded.
cp "$FAKES_DIR/libclock_step.so" . || fail "no libclock_step.so"
# A sanitizer's library must be the first one loaded: then the step is in the record alone.
PRELOAD=$WORK/libclock_step.so WAIT="until grep -q clock_step '$WORK/run/events.jsonl'; do sleep 0.05; done"
[ -z "${IPW_SANITIZE-}" ] && [ -z "${IPW_WRAP-}" ] || PRELOAD='' WAIT=true

# The second query sets the clock back and waits until the program has noticed.
cat >setter.lua <<LUA
local llm, proc = require "ipw.llm", require "ipw.proc"
return {
  name = "setter",
  run = function(query)
    if query.prompt:find "2" then
      assert(proc.run({ "sh", "-c", ": >'$WORK/step'; $WAIT" }))
    end
    return llm.chat { messages = { llm.user(query.prompt) } }.text
  end,
}
LUA
start_fake --delay-ms 30

step "29: the wall clock is set back by 2 s, and no figure changes"
if [ -n "$PRELOAD" ]; then
    LD_PRELOAD=$PRELOAD IPW_CLOCK_STEP=$WORK/step \
        expect_exit 0 agent run setter.lua --unsafe-tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --output run
    assert_json run/events.jsonl '[-2.1e9 < e["data"]["step_ns"] < -1.9e9 for e in d if e.get("name") == "clock_step"] == [True]'
    grep -v '"name":"clock_step"' run/events.jsonl >without
else
    expect_exit 0 agent run setter.lua --unsafe-tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --output run
    python3 - <<'PY'
import json
lines = open("run/events.jsonl").read().splitlines()
at = next(i for i, l in enumerate(lines) if '"query_end"' in l)
e = json.loads(lines[at])
note = {"data": {"from_ns": e["t_ns"] - 10**9, "step_ns": -2 * 10**9, "to_ns": e["t_ns"]}, "event": "note", "name": "clock_step",
        "query": -1, "rows": e["rows"], "span": 0, "t_ns": e["t_ns"]}
open("without", "w").write("\n".join(lines) + "\n")
lines.insert(at, json.dumps(note, sort_keys=True))
open("run/events.jsonl", "w").write("\n".join(lines) + "\n")
PY
fi
assert_json run/summary.json 'd["status"] == "complete" and d["ledger"]["gpu"]["balanced"] is True'
assert_json run/traces.jsonl 'len(d) == 4 and all(q["energy"]["gpu"]["joules"] > 0 and q["total_wall_clock_s"] >= 0 for q in d)'
assert_json run/traces.jsonl 'all(a["end_ns"] >= a["start_ns"] and (not b or b["start_ns"] >= a["start_ns"]) for a, b in zip(d, d[1:] + [None]))'
expect_exit 0 agent ledger run --check
check_out "4 of 4 queries are identical to the run, byte for byte."
cp run/events.jsonl with
cp without run/events.jsonl
expect_exit 0 agent ledger run --check
check_out "4 of 4 queries are identical to the run, byte for byte."
cp with run/events.jsonl

step "49: twice the same input gives the same bytes; rows in another order are refused by name"
expect_exit 0 agent ledger run --json
cp out first.json
expect_exit 0 agent ledger run --json
cmp out first.json || fail "the second time the ledger is another"
expect_exit 0 agent telemetry --read run
cp out plain.jsonl
cp -r run shuffled
damaged shuffled
cp plain.jsonl shuffled/power.jsonl
expect_exit 0 agent ledger shuffled --check
check_out "4 of 4 queries are identical to the run, byte for byte."
for seed in 1 2 3; do
    python3 - $seed <<'PY'
import random, sys
lines = open("run/power.jsonl").read().splitlines()
rows = lines[1:]
random.Random(int(sys.argv[1])).shuffle(rows)
open("shuffled/power.jsonl", "w").write("\n".join(lines[:1] + rows) + "\n")
PY
    expect_exit 3 agent ledger shuffled --check
    match_err 'shuffled/power.jsonl:[0-9]+: '
    expect_exit 1 agent validate shuffled
    cat out err | grep -qE 'power.jsonl:[0-9]+' || fail "validate names no line"
done
python3 - <<'PY'
import json
lines = open("plain.jsonl").read().splitlines()
source = [None] + [json.loads(line)[1] for line in lines[1:]]
at = next(i for i in range(5, len(lines)) if source[i] == source[i + 1]) # the sources are read at times of their own
lines[at], lines[at + 1] = lines[at + 1], lines[at]
open("shuffled/power.jsonl", "w").write("\n".join(lines) + "\n")
open("goes-back", "w").write(str(at + 2))
PY
expect_exit 3 agent ledger shuffled --check
check_err "power.jsonl:$(cat goes-back): t_ns goes back"

step "23: a span that ends before it starts is refused by name"
cp plain.jsonl shuffled/power.jsonl
python3 - <<'PY'
import json
lines = [json.loads(l) for l in open("run/events.jsonl")]
start = next(e for e in lines if e["event"] == "lm_inference_start")
end = next(e for e in lines if e["event"] == "lm_inference_end" and e["query"] == start["query"])
end["t_ns"] = start["t_ns"] - 1000000
open("shuffled/events.jsonl", "w").write("".join(json.dumps(e, sort_keys=True) + "\n" for e in lines))
PY
expect_exit 1 agent validate shuffled
cat out err | grep -q "events.jsonl:[0-9]*: t_ns: goes back by " || fail "validate says nothing of the span"

step "15: a counter that nobody may read is null for that reason, with one line of advice"
mkdir -p denied/intel-rapl:0 as-user
echo package-0 >denied/intel-rapl:0/name
echo 5000 >denied/intel-rapl:0/energy_uj
echo 262143328850 >denied/intel-rapl:0/max_energy_range_uj
chmod 755 "$WORK" "$WORK/home" && chmod 777 as-user && chmod 644 rows.jsonl
chmod 0400 denied/intel-rapl:0/energy_uj
USER_WRAP=
if [ "$(id -u)" -eq 0 ]; then
    USER_WRAP="setpriv --reuid=65534 --regid=65534 --clear-groups"
    $USER_WRAP test -x "$IPW_AGENT" 2>/dev/null || USER_WRAP=none
else
    chmod 0 denied/intel-rapl:0/energy_uj
fi
if [ "$USER_WRAP" != none ] && [ -z "${IPW_WRAP-}" ]; then
    HOME=$WORK/as-user XDG_CACHE_HOME=$WORK/as-user/c XDG_DATA_HOME=$WORK/as-user/d IPW_WRAP=$USER_WRAP \
        IPW_POWERCAP_ROOT=$WORK/denied IPW_STUB_NVML='' \
        expect_exit 0 agent run single --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --output as-user/run
    assert_json as-user/run/traces.jsonl 'all(q["energy"]["cpu"]["joules"] is None and q["energy"]["cpu"]["reason"] == "permission" for q in d)'
    assert_json as-user/run/summary.json '"chmod a+r" in d["energy_note"] and "\n" not in d["energy_note"]'
fi

end_test
