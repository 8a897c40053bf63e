# The built-in tools in a run: each call is a span with its outcome, what changes something runs alone, and a hermetic
# replay answers all of them from the record, without a program and without a workspace.  A path that leads out is
# refused, told to the model, and counted (S-1).
. "$(dirname "$0")/lib.sh"

printf '{"question":"use them all","answer":"done"}\n' >one.jsonl
cat >all.llm <<'LLM'
call write_file {"path": "in/notes.txt", "content": "alpha\nbeta\n"}
call edit_file {"path": "in/notes.txt", "old": "beta", "new": "gamma"}
call edit_file {"path": "in/notes.txt", "old": "beta", "new": "gamma"}
call list_files {}
call search_files {"text": "GAM"}
call think {"thought": "so far so good"}
---
call shell {"command": "cat in/notes.txt; date +%N >in/now; cat in/now"}
call shell {"command": "exit 7"}
call python {"code": "import os; print(os.getpid(), open('in/now').read().strip().isdigit())"}
call write_file {"path": "../out.txt", "content": "x"}
---
call shell {"command": "yes | head -c 300000"}
call python {"code": "x = bytearray(80 << 20)\nwhile True: pass", "seconds": 1}
call python_session {"code": "x = bytearray(120 << 20)"}
call python_session {"code": "sum(range(3000000))"}
---
text done
LLM
TOOLS=write_file,edit_file,list_files,search_files,think,shell,python,python_session
start_fake --script all.llm
expect_exit 0 agent run tools --tools $TOOLS --dataset one.jsonl --model m --base-url "$BASE_URL" -o run -q
stop_fake

step "each call is a span with its outcome"
assert_eq "$(json run/events.jsonl '[e["name"] + " " + e["outcome"] for e in d
    if e["event"] == "tool_call_end"]' 2>err)" \
    '["write_file ok", "edit_file ok", "edit_file error", "list_files ok", "search_files ok", "think ok", "shell ok", "shell error", "python ok", "write_file refused", "shell ok", "python timeout", "python_session ok", "python_session ok"]'
assert_json run/traces.jsonl 'd[0]["is_resolved"] is True'

step "and says what went in and out, what a cap left out, and what its child used"
python3 - run <<'PY' >out 2>err || fail "members of the spans"
import json, sys
[query] = map(json.loads, open(sys.argv[1] + "/traces.jsonl"))
starts = {e["span"]: e for e in map(json.loads, open(sys.argv[1] + "/events.jsonl")) if e["event"] == "tool_call_start"}
spans = [s for t in query["turns"] for s in t["spans"] if s["kind"] == "tool"]
for s in spans:
    assert s["argument_bytes"] == starts[s["id"]]["argument_bytes"] > 0, s
    assert s["result_bytes"] > 0, s
    child = {k for k in s if k.startswith("child_")}
    if s is spans[-3]:  # its sandbox was ended at the time limit
        assert s["outcome"] == "timeout" and s["child_provenance"] in ("rusage", "unknown"), s
    elif s["name"] in ("shell", "python"):
        assert child == {"child_cpu_s", "child_peak_bytes", "child_provenance"}, s
        assert s["child_cpu_s"] > 0 and s["child_provenance"] == "rusage", s
    elif s["name"] == "python_session":  # it stays: what it used for one call is not known
        assert child == {"child_provenance"} and s["child_provenance"] == "unknown", s
    else:
        assert not child, s
    assert ("cut_bytes" in s) == (s is spans[-4]), s
assert spans[-4]["cut_bytes"] + spans[-4]["result_bytes"] >= 300000, spans[-4]
PY

step "the run's table, its summary and the report have the tools by name"
expect_exit 0 agent report run
assert_matches "$WORK/out" "^ python_session +[0-9.]+ +2 +0$"
python3 - run <<'PY' >out 2>err || fail "tools of the summary"
import json, sys
tools = {t["name"]: t for t in json.load(open(sys.argv[1] + "/summary.json"))["tools"]}
assert len(tools) == 8, tools
assert tools["python"]["outcomes"] == {"ok": 1, "timeout": 1}, tools["python"]
assert tools["write_file"]["outcomes"] == {"ok": 1, "refused": 1} and tools["write_file"]["child_calls"] == 0
assert tools["write_file"]["child_cpu_s"] is None and tools["shell"]["child_cpu_s"] > 0
assert all(t["joules"]["gpu"] is None and t["seconds"] > 0 for t in tools.values())
PY

step "the record answers all of them"
expect_exit 0 agent replay run --mode hermetic -o again
check_out "identical to the saved run"
cmp run/events.jsonl again/events.jsonl || fail "events differ"
[ ! -e again/workspaces ] || fail "a workspace was made"

step "a PDF, by a program in the sandbox"
if command -v pdftotext >/dev/null; then
    mkdir papers
    cp "$IPW_SOURCE_DIR/tests/data/office/paper.pdf" papers/-odd.pdf
    head -c 700 papers/-odd.pdf >papers/cut.pdf
    expect_exit 0 agent tool read_file '{"path":"-odd.pdf"}' --workspace papers
    check_out "First page: 42 joules."
    check_out "Second page."
    expect_exit 0 agent tool read_file '{"path":"-odd.pdf","part":"2"}' --workspace papers
    ! grep -q "First page" out || fail "a page that was not asked for"
    expect_exit 1 agent tool read_file '{"path":"cut.pdf"}' --workspace papers
    check_err "cut.pdf"
    expect_exit 1 agent tool read_file '{"path":"-odd.pdf"}' --workspace papers --no-proc
    check_err "is a PDF; proc.run: child processes are switched off by --no-proc"
else
    echo "left out: pdftotext is not installed (poppler-utils)"
fi

step "the agents that plan and write code finish the sample, and are replayed"
right=21
command -v pdftotext >/dev/null || right=20 # one asks for what a PDF holds
for agent in plan code; do
    expect_exit 0 agent run $agent --model demo --dataset gaia-sample --concurrency 4 -o "sample_$agent"
    check_out "solved $right of 22"
    expect_exit 0 agent replay "sample_$agent" --mode hermetic -o "sample_$agent-again"
    cmp "sample_$agent/events.jsonl" "sample_$agent-again/events.jsonl" || fail "events differ"
done

step "a tool's text keeps its escape sequences from the terminal"
cat >loud.lua <<'LUA'
return { name = "loud", about = "Shouts.", input = {},
  run = function() return "one\n\27]0;title\7two\27[2J" end }
LUA
expect_exit 0 agent tool ./loud.lua '{}'
check_out '\u{1b}]0;title'
check_out 'two\u{1b}[2J'
! grep -q "$(printf '\033')" out || fail "an escape sequence came out"

end_test
