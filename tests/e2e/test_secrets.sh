# S-5: a key never leaves the program in writing, whatever the server does with it.
. "$(dirname "$0")/lib.sh"

KEY='sk-Canary/7f+3Qz=="x\9Zz'
printf '%s' "$KEY" >key
export OPENAI_API_KEY="$KEY"
echo '{"question":"What is 40 + 2?","answer":"42"}' >rows.jsonl

python3 - <<'PY'
import base64, json, urllib.parse
key = open("key").read()
forms = {"plain": key, "json": json.dumps(key)[1:-1], "json2": json.dumps(json.dumps(key)[1:-1])[1:-1],
         "slash": json.dumps(key)[1:-1].replace("/", "\\/"), "percent": urllib.parse.quote(key, safe=""),
         "percent-lower": urllib.parse.quote(key, safe="").replace("%2F", "%2f").replace("%3D", "%3d")
             .replace("%2B", "%2b").replace("%5C", "%5c")}
# What of each base64 text stands for the key alone, at the three offsets.
for shift in range(3):
    whole = base64.b64encode(b"x" * shift + key.encode()).decode().rstrip("=")
    forms["base64-%d" % shift] = whole[(8 * shift + 5) // 6:8 * (shift + len(key)) // 6]
json.dump(forms, open("forms.json", "w"))
b64 = [base64.b64encode((p + key).encode()).decode() for p in ("", "a", "ab")]
said = "you sent %s, that is %s and %s, base64 %s" % (key, forms["percent"], forms["json"], " ".join(b64))
event = lambda delta, finish=None: "sse " + json.dumps({"choices": [
    {"index": 0, "delta": delta, "finish_reason": finish}]})
lines = ["status 401 Unauthorized", "header: X-Key: nothing"]
with open("echo", "w") as f:
    # 1: an error that quotes the key; 2: a reply, a thought and a tool call that do; 3: the answer
    f.write("status 500 Oops\ntype application/json\nheader X-Echo: %s\n" % key)
    f.write("body " + json.dumps({"error": {"message": "bad key: " + said}}).replace("\\", "\\\\") + "\n---\n")
    f.write(event({"reasoning_content": said}) + "\n" + event({"content": said}) + "\n")
    f.write(event({"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {
        "name": "python", "arguments": json.dumps({"code": "import os\nprint(dict(os.environ), " + repr(key) + ")"})}}]}) + "\n")
    f.write(event({}, "tool_calls") + "\n")
    f.write("sse " + json.dumps({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}) + "\ndone\n---\n")
    f.write(event({"content": said + "\nFINAL ANSWER: " + key}) + "\n" + event({}, "stop") + "\ndone\n")
with open("models", "w") as f:
    f.write("path /v1/models\nalways\njson " + json.dumps({"data": [{"id": "m-" + key}]}) + "\n---\n")
    f.write("always\nstatus 401 No\ntype application/json\nbody " + json.dumps(
        {"error": {"message": "Incorrect API key provided: " + said}}).replace("\\", "\\\\") + "\n")
PY

# No file below DIR, nor what was printed, holds the key in any form.
clean() {
    python3 - "$@" <<'PY' || fail "the key was written"
import json, os, sys
forms = json.load(open("forms.json"))
bad = False
paths = ["out", "err"]
for top in sys.argv[1:]:
    for folder, _, files in os.walk(top):
        paths += [os.path.join(folder, f) for f in files]
for path in paths:
    data = open(path, "rb").read()
    for name, form in forms.items():
        if form.encode() in data:
            print(path, "holds the key:", name, file=sys.stderr)
            bad = True
sys.exit(bad)
PY
}

step "the server sends the key back in errors, text, thoughts, calls; a tool prints its environment"
start_fake --script echo
expect_exit 0 agent run tools --tools python --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model \
    --max-retries 3 --verbose --output run
clean run
expect_exit 0 agent replay run
check_out "***"
assert_contains run/events.jsonl "***"
assert_json run/events.jsonl '[e["outcome"] for e in d if e["event"] == "lm_inference_end"] == ["http_error", "ok", "ok"]'
assert_json run/traces.jsonl 'd[0]["completed"] and "***" in d[0]["response_text"] and d[0]["turns"][0]["tools_called"] == ["python"]'
# The server did get it: the test tests something.
grep -qF "Bearer $KEY" "$FAKE_LOG" || grep -q "Authorization: Bearer" "$FAKE_LOG" || echo "note: the fake's log does not show headers"

