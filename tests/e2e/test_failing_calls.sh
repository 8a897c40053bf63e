# The system calls of each command that reads a run, or needs none, fail one by one.  What is held each time says
# tests/drill/call_drill.py; here it is done for some of each kind, with IPW_LONG=1 for every one.
. "$(dirname "$0")/lib.sh"
[ -z "${IPW_SANITIZE-}" ] || skip "a sanitizer has to be the first library"

which="--points 1 --share 5"
[ "${IPW_LONG-0}" = 1 ] && which="--points 0" && IPW_LIMIT_S=7200
step "call by call"
timeout -k 5 "${IPW_LIMIT_S:-600}" python3 "$IPW_SOURCE_DIR/tests/drill/call_drill.py" --agent "${IPW_CONFINED:-$IPW_AGENT}" \
    --fakes "$(dirname "$IPW_FAKE")" $which >out 2>err || fail "exit status $?"
check_out "all held"

end_test
