# A run that an older build of the same format wrote (tests/data/older_run: two sockets, four queries, two at a
# time): every command reads it, and its joules are those that this build finds.
. "$(dirname "$0")/lib.sh"

cp -r "$IPW_SOURCE_DIR/tests/data/older_run" old
chmod -R u+w old

step "it is read"
expect_exit 0 agent validate old
check_out "old: valid: 4 queries"
expect_exit 0 agent ledger old --check
check_out "4 of 4 queries have the joules of the run, to 0.1 mJ: an older build wrote it."
expect_exit 0 agent replay old
check_out "answered, correct"
expect_exit 0 agent replay old --mode hermetic --output again
check_out "identical to the saved run"
expect_exit 0 agent compare old old
check_out "the same"
for format in jsonl csv otlp perfetto hf; do
    expect_exit 0 agent export old --format "$format" --output "old.$format"
done
expect_exit 0 agent repair old

step "a joule that was changed is found"
cp -r old changed
python3 - <<'PY'
import json
lines = open("changed/traces.jsonl").read().splitlines()
query = json.loads(lines[0])
query["energy"]["dram"]["joules"] += 0.001
lines[0] = json.dumps(query, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
open("changed/traces.jsonl", "w").write("\n".join(lines) + "\n")
PY
expect_exit 1 agent validate changed
damaged changed

end_test
