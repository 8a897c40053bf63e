# What a newcomer meets in the first hour: paths with blanks, datasets that cannot be read, files of
# his own, remarks on a terminal, and why a run failed.
. "$(dirname "$0")/lib.sh"

# once FILE TEXT: in one line of the file, and in no other.
once() { assert_eq "$(grep -cF -- "$2" "$1")" 1 "(lines of $1 with '$2')"; }

step "--tools is cut at commas: a path may hold blanks"
mkdir -p "my tools"
cat >"my tools/shout.lua" <<'LUA'
return { name = "shout", about = "Says it louder.", input = { { "word", "string", "What." } },
  run = function(args) return args.word:upper() end }
LUA
cat >calls.lua <<'LUA'
local tools = require "ipw.tools"
return { name = "calls", run = function(_, cfg)
  local kit <close> = tools.open(cfg.tools)
  return kit:invoke("shout", { word = "hi" }) .. #cfg.tools
end }
LUA
echo '{"id":"one","question":"?","answer":"HI2"}' >one.jsonl
expect_exit 0 agent run calls.lua --dataset one.jsonl --model demo -o tools \
    --tools "$PWD/my tools/shout.lua , calculator"
assert_json tools/traces.jsonl 'd[0]["is_resolved"] is True'

step "GAIA that is not there: the sample, which is called so everywhere, and that is said once"
expect_exit 0 agent run react --dataset gaia --limit 1 --model demo --telemetry none
once err "gaia-sample, 22 tasks of our own"
check_out "demo solved 1 of 1 gaia-sample questions"
assert_lacks out "22 tasks of our own"
set -- runs/*
case $1 in runs/react_demo_gaia-sample_*) ;; *) fail "the folder is called $1" ;; esac
assert_json "$1/summary.json" 'd["run"]["dataset"] == "gaia-sample" and "GAIA was not found" in d["note"]'
assert_json "$1/manifest.json" 'd["config"]["dataset"] == "gaia-sample" and d["config"]["dataset_source"] == "builtin:datasets/gaia-sample/metadata.jsonl"'
expect_exit 0 agent run react --dataset gaia --limit 1 --model demo --telemetry none -q -o quiet
check_out "demo solved 1 of 1 gaia-sample questions"
assert_lacks out "22 tasks of our own"
check_out "answered by the demo model"
assert_eq "$(cat err)" ""
step "the sample by its name says nothing of GAIA; a run of it is scored by it"
expect_exit 0 agent run react --dataset gaia-sample --limit 2 --model demo --telemetry none -o sample
no_err "GAIA"
expect_exit 0 agent score sample
check_out "flipped: none of 2 queries"
expect_exit 0 agent score quiet --dry-run
expect_exit 0 agent list datasets
check_out "gaia-sample"

step "GAIA that is there and cannot be read is an error that says what to do, never the sample"
unreadable() { # TEXT...
    expect_exit 3 agent run react --dataset gaia --model demo -o never
    for text in "$@"; do check_err "$text"; done
    check_err "--dataset gaia-sample"
    one_message
    [ ! -e never ] || fail "a run was begun"
}
HUB=$HF_HOME/hub/datasets--gaia-benchmark--GAIA
mkdir -p "$HUB/refs" "$HUB/snapshots/abc123/2023/validation"
unreadable "refs/main"
printf abc123 >"$HUB/refs/main"
unreadable "abc123 has no metadata.parquet or metadata.jsonl"
printf 'PAR1' >"$HUB/snapshots/abc123/2023/validation/metadata.parquet"
unreadable "GAIA was found but cannot be read (--dataset gaia-sample runs the sample)" "2023/validation/metadata.parquet: "
ln -sf metadata.parquet-is-gone "$HUB/snapshots/abc123/2023/validation/metadata.parquet"
unreadable "metadata.parquet: a link that leads nowhere"
rm "$HUB/snapshots/abc123/2023/validation/metadata.parquet"
ln -s metadata.jsonl "$HUB/snapshots/abc123/2023/validation/metadata.jsonl"
unreadable "GAIA was found but cannot be read" "metadata.jsonl: "
if [ "$(id -u)" -ne 0 ]; then
    rm "$HUB/snapshots/abc123/2023/validation/metadata.jsonl"
    chmod 0 "$HUB/snapshots/abc123/2023"
    unreadable "GAIA was found but cannot be read" "Permission denied"
    chmod 700 "$HUB/snapshots/abc123/2023"
    echo '{}' >"$HUB/snapshots/abc123/2023/validation/metadata.jsonl"
    chmod 0 "$HUB/snapshots/abc123/2023/validation/metadata.jsonl"
    expect_exit 3 agent run react --dataset gaia --model demo
    check_err "Permission denied"
fi
rm -rf "$HF_HOME/hub"
mkdir -p sets/gaia
IPW_AGENT_DATASETS=$PWD/sets unreadable "sets/gaia has no metadata.parquet or metadata.jsonl"

step "Parquet, and what is no dataset, is known by its ending wherever it lies"
mkdir -p sub
for path in sub/rows.parquet ./sub/rows.parquet "$PWD/sub/ROWS.PARQUET"; do
    printf 'PAR1\025' >"$path"
    expect_exit 3 agent run react --dataset "$path" --model demo
    check_err ": 5 bytes are too few for a Parquet file"
    one_message
done
echo "a text" >sub/rows.txt
expect_exit 3 agent run react --dataset sub/rows.txt --model demo
check_err "ends in .jsonl, .ndjson, .json, .csv, .tsv, .parquet or .arrow"
expect_exit 3 agent run react --dataset gaia --data-dir sub/rows.parquet --model demo
check_err "GAIA was found but cannot be read"

step "a CSV file of a spreadsheet: semicolons, tabs; its level is kept"
printf 'question;answer;level\n"6 * 7? Say: 1;2";42;2\nWhat is 1,5 + 1,5?;3;1\n' >semi.csv
printf 'question\tanswer\n6 * 7, or; what?\t42\n' >tab.csv
expect_exit 0 agent run single --dataset semi.csv --model demo --telemetry none -o semi
assert_json semi/traces.jsonl '[t["query_text"].split("\n")[0] for t in d] == ["6 * 7? Say: 1;2", "What is 1,5 + 1,5?"] and [t["metadata"]["level"] for t in d] == ["2", "1"]'
expect_exit 0 agent run single --dataset tab.csv --model demo --telemetry none -o tab
assert_json tab/traces.jsonl 'd[0]["query_text"].startswith("6 * 7, or; what?")'
printf 'question;answer\na;b\na;b;c\n' >odd.csv
expect_exit 3 agent run single --dataset odd.csv --model demo
check_err "odd.csv:3: 3 fields, but the header has 2 (fields are separated by semicolons)"
step "a level that a script of a dataset gives is kept too"
cat >levels.lua <<'LUA'
return { name = "levels", load = function() return { { id = "a", question = "q", level = 3 } } end }
LUA
expect_exit 0 agent run single --dataset levels.lua --model demo --telemetry none -o levels
assert_json levels/traces.jsonl 'str(d[0]["metadata"]["level"]) == "3"'

step "a file without a reference column says so, in one line"
step "a CSV in another encoding is refused, and read when its encoding is named"
printf 'task_id,question,answer\na,"6 * 7, se\361or?",42\nb,"1 + 1 \200?",2\n' >spanish.csv
expect_exit 3 agent run single --dataset spanish.csv --model demo
check_err "spanish.csv:2: byte 13 of the line (0xF1) is not UTF-8. Save the file as UTF-8, or name its encoding: run --encoding latin1"
expect_exit 0 agent run single --dataset spanish.csv --encoding windows-1252 --limit 1 --model demo --telemetry none -o spanish
grep -q '6 \* 7, señor?' spanish/traces.jsonl || fail "the text is not read as windows-1252"
grep -q '"encoding":"windows-1252"' spanish/manifest.json || fail "the manifest does not tell the encoding"
expect_exit 0 agent resume spanish
expect_exit 0 agent score spanish --dataset spanish.csv --encoding windows-1252
expect_exit 3 agent score spanish --dataset spanish.csv
expect_exit 0 agent replay spanish --mode tools --dataset spanish.csv --encoding windows-1252 -o spanish-again
expect_exit 3 agent run single --dataset spanish.csv --encoding klingon --model demo
check_err "spanish.csv: unknown encoding 'klingon'. Try latin1, windows-1252 or utf-16"
printf 'question,answer\n6 * 7?,\201\n' >byte.csv
expect_exit 3 agent run single --dataset byte.csv --encoding windows-1252 --model demo
check_err "byte.csv:2: byte 24 of the file (0x81) is not windows-1252"
expect_exit 3 agent run single --dataset gaia-sample --encoding latin1 --model demo
check_err "gaia-sample: --encoding has no effect on this dataset"

printf 'question,expected\n6 * 7?,42\n' >expected.csv
expect_exit 0 agent run single --dataset expected.csv --model demo --telemetry none -o expected
check_err "expected.csv: no reference answers, so nothing is scored: expected one of the columns"
check_err "and saw expected, question"
one_message
printf 'question,answer\n6 * 7?,?\n' >withheld.csv
expect_exit 0 agent run single --dataset withheld.csv --model demo --telemetry none -o withheld
no_err "no reference"

step "score says which answers flipped; help and message name the same scorers"
expect_exit 0 agent score sample --scorer choice --dry-run
check_out "flipped: 2 of 2 queries"
assert_matches out '^ a54dca18-.* correct -> wrong  352 -> \(none\)$'
expect_exit 0 agent score sample --scorer choice --dry-run --json
assert_json out '[(f["query_id"][:8], f["is_resolved_was"], f["is_resolved"], f["answer_was"], f["answer"]) for f in d["flipped"]][0] == ("a54dca18", True, False, "352", None)'
expect_exit 3 agent score sample --scorer nonesuch
names=$(sed -n "s/.*is called 'nonesuch': \(.*\), or a Lua file.*/\1/p" err)
assert_matches err 'boxed, .*judge, numeric'
expect_exit 0 agent score --help
check_words "$names"

