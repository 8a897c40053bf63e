# ipw.energy(): what a script is told of its query's joules while it runs, with bounds that hold and a
# word that says how far to trust it; and a limit in joules while calls are open.
. "$(dirname "$0")/lib.sh"

start_tree tree --watts-package 80 --watts-dram 5 --interval-ms 1
cat >gpu.txt <<'TXT'
device GPU-00000000-0000-0000-0000-000000000001 Stub_H200 700000
energy 0 counter watts=300 period_ms=20
TXT
export IPW_POWERCAP_ROOT="$WORK/tree" IPW_STUB_NVML="$WORK/gpu.txt"
export IPW_NVML_LIBRARY="$IPW_BINARY_DIR/tests/fake/libnvidia-ml-stub.so"
printf '{"question":"Question %d?","answer":"42"}\n' 1 2 >rows.jsonl

# A call, and beside it looks at the energy until the call is over.
cat >watch.lua <<'LUA'
local ipw, llm = require "ipw", require "ipw.llm"
return {
  name = "watch",
  run = function(query)
    local reply
    ipw.map({ "call", "look" }, function(what)
      if what == "call" then
        reply = llm.chat { messages = { llm.user(query.prompt) } }
      else
        while not reply do
          ipw.sleep(0.1)
          ipw.note("seen", { energy = ipw.energy(), open = not reply })
        end
      end
    end)
    ipw.sleep(0.3)
    ipw.note("seen", { energy = ipw.energy(), open = false })
    return reply.text
  end,
}
LUA
cat >seen.py <<'PY'
import json, sys, trace_lines
run = sys.argv[1]
events = [json.loads(line) for line in open(run + "/events.jsonl")]
traces = {q["query_index"]: q for q in map(trace_lines.loads, open(run + "/traces.jsonl"))}
crowd = len(traces) > 1
for index, query in traces.items():
    before = None
    seen = [e["data"] for e in events if e["query"] == index and e.get("name") == "seen"]
    told = [s for s in seen if "gpu_j" in s["energy"]]
    assert told and told[-1] is seen[-1], seen
    for s in told:
        e = s["energy"]
        assert e["gpu_lo_j"] <= e["gpu_j"] <= e["gpu_hi_j"] and e["cpu_lo_j"] <= e["cpu_j"] <= e["cpu_hi_j"], e
        assert "machine_j" not in e and "machine_lo_j" not in e, e
        assert 0 < e["until_s"] <= query["total_wall_clock_s"], e
        if not crowd:  # 300 W times the seconds that it covers
            assert e["gpu_lo_j"] - 0.1 <= 300 * e["until_s"] <= e["gpu_hi_j"] + 0.1, e
        else:
            assert e["gpu_lo_j"] - 0.1 <= 300 * e["until_s"] and e["gpu_j"] <= 300 * e["until_s"] + 12, e
        assert e["provenance"] in ("measured", "interpolated", "distributed"), e
        assert before is None or e["until_s"] >= before["until_s"], (before, e)
        before = e
    # It goes on while the call is open, whatever the rule.
    assert len({s["energy"]["until_s"] for s in told if s["open"]}) > 1, seen
    assert query["energy"]["gpu"]["provenance"] != "estimated"
PY
start_fake --bench 0 --delay-ms 1200
for share in equal phase; do
    step "one query by $share: value, bounds, provenance"
    expect_exit 0 agent run watch.lua --dataset rows.jsonl --limit 1 --base-url "$BASE_URL" --model fake-model \
        --sample-interval 5ms --share $share --output one-$share
    python3 seen.py one-$share || fail "see above"
    truth books one-$share
    step "two at a time by $share: live shares before the calls end"
    expect_exit 0 agent run watch.lua --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model \
        --sample-interval 5ms --share $share --concurrency 2 --output two-$share
    python3 seen.py two-$share || fail "see above"
    truth books two-$share
    expect_exit 0 agent ledger two-$share --check
done

step "a replay tells the script the same"
expect_exit 0 agent replay two-phase --mode hermetic --agent watch.lua -o replayed
check_out "identical to the saved run"

step "joules of calls that are still going on count towards a limit"
start_fake --bench 0 --delay-ms 20000
expect_exit 1 agent run single --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model \
    --sample-interval 5ms --concurrency 2 --energy-limit 100J --output limited
assert_json limited/traces.jsonl "all(q['outcome'] == 'energy_limit' for q in d)"

end_test
