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
check_out "correct -> wrong"
check_out "3 queries are not in the dataset"
assert_json new.jsonl 'len(d) == 1 and d[0]["is_resolved"] is False and d[0]["is_resolved_was"] is True'

step "a scorer by its name"
python3 - <<'PY'
import json
rows = [("a", "It has 12 legs, I say.\nFINAL ANSWER: 12 legs", "12"), ("b", "\\boxed{7} it is.\nFINAL ANSWER: eight", "7"),
        ("c", "Answer: (B)\nFINAL ANSWER: the second", "B")]
with open("rows.jsonl", "w") as f:
    for name, text, answer in rows: print(json.dumps({"id": name, "question": "Q " + name, "answer": answer}), file=f)
with open("says.llm", "w") as f:
    for name, text, answer in rows: f.write("when Q %s\ntext %s\n---\n" % (name, text.replace("\\", "\\\\").replace("\n", "\\n")))
PY
start_fake --script says.llm
expect_exit 0 agent run single --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model -o named -q
assert_json named/traces.jsonl 'sum(bool(t["is_resolved"]) for t in d) == 0'
for case in contains:a numeric:a boxed:b choice:c exact: gaia:; do
    expect_exit 0 agent score named --dataset rows.jsonl --scorer "${case%:*}" -o "${case%:*}.jsonl"
    assert_eq "$(json "${case%:*}.jsonl" '"".join(s["query_id"] for s in d if s["is_resolved"])')" "${case#*:}"
    assert_json "${case%:*}.jsonl" 'all(s["scorer"] == "'"${case%:*}"'" for s in d)'
done
cat >mine.lua <<'LUA'
return { name = "mine", extract = function(text) return text:sub(1, 2), "mine" end, score = function(answer) return answer == "It" end }
LUA
expect_exit 0 agent score named --dataset rows.jsonl --scorer ./mine.lua -o mine.jsonl
assert_json mine.jsonl '[(s["answer"], s["is_resolved"]) for s in sorted(d, key=lambda s: s["query_id"])][0] == ("It", True) and sum(s["is_resolved"] for s in d) == 1'
expect_exit 3 agent score named --dataset rows.jsonl --scorer exakt
check_err "unknown scorer 'exakt': use boxed, choice, code, contains, exact, f1, gaia, judge, numeric"
echo 'return { name = "none" }' >none.lua
expect_exit 3 agent score named --dataset rows.jsonl --scorer none.lua
check_err "none.lua: the scorer has no function 'score'"

step "each query is scored by the task of its id, wherever that stands among many; epochs by the same one"
cat says.llm says.llm >twice.llm
stop_fake
start_fake --script twice.llm
expect_exit 0 agent run single --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --epochs 2 -o twice -q
python3 - >many.jsonl <<'PY'
import json
own = {700: ("c", "the second"), 1900: ("a", "12 legs")} # b is not there
for i in range(2000):
    name, answer = own.get(i, ("a%d" % i, "12 legs"))
    print(json.dumps({"id": name, "question": "?", "answer": answer}))
PY
expect_exit 0 agent score twice --dataset many.jsonl --scorer exact -o many.scores.jsonl
check_out "2 queries are not in the dataset"
assert_json many.scores.jsonl 'sorted((s["query_id"], s["epoch"], s["is_resolved"]) for s in d) == [("a", 0, True), ("a", 1, True), ("c", 0, True), ("c", 1, True)]'

step "a scorer that does not come to an end ends for that answer alone"
cat >slow.lua <<'LUA'
return { name = "slow", score = function(_, record) while record.id == "a" do end return true end }
LUA
expect_exit 0 agent score named --dataset rows.jsonl --scorer ./slow.lua -o slow.jsonl
assert_json slow.jsonl '[s["is_resolved"] for s in sorted(d, key=lambda s: s["query_id"])] == [None, True, True]'

step "without --dataset: by the references in the traces, wherever the dataset is now; no score of nothing"
assert_json named/traces.jsonl 'sorted(t["reference_answer"] for t in d) == ["12", "7", "B"] and d[0]["reference"] == {"rule": "gaia"}'
mv rows.jsonl away.jsonl
expect_exit 0 agent score named --json
assert_json out 'd["changed"] == 0 and d["missing"] == 0'
expect_exit 0 agent score named --scorer numeric -o numeric2.jsonl
cmp numeric.jsonl numeric2.jsonl || fail "another score by the references"
mv away.jsonl rows.jsonl
assert_json run/traces.jsonl 'all(t["reference_answer"] and "level_" in t["subject"] for t in d)'
assert_json run/traces.jsonl '"Steps" in d[0]["reference"]["columns"]["Annotator Metadata"]'

step "a run without references: its dataset is asked for, a file by its name, whatever is called like it"
cp -r named bereft
sed -i 's/"reference":{[^}]*},"reference_answer":"[^"]*",//' bereft/traces.jsonl
assert_lacks bereft/traces.jsonl reference
expect_exit 2 agent score bereft
check_err "bereft: has no reference answers; name its dataset with --dataset (it was the file rows.jsonl)"
expect_exit 0 agent score bereft --dataset rows.jsonl --dry-run

step "filler is not scored"
expect_exit 0 agent run single --dataset rows.jsonl --model demo -o bare -q --no-content
assert_lacks bare/traces.jsonl reference
expect_exit 3 agent score bare
check_err "bare: was run with --no-content, so its answers are filler"
expect_exit 0 agent score named --dataset rows.jsonl --scorer judge --dry-run
check_out " score   0.0      –"
expect_exit 3 agent score missing
check_err "missing: no such run"

step "a run of which nothing is finished"
cp -r run begun
: >begun/traces.jsonl
rm begun/summary.json
damaged begun
expect_exit 3 agent score begun
check_err "begun: no query is finished"
expect_exit 0 agent replay begun
check_err "begun: no query is finished (use --follow to see the events)"

step "misuse"
expect_exit 3 agent score run --dataset nowhere
expect_exit 3 agent score missing --dataset gaia
end_test
