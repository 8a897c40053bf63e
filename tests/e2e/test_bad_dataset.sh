# Data sets that are unknown, missing or broken.
. "$(dirname "$0")/lib.sh"

start_fake --bench 0

step "an unknown name is answered with the nearest"
expect_exit 3 agent run single --dataset gaja --base-url "$BASE_URL" --model fake-model
check_err gaja
offers gaia
one_message

step "a missing file"
expect_exit 3 agent run single --dataset nowhere/rows.jsonl --base-url "$BASE_URL" \
    --model fake-model
check_err nowhere/rows.jsonl

step "a broken line: file and line number, before any request"
cat >rows.jsonl <<'ROWS'
{"question":"What is 1 + 1?","answer":"2"}
{"question":"What is 2 + 2?","answer":"4"}
{"question":"What is 3 + 3?","answer":
{"question":"What is 4 + 4?","answer":"8"}
ROWS
expect_exit 3 agent run single --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model \
    --output out1
check_err rows.jsonl:3
one_message
[ ! -e out1/traces.jsonl ] || fail "a run was begun"
assert_eq "$(fake_requests)" 0 "(requests)"

step "a row without a question"
cat >rows2.jsonl <<'ROWS'
{"question":"What is 1 + 1?","answer":"2"}
{"answer":"4","colour":"red"}
ROWS
expect_exit 3 agent run single --dataset rows2.jsonl --base-url "$BASE_URL" --model fake-model
check_err rows2.jsonl:2

step "a row that is no object"
printf '{"question":"a","answer":"b"}\n[1,2]\n' >rows3.jsonl
expect_exit 3 agent run single --dataset rows3.jsonl --base-url "$BASE_URL" --model fake-model
check_err rows3.jsonl:2

step "metadata and a scorer's details that are lists, where a run's files hold objects"
cat >lists.lua <<'LUA'
return {
  name = "lists",
  load = function()
    return { { id = "named", question = "q", answer = "x", metadata = { k = 1 } },
      { id = "list", question = "q", answer = "x", metadata = { 1, 2 } } }
  end,
  score = function() return true, { "near", 3 } end,
}
LUA
expect_exit 0 agent run single --dataset lists.lua --model demo --output lists
check_err "query list failed: the task's metadata is a list; give its values names"
assert_json lists/traces.jsonl "[t['metadata'] for t in d] == [{'k': 1}, {}]"
assert_json lists/traces.jsonl "d[0]['score_metadata'] == {'list': ['near', 3]} and d[0]['is_resolved'] is True"

step "two records of a script with one id: before any request"
cat >twins.lua <<'LUA'
return { name = "twins", load = function()
  return { { id = "a", question = "q" }, { id = "b", question = "q" }, { question = "q" }, { id = "q0002", question = "q" } }
end }
LUA
expect_exit 3 agent run single --dataset twins.lua --model demo --output twins
check_err 'twins.lua: tasks 3 and 4 have the same id "q0002"'
[ ! -e twins ] || fail "a run was begun"
expect_exit 0 agent run single --dataset twins.lua --model demo --limit 1-3 --output twins

step "an empty file"
: >empty.jsonl
expect_exit 3 agent run single --dataset empty.jsonl --base-url "$BASE_URL" --model fake-model
check_err empty.jsonl

step "a large one: reading it is not held to what a script may compute for one answer"
cat >large.lua <<'EOF'
return { name = "large", load = function()
  local begun = os.clock()
  while os.clock() - begun < 3 do end
  return { { id = "one", question = "What is 2 + 2?", answer = "42" } }
end }
EOF
expect_exit 0 agent run single --dataset large.lua --base-url "$BASE_URL" --model fake-model --output large

step "a limit that is none"
expect_exit 2 agent run single --dataset rows.jsonl --limit 5-2 --base-url "$BASE_URL" \
    --model fake-model
check_err --limit
for limit in -1 3- x; do
    expect_exit 2 agent run single --dataset rows.jsonl --limit "$limit" --base-url "$BASE_URL" --model m
    one_message
    check_err "--limit: '$limit' is "
done

step "a file of another kind is no misspelt name"
printf 'PAR1' >rows4.parquet
echo 'question' >rows4.txt
expect_exit 3 agent run single --dataset rows4.parquet --base-url "$BASE_URL" --model fake-model
check_err "rows4.parquet: 4 bytes are too few for a Parquet file"
expect_exit 3 agent run single --dataset rows4.txt --base-url "$BASE_URL" --model fake-model
one_message
check_err "rows4.txt: "
check_err ".jsonl"

step "what is no dataset is named"
echo 'return { name = "shout", about = "x", run = function() end }' >shout.lua
expect_exit 3 agent run single --dataset shout.lua --base-url "$BASE_URL" --model fake-model
check_err "shout.lua: the dataset has no function 'load'"

end_test
