# run --watch: the figures of a run that goes on as JSON, and its page in headless Chromium, which sees them move. The last
# query waits at a gate until the page was seen.
. "$(dirname "$0")/lib.sh"
CHROMIUM=${IPW_CHROMIUM-$(command -v chromium || command -v chromium-browser || command -v google-chrome)}
. "$(dirname "$0")/gate.sh"
start_tree tree --watts-package 80 --interval-ms 1
export IPW_POWERCAP_ROOT="$WORK/tree"
start_fake --bench 1 --delay-ms 20

"$IPW_AGENT" run gated.lua --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --web-allow "$GATE" --watch \
    --listen 127.0.0.1:0 -q -o run >ran 2>said &
RUN=$!
await_lines said
URL=$(sed -n 's/^ipw-agent: watch the run at \(http:.*\)$/\1/p' said)
case $URL in http://127.0.0.1:[1-9]*/) ;; *) fail "the address: $(cat said)" ;; esac

step "the style and the script carry a word that is new in every run"
"$IPW_AGENT" run gated.lua --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model --web-allow "$GATE" --watch \
    -q -o second >ran 2>second.said &
SECOND=$!
await_lines second.said
python3 - "$URL" "$(sed -n 's/^ipw-agent: watch the run at //p' second.said)" <<'PY' >out 2>err || fail "the words"
import re, sys, urllib.request
words = [set(re.findall(r'nonce[-=]"?([0-9a-f]{32})\b', urllib.request.urlopen(url, timeout=60).read().decode())) for url in sys.argv[1:]]
assert [len(w) for w in words] == [1, 1] and words[0] != words[1], words
PY
kill -9 $SECOND
wait $SECOND 2>/dev/null

step "the figures, for a program"
python3 - "$URL" <<'PY' >out 2>err || fail "the figures"
import json, sys, time, urllib.request, urllib.error
def get(path):
    with urllib.request.urlopen(sys.argv[1] + path, timeout=60) as answer: return answer.read().decode(), answer.headers
page, headers = get("")
assert headers["Content-Type"] == "text/html; charset=utf-8" and headers["Cache-Control"] == "no-store"
assert "{{nonce}}" not in page and "http://" not in page and "https://" not in page
deadline, done = time.time() + 60, 0
while True:
    text, headers = get("live.json")
    d = json.loads(text)
    p = d["progress"]
    assert p["queries"] in (0, 5) and done <= p["done"] <= p["queries"]  # 0: it has not begun yet
    assert p["correct"] + p["wrong"] + p["failed"] <= 5
    done = p["done"]
    if done == 4 and p["joules"] and p["watts"] and p["seconds"] > 1.5: break
    assert time.time() < deadline, text
    time.sleep(0.05)
assert (d["agent"], d["model"], d["dataset"], d["folder"]) == ("gated", "fake-model", "rows", "run")
assert (p["correct"], p["wrong"], p["failed"], p["interrupted"]) == (1, 1, 2, 0), p
assert p["left_s"] > 0 and p["watts"] > 0 and p["standstill"] is None
assert "ipw_run_info" in get("metrics")[0]
try: get("else"); assert False
except urllib.error.HTTPError as e: assert e.code == 404
PY

step "the page, in a browser"
if [ -n "${IPW_SANITIZE-}" ]; then
    python3 - "$URL" "$GATE" <<'PY' || fail "the last figures" # the page is the same in every build
import json, sys, time, urllib.request
figures = {"ended": False}
urllib.request.urlopen(f"http://{sys.argv[2]}/open").read()
while not figures["ended"]:
    figures = json.load(urllib.request.urlopen(sys.argv[1] + "live.json", timeout=60))
    time.sleep(0.1)
assert figures["folder"] == "run" and figures["progress"]["done"] == 5, figures
PY
elif [ -z "$CHROMIUM" ] || ! command -v node >/dev/null; then
    echo "NOT OPENED in a browser: it needs Chromium and node (packages chromium, nodejs)"
    open_gate || fail "the gate"
else
    IPW_CHROMIUM=$CHROMIUM node "$IPW_SOURCE_DIR/tests/e2e/watch_page.mjs" "$URL" "$GATE" >out 2>err || fail "the page"
fi
wait $RUN || fail "the run: $(cat said)"
assert_file_lines said 1
assert_json run/manifest.json "not any('watch' in a for a in d['command']['args'])"

step "the same page shows the sensors without a run"
if [ -z "${IPW_SANITIZE-}" ] && [ -n "$CHROMIUM" ] && command -v node >/dev/null; then
    start_tree sensors --watts-package 80 --watts-dram 5 --interval-ms 5
    IPW_POWERCAP_ROOT="$WORK/sensors" "$IPW_AGENT" telemetry --listen 127.0.0.1:0 >listened 2>err &
    FAKES="$FAKES $!"
    await_lines listened
    url=$(sed -n 's|^listening \(http:.*\)/metrics$|\1/|p' listened)
    IPW_CHROMIUM=$CHROMIUM node "$IPW_SOURCE_DIR/tests/e2e/watch_page.mjs" "$url" >out 2>err || fail "the page of the sensors"
    stop_all
fi
end_test
