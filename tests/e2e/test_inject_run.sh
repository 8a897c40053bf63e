# D-1, D-4, D-5, D-7, D-14: the calls on a run's files fail one by one, by strace.  What is held each time says
# tests/drill/inject_drill.py; here it is done once for each call, with IPW_LONG=1 for every one of them.
. "$(dirname "$0")/lib.sh"

how=--brief
[ "${IPW_LONG-0}" = 1 ] && how=--points=0 && IPW_LIMIT_S=7200
step "call by call"
timeout -k 5 "${IPW_LIMIT_S:-220}" python3 "$IPW_SOURCE_DIR/tests/drill/inject_drill.py" --agent "$IPW_AGENT" \
    --fakes "$(dirname "$IPW_FAKE")" --queries 2 $how --stage "${STAGE-run}" >out 2>err
code=$?
[ $code -ne 77 ] || skip "$(cat out)"
[ $code -eq 0 ] || fail "exit status $code: $(tail -3 out)"
check_out "injected: all held"

end_test
