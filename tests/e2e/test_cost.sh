# What answers cost: by a price table, as the provider says, for free, or unknown (null, never 0).
. "$(dirname "$0")/lib.sh"

echo '{"question":"What is 40 + 2?","answer":"42"}' >rows.jsonl
run() { # DIR ARGS...
    dir=$1
    shift
    agent_args="run tools --dataset rows.jsonl --base-url $BASE_URL --output $dir"
    expect_exit "${EXPECT:-0}" agent $agent_args "$@"
}

step "no price: null, and a cost limit is refused"
start_fake --bench 1 --prompt-tokens 1000
run none --model fake-model
assert_json none/traces.jsonl 'd[0]["total_cost_usd"] is None and all(t["cost_usd"] is None for t in d[0]["turns"])'
check_out "not known: no price for 'fake-model' (--prices)"
assert_json none/summary.json 'd["totals"]["cost_usd"] is None and d["config"]["price"] is None'
EXPECT=2 run never --model fake-model --cost-limit 1
one_message
check_err "cannot use --cost-limit: no price for model 'fake-model'"
EXPECT=2 run never --model fake-model --run-cost-limit 1
check_err "cannot use --run-cost-limit"
[ ! -e never ] || fail "a refused run made its folder"

step "a price table"
cat >prices.json <<'JSON'
{"as_of": "2026-11-21", "models": {"fake-*": {"input": 2, "output": 8}}}
JSON
run table --model fake-model --prices prices.json
assert_json table/traces.jsonl 'all(abs(t["cost_usd"] - (2 * t["input_tokens"] + 8 * t["output_tokens"]) / 1e6) < 1e-12 for t in d[0]["turns"])'
assert_json table/traces.jsonl 'abs(d[0]["total_cost_usd"] - sum(t["cost_usd"] for t in d[0]["turns"])) < 1e-12 and d[0]["total_cost_usd"] > 0.004'
assert_json table/summary.json 'abs(d["totals"]["cost_usd"] - 0.004) < 1e-3 and d["config"]["price"]["as_of"] == "2026-11-21" and d["config"]["price"]["table"] == "given"'
assert_json table/events.jsonl 'all(e["cost_source"] == "table" for e in d if e["event"] == "lm_inference_end")'

step "the built-in table knows a model by its dated name"
run dated --model gpt-4o-mini-2024-07-18
assert_json dated/traces.jsonl 'abs(d[0]["turns"][0]["cost_usd"] - (0.15 * 1000 + 0.6 * d[0]["turns"][0]["output_tokens"]) / 1e6) < 1e-12'

step "a saved run is priced again, by every command that reads one"
echo '{"models": {"fake-model": {"input": 1, "output": 1000, "per_call": 0.5}}}' >again.json
expect_exit 0 agent score none --prices again.json --json
assert_json out 'd["was"] is None and d["turns"] == d["priced"] == 2 and len(d["models"]) == 1'
cp out priced.json
expect_exit 0 agent score none --prices again.json
check_out "fake-model"
check_out " USD"
run twice --model fake-model --epochs 2
expect_exit 0 agent score twice --prices again.json --json
assert_json out 'd["turns"] == d["priced"] == 4'
expect_exit 0 agent export none --format csv --prices again.json --output priced.csv
python3 - <<'PY' || fail "priced.csv"
import csv, glob, json
turns = [t for line in open("none/traces.jsonl") for t in json.loads(line)["turns"]]
want = sum(0.5 + (t["input_tokens"] + 1000 * t["output_tokens"]) / 1e6 for t in turns)
rows = [r for name in glob.glob("priced.csv*") for r in csv.DictReader(open(name))]
costs = [float(r["cost_usd"]) for r in rows if r.get("cost_usd")]
assert abs(costs[0] - want) < 1e-9 and abs(json.load(open("priced.json"))["now"] - want) < 1e-12, (costs, want)
PY
for prices in "" "--prices again.json"; do
    expect_exit 0 agent export none table --format csv --set table=runs $prices --output runs.csv
    python3 - "$prices" <<'PY' || fail "runs.csv $prices"
