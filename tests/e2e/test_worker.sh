# --untrusted: the agent's Lua runs in a confined process of its own, with the same API and the same
# trace; the attacks end there as they do in process, and a worker that dies ends its query alone.
. "$(dirname "$0")/lib.sh"
. "$IPW_SOURCE_DIR/tests/e2e/attacks.sh"

start_fake --bench 0
run() { # OUTPUT CODE ARGS...
    output=$1 code=$2
    shift 2
    expect_exit "$code" agent run "$@" --base-url "$BASE_URL" --model fake-model --output "$output"
}

step "every attack ends, and the queries beside it are answered"
write_attack_rows rows.jsonl
run attacks 0 "$IPW_SOURCE_DIR/tests/e2e/attacks.lua" --dataset rows.jsonl --untrusted \
    --concurrency 16 --lua-cpu 600ms --lua-memory 8M
check_attacks attacks
assert_json attacks/traces.jsonl "all(q['lua_peak_bytes'] <= 4 * 8 * 1024 * 1024 for q in d)"
assert_json attacks/manifest.json "d['config']['untrusted'] is True"

step "a worker sees no file, no other process, no environment, no network"
cat >nosy.lua <<'EOF2'
local ipw = require "ipw"
local data = require "ipw.core.data"
return { name = "nosy", run = function(query)
  for _, path in ipairs { "/etc/passwd", "/proc/self/environ", "rows.jsonl", "/" } do
    assert(not data.exists(path), path)
    assert(not data.rows(path), path)
  end
  assert(not require("ipw.core.script").source("/etc/passwd"))
  assert(not data.getenv("HF_HOME"))
  assert(not pcall(require, "ipw.core.nothing"))
  local tool = require "ipw.core.tool"
  assert(not pcall(tool.load, "/etc/passwd"))
  -- Paths lead to scripts below the script's folder, and to what the command line names.
  for _, path in ipairs { "/etc/passwd", "./keys.env", "./link.lua",
    SOURCE .. "/agents/tools/python.lua" } do
    local found, why = tool.find(path)
    assert(not found and (why:find("no script below", 1, true) or why:find "no such"), path .. tostring(why))
    assert(not pcall(tool.load, path) and KEY == nil, path)
  end
  assert(tool.find("./tools/near.lua") and tool.find("calculator") and tool.find("builtin:agents/tools/python.lua"))
  assert(tool.load(assert(tool.find(SOURCE .. "/agents/tools/final_answer.lua"))).name == "final_answer")
  local proc = require "ipw.proc"
  local ok, why = pcall(proc.run, { "true" })
  assert(not ok and tostring(why):find "untrusted", why)
  local fs = require "ipw.fs"
  assert(fs.write("note", "\0\xff bytes") and fs.read "note" == "\0\xff bytes")
  assert(fs.list()[1] == "note" and fs.size "note" == 8 and not fs.read "../rows.jsonl")
  -- What cannot cross says so.
  ok, why = pcall(ipw.sleep, print)
  assert(not ok and tostring(why):find "cannot leave", why)
  ok, why = pcall(ipw.sleep, "soon")
  assert(not ok and tostring(why):find "number expected", why)
  ok, why = pcall(ipw.sleep, -1)
  assert(not ok and tostring(why):find "zero or more", why)
  local running, most = 0, 0
  ipw.map({ 1, 2, 3 }, function()
    running = running + 1
    most = math.max(most, running)
    ipw.sleep(0.2)
    running = running - 1
  end)
  assert(most == 3, "branches wait one after the other")
  ok, why = pcall(ipw.map, { 1, 2 }, function(i) if i == 2 then error { code = "mine", message = "m" } end ipw.sleep(60) end)
  assert(not ok and why.code == "mine")
  ipw.note("found", { nothing = true })
  assert(type(ipw.budget()) == "table" and type(ipw.energy()) == "table")
  return "42"
end }
EOF2
echo '{"id":"one","question":"look around","answer":"42"}' >one.jsonl
sed -i "1i local SOURCE = '$IPW_SOURCE_DIR'" nosy.lua
mkdir -p tools
echo 'KEY = "secret"' >keys.env
echo 'return {}' >tools/near.lua
ln -s "$IPW_SOURCE_DIR/agents/tools/python.lua" link.lua
run nosy 0 nosy.lua --dataset one.jsonl --untrusted --tools "$IPW_SOURCE_DIR/agents/tools/final_answer.lua"
assert_json nosy/traces.jsonl "d[0]['outcome'] == 'answered'"
grep -q '"found"' nosy/events.jsonl || fail "the note is not in the record"

