# D-13: the lock of a run that was killed is free at once, though a program that its tool started lives on.
. "$(dirname "$0")/lib.sh"

cat >starts.lua <<LUA
local llm, proc = require "ipw.llm", require "ipw.proc"
return {
  name = "starts",
  about = "Starts a program that outlives its shell.",
  run = function(query)
    if query.prompt:find "first" then
      proc.run { "sh", "-c", "sleep 600 >$WORK/sleep.out & echo \$! >$WORK/child; wait", seconds = 600 }
    end
    return llm.chat { messages = { llm.user(query.prompt) } }.text
  end,
}
LUA
printf '%s\n' '{"question":"the first","answer":"42"}' '{"question":"the second","answer":"42"}' >rows.jsonl
start_fake --bench 0

"$IPW_AGENT" run starts.lua --unsafe-tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --concurrency 2 \
    --output run -q >out 2>err </dev/null &
AGENT_PID=$!
FAKES="$FAKES $AGENT_PID"
tries=0
until [ -s child ] && [ -s run/traces.jsonl ]; do
    tries=$((tries + 1))
    [ $tries -lt 600 ] || fail "the child was not started"
    kill -0 $AGENT_PID 2>/dev/null || fail "the agent ended early"
    sleep 0.05
done
CHILD=$(cat child)
# The runner's helper would end the child: it is killed, too, before the runner can see that.
kill -STOP $AGENT_PID
kill -KILL $(pgrep -P $AGENT_PID)
kill -KILL $AGENT_PID
wait $AGENT_PID 2>/dev/null
kill -0 "$CHILD" || fail "the child is not there any more: nothing was tested"
FAKES="$FAKES $CHILD"

step "its owner is gone, the child is not"
sed -i 's/"first"/"no such word"/' starts.lua
expect_exit 0 agent run starts.lua --unsafe-tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --output run --resume \
    --force
no_err "another run is writing"
kill -0 "$CHILD" || fail "the child has gone in between"
assert_json run/traces.jsonl 'sorted(q["query_id"] for q in d) == ["q0000", "q0001"]'
kill -KILL "$CHILD"

end_test
