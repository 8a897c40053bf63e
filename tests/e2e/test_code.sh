#!/bin/sh
# Programs of a dataset run with their tests in the sandbox after the queries; pass@k over epochs.
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || skip "python3 is not installed"

cat >echo.lua <<'LUA'
return { name = "echo", about = "Says what its row says.", run = function(query) return query.metadata.says end }
LUA
# The rows of humaneval, with the answer that the agent gives.
cat >programs.lua <<'LUA'
local named = require "ipw.named"
local answers = {
  { id = "right", says = "```python\ndef twice(n):\n    return 2 * n\n```" },
  { id = "body", says = "    return 2 * n" },
  { id = "wrong", says = "def twice(n):\n    return n" },
  { id = "early", says = "import os\ndef twice(n):\n    os._exit(0)" },
  { id = "forever", says = "def twice(n):\n    while True: pass" },
  { id = "forks", says = "import os\ndef twice(n):\n    for _ in range(20):\n        if os.fork() == 0:\n            import time; time.sleep(60)\n    return 2 * n" },
  { id = "flood", says = "def twice(n):\n    print('x' * 1000000)\n    raise ValueError('flooded')" },
  { id = "empty", says = "```\n\n```" },
}
return named {
  name = "programs", about = "Programs.", rule = "code", seconds = 2, rows = answers,
  map = function(row)
    return { id = row.id, question = "Double n.", answer = "-", metadata = { says = row.says }, columns = {
      prompt = "def twice(n):\n    \"\"\"Twice n.\"\"\"\n", test = "def check(f):\n    assert f(2) == 4\n", entry_point = "twice" } }
  end,
  extract = function(text) return text:match "```%w*\n(.-)```" or text, "code" end,
  program = function(record, answer)
    local c = record.columns
    local whole = answer:find "def twice" and "    pass\n\n" or ""
    return c.prompt .. whole .. answer .. "\n\n" .. c.test .. "\n\ncheck(" .. c.entry_point .. ")\n"
  end,
}
LUA

step "each answer's program decides its score"
expect_exit 0 agent run ./echo.lua -d ./programs.lua -m demo --telemetry none -c 4 -o r1
assert_json r1/traces.jsonl '{q["query_id"]: q["is_resolved"] for q in d} == {"right": True, "body": True, "wrong": False, "early": False, "forever": False, "forks": True, "flood": False, "empty": False}'
assert_json r1/traces.jsonl '{q["query_id"]: q["score_metadata"]["result"] for q in d} == {"right": "passed", "body": "passed", "wrong": "failed", "early": "failed", "forever": "timed_out", "forks": "passed", "flood": "failed", "empty": "no_answer"}'
assert_json r1/traces.jsonl '[q["score_metadata"]["output"] for q in d if q["query_id"] == "wrong"] == ["AssertionError"]'
assert_json r1/traces.jsonl 'all(q["unscorable_reason"] is None and "judge_verdict" not in q for q in d)'
check_words "solved 3 of 8"
assert_json r1/events.jsonl 'not any("check(" in json.dumps(e) for e in d)'

step "score gives the same, and runs only what is missing"
expect_exit 0 agent score r1 --json
assert_json out 'd["changed"] == 0 and d["now"]["resolved"] == 3'

step "without programs: not scored, and why; score completes it"
expect_exit 0 agent run ./echo.lua -d ./programs.lua -m demo --telemetry none --limit 1 --no-proc -o none
assert_json none/traces.jsonl 'd[0]["is_resolved"] is None and "switched off by --no-proc" in d[0]["unscorable_reason"]'
expect_exit 0 agent score none
assert_json none/traces.jsonl 'd[0]["is_resolved"] is True and d[0]["unscorable_reason"] is None'

step "without bubblewrap: the remedy"
if [ ! -x /usr/bin/bwrap ] && [ ! -x /usr/local/bin/bwrap ] && [ ! -x /bin/bwrap ]; then
    expect_exit 0 "${IPW_CONFINED:-$IPW_AGENT}" run ./echo.lua -d ./programs.lua -m demo --telemetry none --limit 1 -o bare
    assert_json bare/traces.jsonl '"apt-get install bubblewrap" in d[0]["unscorable_reason"]'
else
    echo "bubblewrap is installed: what its absence says is not tested here"
fi

step "pass@k over epochs: a task is right in two of four"
cat >twos.lua <<'LUA'
local llm = require "ipw.llm"
return { name = "twos", about = "Right when the model says so.", run = function(query)
  local reply = llm.chat { messages = llm.thread(nil, query.id) }
  return reply.text == "right" and "def twice(n):\n    return 2 * n" or "def twice(n):\n    return 0"
end }
LUA
cat >model <<'CASSETTE'
when right
text right
---
when right
text wrong
---
when right
text right
---
when right
text wrong
---
when body
text wrong
---
when body
text wrong
---
when body
text wrong
---
when body
text wrong
CASSETTE
start_fake --script model
expect_exit 0 agent run ./twos.lua -d ./programs.lua -m m -u "$BASE_URL" --telemetry none --limit 2 --epochs 4 -o epochs
stop_fake
# right: 1 - C(2,2)/C(4,2) = 5/6 for k = 2; body: 0
assert_json epochs/summary.json '[(p["k"], round(p["share"], 9)) for p in d["repeats"]["pass_at"]] == [(1, 0.25), (2, round(5 / 12, 9))]'
check_words "pass@k k=1 25.0 %, k=2 41.7 %"
end_test
