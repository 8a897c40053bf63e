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

step "an empty file"
: >empty.jsonl
expect_exit 3 agent run single --dataset empty.jsonl --base-url "$BASE_URL" --model fake-model
check_err empty.jsonl

step "a limit that is none"
expect_exit 2 agent run single --dataset rows.jsonl --limit 5-2 --base-url "$BASE_URL" \
    --model fake-model
check_err --limit

end_test
