# MCP servers as tools: seven captured exchanges played by a fake server, over stdio and HTTP; a run with two of them,
# and its replay without; wrong settings.
. "$(dirname "$0")/lib.sh"

FAKE_MCP=$IPW_SOURCE_DIR/tests/fake/mcp.py
CAPTURES=$IPW_SOURCE_DIR/tests/data/mcp
suite() { # FILE "LUA BEFORE IT"
    printf '%s\n' "$2" | cat - "$IPW_SOURCE_DIR/tests/e2e/$1" >"suite_$1"
}
capture() { # NAME PREFIX SERVER
    suite mcp_capture.lua "local prefix, calls = '$2', require('ipw.json').decode [=====[
$(python3 "$FAKE_MCP" calls "$CAPTURES/$1.jsonl")]=====]"
    expect_exit 0 agent test suite_mcp_capture.lua --mcp "$3"
    check_out " 0 failed"
}

step "captures over stdio"
for name in everything:everything filesystem:secure-filesystem-server memory:memory-server \
    modern-2026-07-28:eco-modern modern-server-legacy-client:eco-modern; do
    file=${name%:*}-stdio
    capture "$file" "mcp__${name#*:}__" "exec python3 '$FAKE_MCP' stdio '$CAPTURES/$file.jsonl'"
done

step "captures over HTTP"
for name in everything:everything modern-2026-07-28:eco-modern; do
    file=${name%:*}-http
    rm -f http.out
    mkfifo http.out
    python3 "$FAKE_MCP" http "$CAPTURES/$file.jsonl" >http.out &
    FAKES="$FAKES $!"
    read -r word port <http.out
    [ "$word" = listening ] || fail "no fake server"
    capture "$file" "mcp__${name#*:}__" "http://127.0.0.1:$port/mcp"
done

step "a run: the settings of a file, its keys in no file of ours"
cat >servers.json <<JSON
{"mcpServers": {
  "notes": {"command": "python3", "args": ["$FAKE_MCP", "stdio", "$CAPTURES/memory-stdio.jsonl"],
            "env": {"NOTES_KEY": "canary-\${NOTES_PART}-key", "WHERE": "\${IPW_WORKSPACE}/x"}},
  "off": {"command": "false", "disabled": true},
  "env": {"command": "python3", "args": ["$WORK/env.py"], "env": {"NOTES_KEY": "canary-\${NOTES_PART}-key"}}}}
JSON
cat >env.py <<'PY'
import json, os, sys
for line in sys.stdin:
    m = json.loads(line)
    if m["method"] == "initialize":
        r = {"protocolVersion": "2024-11-05", "capabilities": {}, "serverInfo": {"name": "e", "version": "1"}}
    elif m["method"] == "tools/list":
        r = {"tools": [{"name": "show", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}]}
    elif m["method"] == "tools/call":
        open("traceparents", "a").write(m["params"]["_meta"]["traceparent"] + "\n")
        r = {"content": [{"type": "text", "text": " ".join(sorted(os.environ)) + " %d" % len(os.environ["NOTES_KEY"])}]}
    else:
        r = None
    if r is not None:
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
PY
cat >calls.llm <<'LLM'
call mcp__notes__create_entities {"entities": [{"name": "ipw", "entityType": "project", "observations": ["measures joules"]}]}
call mcp__env__show {}
call calculator {"expression": "6 * 7"}
---
text done
---
call mcp__notes__search_nodes {"query": "joules"}
---
text done
LLM
printf '{"question":"one","answer":"done"}\n{"question":"two","answer":"done"}\n' >two.jsonl
start_fake --script calls.llm
NOTES_PART=secret OTHER_TOKEN=canary-other-token expect_exit 0 agent run tools --mcp-config servers.json \
    --dataset two.jsonl --model fake-model --base-url "$BASE_URL" -o run -q
