# report: the sums on the page are those of summary.json, nothing of others is markup, and what is not known
# is said as not known.  tests/e2e/test_report_page.sh opens the page in a browser.
. "$(dirname "$0")/lib.sh"
FAKES_DIR=$(dirname "$IPW_FAKE")

start_tree tree --watts-package 80 --interval-ms 1
cat >gpu.txt <<'GPU'
device GPU-00000000-0000-0000-0000-000000000001 Stub_H200 700000
energy 0 counter watts=300 period_ms=20
GPU
export IPW_POWERCAP_ROOT="$WORK/tree"
export IPW_NVML_LIBRARY="$FAKES_DIR/libnvidia-ml-stub.so" IPW_STUB_NVML="$WORK/gpu.txt"
awk 'BEGIN { for (i = 1; i <= 12; i++) printf "{\"id\":\"q</script>%d\",\"question\":\"SECRET %d?\",\"answer\":\"%d\"}\n", i, i, i % 2 ? 42 : 7 }' >rows.jsonl

# data FILE EXPR: an expression of `c` (columns), `page` and `summary` must be true.
data() {
    python3 - "$1" "$2" <<'PY' || fail "$1: not true: $2"
import csv, io, json, re, sys
page = open(sys.argv[1], encoding="utf-8").read()
blocks = dict(re.findall(r'<script type="application/json" id="([^"]*)">(.*?)</script>', page, re.S))
c = json.loads(blocks["columns"])
summary = json.load(open(sys.argv[1].replace(".html", "/summary.json")))
table = lambda name: list(csv.DictReader(io.StringIO(json.loads(blocks["csv-" + name]))))
domains = (summary["efficiency"]["basis"] or "").split("+")
ledger = lambda key: sum(summary["ledger"][d][key] for d in domains)
accounts = lambda key: sum(summary["accounts"][d][key] for d in domains)
near = lambda a, b, e=1e-3: abs(a - b) <= e
sys.exit(0 if eval(sys.argv[2]) else 1)
PY
}

step "a run with a failed attempt that is tried again, and tools"
cat >script.llm <<'LLM'
when SECRET 3
status 503
json {"error":"busy"}
---
unless "role":"tool"
always
delay 60
call calculator {"expression":"6*7"}
usage 40 9
---
always
delay 60
text FINAL ANSWER: 42
usage 60 7
LLM
start_fake --script script.llm
expect_exit 0 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --tools calculator \
    --concurrency 3 --output run
expect_exit 0 agent report run -o run.html
[ -s out ] && fail "something was printed"

step "parts sum to the ledger, tools and waiting to the tool-wait energy, the hatched to the waste"
data run.html 'near(sum(float(r["value"]) for r in table("energy")), ledger("total_j"), 2e-6)'
data run.html 'near(sum(float(r["wasted"]) for r in table("energy")), accounts("waste_j"), 1e-4) and accounts("waste_j") > 0'
data run.html 'near(sum(float(r["value"]) for r in table("energy") if r["part"] in ("calculator", "waiting to retry")), accounts("idle_tax_j"), 1e-4)'
data run.html 'near(sum(float(r["value"]) for r in table("queries")), ledger("queries_j"), 1e-6)'
data run.html 'all(near(sum(b[1::3]), mj, 20) for b, mj in zip(c["bars"], c["mj"]))'
assert_contains run.html 'The books balance.'

# the summary's own parts of tools and waits are booked the same way
data run.html 'near(sum(p["joules"][d] for p in summary["parts"] if p["part"] in ("tool", "wait") for d in domains), sum(float(r["value"]) for r in table("energy") if r["part"] in ("calculator", "waiting to retry")), 1e-3)'

step "one file: a strict policy, no address, no inline style, every script under its hash"
assert_contains run.html "default-src 'none'"
assert_lacks run.html "'unsafe-" # a source of the policy; the run's own --unsafe-tools may stand there
grep -qE '<[a-z]+ [^>]*(style|onclick|src)=' run.html && fail "an attribute that the policy forbids"
python3 - run.html <<'PY' || fail "a hash of the policy"
import base64, hashlib, re, sys
page = open(sys.argv[1], encoding="utf-8").read()
policy = re.search(r'Policy" content="([^"]*)"', page)[1]
texts = re.findall(r"<script>(.*?)</script>", page, re.S) + re.findall(r"<style>(.*?)</style>", page, re.S)
hashes = ["'sha256-" + base64.b64encode(hashlib.sha256(t.encode()).digest()).decode() + "'" for t in texts]
sys.exit(0 if len(texts) == 6 and all(h in policy for h in hashes) else 1)
PY

