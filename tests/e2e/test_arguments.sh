# Arguments that a function of the library cannot take: it says which.
# Sanitizer: arguments that the C of the library cannot take.
. "$(dirname "$0")/lib.sh"

printf '{"question":"Say it.","answer":"42"}\n' >rows.jsonl
start_fake --bench 0
expect_exit 0 agent run "$IPW_SOURCE_DIR/tests/e2e/arguments.lua" --dataset rows.jsonl --base-url "$BASE_URL" \
    --model fake-model --output run
assert_json run/traces.jsonl "[q['error'] for q in d] == [None] and d[0]['completed']"

end_test
