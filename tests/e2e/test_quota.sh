# What a query keeps in its workspace has a limit, in both tiers, its child processes included; beyond it a write is a
# failure that the script reads.
. "$(dirname "$0")/lib.sh"

echo '{"question":"What is 40 + 2?","answer":"42"}' >rows.jsonl
cat >fill.lua <<'LUA'
local fs = require "ipw.fs"
return {
  name = "fill",
  run = function(query)
    local n, why, ok = 0, nil, true
    while ok do
      ok, why = fs.write("f" .. n, ("x"):rep(1 << 20))
      if ok then n = n + 1 end
    end
    local small, small_why = fs.write("f0", "smaller")
    local again = fs.write("f" .. n, ("x"):rep(1 << 19))
    return ("%d %s %s %s"):format(n, why, tostring(small or small_why), tostring(again))
  end,
}
LUA
cat >many.lua <<'LUA'
local fs = require "ipw.fs"
return {
  name = "many",
  run = function(query)
    for n = 0, 100 do
      local ok, why = fs.write("f" .. n, "")
      if not ok then return ("%d %s"):format(n, why) end
    end
  end,
}
LUA
cat >child.lua <<'LUA'
local fs, proc = require "ipw.fs", require "ipw.proc"
return {
  name = "child",
  run = function(query)
    local said = {}
    local function try(ok, why) said[#said + 1] = ok and "ok" or why end
    try(fs.write("first", "x"))
    -- One file is stopped by the kernel at what is left; several are found afterwards.
    local big = proc.run { "sh", "-c", "head -c 9000000 /dev/zero >big; wc -c <big; rm big" }
    said[#said + 1] = big and big.stdout:match("%d+") or "refused"
    proc.run { "sh", "-c", "for i in 1 2 3; do head -c 2000000 /dev/zero >part$i; done" }
    try(fs.write("second", "x"))
    try(proc.run { "true" })
    return table.concat(said, " | ")
  end,
}
LUA
cat >flood.lua <<'LUA'
local proc = require "ipw.proc"
return {
  name = "flood",
  run = function(query)
    local done, why = proc.run { "sh", "-c", "i=0; while :; do i=$((i+1)); head -c 1000000 /dev/zero >part$i; done",
      seconds = 60 }
    return tostring(done) .. " " .. why
  end,
}
LUA
start_fake --bench 0

step "bytes"
expect_exit 0 agent run ./fill.lua --dataset rows.jsonl --base-url "$BASE_URL" --model m --workspace-size 5M \
    --output run-fill
assert_json "run-fill/traces.jsonl" \
    'd[0]["response_text"] == "5 f5: the workspace is full: it may hold 5M in all (--workspace-size) true true"'
assert_json "run-fill/manifest.json" 'd["config"]["workspace_bytes"] == 5 << 20 and d["config"]["workspace_files"] == 10000'
step "files"
expect_exit 0 agent run ./many.lua --dataset rows.jsonl --base-url "$BASE_URL" --model m --workspace-files 7 \
    --output run-many
assert_json "run-many/traces.jsonl" \
    'd[0]["response_text"] == "7 f7: the workspace is full: it may hold 7 files in all (--workspace-files)"'
step "child processes"
expect_exit 0 agent run ./child.lua --dataset rows.jsonl --base-url "$BASE_URL" --model m --workspace-size 5M \
    --output run-child
assert_json "run-child/traces.jsonl" 'd[0]["response_text"] == "ok | 5242879 | second: the workspace is full: it may \
hold 5M in all (--workspace-size) | the workspace is full: it may hold 5M in all (--workspace-size)"'

step "a child that goes on to fill the workspace ends, with what it started"
expect_exit 0 agent run ./flood.lua --dataset rows.jsonl --base-url "$BASE_URL" --model m --workspace-size 5M --output flood
assert_json flood/traces.jsonl 'd[0]["response_text"] == "nil the workspace is full: it may hold 5M in all (--workspace-size)"'
! pgrep -f 'head -c 1000000 /dev/zero' >/dev/null || fail "the child goes on"

step "folders that are too deep to be counted end it as well, and nothing of them stays"
sed 's/i=0; while/i=0; for d in $(seq 70); do mkdir y; cd y; done; while/' flood.lua >deep.lua
mkdir tmp
TMPDIR="$WORK/tmp" expect_exit 0 agent run ./deep.lua --dataset rows.jsonl --base-url "$BASE_URL" --model m \
    --workspace-size 5M --output deep
assert_json deep/traces.jsonl 'd[0]["response_text"] == "nil the workspace cannot be measured: its folders are more than 64 deep"'
assert_eq "$(ls -A tmp)" ""

step "without an option there is one, too"
expect_exit 0 agent run ./fill.lua --lua-cpu 60s --dataset rows.jsonl --base-url "$BASE_URL" --model m --output plain
assert_json plain/traces.jsonl 'd[0]["response_text"].startswith("256 f256: the workspace is full: it may hold 256M in all")'

step "a replay has the run's"
expect_exit 0 agent replay run-fill --mode hermetic --agent fill.lua -o fill-again
expect_exit 0 agent replay run-many --mode hermetic --agent many.lua -o many-again

end_test