step "check sees a misspelt function of the library, and says nothing of fields that a script sets"
mkdir -p tools
cat >tools/ask.lua <<'LUA'
local http, json = require "ipw.http", require "ipw.json"
json.mine = 1
return { name = "ask", about = "Asks.", input = {}, run = function()
  return json.mine .. http.qeury { a = 1 }
end }
LUA
expect_exit 3 agent check tools/ask.lua
assert_eq "$(cat out)" 'tools/ask.lua:4: ipw.http has no "qeury"; did you mean "query"?'
# Also where it is not said whether it is a tool or an agent.
printf 'local llm = require "ipw.llm"\nreturn { name = "mine", run = function() return llm.chta {} end }\n' >mine.lua
expect_exit 3 agent check mine.lua
check_out 'mine.lua:2: ipw.llm has no "chta"; did you mean "chat"?'
check_out "cannot tell the kind of this file"
sed -i 's/qeury/query/' tools/ask.lua
expect_exit 0 agent check tools/ask.lua

step "compare names what both runs were made with, warns where it differs, and has joules per token"
METER="exec=sh -c 'while :; do echo 50 W; sleep 0.02; done'"
start_fake --bench 0 --delay-ms 60
awk 'BEGIN { for (i = 1; i <= 4; i++) printf "{\"question\":\"Question %d?\",\"answer\":\"42\"}\n", i }' >rows.jsonl
expect_exit 0 agent run single --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --telemetry "$METER" -o one -q
expect_exit 0 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --telemetry "$METER" \
    --concurrency 2 -o two -q