stop_fake
assert_eq "$(json run/events.jsonl 'sorted(e["name"] + " " + e["outcome"] for e in d if e["event"] == "tool_call_end")')" \
    '["calculator ok", "mcp__env__show ok", "mcp__notes__create_entities ok", "mcp__notes__search_nodes ok"]'
assert_json run/manifest.json 'd["config"]["tools"] == ["+", "mcp:1", "mcp:2"]'
assert_json run/manifest.json 'len(d["config"]["mcp"]) == 2 and d["config"]["mcp"][0].startswith("python3 ")'
shown=$(json run/events.jsonl '[e["data"]["content"] for e in d if e["event"] == "tool_call_end" and e["name"] == "mcp__env__show"][0]')
assert_matches_text() { echo "$1" | grep -q "$2" || fail "no $2 in $1"; }
assert_matches_text "$shown" 'HOME IPW_TOOL_ID IPW_WORKSPACE .*NOTES_KEY PATH 17'
! echo "$shown" | grep -q 'OTHER_TOKEN\|OPENAI' || fail "a key of ours reached the server: $shown"
! grep -rq 'canary-' run || fail "a key is in the run: $(grep -rl canary- run)"

step "a server is told its caller: the query's span in an export of the run"
expect_exit 0 agent export run --format otlp --output trace.jsonl
python3 - trace.jsonl traceparents <<'PY' || fail "not the ids of the export: $(cat traceparents)"
import json, sys
spans = [s for line in open(sys.argv[1]) for r in json.loads(line)["resourceSpans"] for q in r["scopeSpans"] for s in q["spans"]]
agents = ["00-%s-%s-01" % (s["traceId"], s["spanId"]) for s in spans if s["name"].startswith("invoke_agent")]
told = open(sys.argv[2]).read().split()
assert told and len(agents) == 2 and set(told) <= set(agents), (told, agents)
PY

step "the replay asks no server"
rm servers.json
expect_exit 0 agent replay run --mode hermetic -o again
cmp run/events.jsonl again/events.jsonl || fail "events differ"
check_out "identical to the saved run"

step "a run starts a server once, before its first query, and queries share it"
cat >echo.llm <<'LLM'
unless again:
always
call mcp__bad__echo {"text": "hi"}
---
always
text done
LLM
for i in $(seq 40); do echo '{"question":"say it","answer":"done"}'; done >forty.jsonl
start_fake --script echo.llm
expect_exit 0 agent run tools --mcp "exec python3 '$FAKE_MCP' bad none '$WORK/starts'" --dataset forty.jsonl \
    --concurrency 8 --model fake-model --base-url "$BASE_URL" -o shared -q
assert_file_lines starts 1
echoes() { json "$1/events.jsonl" 'sorted(e["outcome"] for e in d if e["event"] == "tool_call_end")'; }
assert_eq "$(echoes shared)" "$(python3 -c 'import json; print(json.dumps(["ok"] * 40))')"
assert_json shared/events.jsonl 'not [e for e in d if e.get("name") == "starting MCP server"]'

step "--mcp-per-query: each query starts its own, in a span of its own name"
rm starts
expect_exit 0 agent run tools --mcp "exec python3 '$FAKE_MCP' bad none '$WORK/starts'" --mcp-per-query \
    --dataset forty.jsonl --limit 3 --model fake-model --base-url "$BASE_URL" -o own -q
assert_file_lines starts 4 # one listed the tools, before the first query
assert_json own/events.jsonl 'len([e for e in d if e["event"] == "span_end" and e["name"] == "starting MCP server"]) == 3'
assert_json own/manifest.json 'd["config"]["mcp_per_query"]'
expect_exit 0 agent replay own --mode hermetic -o own_again
cmp own/events.jsonl own_again/events.jsonl || fail "events differ"

step "a server that works in the query's folder is each query's own"
rm starts
expect_exit 0 agent run tools --mcp "exec python3 '$FAKE_MCP' bad none '$WORK/starts' \${IPW_WORKSPACE}" \
    --dataset forty.jsonl --limit 3 --model fake-model --base-url "$BASE_URL" -o folders -q
