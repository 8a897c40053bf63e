# Datasets of the hub as its own client leaves them on disk: found by name, by revision and split, through
# links; and what is said when they are not there or cannot be read.
. "$(dirname "$0")/lib.sh"

COMMIT=0123456789abcdef0123456789abcdef01234567
OTHER=fedcba9876543210fedcba9876543210fedcba98
REPO=$HF_HOME/hub/datasets--acme--sums
rows() { # FOLDER ANSWER
    mkdir -p "$REPO/blobs" "$REPO/snapshots/$1/data"
    printf '{"question":"What is 1 + 1?","answer":"%s","colour":"red"}\n' "$2" >"$REPO/blobs/$1-$2"
    printf '{"question":"train me","answer":"0"}\n' >"$REPO/blobs/train"
    ln -s "../../../blobs/$1-$2" "$REPO/snapshots/$1/data/test.jsonl"
    ln -s ../../../blobs/train "$REPO/snapshots/$1/data/train.jsonl"
}
mkdir -p "$REPO/refs"
rows $COMMIT 2
rows $OTHER 3
printf $COMMIT >"$REPO/refs/main"
printf $OTHER >"$REPO/refs/v2"
go() { expect_exit "$1" agent run single --model demo -q --dataset "$2" -o "$3"; }

step "the snapshot that refs/main names, its test split"
go 0 hf:acme/sums main
assert_json main/traces.jsonl '[t["reference_answer"] for t in d] == ["2"]'
assert_json main/manifest.json 'd["config"]["dataset"] == "acme--sums" and "snapshots/'$COMMIT'/data/test.jsonl" in d["config"]["dataset_source"]'
expect_exit 0 agent score main --dry-run

step "another revision, a commit, another split"
go 0 hf:acme/sums@v2 v2
assert_json v2/traces.jsonl '[t["reference_answer"] for t in d] == ["3"]'
go 0 hf:acme/sums@$OTHER other
assert_json other/traces.jsonl '[t["reference_answer"] for t in d] == ["3"]'
go 0 hf:acme/sums/train train
assert_json train/traces.jsonl '[t["reference_answer"] for t in d] == ["0"]'
go 3 hf:acme/sums/dev never
check_err "no file of the split 'dev'; there are: test, train"

step "what the README declares goes before the words in the paths"
mkdir -p "$REPO/snapshots/$COMMIT/odd"
printf '{"question":"What is 5 + 1?","answer":"6"}\n' >"$REPO/snapshots/$COMMIT/odd/test.jsonl"
printf -- '---\nconfigs:\n- config_name: plain\n  default: true\n  data_files: data/*.jsonl\n- config_name: strange\n  data_files:\n  - split: held_out\n    path: odd/*\n---\n# Sums\n' >"$REPO/snapshots/$COMMIT/README.md"
go 0 hf:acme/sums:strange/held_out declared
assert_json declared/traces.jsonl '[t["reference_answer"] for t in d] == ["6"]'
go 3 hf:acme/sums:strange/dev never
check_err "the configuration 'strange' has no split 'dev'; there are: held_out"
rm -r "$REPO/snapshots/$COMMIT/README.md" "$REPO/snapshots/$COMMIT/odd"

step "HF_HUB_CACHE goes before HF_HOME; a folder of the user's own before both"
mv "$HF_HOME/hub" elsewhere
HF_HUB_CACHE=$WORK/elsewhere go 0 hf:acme/sums cache
mkdir -p sets/sums
echo '{"question":"What is 1 + 1?","answer":"9"}' >sets/sums/test.jsonl
HF_HUB_CACHE=$WORK/elsewhere IPW_AGENT_DATASETS=$WORK/sets go 0 hf:acme/sums own
assert_json own/traces.jsonl '[t["reference_answer"] for t in d] == ["9"]'
expect_exit 0 agent run single --model demo -q --dataset hf:acme/sums --data-dir sets/sums/test.jsonl -o dir

step "what is not there names the places and the line that fetches it; nothing is downloaded"
go 3 hf:acme/sums never
check_err "looked in $HF_HOME/hub/datasets--acme--sums"
check_err "Fetch it: ipw-agent fetch hf:acme/sums"
one_message
go 3 hf:acme never
check_err "expected hf:OWNER/NAME[:CONFIG][@REVISION][/SPLIT]"

step "what is there and cannot be read is an error"
mv elsewhere "$HF_HOME/hub"
rm "$REPO/blobs/$COMMIT-2"
go 3 hf:acme/sums never
check_err "test.jsonl"
printf nonsense >"$REPO/refs/main"
go 3 hf:acme/sums never
check_err "refs/main: expected a commit"
printf '%s' ffffffffffffffffffffffffffffffffffffffff >"$REPO/refs/main"
go 3 hf:acme/sums never
check_err "not there, although refs/main names it"
[ ! -e never ] || fail "a run was begun"
end_test
