# Scoring again from recorded answers: the same scorer says the same, another one is shown beside it.
. "$(dirname "$0")/lib.sh"

step "the run"
expect_exit 0 agent run react --dataset gaia --model demo --limit 4 -o run -q
cp -r run before

step "the same scorer"
expect_exit 0 agent score run
check_out "score"
assert_file_lines run/scores.jsonl 4
assert_json run/scores.jsonl 'all(s["is_resolved"] == s["is_resolved_was"] and s["answer"] == s["answer_was"] for s in d)'
cmp run/traces.jsonl before/traces.jsonl || fail "traces touched"
cmp run/summary.json before/summary.json || fail "summary touched"
expect_exit 0 agent score run --json --dry-run
assert_json out 'd["changed"] == 0 and d["now"] == d["was"]'

step "another scorer"
cat >strict.lua <<'LUA'
local gaia = require "ipw.gaia"
return {
  name = "strict",
  load = function() return { { id = "IDENT", question = "?", answer = "never" } } end,
  score = function(answer, record) return answer == record.answer end,
}
LUA
first=$(json run/traces.jsonl 'd[0]["query_id"]')
sed -i -e "s/IDENT/$first/" -e '/local gaia/d' strict.lua
expect_exit 0 agent score run --dataset ./strict.lua -o new.jsonl
check_out "right -> wrong"
check_out "3 queries are not in the data set"
assert_json new.jsonl 'len(d) == 1 and d[0]["is_resolved"] is False and d[0]["is_resolved_was"] is True'

step "misuse"
expect_exit 3 agent score run --dataset nowhere
expect_exit 3 agent score missing --dataset gaia
end_test
