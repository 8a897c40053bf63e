# Records with a line too few, too many or in another place, and records cut anywhere, replayed.
. "$(dirname "$0")/lib.sh"

printf '{"question":"One?","answer":"42"}\n{"question":"Two?","answer":"42"}\n' >rows.jsonl
start_fake --bench 1
expect_exit 0 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model -q --output run
for mode in hermetic tools "hermetic --query q0001"; do
    step "$mode"
    rm -rf run.changed
    python3 "$IPW_SOURCE_DIR/tests/e2e/event_lines.py" "$IPW_AGENT" run "$mode" >out 2>err || fail "a line"
done
damaged run.changed run.again

end_test
