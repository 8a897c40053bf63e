# `ipw-agent mcp`: a client asks about saved runs, line by line; our own MCP client is another one.
. "$(dirname "$0")/lib.sh"
expect_exit 0 agent run single --dataset gaia-sample --limit 2 --model demo --telemetry none -o "runs/first one" -q
expect_exit 0 agent run react --dataset gaia-sample --limit 2 --model demo --telemetry none -o runs/second -q
id=$(json "runs/first one/traces.jsonl" 'd[0]["query_id"]')
find runs -type f -exec sha256sum {} + | sort >before

step "a session"
cat >client.py <<'PY'
import json, os, subprocess, sys
server = subprocess.Popen([sys.argv[1], "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
number = 0

def send(message):
    server.stdin.write((message if isinstance(message, str) else json.dumps(message)) + "\n")

def ask(method, **params):
    global number
    number += 1
    send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
    got = json.loads(server.stdout.readline())
    assert got["id"] == number and got["jsonrpc"] == "2.0", got
    return got

def tool(name, **arguments):
    result = ask("tools/call", name=name, arguments=arguments)["result"]
    assert len(result["content"]) == 1 and result["content"][0]["type"] == "text", result
    return result.get("isError", False), result["content"][0]["text"]

hello = ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "t", "version": "1"})["result"]
assert hello["protocolVersion"] == "2025-06-18" and hello["serverInfo"]["name"] == "ipw-agent", hello
send({"jsonrpc": "2.0", "method": "notifications/initialized"})
assert ask("initialize", protocolVersion="1999-01-01")["result"]["protocolVersion"] == "2025-11-25"
assert ask("server/discover")["result"]["supportedVersions"] == ["2026-07-28"]
assert ask("ping")["result"] == {}
listed = ask("tools/list")["result"]["tools"]
assert all(t["inputSchema"]["type"] == "object" and t["annotations"]["readOnlyHint"] for t in listed)

wrong, text = tool("list_runs")
lines = text.split("\n")
assert not wrong and len(lines) == 2 and all("/runs/" in line for line in lines), text
assert lines == sorted(lines, reverse=True), text
first, second = "runs/first one", "./runs/second"
for name, arguments, words in (
        ("show_run", {"run": first}, "gaia-sample"), ("ledger", {"run": second}, "2 queries"),
        ("show_query", {"run": first, "query": sys.argv[2][:8]}, "answer"), ("analyze", {"run": second}, "accuracy"),
        ("compare", {"runs": [first, second]}, "2 queries"), ("validate", {"run": first}, "first one")):
    wrong, text = tool(name, **arguments)
    assert not wrong and words in text, (name, text)
wrong, text = tool("summary", run=second)
assert not wrong and json.loads(text)["totals"]["queries"] == 2, text

for name, arguments, words in (
        ("show_run", {"run": "--help"}, "no such run"), ("show_run", {}, "run is missing"),
        ("show_run", {"run": first, "x": 1}, "no argument is named x"), ("show_run", {"run": 7}, "run: expected text"),
        ("compare", {"runs": [first]}, "runs: expected a list of 2 or more"),
        ("compare", {"runs": [first, 1]}, "runs[2]: expected text"), ("ledger", {"run": "nowhere"}, "No such file"),
        ("show_query", {"run": first, "query": "zzz"}, "zzz")):
    wrong, text = tool(name, **arguments)
    assert wrong and words in text, (name, text)
for name, arguments in (
        ("list_runs", {"folder": "/"}), ("list_runs", {"folder": ".."}), ("summary", {"run": "/elsewhere/run"}),
        ("show_run", {"run": "runs/../../other"}), ("compare", {"runs": [first, "/elsewhere/run"]}),
        ("validate", {"run": os.getcwd() + "x"})):
    wrong, text = tool(name, **arguments)
    assert wrong and ": not below " in text, (name, text)
