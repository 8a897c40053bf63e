# S-1, S-4, P-8, P-9, P-13, P-14 and P-15 in the sandbox: what a program of a tool may do to get out.  All attempts are held, all
# calls end, and nothing of any is left.
. "$(dirname "$0")/lib.sh"

can_confine || {
    echo "no sandbox can be made here: $(cat bwrap.err)"
    expect_exit 0 agent doctor --model demo
    check_out sandbox
    end_test
    exit 0
}

# held FILE: all programs of the table (escapes.py) were run, and each was held.
held() {
    [ "$(sed -n 's/ programs, 0 do not hold.*//p' "$1")" -ge 200 ] || fail "$(cat "$1")"
}
mkdir -p own other
chmod 711 "$WORK"
chmod 755 other
cp "$IPW_SOURCE_DIR/tests/e2e/escapes.py" "$IPW_AGENT" other

step "none of the hostile programs reads, writes or stays"
(cd own && exec python3 ../other/escapes.py outside "$IPW_AGENT") >out 2>err || fail "$(cat out)"
held out

if [ "$(id -u)" = 0 ]; then
    chown 65534:65534 other
    as_other() { (cd other && exec setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/nonexistent "$@"); }
else
    as_other() { (cd other && exec "$@"); }
fi
if [ "$(id -u)" = 0 ] && as_other bwrap --unshare-all --ro-bind / / --proc /proc --dev /dev true 2>other.err; then
    step "nor as another user than root"
    as_other python3 escapes.py outside ./ipw-agent >out 2>err || fail "$(cat out)"
    held out
    mv other/drill-65534 held-as-other
elif [ "$(id -u)" = 0 ]; then
    echo "NOT CHECKED as another user than root: $(cat other.err)"
fi

step "without the wall many come through: the table looks at what is there; and nothing stays even then"
rc=0
as_other python3 escapes.py outside ./ipw-agent --unsafe-tools >out 2>err || rc=$?
[ "$rc" = 1 ] && [ "$(grep -c ': ESCAPED: ' out)" -ge 30 ] || fail "status $rc, and $(cat out err)"
if grep -E '^it lives|^a file stays|^outside was touched' out; then fail "left behind"; fi

step "many calls leave no zombie, no file and no descriptor, and a killed runner no process (IPW_CALLS=10000: so many)"
python3 "$IPW_SOURCE_DIR/tests/drill/tool_drill.py" --agent "$IPW_AGENT" --calls "${IPW_CALLS:-100}" \
    --kills "${IPW_KILLS:-20}" >out 2>err || fail "the drill of tools"

mkdir -p home/.ssh
echo canary >home/.ssh/id

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
