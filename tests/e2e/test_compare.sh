# Two runs beside each other: a run and its workload replay on a slower server, paired turn by turn.
. "$(dirname "$0")/lib.sh"

step "the machine draws 80 W"
start_tree tree --watts-package 80 --watts-dram 5 --interval-ms 1
export IPW_POWERCAP_ROOT="$WORK/tree"
# Without a limit the bounds of such short queries are wider than the queries.
echo 100000000 >"$WORK/tree/intel-rapl:0/constraint_0_max_power_uw"
echo 10000000 >"$WORK/tree/intel-rapl:0:0/constraint_0_max_power_uw"
awk 'BEGIN { for (i = 1; i <= 5; i++) printf "{\"question\":\"Question %d?\",\"answer\":\"42\"}\n", i }' >rows.jsonl
start_fake --bench 2 --delay-ms 40
expect_exit 0 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --sample-interval 5ms -o record --quiet
start_fake --bench 2 --delay-ms 300
expect_exit 0 agent replay record --mode workload --base-url "$BASE_URL" --sample-interval 5ms -o slow --quiet

step "paired"
expect_exit 0 agent compare record slow --json
cp out pairs.json
assert_json pairs.json 'd["queries"] == 5 and d["turns"] == 15 and len(d["pairs"]) == 5 and d["only_in_a"] == d["only_in_b"] == 0'
assert_json pairs.json 'all(len(p["turns"]) == 3 and all(t["a"]["joules"] is not None and t["b"]["lo"] - 1e-6 <= t["b"]["joules"] <= t["b"]["hi"] + 1e-6 for t in p["turns"]) for p in d["pairs"])'
python3 - <<'PY' || fail "by the numbers of the two runs"
import json, math, trace_lines
d = json.load(open("pairs.json"))
def turns(run):
    def figure(e):
        both = [e["cpu"], e["dram"]]
        return {"joules": sum(f["joules"] for f in both), "lo": sum(f["lo"] for f in both), "hi": sum(f["hi"] for f in both)}
    return {q["query_id"]: [(figure(t["energy"]), t) for t in q["turns"]] for q in map(trace_lines.loads, open(run + "/traces.jsonl"))}
near = lambda x, y: abs(x - y) <= 1e-9 * max(1, abs(x), abs(y))
a, b = turns("record"), turns("slow")
assert a.keys() == b.keys() == {p["query_id"] for p in d["pairs"]}
differences, seconds = [], []
for p in d["pairs"]:
    for k, t in enumerate(p["turns"]):
        for side, run in ("a", a), ("b", b):
            want = run[p["query_id"]][k][0]
            # Each turn beside its partner, with the joules and the bounds that its own run has for it.
            assert all(near(t[side][key], want[key]) for key in want), (p["query_id"], k, side)
            assert t[side]["lo"] - 1e-6 <= t[side]["joules"] <= t[side]["hi"] + 1e-6
    n = len(p["turns"])
    differences.append(sum(t["b"]["joules"] - t["a"]["joules"] for t in p["turns"]) / n)
    seconds.append(sum(t["b"]["seconds"] - t["a"]["seconds"] for t in p["turns"]) / n)
# The machine draws 85 W: whatever this one is busy with, over all turns it is no other power, by three times.
for run in a, b:
    watts = sum(f["joules"] for q in run.values() for f, t in q) / sum(t["wall_clock_s"] for q in run.values() for f, t in q)
    assert 85 / 3 <= watts <= 85 * 3, watts
# A reply takes 40 ms in the one and 300 ms in the other; what the verdict is follows from the five differences.
def verdict(x):
    mean = sum(x) / len(x)
    half = 2.7764451 * math.sqrt(sum((v - mean) ** 2 for v in x) / (len(x) - 1) / len(x))
    return mean, mean - half, mean + half, "higher" if mean - half > 0 else "lower" if mean + half < 0 else "not_shown"
for metric, values in ("turn_joules", differences), ("turn_seconds", seconds):
    got, want = d["metrics"][metric], verdict(values)
    assert got["verdict"] == want[3] and all(abs(got["difference"][key] - w) <= 1e-5 * max(1, abs(w)) for key, w in zip(("mean", "lo", "hi"), want)), (got, want)
