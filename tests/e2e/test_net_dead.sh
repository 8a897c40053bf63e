# N-1 and N-14 in a network of our own: networks that swallow what is sent to them, a resolver that
# never answers, an IPv6 address that leads nowhere.
if [ -z "${IPW_IN_NAMESPACE-}" ]; then
    if ! unshare -n -m ip link set lo up 2>/dev/null; then
        echo "skipped: no network namespace can be made here (unshare -n -m needs root)"
        exit 77
    fi
    IPW_IN_NAMESPACE=1 exec unshare -n -m sh "$0"
fi
. "$(dirname "$0")/lib.sh"

ip link set lo up || skip "the loopback device cannot be set up"
# What is routed to the loopback device for an address that is not there is dropped.
ip route add 192.0.2.0/24 dev lo || skip "no routes can be added"
ip route add unreachable 198.51.100.0/24
ip -6 addr add 2001:db8::2/64 dev lo nodad || skip "no IPv6"
echo '{"question":"What is 40 + 2?","answer":"42"}' >one.jsonl
echo 'nameserver 192.0.2.53' >resolv.conf
printf '127.0.0.1 localhost\n2001:db8::1 half.test\n127.0.0.1 half.test\n' >hosts
echo 'hosts: files dns' >nsswitch.conf
for file in resolv.conf hosts nsswitch.conf; do
    mount --bind "$file" /etc/$file || skip "nothing can be mounted over /etc/$file"
done

# dead NAME URL: the look at the server before a run ends with a message, in its own time limit.
dead() {
    step "N-1 $1"
    expect_exit 1 agent run single --dataset one.jsonl --base-url "$2" --model m --max-retries 1 \
        --connect-timeout 300ms --output dead
    match_err "$TEXT"
}
IPW_LIMIT_S=20
TEXT='timeout|timed out|deadline|no connection|longer than' dead "a black hole" http://192.0.2.1:8000
TEXT='unreachable|connect' dead "an unreachable network" http://198.51.100.1:8000
TEXT='unreachable|connect' dead "no route at all" http://203.0.113.1:8000
TEXT='timeout|timed out|deadline|no connection|longer than|resolve' dead "a resolver that never answers" \
    http://model.test:8000

step "N-14 IPv6 present but dead: the other address is taken soon"
start_fake --bench 0
expect_exit 0 agent run single --dataset one.jsonl --base-url "http://half.test:$FAKE_PORT/v1" \
    --model fake-model --connect-timeout 5s --output half
assert_json half/traces.jsonl 'd[0]["completed"] and d[0]["answer"] == "42"'
assert_json half/events.jsonl '[e["outcome"] for e in d if e["event"] == "lm_inference_end"] == ["ok"]'
assert_json half/events.jsonl 'any(0 < e.get("connect_ns", 0) < 2.5e9 for e in d if e["event"] == "lm_inference_end") or any(e.get("reused") for e in d)'

step "N-1 in the middle of a run each attempt at a dead address is on record: times, bytes, joules"
"$(dirname "$IPW_FAKE")/fake_powercap" "$WORK/tree" --watts-package 80 --interval-ms 1 --seconds 120 \
    >tree.out 2>&1 &
FAKES="$FAKES $!"
for _ in $(seq 100); do
    [ -f tree/intel-rapl:0/energy_uj ] && break
    sleep 0.1
done
awk 'BEGIN { for (i = 1; i <= 4; i++) printf "{\"question\":\"What is 40 + %d?\",\"answer\":\"42\"}\n", i }' >four.jsonl
start_fake --bench 0 --delay-ms 700
IPW_POWERCAP_ROOT="$WORK/tree" expect_exit 0 agent run single --dataset four.jsonl --model fake-model \
    --base-url "$BASE_URL" --base-url http://192.0.2.1:8000 --base-url http://198.51.100.1:8000 \
    --base-url http://203.0.113.1:8000 --base-url http://model.test:8000 \
    --connect-timeout 300ms --max-retries 0 --model-host local --sample-interval 5ms --output among
cat >attempts.py <<'PY'
import json, trace_lines
events = [json.loads(line) for line in open("among/events.jsonl", encoding="utf-8")]
traces = [trace_lines.loads(line) for line in open("among/traces.jsonl", encoding="utf-8")]
starts = {(e["query"], e["span"]): e for e in events if e["event"] == "lm_inference_start"}
failed = [e for e in events if e["event"] == "lm_inference_end" and e["outcome"] != "ok"]
waits = {"192.0.2.1": "timeout", "198.51.100.1": "refused", "203.0.113.1": "refused", "model.test": "timeout"}
assert all(q["completed"] for q in traces)
for host, outcome in waits.items():
    at = [e for e in failed if host in e["endpoint"]]
    assert at, "no attempt at " + host
    for e in at:
        assert e["outcome"] == outcome and host in e["error"] and e["status"] == 0, e
        assert e["bytes_sent"] == e["bytes_received"] == 0 and e["will_retry"], e
        seconds = (e["t_ns"] - starts[e["query"], e["span"]]["t_ns"]) / 1e9
        assert seconds >= (0.29 if outcome == "timeout" else 0), e
        span, = [s for t in traces[e["query"]]["turns"] for s in t["spans"]
                 if s["kind"] == "lm" and s["id"] == e["span"]]
        cpu = span["energy"]["cpu"]
        assert span["outcome"] == outcome and cpu["joules"] is not None, span
        assert cpu["joules"] > 0.5 * 80 * seconds or seconds < 0.1, span
print(len(failed), "attempts at dead addresses")
PY
python3 attempts.py || fail "the attempts"

end_test
