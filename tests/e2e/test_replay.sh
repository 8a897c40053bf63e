# A hermetic replay of the bundled sample's run is the run again, byte for byte, without a socket, a
# process or a file outside of its folder; a record that was tampered with is told where and how.
. "$(dirname "$0")/lib.sh"

step "the record"
cp -r "$IPW_SOURCE_DIR/agents" .
expect_exit 0 agent run agents/react.lua --dataset gaia --model demo -o record -q
expect_exit 0 agent run agents/react.lua --dataset gaia --model demo --limit 2 -o short -q # quick to replay

cat >edit.py <<'EDIT'
"""edit.py WHAT [ARG]: short/ with one change, as edited/."""
import json, shutil, sys
shutil.rmtree("edited", ignore_errors=True)
shutil.copytree("short", "edited")
what, arg = sys.argv[1], (sys.argv[2:] or [""])[0]
lines = open("edited/events.jsonl", encoding="utf-8").read().split("\n")[:-1]
docs = [json.loads(line) for line in lines]
def put(i): lines[i] = json.dumps(docs[i], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
def find(kind, nth=0): return [i for i, d in enumerate(docs) if d["event"] == kind and d["query"] == 1][nth]
if what == "prompt":
    i = find("lm_inference_start")
    message = docs[i]["data"]["messages"][1]
    message["content"] = message["content"].replace("one hour", "one houR", 1)
    put(i)
elif what == "result":
    i = find("tool_call_end")
    docs[i]["data"]["content"] = docs[i]["data"]["content"].replace("36 rows", "37 rows", 1)
    put(i)
elif what == "answer":
    i = find("query_end")
    docs[i]["data"]["response"] = "42"
    put(i)
elif what == "drop":
    del lines[find(arg)]
elif what == "hostile":
    # a trace from a stranger that names files, tools and servers of its own
    manifest = json.load(open("edited/manifest.json"))
    manifest["config"].update(agent_file="edited/evil.lua", agent="../../evil", tools=["edited/evil.lua"],
                              client_base_url="http://127.0.0.1:9/v1", dataset="/etc/passwd")
    json.dump(manifest, open("edited/manifest.json", "w"))
    open("edited/evil.lua", "w").write('return { name = "evil", run = function() return "evil" end }')
open("edited/events.jsonl", "w", encoding="utf-8").write("\n".join(lines) + "\n")
EDIT

# diverges WHAT... : the edited record is refused with exit status 4; what is said is in err.
diverges() {
    step "edited: $*"
    python3 edit.py "$@" || fail "edit.py"
    rm -rf again
    expect_exit 4 agent replay edited --mode hermetic -o again
    check_err "query d91e3f72-1fcb-4971-9744-94d6493c9d5c (1)"
    check_out "1 query diverged"
    assert_json again/replay.json 'd["diverged"] == 1 and d["divergences"][0]["query_index"] == 1'
}

step "identical"
trace=
command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null &&
    [ -z "${IPW_SANITIZE-}" ] && trace="strace -f -qq -o calls -e trace=network,process,openat,creat,mkdir,rename,unlink"
mkdir cwd && cd cwd || fail "cwd"
expect_exit 0 $trace "${IPW_CONFINED:-$IPW_AGENT}" replay ../record --mode hermetic -o again
cd .. || fail "cd"
check_out "22 queries"
check_out "identical to the saved run"
cmp record/events.jsonl cwd/again/events.jsonl || fail "events differ"
cmp record/traces.jsonl cwd/again/traces.jsonl || fail "traces differ"
assert_json cwd/again/replay.json 'd["identical"] and d["queries"] == 22 and d["tool_calls"] > 10'
assert_json cwd/again/manifest.json 'd["replay"]["mode"] == "hermetic" and d["replay"]["agent_unchanged"]'
assert_json cwd/again/summary.json 'd["totals"]["resolved"] > 10'
if [ -n "$trace" ]; then
    step "system calls"
    # Threads of this process are no processes; the first execve is the program itself.
    grep -vE 'CLONE_THREAD|^[0-9]* *(---|[+][+][+])|openat|exit|wait|mkdir|rename|unlink' cwd/calls | tail -n +2 >cwd/others
    [ ! -s cwd/others ] || fail "calls: $(head -3 cwd/others)"
    grep -E 'O_WRONLY|O_RDWR|O_CREAT' cwd/calls | grep -vE '"(again|/[^"]*/cwd/again|/dev/null)|ENOENT' >cwd/written
    [ ! -s cwd/written ] || fail "files: $(head -3 cwd/written)"
    [ "$(ls cwd)" = "$(printf 'again\ncalls\nothers\nwritten')" ] || fail "files: $(ls cwd)"
fi

step "watched"
expect_exit 0 agent replay record --follow --query d91e3f72-1fcb-4971-9744-94d6493c9d5c
check_out "question   The attached file"
check_out "read_file: ok"
check_out "answered, correct: 1858"
head -c -20 record/events.jsonl >torn && mkdir live && mv torn live/events.jsonl
expect_exit 0 agent replay live --follow
check_out "d91e3…9d5c"
exec 9<>live/lock && flock 9
"$IPW_AGENT" replay live --follow >watched &
watcher=$!
tail -c 20 record/events.jsonl >>live/events.jsonl # the run ends: so does who watches it
wait $watcher || fail "the watcher"
exec 9>&-
assert_contains watched "answered, correct: 1858"

diverges prompt
check_err "turn 1: message 2 (user) of the request differs at messages[1].content, byte "
check_err "one houR"
diverges result
check_err "turn 2: message 4 (user) of the request differs at messages[3].content, byte "
check_err "37 rows"
diverges answer
check_err "the answer differs"
diverges drop tool_call_end
check_err "turn 1: an event is missing from the saved run"
check_err "waits for the end of span 2"
diverges drop tool_call_start
check_err "now     tool_call_start read_file, span 2"
diverges drop lm_inference_start
check_err "now     the agent sends a request (lm_inference_start)"
diverges drop lm_inference_end
check_err "waits for a reply (lm_inference_end of span 1)"
diverges drop query_end
check_err "the agent is over (query_end)"

step "no start"
python3 edit.py drop query_start && rm -rf again
expect_exit 4 agent replay edited --mode hermetic -o again
check_err "no query_start comes before it"

step "a changed agent"
sed 's/You have at most %d steps/You have %d steps at most/' agents/react.lua >changed.lua
rm -rf again
expect_exit 4 agent replay short --mode hermetic --agent changed.lua -o again
check_err "is not the file of the saved run"
check_err "message 1 (system) of the request differs"
assert_json again/traces.jsonl 'len(d) == 2 and all(t["outcome"] == "diverged" for t in d)'

step "a stranger's trace"
python3 edit.py hostile && rm -rf again
expect_exit 2 agent replay edited --mode hermetic -o again
check_err "Name the file with --agent FILE"
expect_exit 2 agent replay edited --mode hermetic -o again --agent agents/react.lua
check_err "say which to load with --tools"
[ ! -e again ] || fail "a folder was made"
expect_exit 2 agent replay record --mode hermetc -o again
offers hermetic

step "an option of another mode is refused, not passed over"
while read -r mode option value of; do
    expect_exit 2 agent replay record --mode "$mode" $option ${value#-}
    one_message
    check_err "replay: $option goes with --mode $of"
    check_err "see ipw-agent replay --help"
done <<'EOF'
show --json - hermetic, tools or workload
show --output new hermetic, tools or workload
show --speed 2 workload
hermetic --speed 2 workload
tools --limit 1 show or workload
hermetic --follow - show
EOF

end_test
