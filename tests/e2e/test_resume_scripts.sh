# D-17: a run that goes on is refused when a file that its scripts came from has changed: the agent's module,
# its tool, the dataset's script.  Also when the run was killed before its manifest could name them.
. "$(dirname "$0")/lib.sh"

mkdir tools
cat >mine.lua <<'LUA'
local llm, tools = require "ipw.llm", require "ipw.tools"
return {
  name = "mine",
  about = "Asks once; what it needs for that it requires late.",
  run = function(query)
    local helper <const> = require "helper"
    local kit <close> = tools.open { "shout" }
    return llm.chat { messages = { llm.user(helper.words(query.prompt)) }, tools = kit.schemas }.text
  end,
}
LUA
echo 'return { words = function(prompt) return prompt end }' >helper.lua
cat >tools/shout.lua <<'LUA'
return { name = "shout", about = "Says it louder.", input = { { "word", "string", "What." } },
  run = function(args) return args.word:upper() end }
LUA
cat >rows.lua <<'LUA'
return {
  name = "rows", about = "Four questions.",
  load = function()
    local records = {}
    for i = 1, 4 do records[i] = { id = "r" .. i, question = "Question " .. i .. "?", answer = "42" } end
    return records, {}
  end,
  prompt = function(record) return record.question end,
}
LUA
cat >stall.txt <<'CASSETTE'
when Question 3
always
text begun
stall
---
always
text FINAL ANSWER: 42
CASSETTE

# killed RUN ARGS...: a run that is killed at its third question.
killed() {
    out=$1
    shift
    start_fake --script stall.txt
    "$IPW_AGENT" run mine.lua --dataset ./rows.lua --base-url "$BASE_URL" --model fake-model --output "$out" --verbose \
        "$@" >out 2>err </dev/null &
    AGENT_PID=$!
    FAKES="$FAKES $AGENT_PID"
    tries=0
    until [ "$(fake_requests)" -ge 3 ] && [ "$(grep -c '^ipw-agent: done ' err)" -ge 2 ]; do
        tries=$((tries + 1))
        [ $tries -lt 600 ] || fail "the third request did not come"
        kill -0 $AGENT_PID 2>/dev/null || fail "the agent ended early"
        sleep 0.05
    done
    kill -KILL $AGENT_PID
    wait $AGENT_PID 2>/dev/null
    stop_fake
}
refused() { # RUN FILE: it names the file, and nothing is changed
    cksum "$1"/*.jsonl "$1"/manifest.json >before
    expect_exit 3 agent resume "$1" --base-url http://127.0.0.1:9/v1
    check_err "$1: cannot resume: the file $2, which it loads, $3"
    one_message
    cksum "$1"/*.jsonl "$1"/manifest.json >after
    cmp -s before after || fail "something changed"
}

step "what was loaded is on record as soon as it was"
killed run
assert_json run/manifest.json 'sorted(s["path"].split("/")[-1] for s in d["config"]["scripts"]) == ["mine.lua", "rows.lua"]'
assert_json run/events.jsonl 'sorted(e["data"]["path"].split("/")[-1] for e in d if e["event"] == "note" and e.get("name") == "script") == ["helper.lua", "shout.lua"]'

step "a module, a tool, a dataset's script: each is refused by name"
for file in helper.lua tools/shout.lua; do
    cp $file kept
    sed -i '1s/^/-- edited\n/' $file
    refused run ./$file "was "
    cp kept $file
done
cp rows.lua kept
sed -i '1s/^/-- edited\n/' rows.lua
refused run ./rows.lua "was "
cp kept rows.lua
mv helper.lua away.lua
refused run ./helper.lua "is missing"

step "--force goes on, says so, and the record has the file as it is now"
sed 's/^/-- edited\n/' away.lua >helper.lua
start_fake --bench 0
expect_exit 0 agent resume run --base-url "$BASE_URL" --force
check_err "run: --force: resumes although the file ./helper.lua, which it loads, was "
assert_json run/manifest.json 'len(d["segments"][1]["forced"]) == 1 and "helper.lua" in d["segments"][1]["forced"][0]'
assert_json run/manifest.json 'sorted(s["path"].split("/")[-1] for s in d["config"]["scripts"]) == ["helper.lua", "mine.lua", "rows.lua", "shout.lua"]'
assert_json run/traces.jsonl 'sorted(q["query_id"] for q in d) == ["r1", "r2", "r3", "r4"]'
cp run/manifest.json forced.json

step "and from then on that is the file"
expect_exit 0 agent resume run --rerun all --base-url "$BASE_URL"
no_err "force"
stop_fake

end_test