expect_exit 0 agent compare one two
check_out "single · fake-model · rows · concurrency 1"
check_out "tools · fake-model · rows · concurrency 2"
check_words "warning: the runs differ in agent (single, tools), concurrency (1, 2), max turns (none, 10)"
check_out "J/tok out"
expect_exit 0 agent compare one two --json
cp out pair.json
assert_json pair.json 'd["settings"] == {"a": {"agent": "single", "concurrency": 1, "dataset": "rows", "model": "fake-model"}, "b": {"agent": "tools", "concurrency": 2, "dataset": "rows", "model": "fake-model"}, "differ": ["agent", "concurrency", "max_turns"]}'
python3 - <<'PY' || fail "joules by tokens"
import json, trace_lines
m = json.load(open("pair.json"))["metrics"]
for side, run in ("a", "one"), ("b", "two"):
    queries = [trace_lines.loads(l) for l in open(run + "/traces.jsonl")]
    def mean(tokens): return sum(q["energy"]["machine"]["joules"] / tokens(q) for q in queries) / len(queries)
    assert abs(m["joules_per_output_token"][side] / mean(lambda q: q["total_output_tokens"]) - 1) < 1e-9
    assert abs(m["joules_per_token"][side] / mean(lambda q: q["total_tokens"]) - 1) < 1e-9
PY
expect_exit 0 agent compare one one
assert_lacks out "warning"
sed 's/Question/Other question/' rows.jsonl >moved.jsonl && mv moved.jsonl rows.jsonl
expect_exit 0 agent run single --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --telemetry none -o three -q
expect_exit 0 agent compare one three
check_out "warning: the runs differ in dataset (another version of it)"
expect_exit 0 agent compare one/traces.jsonl three
assert_lacks out "warning"

