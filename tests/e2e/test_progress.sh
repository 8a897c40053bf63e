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

end_test