import csv, json, sys
rows, again = list(csv.DictReader(open("runs.csv"))), sys.argv[1] != ""
for row, run in zip(rows, ("none", "table")):
    lines = [json.loads(line) for line in open(run + "/traces.jsonl")]
    turns = [t for q in lines for t in q["turns"]]
    price = lambda t: 0.5 + (t["input_tokens"] + 1000 * t["output_tokens"]) / 1e6 if again else t.get("cost_usd")
    want = None if price(turns[0]) is None else sum(map(price, turns))
    correct = sum(q["is_resolved"] is True for q in lines)
    assert row["unpriced_queries"] == ("0" if want else "1"), row
    for key, x in ("cost_usd", want), ("cost_usd_known", want), ("cost_per_correct", want and want / correct):
        assert row[key] == "" if x is None else abs(float(row[key]) - x) < 1e-9, (key, row, x)
    assert float(row["seconds_per_correct"]) > 0 and int(float(row["tokens_per_correct"])) == lines[0]["total_tokens"]
PY
done
expect_exit 2 agent export none --format jsonl --prices again.json
check_err "copies lines as they were saved"
expect_exit 0 agent score none --prices free --json
assert_json out 'd["now"] == 0'
assert_json table/manifest.json 'd["config"]["prices"]["fake-model"]["input"] == 2 and d["config"]["prices"]["fake-model"]["model"] == "fake-*"'

step "free because the user says so"
run free --model fake-model --prices free --cost-limit 0.01
assert_json free/traces.jsonl 'd[0]["total_cost_usd"] == 0 and d[0]["completed"]'
assert_json free/summary.json 'd["config"]["price"] == "free"'

step "electricity and carbon, by stated factors; every figure recomputed from the lines"
start_tree tree --watts-package 80 --interval-ms 1
IPW_POWERCAP_ROOT="$WORK/tree" run power --model fake-model --prices prices.json --kwh-price 0.30 --gco2-per-kwh 380
assert_json power/manifest.json 'd["config"]["kwh_price"] == 0.3 and d["config"]["gco2_per_kwh"] == 380'
python3 - <<'PY' || fail "costs of summary.json"
import json, math
summary = json.load(open("power/summary.json"))
lines = [json.loads(line) for line in open("power/traces.jsonl")]
costs, near = summary["costs"], lambda a, b: math.isclose(a, b, rel_tol=1e-9)
domains = summary["efficiency"]["basis"].split("+")
joules = sum(q["energy"][d]["joules"] for q in lines for d in domains)
correct = sum(q["is_resolved"] for q in lines)
usd = sum((2 * t["input_tokens"] + 8 * t["output_tokens"]) / 1e6 for q in lines for t in q["turns"])
seconds, tokens = sum(q["total_wall_clock_s"] for q in lines), sum(q["total_tokens"] for q in lines)
assert near(costs["usd"], usd) and costs["unpriced_queries"] == 0 and near(costs["usd_per_query"], usd / len(lines))
assert correct == 1 and near(costs["usd_per_correct_answer"], usd / correct)
assert near(costs["seconds_per_correct_answer"], seconds) and costs["tokens_per_correct_answer"] == tokens
for key, unit, factor in ("electricity", "usd", 0.30), ("carbon", "gco2e", 380):
    one = costs[key]
    assert near(one[unit], joules / 3.6e6 * factor) and near(one["per_correct_answer"], one[unit] / correct), key
    assert one["per_kwh"] == factor and one["lo"] <= one[unit] <= one["hi"] and one["lo"] < one["hi"], key
assert costs["estimate"] is None
PY
check_out " USD per kWh"
check_out " g CO2e ("
expect_exit 0 agent report power --kwh-price 0.60
check_out "Electricity: "
check_out "at 0.600 USD"
EXPECT=2 run never --model fake-model --kwh-price 0
check_err "--kwh-price"

