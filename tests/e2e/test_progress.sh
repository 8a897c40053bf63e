# The progress line shows the joules so far and their mean watts while the first query still runs,
# whatever kind of sensor it is, and fits the terminal.
. "$(dirname "$0")/lib.sh"

awk 'BEGIN { for (i = 1; i <= 2; i++)
    printf "{\"question\":\"Question %d: what is 2 + 3 * %d?\",\"answer\":\"42\"}\n", i, i }' >rows.jsonl
start_fake --bench 3 --delay-ms 300
drawn() { # DIR ARGS...
    dir=$1
    shift
    CI='' on_terminal 80 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" \
        --model fake-model --output "$dir" "$@"
    tr '\r' '\n' <out | sed 's/\x1b\[K//g' | grep -F 'done  ' >lines
    # Five columns stay free: a terminal prints ^C where the cursor is.
    assert_fits lines 75
}

step "a gauge: a command that prints watts"
printf 'while :; do echo 95.5; sleep 0.05; done\n' >meter.sh
drawn gauge --telemetry "exec=sh $WORK/meter.sh"
assert_matches lines '0/2 done  0 correct  0 wrong  0 failed  [0-9.]+ J  95\.5 W  '

step "a counter"
start_tree cap --watts-package 60
export IPW_POWERCAP_ROOT="$WORK/cap"
drawn counter --telemetry rapl
assert_matches lines '0/2 done  0 correct  0 wrong  0 failed  [0-9.]+ J  [0-9.]+ W  '

step "none: nothing is claimed"
drawn none --telemetry none
grep -E ' [JW]  ' lines && fail "joules without a sensor"

step "a resumed run: queries of earlier sessions are done, each in the class that it had"
cat >rows.jsonl <<'ROWS'
{"question":"one","answer":"42"}
{"question":"two","answer":"41"}
{"question":"fail","answer":"42"}
{"question":"four","answer":"42"}
{"question":"five","answer":"42"}
ROWS
cat >some.lua <<'LUA'
local llm = require "ipw.llm"
return { name = "some", run = function(query)
  if query.prompt == "fail" then error "made to fail" end
  return llm.chat { messages = { llm.user(query.prompt) } }.text
end }
LUA
stop_fake
for i in 1 2 3 4; do printf 'delay 600\ntext 42\n---\n'; done >answers
start_fake --script answers
expect_exit 0 agent run some.lua --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model \
    --run-turn-limit 2 --telemetry none --output limited
CI='' on_terminal 80 agent resume limited --run-turn-limit 9
tr '\r' '\n' <out | sed 's/\x1b\[K//g' >lines
assert_matches lines '3/5 done  1 correct  1 wrong  1 failed  '
assert_matches lines '4/5 done  2 correct  1 wrong  1 failed  '

end_test
