# A finished run whose files are damaged: resume and repair write again what follows from the others, and say what
# does not.  Then the short form of tests/drill/damage_drill.py, whose head says what is checked.
# Sanitizer: damaged runs.
. "$(dirname "$0")/lib.sh"

start_tree tree --watts-package 80 --interval-ms 1 --seconds 600
start_fake --bench 1 --delay-ms 5
export IPW_POWERCAP_ROOT="$WORK/tree"
for i in 1 2 3 4 5 6; do echo "{\"id\":\"r$i\",\"question\":\"Q $i?\",\"answer\":\"42\"}"; done >rows.jsonl
expect_exit 0 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --concurrency 2 \
    --sample-interval 5ms --warmup 1 --baseline 200ms --epochs 2 --output whole

same_traces() { cmp -s whole/traces.jsonl "$1/traces.jsonl" || fail "$1: traces.jsonl changed"; }

step "a broken summary is computed again, the same"
cp -r whole summary
head -c 700 whole/summary.json >summary/summary.json
expect_exit 0 agent resume summary
check_err "summary/summary.json: computed again from the other files"
check_err "nothing is left to run"
expect_exit 0 agent validate summary
same_traces summary
python3 - <<'PY' || fail "another summary"
import json
a, b = json.load(open("whole/summary.json")), json.load(open("summary/summary.json"))
def differ(x, y, at=""):
    if isinstance(x, dict) and isinstance(y, dict):
        return [d for k in sorted(set(x) | set(y)) for d in differ(x.get(k), y.get(k), at + "." + k)]
    near = isinstance(x, float) and isinstance(y, (int, float)) and abs(x - y) <= 1e-9 * abs(x) + 1e-12
    return [] if x == y or near else [at]
found = differ(a, b)
print(found)
assert set(found) <= {".generated_at", ".hardware.self_test"}, found
PY
rm summary/summary.json
expect_exit 0 agent repair summary
check_err "computed again"

step "a missing run_end"
cp -r whole end
sed -i '/"event":"run_end"/d' end/events.jsonl
expect_exit 0 agent resume end
check_err "end/events.jsonl: the run_end of its last session is written again"
expect_exit 0 agent validate end
cmp -s whole/events.jsonl end/events.jsonl || fail "another run_end"
cmp -s whole/summary.json end/summary.json || fail "the summary changed"

step "events that end where no query is in flight: the joules of the queries behind that are in the books once"
for queries in 1 2; do # before the warm-up, and before what follows it
    for command in resume repair; do
        rm -rf cut
        cp -r whole cut
        awk -v n=$queries '/"event":"query_start"/ && ++k == n { exit } { print }' whole/events.jsonl >cut/events.jsonl
        expect_exit 0 agent "$command" cut
        check_err "cut/manifest.json: session 0 is booked as far as its files go"
        no_err "the run_end of its last session is written again"
        expect_exit 0 agent validate cut
        expect_exit 0 agent resume cut
        expect_exit 0 agent validate cut
        assert_json cut/manifest.json '[s["end"] for s in d["segments"]] == ["killed", "complete"]'
    done
done

step "a line is lost in the middle of the events: what others stand on it for goes too, and the books balance"
for kind in query_start query_end lm_inference_start lm_inference_end tool_call_start tool_call_end first_token booked; do
    rm -rf middle
    cp -r whole middle
    line=$(grep -n "\"$kind\"" whole/events.jsonl | sed -n '5s/:.*//p')
    sed -i "${line}s/^/#/" middle/events.jsonl
    expect_exit 3 agent resume middle
    check_err "middle/events.jsonl:$line: "
    expect_exit 0 agent repair middle
    [ $kind != query_end ] || check_err "1 query without an end ends with the last event now"
    [ $kind != lm_inference_start ] || check_err "events.jsonl: 1 event cannot stand without the lines that are lost"
    expect_exit 0 agent validate middle
    expect_exit 0 agent ledger middle --check
    expect_exit 0 agent repair middle
    no_err "middle"
    expect_exit 0 agent resume middle
    expect_exit 0 agent validate middle
    assert_file_lines middle/traces.jsonl 12
    truth books middle
