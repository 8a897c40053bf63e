# The built-in tools in a run: each call is a span with its outcome, what changes something runs alone, and a hermetic
# replay answers all of them from the record, without a program and without a workspace.
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
text done
LLM
TOOLS=write_file,edit_file,list_files,search_files,think,shell,python
start_fake --script all.llm
expect_exit 0 agent run tools --tools $TOOLS --dataset one.jsonl --model m --base-url "$BASE_URL" -o run -q
stop_fake

step "each call is a span with its outcome"
assert_eq "$(json run/events.jsonl '[e["name"] + " " + e["outcome"] for e in d
    if e["event"] == "tool_call_end"]' 2>err)" \
    '["write_file ok", "edit_file ok", "edit_file error", "list_files ok", "search_files ok", "think ok", "shell ok", "shell error", "python ok", "write_file error"]'
assert_json run/traces.jsonl 'd[0]["is_resolved"] is True'

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
for agent in plan code; do
    expect_exit 0 agent run $agent --model demo --dataset gaia-sample --concurrency 4 -o "sample_$agent"
    check_out "21 of 22 correct"
    expect_exit 0 agent replay "sample_$agent" --mode hermetic -o "sample_$agent-again"
    cmp "sample_$agent/events.jsonl" "sample_$agent-again/events.jsonl" || fail "events differ"
done

end_test
