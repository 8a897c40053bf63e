# HTTP/2 against a server that is not ours: nghttpx, with TLS, before the fake server.  Streams arrive
# as they are sent, stamps are right, a cancelled request frees the server, breaks have their names.
. "$(dirname "$0")/lib.sh"
command -v openssl >/dev/null || skip "openssl is not installed"
PATH=$PATH:/usr/sbin # nghttpx lies there, and a user does not look there
command -v nghttpx >/dev/null || skip "nghttpx is not installed (Debian: nghttp2-proxy)"

openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -subj "/CN=test" -days 30 \
    -addext "subjectAltName=IP:127.0.0.1" >openssl.log 2>&1 || fail "openssl: $(tail -3 openssl.log)"
awk 'BEGIN { for (i = 1; i <= 5; i++) printf "{\"question\":\"What is %d + %d?\",\"answer\":\"42\"}\n", i, i }' >rows.jsonl

cat >cassette <<'C'
when 1 + 1
itl 150
reasoning so it is
text FINAL ANSWER: 42
usage 30 7
---
when 2 + 2
call calculator {"expression":"2+2"}
---
when 3 + 3
text a beginning without
stall
---
when 4 + 4
status 429
header Retry-After: 0.2
json {"error":{"message":"slow down"}}
---
when 5 + 5
text half an
delay 1500
reset
---
always
text FINAL ANSWER: 42
C
start_fake --script cassette
FRONT=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
nghttpx --conf=/dev/null --workers=1 --frontend="127.0.0.1,$FRONT" --backend="127.0.0.1,$FAKE_PORT" \
    --accesslog-file="$WORK/access.log" --accesslog-format='$alpn $status $request' \
    key.pem cert.pem >nghttpx.out 2>&1 &
FAKES="$FAKES $!"
URL=https://127.0.0.1:$FRONT/v1
python3 - "$FRONT" <<'PY' || fail "nghttpx does not listen: $(tail -3 nghttpx.out)"
import socket, sys, time
for _ in range(400):
    try:
        socket.create_connection(("127.0.0.1", int(sys.argv[1])))
        sys.exit(0)
    except OSError:
        time.sleep(0.05)
sys.exit(1)
PY
run() { # DIR ARGS...
    dir=$1
    shift
    expect_exit 0 agent run "$@" --dataset rows.jsonl --base-url "$URL" --cacert cert.pem \
        --model fake-model --output "$dir"
}
ENDS='[e for e in d if e["event"] == "lm_inference_end"]'

step "a streamed chat with calls; the events come one by one"
run chat tools --limit 2
assert_json chat/traces.jsonl 'all(q["completed"] and q["answer"] == "42" for q in d) and d[1]["turns"][0]["tools_called"] == ["calculator"]'
assert_json chat/traces.jsonl '(lambda t: 0.1 < t["chunk_gap_p50_s"] and t["ttft_s"] < t["ttfo_s"] < t["latency_content_s"] <= t["latency_close_s"] and t["output_tokens"] == 7)(d[0]["turns"][0])'
assert_eq "$(cut -d' ' -f1 access.log | sort -u)" h2 "(what was spoken)"

step "a cancelled query frees the server's stream"
run cancel single --limit 3-4 --query-timeout 3s
assert_json cancel/traces.jsonl '[q["outcome"] for q in d] == ["timeout", "answered"]'
for _ in $(seq 200); do
    grep -q ' gone$' "$FAKE_LOG" && break
    sleep 0.05
done
grep -q ' gone$' "$FAKE_LOG" || fail "the server was left with the stream"

step "a refusal was waited for and repeated; a broken stream has its name"
assert_json cancel/events.jsonl "[e['outcome'] for e in $ENDS] == ['cancelled', 'http_error', 'ok'] and $ENDS[1]['retry_wait_ns'] >= 2e8"
expect_exit 1 agent run single --limit 5-5 --dataset rows.jsonl --base-url "$URL" --cacert cert.pem \
    --model fake-model --output broken
assert_json broken/events.jsonl "[e['outcome'] for e in $ENDS] == ['cut']"

end_test
