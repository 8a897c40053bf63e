# fetch against a hub on loopback (hub.py): the cache that it leaves, the token, what is cut, refused, wrong.
. "$(dirname "$0")/lib.sh"

command -v python3 >/dev/null || skip "no python3"
LOG=$WORK/hub.log
mkfifo port
python3 "$IPW_SOURCE_DIR/tests/e2e/hub.py" "$LOG" >port 2>hub.err &
FAKES="$FAKES $!"
read -r PORT <port || fail "hub.py did not start: $(cat hub.err)"
export HF_ENDPOINT=http://127.0.0.1:$PORT HF_TOKEN=hf_some_secret_token
HUB=$HF_HOME/hub
COMMIT=0123456789abcdef0123456789abcdef01234567

step "what is fetched is a cache as the hub's own client leaves it"
expect_exit 0 agent fetch hf:acme/sums
check_out "hf:acme/sums: 3 files"
SUMS=$HUB/datasets--acme--sums
assert_eq "$(cat "$SUMS/refs/main")" $COMMIT
LINK=$SUMS/snapshots/$COMMIT/data/test.jsonl
assert_eq "$(readlink "$LINK")" "../../../blobs/$(sha256sum <"$LINK" | cut -d' ' -f1)"
assert_eq "$(readlink "$SUMS/snapshots/$COMMIT/README.md")" "../../blobs/$(printf 'blob 7\0# sums\n' | sha1sum | cut -d' ' -f1)"
assert_eq "$(find "$SUMS" -name '*.incomplete')" ""
assert_eq "$(find "$SUMS/blobs" -type f | wc -l | tr -d ' ')" 3
expect_exit 0 agent run single --dataset hf:acme/sums --limit 2 --model demo -q -o run
assert_json run/traces.jsonl 'len(d) == 2'

step "the token goes to the endpoint and to no host that it redirects to"
assert_contains "$LOG" "127.0.0.1 /datasets/acme/sums/resolve/$COMMIT/data/test.jsonl token=Bearer hf_some_secret_token"
assert_contains "$LOG" "localhost /cdn/sums/data/test.jsonl token=None"
if grep 'localhost.*Bearer' "$LOG"; then fail "the token was sent to another host"; fi

step "a second time nothing is fetched; a split is all that is asked for"
: >"$LOG"
expect_exit 0 agent fetch hf:acme/sums
check_out "0 fetched now"
assert_lacks "$LOG" resolve
rm -r "$HUB"
expect_exit 0 agent fetch hf:acme/sums/train
[ ! -e "$LINK" ] || fail "the other split was fetched"
[ -e "$SUMS/snapshots/$COMMIT/data/train.jsonl" ] || fail "the split was not fetched"

step "the token's file; a token with a line break is none"
: >"$LOG"
printf 'hf_token_of_a_file\n' >"$HF_HOME/token"
HF_TOKEN= expect_exit 0 agent fetch hf:acme/sums/test
assert_contains "$LOG" "token=Bearer hf_token_of_a_file"
rm "$HF_HOME/token"

step "a cut is gone on with, from the byte where it was"
expect_exit 0 agent fetch hf:acme/cut
assert_contains "$LOG" "/cdn/cut/data/test.jsonl token=None range=bytes=100000-"
assert_contains "$LOG" "range=bytes=200000-"
expect_exit 0 agent fetch hf:acme/norange
check_out "3 fetched now"

step "a partial file of an earlier fetch"
rm -r "$HUB"/datasets--acme--cut/refs
BLOB=$(basename "$(readlink "$HUB/datasets--acme--cut/snapshots/$COMMIT/data/test.jsonl")")
head -c 1234 "$HUB/datasets--acme--cut/blobs/$BLOB" >"$HUB/datasets--acme--cut/blobs/$BLOB.incomplete"
rm "$HUB/datasets--acme--cut/blobs/$BLOB"
expect_exit 0 agent fetch hf:acme/cut
assert_contains "$LOG" "range=bytes=1234-"

# refused NAME TEXT...: exit 1, one message with the texts, no ref and no file that is half.
refused() {
    name=$1
    shift
    expect_exit 1 agent fetch "hf:acme/$name"
    for text in "$@"; do check_err "$text"; done
    assert_lacks err hf_some_secret
    folder=$HUB/datasets--acme--${name%@*}
    case $name in *@*) return ;; esac
    [ ! -e "$folder/refs" ] || fail "$name: a ref is there"
    assert_eq "$(find "$folder" -name '*.incomplete' 2>/dev/null)" ""
}
step "refusals say what helps"
refused gated "acme/gated is gated: accept its terms at $HF_ENDPOINT/datasets/acme/gated with the account of your token"
HF_TOKEN= refused gated "and give a token (HF_TOKEN"
HF_TOKEN=hf_accepted_token expect_exit 0 agent fetch hf:acme/gated
HF_TOKEN= refused private "a private one needs a token (HF_TOKEN)"
refused missing "the hub knows no such dataset"
refused sums@nowhere "acme/sums has no revision 'nowhere'"
refused nonsense "not the hub's answer"
refused loop "more than 5 redirects"
refused escape "leaves the folder"
refused endless "its list of files has more than 1000 pages"
refused many "its list of files has more than 100000 files"

step "429 says how long to wait"
expect_exit 0 agent fetch hf:acme/busy
check_err "HTTP status 429; next try in 2 s"
refused down "HTTP status 503; next try in 4 s" "HTTP status 503"

step "lengths and hashes that are not the hub's: removed"
refused badsum "its sha256 hash is" "the hub says abababab"
refused shorter "bytes came, the hub says"
refused longer "more than the"

step "nobody answers; offline; what is no dataset of the hub"
HF_ENDPOINT=http://127.0.0.1:1 expect_exit 1 agent fetch hf:acme/other
check_err "127.0.0.1"
one_message
HF_HUB_OFFLINE=1 expect_exit 1 agent fetch hf:acme/other
check_err "HF_HUB_OFFLINE is set"
expect_exit 1 agent fetch gaia-sample
check_err "it is built in"
expect_exit 1 agent fetch gaja
offers gaia
expect_exit 1 agent fetch hf:acme
check_err "expected hf:OWNER/NAME"

step "a cache that cannot be written, a disk that is full: nothing half stays"
echo file >notdir
HF_HUB_CACHE=$WORK/notdir expect_exit 1 agent fetch hf:acme/sums
check_err "notdir"
one_message
expect_exit 1 sh -c 'ulimit -f 100; HF_HUB_CACHE=$2/limited exec "$0" fetch "$1"' "$IPW_AGENT" hf:acme/sums "$WORK"
check_err "File too large"
check_err "what came of it is removed"
assert_eq "$(find limited -name '*.incomplete')" ""
[ ! -e limited/datasets--acme--sums/refs ] || fail "a ref is there"

step "no script of an agent can fetch"
cat >thief.lua <<'LUA'
local fetch = require "ipw.core.fetch"
local http = require "ipw.http"
return { name = "thief", run = function()
  local _, hash = pcall(fetch.hash, "a", "git")
  local _, get = pcall(http.request, { url = "http://127.0.0.1:1/", file = "a" })
  return hash .. " | " .. get
end }
LUA
echo '{"question":"q","answer":"a"}' >rows.jsonl
expect_exit 0 agent run ./thief.lua --dataset rows.jsonl --model demo -q -o thief
assert_contains thief/traces.jsonl "ipw.core.fetch belongs to the command fetch | http: a file belongs to the command fetch"
end_test