step "a model elsewhere: its joules are estimated by class, in no total"
run elsewhere --model gpt-4o-mini --model-host remote
python3 - <<'PY' || fail "the estimate"
import json
summary = json.load(open("elsewhere/summary.json"))
estimate, tokens = summary["costs"]["estimate"], summary["totals"]["output_tokens"]
assert estimate["classes"] == ["small"] and estimate["j_per_output_token"] == [0.05, 2.6], estimate
assert abs(estimate["lo"] - 0.05 * tokens) < 1e-9 and abs(estimate["hi"] - 2.6 * tokens) < 1e-9
assert summary["efficiency"]["joules_per_correct_answer"] is None and summary["totals"]["gpu_energy_joules"] is None
PY
check_out "published for models of the class small"
run off --model gpt-4o-mini --model-host remote --no-estimate
assert_json off/summary.json 'd["costs"]["estimate"] is None'
run unknown --model fake-model --model-host remote
assert_json unknown/summary.json 'd["costs"]["estimate"] is None'

step "four models, cached prompts, a tier: the dollars are the sum by hand"
cat >four.lua <<'LUA'
local llm = require "ipw.llm"
return {
  name = "four",
  run = function(query)
    for _, model in ipairs { "one", "two", "three" } do llm.chat { model = model, messages = { llm.user(query.prompt) } } end
    return llm.chat { messages = { llm.user(query.prompt) } }.text
  end,
}
LUA
cat >four.json <<'JSON'
{"models": {
  "one": {"input": 1, "output": 2, "cache_read": 0.1},
  "two": {"input": 3, "output": 4, "cache_read": 0.3, "per_call": 0.25},
  "three": {"input": 5, "output": 6, "cache_read": 0.5,
            "above": [{"prompt_tokens": 9999, "input": 10, "output": 12, "cache_read": 1, "reasoning": 20}]},
  "four": {"input": 7, "output": 8}}}
JSON
sed 's/"output": 8}/"output": 8, "cache_read": 0.7}/' four.json >all.json
cat >cached.llm <<'CASSETTE'
always
sse {"choices":[{"index":0,"delta":{"content":"FINAL ANSWER: 42"},"finish_reason":null}]}
sse {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}
sse {"choices":[],"usage":{"prompt_tokens":10000,"completion_tokens":500,"completion_tokens_details":{"reasoning_tokens":100},"prompt_tokens_details":{"cached_tokens":6000}}}
done
CASSETTE
start_fake --script cached.llm
expect_exit 0 agent run four.lua --dataset rows.jsonl --base-url "$BASE_URL" --model four --prices four.json -o four
# 4,000 fresh and 6,000 cached in, 400 and 100 reasoning out; the model four has no price of cached tokens.
assert_json four/traces.jsonl '[t["cost_usd"] for t in d[0]["turns"]][3] is None and d[0]["total_cost_usd"] is None'
assert_json four/summary.json 'd["costs"]["usd"] is None and d["costs"]["usd_known"] is None and d["costs"]["unpriced_queries"] == 1'
by_hand='(4000*1 + 6000*0.1 + 500*2 + 4000*3 + 6000*0.3 + 500*4 + 4000*10 + 6000*1 + 400*12 + 100*20 + 4000*7 + 6000*0.7 + 500*8) / 1e6 + 0.25'
expect_exit 0 agent run four.lua --dataset rows.jsonl --base-url "$BASE_URL" --model four --prices all.json -o all
assert_json all/traces.jsonl "abs(d[0]['total_cost_usd'] - ($by_hand)) < 1e-12"
expect_exit 0 agent score four --prices all.json --json # its server names no model: by the names that were asked for
assert_json out "d['priced'] == 4 and abs(d['now'] - ($by_hand)) < 1e-12"
assert_json four/manifest.json 'sorted(d["config"]["prices"]) == ["four", "one", "three", "two"] and d["config"]["prices"]["three"]["above"][0]["prompt_tokens"] == 9999'

