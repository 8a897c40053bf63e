# The page of 10,000 queries in headless Chromium: sums, sorting, filtering, zooming and opening a query, hexagons and
# quantiles. How long it takes to appear is measured by bench/report_bench.
# Long: 10,000 queries take a minute; e2e.report_page has the same page.
. "$(dirname "$0")/lib.sh"
[ -z "${IPW_SANITIZE-}" ] || skip "a sanitizer makes 10,000 queries slow; test_report.sh has the same code"
CHROMIUM=${IPW_CHROMIUM-$(command -v chromium || command -v chromium-browser || command -v google-chrome)}
[ -n "$CHROMIUM" ] || skip "no Chromium: apt-get install chromium"
command -v node >/dev/null || skip "no node: apt-get install nodejs"
export IPW_CHROMIUM="$CHROMIUM"
cat >gpu.txt <<'GPU'
device GPU-00000000-0000-0000-0000-000000000001 Stub_H200 700000
energy 0 counter watts=300 period_ms=20
GPU
export IPW_NVML_LIBRARY="$(dirname "$IPW_FAKE")/libnvidia-ml-stub.so" IPW_STUB_NVML="$WORK/gpu.txt"

# Each question has a length of its own; so has each reply, and every third is wrong.
cat >noisy.lua <<'LUA'
local noisy = { name = "noisy" }
function noisy.reply(request)
  local n = tonumber(request.messages[#request.messages].content:match "Question (%d+)")
  local text = ("word "):rep(n * 2654435761 % 4294967296 % 41) .. "FINAL ANSWER: " .. (n % 3 == 0 and 7 or 42)
  return { text = text, calls = {}, finish = "stop" }
end
return noisy
LUA
awk 'BEGIN { for (i = 1; i <= 10000; i++) {
    words = ""; for (k = i * 7919 % 97; k > 0; k--) words = words " lorem ipsum"
    printf "{\"id\":\"q-%05d\",\"question\":\"Question %d?%s\",\"answer\":\"42\"}\n", i, i, words } }' >rows.jsonl
start_serve --model noisy.lua
expect_exit 0 agent run single --dataset rows.jsonl --base-url "$BASE_URL" --model noisy --concurrency 64 --sync run \
    --telemetry nvml --no-content --output long
stop_serve
expect_exit 0 agent report long -o long.html
expect_exit 0 node "$IPW_SOURCE_DIR/tests/e2e/report_long.mjs" "$WORK/long.html" "$WORK/long/summary.json"
rm -r long # `validate` of so many queries belongs to other tests
end_test
