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
expect_exit 0 agent export none --format csv --prices again.json --output priced.csv
python3 - <<'PY' || fail "priced.csv"
import csv, glob, json
turns = [t for line in open("none/traces.jsonl") for t in json.loads(line)["turns"]]
want = sum(0.5 + (t["input_tokens"] + 1000 * t["output_tokens"]) / 1e6 for t in turns)
rows = [r for name in glob.glob("priced.csv*") for r in csv.DictReader(open(name))]
costs = [float(r["cost_usd"]) for r in rows if r.get("cost_usd")]
assert abs(costs[0] - want) < 1e-9 and abs(json.load(open("priced.json"))["now"] - want) < 1e-12, (costs, want)
PY
expect_exit 2 agent export none --format jsonl --prices again.json
check_err "copies lines as they were saved"
expect_exit 0 agent score none --prices free --json
assert_json out 'd["now"] == 0'
assert_json table/manifest.json 'd["config"]["prices"]["fake-model"]["input"] == 2 and d["config"]["prices"]["fake-model"]["model"] == "fake-*"'

step "free because the user says so"
run free --model fake-model --prices free --cost-limit 0.01
assert_json free/traces.jsonl 'd[0]["total_cost_usd"] == 0 and d[0]["completed"]'
assert_json free/summary.json 'd["config"]["price"] == "free"'

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