wrong, text = tool("summary", run=os.getcwd() + "//./runs/second/")
assert not wrong, text
assert ask("tools/call", name="rm")["error"]["code"] == -32602
assert ask("resources/list")["error"]["code"] == -32601
send("nonsense")
assert json.loads(server.stdout.readline())["error"]["code"] == -32700
send("[]")
assert json.loads(server.stdout.readline())["error"]["code"] == -32600
send("")
send({"jsonrpc": "2.0", "id": 99, "result": {}})
assert ask("ping")["result"] == {}
server.stdin.close()
assert server.wait(20) == 0
print("all answered")
PY
expect_exit 0 python3 client.py "$IPW_AGENT" "$id"
check_out "all answered"

step "--root opens another folder"
mkdir empty
ask='{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_runs","arguments":{"folder":"runs"}}}'
(cd empty && echo "$ask" | "$IPW_AGENT" mcp --root ..) >out || fail "mcp --root"
check_out "/runs/second"
expect_exit 1 agent mcp --root nowhere
check_err "nowhere: No such file"

step "our own client"
expect_exit 0 agent list tools --mcp "exec '${IPW_CONFINED:-$IPW_AGENT}' mcp"
check_out "mcp__ipw-agent__show_query"

step "over HTTP"
cat >visitor.py <<'PY'
import concurrent.futures, json, subprocess, sys, urllib.error, urllib.request
server = subprocess.Popen([sys.argv[1], "mcp", "--listen", "0"], stdout=subprocess.PIPE, text=True)
word, url = server.stdout.readline().split()
assert word == "listening" and url.startswith("http://127.0.0.1:") and url.endswith("/mcp"), url

def send(body, method="POST", path="", **headers):
    headers = {k.replace("_", "-"): v for k, v in headers.items()} | {"Content-Type": "application/json"}
    asked = urllib.request.Request(url + path, body if body is None else body.encode(), headers, method=method)
    try:
        with urllib.request.urlopen(asked, timeout=60) as r: return r.status, r.headers, r.read().decode()
    except urllib.error.HTTPError as e: return e.code, e.headers, e.read().decode()

def ask(number, method, **params):
    status, headers, text = send(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}))
    assert status == 200 and headers["Content-Type"] == "application/json", (status, text)
    got = json.loads(text)
    assert got["id"] == number, got
    return got

assert ask(1, "initialize", protocolVersion="2025-06-18")["result"]["protocolVersion"] == "2025-06-18"
assert send('{"jsonrpc":"2.0","method":"notifications/initialized"}')[0::2] == (202, "")
assert len(ask(2, "tools/list")["result"]["tools"]) == 8
with concurrent.futures.ThreadPoolExecutor(12) as pool:  # more than are answered at a time
    many = [pool.submit(ask, n, "tools/call", name="summary", arguments={"run": "runs/second"}) for n in range(12)]
    assert all('"queries"' in m.result()["result"]["content"][0]["text"] for m in many)
assert ask(3, "tools/call", name="rm")["error"]["code"] == -32602
assert json.loads(send("nonsense")[2])["error"]["code"] == -32700
for status, got in ((404, send("{}", path="/x")), (405, send(None, "GET")), (405, send(None, "DELETE")),
                    (400, send("{}", MCP_Protocol_Version="1999-01-01")), (403, send("{}", Origin="https://evil.example")),
                    (403, send("{}", Host="evil.example")), (200, send("{}", Origin="http://localhost:3000"))):
    assert got[0] == status, (status, got)
server.terminate()
server.wait(20)
print("all answered")
PY
expect_exit 0 python3 visitor.py "$IPW_AGENT"
check_out "all answered"
expect_exit 1 agent mcp --listen 0.0.0.0:0
check_err "--listen 0.0.0.0:0: host '0.0.0.0': other machines could read your runs there"
"$IPW_AGENT" mcp --listen 0 >listening &
FAKES="$FAKES $!"
await_lines listening
expect_exit 0 agent list tools --mcp "$(sed 's/listening //' listening)"
check_out "mcp__ipw-agent__show_query"

step "nothing was written"
find runs -type f -exec sha256sum {} + | sort | cmp -s - before || fail "a file of a run has changed"
end_test
