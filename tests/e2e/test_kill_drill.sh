# P-1, P-7, D-14: kill -9 at random moments of a run and of its resuming.  The short form of
# tests/drill/kill_drill.py, whose head says what is checked; fake_powercap gives it joules.
. "$(dirname "$0")/lib.sh"

step "killed and resumed"
expect_exit 0 python3 "$IPW_SOURCE_DIR/tests/drill/kill_drill.py" --agent "$IPW_AGENT" \
    --fakes "$(dirname "$IPW_FAKE")" --kills 5 --resume-kills 3 --queries 16 --concurrency 4 --delay-ms 30
check_out "killed at random: 5 kills"
check_out "killed inside resume: 3 kills"

end_test