done

step "a byte of a text in the events is damaged: resume names the line, and repair leaves a run that validate accepts"
for kind in query_start lm_inference_start lm_inference_end tool_call_end; do
    rm -rf bytes
    cp -r whole bytes
    line=$(grep -n "\"event\":\"$kind\"" whole/events.jsonl | sed -n '5s/:.*//p')
    python3 - "$line" <<'PY' || fail "no text in the line of $kind"
import re, sys
at = int(sys.argv[1]) - 1
lines = open("bytes/events.jsonl", "rb").read().split(b"\n")
lines[at], n = re.subn(rb'("(?:content|prompt|id|name)":")[^"]', lambda m: m[1] + b"\xff", lines[at], count=1)
open("bytes/events.jsonl", "wb").write(b"\n".join(lines))
sys.exit(n != 1)
PY
    damaged bytes
    expect_exit 3 agent resume bytes
    check_err "bytes/events.jsonl:$line: not valid UTF-8"
    cmp -s whole/traces.jsonl bytes/traces.jsonl || fail "resume changed traces.jsonl"
    expect_exit 0 agent repair bytes
    check_err "bytes/events.jsonl: 1 damaged line taken out, kept in events.jsonl.damaged"
    expect_exit 0 agent validate bytes
    expect_exit 0 agent resume bytes
    expect_exit 0 agent validate bytes
    assert_file_lines bytes/traces.jsonl 12
    truth books bytes
done

step "a byte of a line of traces.jsonl is damaged: the same"
rm -rf bytes
cp -r whole bytes
LC_ALL=C sed -i '5s/"query_text":"./"query_text":"\xff/' bytes/traces.jsonl
damaged bytes
expect_exit 3 agent resume bytes
check_err "bytes/traces.jsonl:5: not valid UTF-8"
expect_exit 0 agent repair bytes
check_err "bytes/traces.jsonl: 1 damaged line taken out, kept in traces.jsonl.damaged"
expect_exit 0 agent validate bytes
expect_exit 0 agent resume bytes
expect_exit 0 agent validate bytes
assert_file_lines bytes/traces.jsonl 12
truth books bytes

step "a lost manifest, with what the events carry"
cp -r whole manifest
: >manifest/manifest.json
expect_exit 0 agent resume manifest
check_err "manifest.json: rebuilt from events.jsonl"
check_err "nothing is left to run"
expect_exit 0 agent validate manifest
same_traces manifest
python3 - <<'PY' || fail "another manifest"
import json
a, b = json.load(open("whole/manifest.json")), json.load(open("manifest/manifest.json"))
for manifest in a, b:
    manifest["config"].pop("prices", None)  # known with the first reply
for key in a:
    if key not in ("hardware", "segments"):
        assert a[key] == b[key], key
s, t = a["segments"][0], b["segments"][0]
for key in ("clock", "end", "end_ns", "start_ns", "ended_at", "client_base_url"):
    assert s[key] == t[key], key
assert abs(s["ledger"]["cpu"]["total_j"] - t["ledger"]["cpu"]["total_j"]) < 1e-6
PY
rm manifest/manifest.json
expect_exit 0 agent repair manifest
expect_exit 0 agent ledger manifest --check

step "without events nothing is repaired, and what is lost and what is left is said"
cp -r whole eventless
damaged eventless
rm eventless/events.jsonl
expect_exit 3 agent repair eventless
check_err "events.jsonl is missing, and with it each request, reply and tool result"
check_err "ipw-agent resume eventless"
same_traces eventless
expect_exit 0 agent replay eventless
expect_exit 0 agent export eventless --format jsonl

step "a manifest that the events do not carry is named"
cp -r whole gone
rm gone/manifest.json
sed -i '/"event":"run_start"/s/"manifest":/"manifesto":/' gone/events.jsonl
expect_exit 3 agent resume gone
check_err "gone/manifest.json: cannot be rebuilt"
damaged gone

step "an earlier attempt without its line"
expect_exit 0 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --concurrency 2 \
    --sample-interval 5ms --run-turn-limit 5 --output limited