PY
assert_json pairs.json 'd["metrics"]["turns"]["verdict"] == "same" and d["metrics"]["cpu_joules"]["difference"]["method"] == "t"'
assert_json pairs.json 'd["metrics"]["machine_joules"]["a"] is None and d["metrics"]["machine_joules"]["verdict"] == "unknown"'
assert_json pairs.json '(lambda m: m["b_lo"] <= m["b"] <= m["b_hi"] and abs(m["b"] - m["a"] - m["difference"]["mean"]) < 1e-6)(d["metrics"]["turn_joules"])'
expect_exit 0 agent compare record slow --turns
check_out "5 queries and 15 turns in both; energy is that of cpu+dram"
check_out "sensor bounds: A "
check_out " significant"
assert_fits out 80

step "a run beside itself"
expect_exit 0 agent compare record record --json
cp out same.json
assert_json same.json 'all(m["verdict"] in ("same", "unknown") for k, m in d["metrics"].items() if k != "accuracy") and d["metrics"]["accuracy"]["verdict"] == "not_shown"'

step "gates: held, broken, cannot tell, wrong; as JUnit and Markdown"
expect_exit 0 agent compare record slow --gate 'turns<=+0' --gate 'j_query<=+5kJ'
check_out "gate turns<=+0: held"
expect_exit 5 agent compare record slow --gate 'seconds<=+10%' --gate 'turns<=+0' --junit gates.xml --markdown
check_out '| `seconds<=+10%` | slow | BROKEN |'
python3 - <<'PY' || fail "gates.xml"
import xml.etree.ElementTree as ET
suite = ET.parse("gates.xml").getroot()
assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "0")
assert [c.get("name") for c in suite if c.find("failure") is not None] == ["seconds<=+10%"]
PY
expect_exit 6 agent compare record slow --gate 'accuracy>=-1pt'
check_out "cannot tell (not known of both runs)"
expect_exit 2 agent compare record slow --gate 'acuracy>=-1pt'
check_err "unknown metric 'acuracy'; use one of: accuracy, j_query"
expect_exit 2 agent compare record slow --junit gates.xml
check_err "--junit goes with --gate"
expect_exit 1 agent compare record slow --gate 'turns<=+0' --junit /dev/null/gates.xml

step "one run: gates on its values, prices, a leaderboard"
expect_exit 5 agent compare record --gate 'accuracy>=50%' --gate 'j_query<=1J'
check_out "gate accuracy>=50%: held"
check_out "gate j_query<=1J: BROKEN ("
expect_exit 5 agent compare record record --gate 'j_query<=1J'
expect_exit 2 agent compare record --gate 'j_query<=+1J'
check_err "bounds the change from a first run: name two runs"
expect_exit 2 agent compare record --gate 'j_query<=3%'
check_err "'j_query<=+3%' bounds the change from the first run"
expect_exit 6 agent compare record --gate 'cost_query<=1'
check_out "a model has no price (--prices)"
echo '{"models": {"fake-model": {"input": 1, "output": 10}}}' >prices.json
expect_exit 0 agent compare record --gate 'cost_query<=1' --prices prices.json
check_out "gate cost_query<=1: held"
expect_exit 2 agent compare record --prices nowhere.json
check_err "nowhere.json"
expect_exit 0 agent compare record slow --table csv
cp out table.csv
python3 - <<'PY' || fail "table.csv"
import csv, json
rows = list(csv.DictReader(open("table.csv")))
lines = [json.loads(line) for line in open("record/traces.jsonl")]
joules = sum(q["energy"][d]["joules"] for q in lines for d in ("cpu", "dram")) / sum(q["is_resolved"] for q in lines)
assert [r["rank"] for r in rows] == ["1", ""] and rows[0]["model"] == "fake-model", rows
assert abs(float(rows[0]["J_per_correct"]) - joules) < 1e-6 and rows[1]["accuracy"] == "", rows
PY
expect_exit 2 agent compare record --table pdf
check_err "use markdown, csv or html"

step "more than two runs, each with the first"
expect_exit 0 agent compare record slow record --json
cp out three.json
assert_json three.json '[c["b"] for c in d["comparisons"]] == ["slow", "record"] and all(c["a"] == "record" for c in d["comparisons"])'
assert_json three.json 'len(d["runs"]) == 3 and all(0 <= r["accuracy"]["lo"] <= r["accuracy"]["mean"] <= r["accuracy"]["hi"] <= 1 and r["accuracy"]["method"] == "wilson" for r in d["runs"][::2])'
assert_json three.json 'd["comparisons"][0]["metrics"] == json.load(open("pairs.json"))["metrics"]'
expect_exit 0 agent compare record slow record
check_out "C against A"
assert_fits out 80

step "nothing in common"
sed 's/"query_id":"/"query_id":"x/' record/traces.jsonl >other.jsonl
expect_exit 3 agent compare record other.jsonl
check_err "no query in common"
expect_exit 3 agent compare record nowhere
end_test
