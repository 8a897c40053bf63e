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
    --dataset two.jsonl --model m --base-url "$BASE_URL" -o run -q
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