step "OOI of two agents, by hand and by the program"
start_fake --script cached.llm
for i in 1 2 3 4 5 6; do echo '{"question":"What is 40 + 2?","answer":"42"}'; done >six.jsonl
export IPW_POWERCAP_ROOT="$WORK/tree"
for agent in single tools; do
    expect_exit 0 agent run $agent --dataset six.jsonl --base-url "$BASE_URL" --model fake-model --output $agent
done
export IPW_POWERCAP_ROOT="$WORK/no-powercap"
expect_exit 0 agent compare single tools
check_out "OOI "
expect_exit 0 agent compare single tools --json
python3 - <<'PY' || fail "OOI"
import json
def epg(run):
    lines = [json.loads(line) for line in open(run + "/traces.jsonl")]
    joules = sum(q["energy"][d]["joules"] for q in lines for d in ("cpu", "dram"))
    return joules / sum(q["is_resolved"] is True for q in lines)
index = json.load(open("out"))["orchestration_overhead"]
assert abs(index["mean"] / (epg("tools") / epg("single")) - 1) < 1e-9 and index["agent"] == "tools", index
PY

step "a broken table is named"
echo '{"models": {"x": {"input": 1, "outptu": 2}}}' >broken.json
EXPECT=3 run never --model fake-model --prices broken.json
check_err "broken.json: model 'x': unknown field 'outptu' (did you mean 'output'?)"
EXPECT=3 run never --model fake-model --prices missing.json
check_err "missing.json"

step "what the provider says wins over the table"
cat >reported <<'CASSETTE'
sse {"choices":[{"index":0,"delta":{"content":"FINAL ANSWER: 42"},"finish_reason":null}]}
sse {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}
sse {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":4,"total_tokens":14,"cost":0.0123}}
done
CASSETTE
start_fake --script reported
run provider --model fake-model --prices prices.json
assert_json provider/traces.jsonl 'd[0]["turns"][0]["cost_usd"] == 0.0123 and d[0]["total_cost_usd"] == 0.0123'
assert_json provider/events.jsonl '[(e["cost_source"], e["data"]["usage"]["cost"]) for e in d if e["event"] == "lm_inference_end"] == [("provider", 0.0123)]'

step "cached tokens without a price of their own: not known, but a limit counts them in full"
cat >cached <<'CASSETTE'
always
sse {"choices":[{"index":0,"delta":{"content":"FINAL ANSWER: 42"},"finish_reason":null}]}
sse {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}
sse {"choices":[],"usage":{"prompt_tokens":1000000,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":10}}}
done
CASSETTE
start_fake --script cached
run cached-tokens --model fake-model --prices prices.json
assert_json cached-tokens/traces.jsonl 'd[0]["total_cost_usd"] is None and d[0]["completed"]'
run cached-limit --model fake-model --prices prices.json --cost-limit 1.5
assert_json cached-limit/traces.jsonl 'd[0]["outcome"] == "cost_limit" and "$2.00001 used" in d[0]["error"]'
# The answer was there when the limit was found to be passed: it is kept and scored.
assert_json cached-limit/traces.jsonl 'd[0]["is_resolved"] is True and d[0]["answer"] == "42"'

step "a model without a price, asked behind a cost limit, ends the query"
cat >other.lua <<'LUA'
local llm = require "ipw.llm"
return {
  name = "other",
  run = function(query)
    llm.chat { model = "unpriced", messages = { llm.user(query.prompt) } }
    return llm.chat { messages = { llm.user(query.prompt) } }.text
  end,
}
LUA
start_fake --bench 0
expect_exit 1 agent run other.lua --dataset rows.jsonl --base-url "$BASE_URL" --model gpt-4o \
    --cost-limit 5 --output unpriced
assert_json unpriced/traces.jsonl 'd[0]["outcome"] == "cost_limit" and "without a known price" in d[0]["error"] and len(d[0]["turns"]) == 1'

end_test
