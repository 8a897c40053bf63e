# Rows L-1 to L-9 of tests/faults.txt: attacks in Lua, in process, sixteen queries
# in flight.  Each ends its own query alone, with a named outcome; those beside it come out right.
# Sanitizer: attacks in Lua.
. "$(dirname "$0")/lib.sh"
. "$IPW_SOURCE_DIR/tests/e2e/attacks.sh"

start_fake --bench 0
write_attack_rows rows.jsonl

step "every attack ends, and the queries beside it are answered"
expect_exit 0 agent run "$IPW_SOURCE_DIR/tests/e2e/attacks.lua" --dataset rows.jsonl \
    --base-url "$BASE_URL" --model fake-model --concurrency 16 --lua-cpu 600ms --lua-memory 8M \
    --output attacks
check_attacks attacks

step "the heap stayed under four times its cap"
assert_json attacks/traces.jsonl "all(q['lua_peak_bytes'] <= 4 * 8 * 1024 * 1024 for q in d)"

step "L-8: nothing that a terminal would obey reached it"
esc=$(printf '\033')
no_err "$esc"

step "rule 17: the same at a stack that cannot grow beyond 8 MiB"
(ulimit -S -s 8192 && ulimit -H -s 8192 && "$IPW_AGENT" run \
    "$IPW_SOURCE_DIR/tests/e2e/attacks.lua" --dataset rows.jsonl --limit 31-45 --base-url "$BASE_URL" \
    --model fake-model --concurrency 16 --lua-cpu 600ms --lua-memory 8M --output small >out 2>err) ||
    fail "with a stack of 8 MiB"

end_test