assert_file_lines starts 4
stop_fake

step "a server that cannot list its tools ends the run before it begins"
expect_exit 1 agent run tools --mcp "exec python3 '$FAKE_MCP' bad dies_at_list" --dataset two.jsonl --model demo -o none
check_err "the MCP server 'exec python3"
[ ! -e none ] || fail "a folder was made"

step "a query's end disturbs no other call to its server; one that dies is started again for the next call"
cat >sharing.lua <<'LUA'
local tools, ipw = require "ipw.tools", require "ipw"
return {
  name = "sharing",
  run = function(query, cfg)
    local kit <close> = tools.open(cfg.tools)
    local function say(tool, text) return (kit:invoke("mcp__" .. tool .. "__echo", { text = text })) end
    if query.prompt == "is ended" then
      pcall(ipw.map, { 1, 2 }, function(i)
        if i == 1 then say("late", "fault") end
        ipw.sleep(0.3)
        error "enough"
      end)
      return "ended"
    elseif query.prompt == "neighbour" then
      ipw.sleep(0.1)
      return say("late", "hi")
    end
    local said = {}
    for i = 1, 6 do said[i] = say("dies", i % 2 == 1 and "fault" or "hi") end
    return table.concat(said, "; ")
  end,
}
LUA
for prompt in "is ended" neighbour dies; do printf '{"question":"%s"}\n' "$prompt"; done >sharing.jsonl
mkdir told
cat >sharing.json <<JSON
{"mcpServers": {
  "late": {"command": "python3", "args": ["$FAKE_MCP", "bad", "late"], "env": {"TOLD": "$WORK/told"}},
  "dies": {"command": "python3", "args": ["$FAKE_MCP", "bad", "dies", "$WORK/deaths"]}}}
JSON
expect_exit 0 agent run ./sharing.lua --mcp-config sharing.json --dataset sharing.jsonl --concurrency 2 --model demo \
    -o sharing -q
died="error: the server of this tool has ended: it ended with exit status 4: out of luck; again: hi"
assert_eq "$(json sharing/traces.jsonl 'sorted((q["query_id"], q["answer"]) for q in d)')" \
    "[[\"q0000\", \"ended\"], [\"q0001\", \"again: hi\"], [\"q0002\", \"$died; $died; $died\"]]"
assert_file_lines deaths 4
assert_eq "$(cat told/cancelled)" "the query was ended"

step "wrong settings"
expect_exit 2 agent run tools --mcp '' --dataset two.jsonl
check_err "expected a command or an address"
expect_exit 2 agent run tools --mcp 'x y' --no-proc --dataset two.jsonl
check_err "--no-proc forbids this server"
expect_exit 2 agent run tools --mcp https://example.org/mcp --no-web --dataset two.jsonl
check_err "--no-web forbids this server"
expect_exit 2 agent run tools --mcp http://user:secret@localhost/mcp --dataset two.jsonl
check_err "write no password into the address"
for wrong in '{"mcpServers":{"a":{}}}|mcpServers.a.command: expected either a command or a url' \
    '{"mcpServers":{"a":{"command":"x","args":[1]}}}|mcpServers.a.args: expected a list of texts' \
    '{"mcpServers":{"a":{"command":"x","env":{"K":"${NOT_SET}"}}}}|mcpServers.a.env: the variable NOT_SET is not set' \
    '{"mcpServers":{"a":{"url":"ftp://x"}}}|mcpServers.a.url: expected an address that begins with http' \
    '{"servers":{}}|expected an object mcpServers'; do
    echo "${wrong%%|*}" >wrong.json
    expect_exit 2 agent list tools --mcp-config wrong.json
    check_err "wrong.json: ${wrong#*|}"
done
echo '{"mcpServers":' >wrong.json
expect_exit 3 agent list tools --mcp-config wrong.json
check_err "wrong.json: at byte 15"

end_test
