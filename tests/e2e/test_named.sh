# Each named dataset, from a fixture of invented rows in its true columns (tests/data/named), through a run
# with the demo model to scores; expected.jsonl has what the traces must hold.
. "$(dirname "$0")/lib.sh"

DATA=$IPW_SOURCE_DIR/tests/data/named
cat >check.py <<'PY'
import json, os, sys, trace_lines
want = json.loads(sys.argv[1])
traces = [trace_lines.loads(line) for line in open(want["name"] + "/traces.jsonl")]
got = [t.get("reference_answer") for t in traces]
assert len(got) == len(want["answers"]), got
for reference, answer, trace in zip(got, want["answers"], traces):
    if answer == "?":  # shuffled: the letter is that of the right option, which the file has first
        shuffle = trace["reference"]["shuffle"]
        assert reference == "ABCD"[shuffle.index(1)] and sorted(shuffle) == [1, 2, 3, 4], (reference, shuffle)
        text = trace["reference"]["columns"]["Correct Answer"].strip()
        assert trace["reference"]["choices"][shuffle.index(1)] == text
        assert reference + ". " + text in trace["query_text"]
    else:
        assert reference == answer, (reference, answer)
    assert trace.get("reference", {}).get("rule") == want["rule"], trace.get("reference")
    if want["rule"] in (None, "judge"):
        assert trace["is_resolved"] is None and trace["unscorable_reason"].startswith("needs_"), trace["unscorable_reason"]
    else:
        assert trace["is_resolved"] in (True, False), trace["unscorable_reason"]
    assert trace["completed"] and trace["query_text"].strip()
    events = open(want["name"] + "/events.jsonl").read()
    assert "columns" not in events and "shuffle" not in events  # what no agent sees
assert traces[0].get("subject") == want["subject"], traces[0].get("subject")
PY
while IFS= read -r line; do
    name=$(printf '%s' "$line" | python3 -c 'import json,sys; print(json.load(sys.stdin)["name"])')
    file=$(printf '%s' "$line" | python3 -c 'import json,sys; print(json.load(sys.stdin)["file"])')
    step "$name"
    expect_exit 0 agent run single --dataset "$name" --data-dir "$DATA/$file" --model demo --telemetry none -o "$name" -q
    assert_json "$name/manifest.json" "d['config']['dataset'] == '$name'"
    python3 check.py "$line" || fail "the traces of $name"
    expect_exit 0 agent score "$name" --json
    assert_json out 'd["changed"] == 0 and d["missing"] == 0'
done <"$DATA/expected.jsonl"

step "a picture in a column is a file that goes with its question"
assert_json hle/events.jsonl 'sum("data:image/png;base64,iVBOR" in json.dumps(e) for e in d if e["event"] == "lm_inference_start") == 1'
assert_json hle/traces.jsonl '"image.png" in d[1]["query_text"]'

step "every dataset that is built in has a fixture"
ls "$IPW_SOURCE_DIR"/datasets/*.lua | sed 's|.*/||; s|\.lua$||' | grep -vx 'gaia-sample\|requests' | sort >sets
python3 -c 'import json,sys; [print(json.loads(l)["name"]) for l in open(sys.argv[1])]' "$DATA/expected.jsonl" | sort >fixtures
cmp sets fixtures || fail "a dataset without a fixture"

step "one that is not here names the line that fetches it, and whose terms to accept"
expect_exit 3 agent run single --dataset gpqa --model demo -o never
check_err "gpqa was not found"
check_err "Fetch it: ipw-agent fetch gpqa"
check_err "accept its terms at https://huggingface.co/datasets/Idavidrein/gpqa"
expect_exit 3 agent run single --dataset gsm9k --model demo -o never
offers gsm8k
expect_exit 3 agent run single --dataset gsm8k --data-dir "$DATA/arc.jsonl" --model demo -o never
check_err "not a row of gsm8k"
[ ! -e never ] || fail "a run was begun"
end_test