step "the agents that come along give the same trace, apart from times"
stop_fake
"$IPW_AGENT" show datasets/gaia-sample >/dev/null 2>&1
for agent in react tools single; do
    for way in in apart; do
        flags=
        [ $way = apart ] && flags="--untrusted --allow-proc"
        # shellcheck disable=SC2086 # several words
        expect_exit 0 agent run $agent --dataset gaia --model demo --limit 6 --concurrency 2 \
            --telemetry none --output $agent-$way $flags
    done
    python3 - $agent-in $agent-apart <<'PY' || fail "$agent: the traces differ"
import json, re, sys, trace_lines
TIMES = re.compile(r"(_ns|_s|_ms|seconds|_peak_bytes)$|latency|time|per_sec|per_token|endpoint|started_at")
def clean(x):
    if isinstance(x, dict):
        return {k: clean(v) for k, v in x.items() if not TIMES.search(k) and k != "metrics"}
    if isinstance(x, list):
        return [clean(v) for v in x]
    return x
def read(path):
    out = {}
    for line in open(path + "/traces.jsonl", encoding="utf-8"):
        q = trace_lines.loads(line)
        out[q["query_id"]] = clean(q)
    return out
a, b = (read(p) for p in sys.argv[1:])
def differ(x, y, at=""):
    if type(x) != type(y): print(at, x, y); return
    if isinstance(x, dict):
        for k in sorted(set(x) | set(y)): differ(x.get(k), y.get(k), at + "." + k)
    elif isinstance(x, list) and len(x) == len(y):
        for i, (u, v) in enumerate(zip(x, y)): differ(u, v, f"{at}[{i}]")
    elif x != y: print(at, repr(x)[:300], repr(y)[:300])
differ(a, b)
assert len(a) == 6 and all(q["num_turns"] for q in a.values())
sys.exit(a != b)
PY
done

step "a worker that is killed ends its query alone"
start_fake --bench 50
cat >slow.lua <<'EOF2'
local llm = require "ipw.llm"
local tools = require "ipw.tools"
return { name = "slow", run = function(query)
  llm.chat { messages = { llm.user(query.prompt) } }
  if query.prompt:find "victim" then
    local kit <close> = tools.open { { name = "wait", about = "Waits.", input = {},
      run = function() require("ipw.fs").write("here", "x") require("ipw").sleep(60) end } }
    kit:invoke("wait", {})
  end
  return "42"
end }
EOF2
{
    echo '{"id":"victim","question":"victim","answer":"42"}'
    for i in 1 2 3 4; do echo "{\"id\":\"good-$i\",\"question\":\"good\",\"answer\":\"42\"}"; done
} >victims.jsonl
"$IPW_AGENT" run slow.lua --dataset victims.jsonl --untrusted --concurrency 5 --base-url "$BASE_URL" \
    --model fake-model --output victims >out 2>err &
RUN=$!
# Only the victim is left when the others are done.
tries=0
until [ -f victims/traces.jsonl ] && [ "$(wc -l <victims/traces.jsonl)" -eq 4 ] &&
    grep -q '"wait"' victims/events.jsonl; do
    tries=$((tries + 1))
    [ $tries -lt 600 ] || fail "the run does not get there"
    sleep 0.1
done
workers=$(for task in /proc/$RUN/task/*; do cat "$task/children"; done)
n=0
for pid in $workers; do
    grep -q __lua "/proc/$pid/cmdline" 2>/dev/null && n=$((n + 1)) && victim=$pid
done
assert_eq $n 1 "(workers left)"
kill -KILL "$victim"
wait $RUN || fail "the run failed"
assert_json victims/traces.jsonl "[q['outcome'] for q in d if q['query_id'] == 'victim'] == ['worker']"
assert_json victims/traces.jsonl "'signal 9' in [q['error'] for q in d if q['query_id'] == 'victim'][0]"
assert_json victims/traces.jsonl "len(d) == 5 and all(q['is_resolved'] for q in d if q['query_id'] != 'victim')"
expect_exit 0 agent ledger victims

step "a cancelled worker ends in time, its close variables run"
cat >stubborn.lua <<'EOF2'
local ipw, fs = require "ipw", require "ipw.fs"
return { name = "stubborn", run = function()
  local _ <close> = setmetatable({}, { __close = function() ipw.note("closed") end })
  while true do pcall(ipw.sleep, 0.01) end
end }
EOF2
run stubborn 1 stubborn.lua --dataset one.jsonl --untrusted --query-timeout 300ms
assert_json stubborn/traces.jsonl "d[0]['outcome'] == 'timeout'"

step "a file that cannot be loaded is told before the run begins"
echo 'return { name = "x", run = 5 }' >wrong.lua
run wrong 3 wrong.lua --dataset one.jsonl --untrusted
check_err "no function 'run'"
echo 'while true do end' >hang.lua
run hang 3 hang.lua --dataset one.jsonl --untrusted
check_err "CPU limit"
echo 'return {' >broken.lua
run broken 3 broken.lua --dataset one.jsonl --untrusted
check_err "broken.lua:"

end_test
