# S-1, S-4, P-8, P-9, P-13, P-14 and P-15 in the sandbox: what a program of a tool may do to get out.  Each attempt is a query of
# one run, sixteen in flight; all are held, all queries end, and nothing of any is left.
. "$(dirname "$0")/lib.sh"

can_confine || {
    echo "no sandbox can be made here: $(cat bwrap.err)"
    expect_exit 0 agent doctor --model demo
    check_out sandbox
    end_test
    exit 0
}

ATTEMPTS="tcp tcp_far udp abstract_socket interfaces kill_outside kill_all see_processes parent_environ own_environ
parent_memory parent_root home dotdot symbolic_link hard_link descriptors device_file write_system write_sysctl mount
new_namespace user_namespace session_keys io_uring vsock other_interface chroot ptrace setuid terminal raise_limits
memory memory_together deep_folders disk_tmp disk_shm fork_bomb orphan term_ignored flood"
# A sanitized build gives its programs no limit of address space.
[ -z "${IPW_SANITIZE-}" ] || ATTEMPTS=$(echo $ATTEMPTS | sed 's/ memory / /')
mkdir -p "$WORK/home/.ssh"
echo canary >"$WORK/home/.ssh/id"
sleep 600 &
OUTSIDE=$!
FAKES="$FAKES $OUTSIDE"
cat >listen.py <<'PY'
import socket, sys, time
s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen(8)
print(s.getsockname()[1], flush=True)
time.sleep(600)
PY
mkfifo port.fifo
python3 listen.py >port.fifo &
FAKES="$FAKES $!"
read -r PORT <port.fifo
for attempt in $ATTEMPTS; do
    printf '{"question":"%s","answer":"held"}\n' "$attempt"
done >rows.jsonl
cat >escape.lua <<EOF2
local fs, llm, proc = require "ipw.fs", require "ipw.llm", require "ipw.proc"
local source = [==[
$(cat "$IPW_SOURCE_DIR/tests/e2e/escapes.py")
]==]
return {
  name = "escape",
  run = function(query)
    llm.chat { messages = { { role = "user", content = query.prompt } } }
    local name = query.prompt:match("%f[%w_]([%w_]+)%f[^%w_]")
    fs.write("escapes.py", source)
    local seconds = name == "term_ignored" and 1 or 30
    local r, why = proc.run { "python3", "escapes.py", query.prompt:match("[%w_]+"), "$WORK/home/.ssh/id",
      "$OUTSIDE", "$PORT", seconds = seconds, output = "64K", memory = name == "memory_together" and "256M" or nil }
    if name == "deep_folders" then return why and why:find("more than 64 deep", 1, true) and "held" or "ESCAPED" end
    if not r then return "not started: " .. why end
    if name == "memory_together" then return r.signal == 9 and not r.timed_out and "held" or "ESCAPED" end
    if r.stdout:find("ESCAPED", 1, true) then return r.stdout end
    return r.stdout:find("held", 1, true) and "held" or
      ("silent: code %s, signal %s: %s"):format(r.code, r.signal, r.stderr)
  end,
}
EOF2
start_fake --bench 0

step "every attempt is held"
OPENAI_API_KEY=canary-key expect_exit 0 agent run escape.lua --dataset rows.jsonl --base-url "$BASE_URL" \
    --model fake-model --concurrency 16 --output run
assert_eq "$(json run/traces.jsonl 'len(d)')" "$(wc -l <rows.jsonl)"
assert_eq "$(json run/traces.jsonl '[(q["query_text"][:30], q["answer"]) for q in d if q["answer"] != "held"
    and not q["query_text"].startswith("kill_all")]')" "[]"
assert_json run/manifest.json 'd["config"]["sandbox"] in ("bubblewrap", "bubblewrap+cgroup")'

step "nothing is left, nobody outside was touched"
kill -0 "$OUTSIDE" || fail "the process outside has gone"
! pgrep -x ipw-orphan >/dev/null || fail "an orphan lives"
! pgrep -f 'escapes.py' >/dev/null || fail "a program lives: $(pgrep -af escapes.py)"
assert_eq "$(cat "$WORK/home/.ssh/id")" canary

step "many calls leave no zombie, no file and no descriptor, and a killed runner no process (IPW_CALLS=10000: so many)"
python3 "$IPW_SOURCE_DIR/tests/drill/tool_drill.py" --agent "$IPW_AGENT" --calls "${IPW_CALLS:-100}" \
    --kills "${IPW_KILLS:-20}" >out 2>err || fail "the drill of tools"

step "--read shows a folder, and --unsafe-tools takes the wall away"
cat >look.lua <<EOF2
local proc = require "ipw.proc"
return { name = "look", about = "Looks.", input = {}, needs = { "proc" }, run = function()
  local r, why = proc.run { "cat", "$WORK/home/.ssh/id" }
  return r and ("code %s: %s"):format(r.code, r.stdout) or why
end }
EOF2
expect_exit 0 agent tool ./look.lua '{}'
check_out "code 1: "
expect_exit 0 agent tool ./look.lua '{}' --read "$WORK/home/.ssh"
check_out "code 0: canary"
expect_exit 0 agent tool ./look.lua '{}' --unsafe-tools
check_out "code 0: canary"
expect_exit 3 agent tool ./look.lua '{}' --no-proc
check_err "switched off by --no-proc"

step "how a program ended is told as without a sandbox"
cat >ends.lua <<'EOF2'
local proc = require "ipw.proc"
return { name = "ends", about = "Ends.", input = { { "how", "string", "How." } }, needs = { "proc" },
  run = function(args)
    local r, why = proc.run { "sh", "-c", args.how, seconds = 5 }
    return r and ("code %s, signal %s"):format(r.code, r.signal) or why
  end }
EOF2
expect_exit 0 agent tool ./ends.lua '{"how":"exit 3"}'
check_out "code 3, signal nil"
expect_exit 0 agent tool ./ends.lua '{"how":"kill -9 $$"}'
check_out "code nil, signal 9"
printf '#!/nowhere/sh\n' >bad.sh
chmod +x bad.sh
cat >missing.lua <<EOF2
local proc = require "ipw.proc"
return { name = "missing", about = "Starts.", input = { { "what", "string", "What." } }, needs = { "proc" },
  run = function(args) return select(2, proc.run { args.what }) or "it ran" end }
EOF2
expect_exit 0 agent tool ./missing.lua '{"what":"no-such-program"}'
check_out "no-such-program: No such file or directory"
expect_exit 0 agent tool ./missing.lua "{\"what\":\"$WORK/bad.sh\"}"
check_out "bad.sh: No such file or directory"

step "doctor tries to escape"
expect_exit 0 agent doctor --model demo
check_out "bubblewrap: no escape in five attempts"

end_test
