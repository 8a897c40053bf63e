# The page of a report in headless Chromium: no script error, no request, sums, sorting, filtering, zooming,
# opening a query by keyboard, both themes, a telephone's width, paper, and hostile texts as text.
. "$(dirname "$0")/lib.sh"
[ -z "${IPW_SANITIZE-}" ] || skip "the browser tests the page; test_report.sh writes one under a sanitizer"
CHROMIUM=${IPW_CHROMIUM-$(command -v chromium || command -v chromium-browser || command -v google-chrome)}
[ -n "$CHROMIUM" ] || skip "no Chromium: apt-get install chromium"
command -v node >/dev/null || skip "no node: apt-get install nodejs"
export IPW_CHROMIUM="$CHROMIUM"
FAKES_DIR=$(dirname "$IPW_FAKE")

start_tree tree --watts-package 80 --interval-ms 2
cat >gpu.txt <<'GPU'
device GPU-00000000-0000-0000-0000-000000000001 Stub_H200 700000
energy 0 counter watts=300 period_ms=20
GPU
export IPW_POWERCAP_ROOT="$WORK/tree"
export IPW_NVML_LIBRARY="$FAKES_DIR/libnvidia-ml-stub.so" IPW_STUB_NVML="$WORK/gpu.txt"
python3 - >rows.jsonl <<'PY'
import json
hostile = "</script><img src=x onerror=\"window.pwned=1\"><b>bold</b>\u202e desrever \u2028 "
for i in range(30):
    row = {"id": f"q-{i:03}", "question": f"Question {i}?", "answer": "42" if i % 3 else "7"}
    if i == 4:
        row["id"] = "q-004" + hostile
        row["question"] = hostile + "x" * 1000000
    print(json.dumps(row))
PY
cat >script.llm <<'LLM'
when Question 7?
status 503
json {"error":"busy"}
---
when Question 11?
always
delay 200
status 400
json {"error":"the oven is too cold"}
---
unless "role":"tool"
always
delay 150
call calculator {"expression":"6*7"}
usage 400 9
---
always
text The answer
itl 4
text is by now quite well known:
text FINAL ANSWER: 42
usage 600 17
LLM
start_fake --script script.llm
expect_exit 0 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --tools calculator \
    --concurrency 4 --output run
expect_exit 0 agent report run --with-content -o run.html

step "a run without sensors"
expect_exit 0 agent run tools --dataset rows.jsonl --limit 3 --base-url "$BASE_URL" --model fake-model \
    --tools calculator --telemetry none --output none
expect_exit 0 agent report none -o none.html

step "further runs on the same tasks"
start_fake --bench 2 --delay-ms 15
expect_exit 0 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model other-model --tools calculator \
    --concurrency 4 --output other
start_fake --bench 2 --delay-ms 5
expect_exit 0 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model third-model --tools calculator \
    --concurrency 8 --output third
expect_exit 0 agent report run other run third -o several.html
expect_exit 0 agent report run other
assert_fits out 80
check_out 'J/solved'

step "in the browser"
axe=
if npm_reached && npm pack axe-core@4.14.1 >npm.out 2>&1 && tar xzf axe-core-4.14.1.tgz package/axe.min.js; then
    axe=$WORK/package/axe.min.js
else
    echo "skipped: npm gives no axe-core; the rules of accessibility are not tested"
fi
expect_exit 0 node "$IPW_SOURCE_DIR/tests/e2e/report_page.mjs" "$WORK/run.html" "$WORK/run/summary.json" "$WORK/none.html" \
    "$WORK/several.html" $axe

end_test
