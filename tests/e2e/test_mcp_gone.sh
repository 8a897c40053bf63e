# P-17: MCP servers that a run keeps end with their runner, however it ends: finished, interrupted, killed, resumed.  The server is
# deaf to signals, goes on when its input is closed, and has a child in its group and one in a session of its own.
. "$(dirname "$0")/lib.sh"

FAKE_MCP=$IPW_SOURCE_DIR/tests/fake/mcp.py
STAYS=618.25
cat >server.sh <<EOF2
trap '' TERM INT HUP
sleep $STAYS &
setsid sleep $STAYS &
python3 '$FAKE_MCP' bad none '$WORK/starts'
sleep $STAYS
EOF2
cat >echo.llm <<'LLM'
when Aleph
unless again:
always
call mcp__bad__echo {"text": "hi"}
---
when Aleph
always
text done
---
always
text begun
stall
LLM
for word in Aleph Beth; do echo "{\"question\":\"$word\",\"answer\":\"done\"}"; done >two.jsonl
start_fake --script echo.llm

alive() { pgrep -f "server.sh|sleep $STAYS|$WORK/starts"; }
# none_stays WHEN: within five seconds.
none_stays() {
    for _ in $(seq 50); do
        alive >/dev/null || return 0
        sleep 0.1
    done
    fail "$1: $(pgrep -af "server.sh|sleep $STAYS|$WORK/starts")"
}
# begin OUT ARGS...: a run in the background, until its first query has used the server and its second waits for the model.
begin() {
    dir=$1
    shift
    before=$(fake_requests)
    env --default-signal=INT "$IPW_AGENT" "$@" >out 2>err </dev/null &
    AGENT_PID=$!
    FAKES="$FAKES $AGENT_PID"
    for _ in $(seq 100); do
        [ "$(fake_requests)" -lt $((before + $NEEDED)) ] || break
        kill -0 $AGENT_PID 2>/dev/null || fail "the run of $dir ended early: $(cat err)"
        sleep 0.1
    done
    alive >/dev/null || fail "no server runs"
}
over() {
    wait $AGENT_PID
    code=$?
    FAKES=$(echo "$FAKES" | sed "s/ $AGENT_PID\$//")
    assert_eq $code "$1" "(exit code)"
}
run() { begin "$1" run tools --mcp "sh server.sh" --dataset two.jsonl --model fake-model --base-url "$BASE_URL" -o "$1" -q --grace 0.2s; }

step "finished"
expect_exit 0 agent run tools --mcp "sh server.sh" --dataset two.jsonl --limit 1 --model fake-model --base-url "$BASE_URL" -o whole -q
assert_file_lines starts 1
none_stays "after a run"

step "interrupted, once and twice"
NEEDED=3
for times in once twice; do
    run $times
    kill -INT $AGENT_PID
    [ $times = once ] || { sleep 0.05 && kill -INT $AGENT_PID; }
    over 130
    none_stays "after SIGINT $times"
done

step "killed, and resumed: the server is started anew"
run killed
kill -KILL $AGENT_PID
over 137
none_stays "after SIGKILL"
: >starts
NEEDED=1
begin resumed resume killed
assert_file_lines starts 1
kill -KILL $AGENT_PID
over 137
none_stays "after SIGKILL of a resumed run"
stop_fake
printf 'always\ntext done\n' >done.llm
start_fake --script done.llm
expect_exit 0 agent resume killed --base-url "$BASE_URL" --force
assert_json killed/traces.jsonl 'sorted(q["answer"] for q in d) == ["done", "done"]'
none_stays "after a resumed run"

end_test