step "replay: the queries that took most come first"
expect_exit 0 agent run react --dataset gaia-sample --model demo --telemetry "$METER" -o dear -q
for by in energy time tokens; do
    expect_exit 0 agent replay dear --sort $by --limit 5
    cp out sorted
    python3 - $by <<'PY' || fail "$by"
import json, re, sys, trace_lines
cost = {"energy": lambda q: q["energy"]["machine"]["joules"], "time": lambda q: q["end_ns"] - q["start_ns"],
        "tokens": lambda q: q["total_tokens"]}[sys.argv[1]]
queries = [trace_lines.loads(l) for l in open("dear/traces.jsonl")]
want = [q["query_id"][:30] for q in sorted(queries, key=lambda q: -cost(q))][:5]
got = [i[:30] for i in re.findall(r"^ ([0-9a-f]{8}-[0-9a-f-]+)", open("sorted", encoding="utf-8").read(), re.M)]
assert got == want, (got, want)
PY
done
expect_exit 0 agent replay dear --limit 2
assert_eq "$(grep -c '^ in all' out)" 2 "(queries shown)"
# What is not known comes last; here that is all, so it stays as it is.
expect_exit 0 agent replay three --sort energy
assert_eq "$(grep -o '^ q000[0-9]' out | tr -d '\n')" " q0000 q0001 q0002 q0003"
expect_exit 2 agent replay dear --sort tokns
check_err "did you mean 'tokens'?"
expect_exit 2 agent replay dear --sort energy --query q0003
expect_exit 2 agent replay dear --sort energy --mode hermetic

step "--telemetry none is not answered with advice; without sensors there is some"
expect_exit 0 agent run single --dataset one.jsonl --model demo --telemetry none -o none
no_err "sensor"
expect_exit 0 agent run single --dataset one.jsonl --model demo -o some
check_err "no energy sensor can be read"

step "a run in which everything failed says why in one line, with -q too; the reason is in its column"
cat >refuse.llm <<'LLM'
always
status 404
json {"error":{"message":"no model is called nope here"}}
LLM
start_fake --script refuse.llm
for quiet in "" -q; do
    # shellcheck disable=SC2086 # one word or none
    expect_exit 1 agent run single --dataset one.jsonl --base-url "$BASE_URL" --model fake-model --max-retries 0 \
        --telemetry none $quiet -o "failed$quiet"
    once err "HTTP 404: no model is called nope here: $BASE_URL"
    check_out "HTTP 404: no model"
    check_out "no query was answered"
done
assert_eq "$(wc -l <err | tr -d ' ')" 1 "(lines of stderr with -q)"

step "on a terminal of 80 columns: remarks are wrapped, a ^C leaves nothing of the progress line behind"
stop_fake
start_fake --bench 0 --delay-ms 150
awk 'BEGIN { for (i = 1; i <= 300; i++) printf "{\"question\":\"Question %d?\",\"expected\":\"42\"}\n", i }' >many.jsonl
python3 - "$IPW_AGENT" run single --dataset many.jsonl --base-url "$BASE_URL" --model fake-model --telemetry none \
    --concurrency 60 -o stopped >screen 2>&1 <<'PY' || fail "$(cat screen)"
import fcntl, os, pty, re, struct, sys, termios
pid, terminal = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm"
    os.environ.pop("CI", None)
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    os.execv(sys.argv[1], sys.argv[1:])
text, said = b"", False
while True:
    try:
        text += os.read(terminal, 65536)
    except OSError:
        break
    if not said and re.search(rb"[1-9][0-9]*/300 done", text):
        said = True
        os.write(terminal, b"\x03\x03"[:1])
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
shown = text.decode()
assert said and status == 130, (said, status)
drawn = [l for l in re.split(r"[\r\n]+|\x1b\[K", shown) if "/300 done" in l]
assert drawn, "no progress line"
for line in drawn:
    assert len(line.replace("^C", "")) <= 75, "%d columns: %s" % (len(line), line)
said_lines = [l for l in re.split(r"[\r\n]+|\x1b\[K", shown) if l]
wide = [l for l in said_lines if len(l) > 80]
assert not wide, wide
plain = shown.replace("\r\n    ", " ")
assert plain.count("no reference answers, so nothing is scored") == 1
PY

end_test
