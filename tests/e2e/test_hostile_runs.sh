# A run's files from a stranger: each value changed in turn, and the run given to each command that reads one.  What
# is held each time says tests/drill/hostile_drill.py; here a part of it is done, with IPW_LONG=1 all.
# Sanitizer: a run's files from a stranger.
. "$(dirname "$0")/lib.sh"

share=400
[ "${IPW_LONG-0}" = 1 ] && share=0 && IPW_LIMIT_S=36000
step "value by value"
timeout -k 5 "${IPW_LIMIT_S:-600}" python3 "$IPW_SOURCE_DIR/tests/drill/hostile_drill.py" --agent "$IPW_AGENT" \
    --fakes "$(dirname "$IPW_FAKE")" --share $share >out 2>err || fail "exit status $?"
check_out "all held"

end_test