step "replay and export print what the files hold"
expect_exit 0 agent replay run
clean run
expect_exit 0 agent export run
clean run

step "a model list and a refusal that quote it"
start_fake --script models
expect_exit 1 agent run single --dataset rows.jsonl --base-url "$BASE_URL" --output refused
clean refused

step "a key with a line break is refused, and not printed"
OPENAI_API_KEY="$(printf 'sk-first-half\nsk-second-half')"
expect_exit 2 agent run single --dataset rows.jsonl --base-url "$BASE_URL" --model m --output never
one_message
no_err sk-first
no_err sk-second
OPENAI_API_KEY=$KEY

step "a key in --body, in a --header and in an address is masked, and the run is gone on with when it is given again"
start_fake --bench 0
body='{"api_key":"body-canary-0123456789","metadata":{"password":"inner-canary-0123456789"},"top_k":7}'
expect_exit 0 agent run single --dataset rows.jsonl --base-url "$BASE_URL" --model m --output bodied --limit 1 \
    --body "$body" --header 'X-Api-Key: header-canary-0123456789' --header 'X-Route: north-by-north-west'
grep -rqE '(body|inner|header)-canary' bodied out err && fail "a secret of an option was written"
assert_json bodied/manifest.json 'json.loads(d["config"]["body"]) == {"api_key": "***", "metadata": {"password": "***"}, "top_k": 7}'
# The server did get it.
grep -qF body-canary-0123456789 "$FAKE_LOG" || fail "the body was not sent as it was given"
rm bodied/summary.json && sed -i '$d' bodied/traces.jsonl
expect_exit 2 agent resume bodied
check_err "the value of --body was not written down, being secret: give it again"
expect_exit 0 agent resume bodied --body "$body" --header 'X-Api-Key: header-canary-0123456789'
expect_exit 2 agent run single --dataset rows.jsonl --model m --output never \
    --base-url "http://127.0.0.1:1/v1?api_key=query-canary-0123456789"
no_err query-canary
check_err "api_key=***"
expect_exit 2 agent run single --dataset rows.jsonl --model m --output never --base-url "$BASE_URL" --body "$body,"
no_err body-canary
expect_exit 2 agent run "https://me:url-canary-0123456789@host/?token=tok-canary-0123456789" --dataset rows.jsonl --nothing
no_err canary

step "nothing of it on a command line"
start_fake --bench 0 --delay-ms 1500
"$IPW_AGENT" run single --dataset rows.jsonl --base-url "$BASE_URL" --model m --output ps \
    >out 2>err </dev/null &
RUN_PID=$!
# The request's arrival in the log is the sign that everything is started.
for _ in $(seq 200); do
    [ -s "$FAKE_LOG" ] && break
    sleep 0.02
done
cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n' >cmdlines
wait $RUN_PID || fail "the run failed"
assert_lacks cmdlines "sk-Canary"

step "a sensor's command and the demo server get no key"
expect_exit 0 agent run single --dataset rows.jsonl --model demo --output sensed --telemetry \
    "exec=env >sensor.env; sleep 0.2; for p in \$(cat /proc/\$PPID/task/*/children); do cat /proc/\$p/environ; done >children.env; while echo 5; do sleep 0.05; done"
assert_contains sensor.env "HOME="
# The demo server is not dumpable: to an ordinary user its environment is closed altogether.
[ "$(id -u)" -ne 0 ] || assert_contains children.env "IPW_TOOL_ID="
for file in sensor.env children.env; do
    assert_lacks $file OPENAI_API_KEY
    assert_lacks $file sk-Canary
done

step "a proxy is announced, without its password; loopback goes around it"
start_fake --bench 0
http_proxy="http://me:proxy-password-1@127.0.0.1:1/" expect_exit 0 agent run single \
    --dataset rows.jsonl --base-url "$BASE_URL" --model m --output loop
no_err "proxy"
https_proxy="http://me:proxy-password-1@127.0.0.1:1/" expect_exit 1 agent run single \
    --dataset rows.jsonl --base-url https://model.invalid/v1 --model m --output proxied
check_err "requests to https://model.invalid/v1 go through the proxy http://127.0.0.1:1/"
no_err "proxy-password-1"
clean loop

end_test