expect_exit 0 agent resume limited --run-turn-limit 1000
[ -s limited/attempts.jsonl ] || fail "no earlier attempt"
cp -r limited attempts
head -c 200 limited/attempts.jsonl >attempts/attempts.jsonl
expect_exit 0 agent resume attempts
expect_exit 0 agent validate attempts
assert_eq "$(wc -l <attempts/attempts.jsonl)" "$(wc -l <limited/attempts.jsonl)"

step "a finished run whose files are unchanged is not computed again"
cp -r limited settled
expect_exit 0 agent resume settled
stamp=$(stat -c %y settled/manifest.json)
# change FILE SED-SCRIPT: as `sed -i`, but the file keeps its time.
change() {
    cp -p "$1" time
    sed -i "$2" "$1"
    touch -r time "$1"
}
change settled/events.jsonl '2s/^..../####/'
expect_exit 0 agent resume settled
check_err "nothing is left to run"
assert_eq "$(stat -c %y settled/manifest.json)" "$stamp" "(the manifest was touched)"
touch settled/events.jsonl
expect_exit 3 agent resume settled
check_err "settled/events.jsonl:2: "

step "nor is its dataset read again, if it is the same command and the same bytes"
cp rows.jsonl tasks.jsonl
expect_exit 0 agent run single --dataset tasks.jsonl --model demo --limit 5 --telemetry none --output read
expect_exit 0 agent resume read # its files are in order, and noted as such
stamp=$(stat -c %y read/manifest.json)
change read/events.jsonl '2s/^..../####/'
damaged read
expect_exit 0 agent resume read
check_err "nothing is left to run"
assert_eq "$(stat -c %y read/manifest.json)" "$stamp" "(the manifest was touched)"
expect_exit 3 agent resume read --limit 4
check_err "the dataset (selection_sha256) was"
echo >>tasks.jsonl # the same tasks, but other bytes
expect_exit 3 agent resume read
check_err "the dataset (dataset_sha256) was"
echo 42 >note.txt
sed '1s/}$/,"file_name":"note.txt"}/' rows.jsonl >tasks.jsonl
expect_exit 0 agent run single --dataset tasks.jsonl --model demo --telemetry none --output attached
expect_exit 0 agent resume attached
check_err "nothing is left to run"
rm note.txt
expect_exit 3 agent resume attached # the rows are the same, their files are not
check_err "the dataset (selection_sha256) was"

step "what is missing from it is found, even if the files keep their times"
cp -r whole settled.1
expect_exit 0 agent resume settled.1
# found FILE SED-SCRIPT MESSAGE
found() {
    rm -rf lost
    cp -a settled.1 lost
    change "lost/$1" "$2"
    expect_exit 0 agent resume lost
    check_err "$3"
    expect_exit 0 agent validate lost
}
found events.jsonl '$d' "lost/events.jsonl: the run_end of its last session is written again"
found power.jsonl '$d' "lost/manifest.json: session 0 is booked as far as its files go"
found traces.jsonl '$d' "lost: continues: 11 of 12 queries are done"
found summary.json '1s/^./#/' "lost/summary.json: computed again"
cp -a settled.1 lost.1
rm lost.1/warmup.jsonl
expect_exit 0 agent resume lost.1
[ -s lost.1/warmup.jsonl ] || fail "the warm-up has no line"
rm -rf settled
cp -r limited settled
expect_exit 0 agent resume settled
change settled/attempts.jsonl '$d'
expect_exit 0 agent resume settled
assert_eq "$(wc -l <settled/attempts.jsonl)" "$(wc -l <limited/attempts.jsonl)"
expect_exit 0 agent validate settled

step "a summary that was changed is computed again"
cp -a settled.1 changed
sed -i 's/"queries":12/"queries":13/g' changed/summary.json
expect_exit 0 agent resume changed
check_err "changed/summary.json: computed again"

step "at random"
expect_exit 0 python3 "$IPW_SOURCE_DIR/tests/drill/damage_drill.py" --agent "$IPW_AGENT" --fakes "$(dirname "$IPW_FAKE")" \
    --damages 16 --queries 8
check_out "16 damaged: 16 held"

end_test