step "no text of tasks or replies without --with-content; ids are text"
assert_lacks run.html SECRET
assert_lacks run.html 'q</script>'
data run.html 'c["ids"][0].startswith("q</script>")'
expect_exit 0 agent report run --with-content -o full.html
assert_contains full.html SECRET

step "the terminal tells the same, in 80 columns, and markdown in 40 lines"
expect_exit 0 agent report run
assert_fits out 80
check_out 'fake-model solved 6 of 12 rows questions'
check_out 'calculator'
check_out '▒'
expect_exit 0 agent report run --ascii
LC_ALL=C grep -q '[^ -~]' out && fail "not ASCII"
expect_exit 0 agent report run --markdown
[ "$(wc -l <out)" -le 40 ] || fail "more than 40 lines"
check_out '| prefill |'
check_out '| **sum** |'

step "a section of the user's own: on the page, in the terminal, of each of several runs"
expect_exit 0 agent new section mine
expect_exit 0 agent check sections/mine.lua
expect_exit 0 agent test sections/mine_test.lua
expect_exit 0 agent report run --section mine -o mine.html
assert_contains mine.html '<section id="mine" aria-labelledby="h-mine"><div class="head"><div><p class="topic">Turns</p>'
assert_contains mine.html '<a href="#mine">Turns</a>'
assert_contains mine.html 'id="csv-mine"'
expect_exit 0 agent report run --section ./sections/mine.lua
check_out 'Queries took '
expect_exit 0 agent report run run --section mine -o mine.html
assert_contains mine.html '<section id="run2-mine"'
printf 'return { name = "odd", topic = "x", heading = function() end, htlm = 1 }\n' >odd.lua
expect_exit 3 agent report run --section ./odd.lua
check_err "unknown field 'htlm' (name, topic"
check_err "(did you mean 'html'?)"
expect_exit 2 agent report run --section nine
check_err "no section is named 'nine' (did you mean 'mine'?)"

step "without sensors: dashes and the reason, and no joules anywhere"
unset IPW_STUB_NVML
export IPW_POWERCAP_ROOT="$WORK/no-powercap" IPW_NVML_LIBRARY="$WORK/no-nvml.so"
start_fake --bench 1
expect_exit 0 agent run tools --dataset rows.jsonl --limit 4 --base-url "$BASE_URL" --model fake-model --telemetry none --output none
expect_exit 0 agent report none -o none.html
assert_contains none.html 'Joules were not measured'
data none.html 'all(mj is None for mj in c["mj"]) and "data-name=\"watts\"" not in page and c["names"] != []'
expect_exit 0 agent report none
check_out 'energy      not measured: '
check_out 'LONGEST QUERIES'
grep -qE '(^|[^0-9.])0(\.0+)? J' out && fail "an unknown energy was printed as 0"

step "what a model estimates is named as such, and is in no figure"
start_fake --bench 1
expect_exit 0 agent run tools --dataset rows.jsonl --limit 4 --base-url "$BASE_URL" --model fake-model --output guessed
if [ "$(json guessed/summary.json '"with_estimates" in d["totals"]')" = true ]; then
    expect_exit 0 agent report guessed
    check_words 'A power model estimates ≈'
    check_out 'energy      not measured: '
    expect_exit 0 agent report guessed -o guessed.html
    assert_contains guessed.html '<rect class="f-whole estimated"'
    data guessed.html 'all(mj is None for mj in c["mj"]) and all(mj > 0 for mj in c["estimate"]["mj"])'
fi

step "wrong usage"
expect_exit 2 agent report run --markdown -o x.html
expect_exit 3 agent report nowhere
one_message
mkdir empty
cp run/manifest.json run/traces.jsonl empty
expect_exit 3 agent report empty
match_err 'ipw-agent resume empty'
damaged empty

end_test
