# N-14: many connections at once, and a machine that has no room for them: what does not fit waits or asks
# again.  (IPv6 that leads nowhere: test_net_dead.sh.)
if [ -z "${IPW_IN_NAMESPACE-}" ] && unshare -n ip link set lo up 2>/dev/null; then
    IPW_IN_NAMESPACE=1 exec unshare -n sh "$0"
fi
. "$(dirname "$0")/lib.sh"
[ -z "${IPW_IN_NAMESPACE-}" ] || ip link set lo up || skip "the loopback device cannot be set up"

awk 'BEGIN { for (i = 1; i <= 512; i++) printf "{\"question\":\"What is %d?\",\"answer\":\"42\"}\n", i }' >many.jsonl
most() { # the most requests that the fake server had at once
    python3 -c 'import json, sys, urllib.request
print(json.load(urllib.request.urlopen(sys.argv[1]))["in_flight_max"])' "${BASE_URL%/v1}/stats"
}
all_answered() {
    assert_file_lines "$1/traces.jsonl" "$2"
    assert_json "$1/traces.jsonl" 'all(q["completed"] for q in d)'
    assert_json "$1/events.jsonl" 'all(e["outcome"] == "ok" for e in d if e["event"] == "lm_inference_end")'
}

step "N-14 512 connections at once"
ulimit -n 4096 2>/dev/null || skip "no 4,096 descriptors here"
start_fake --bench 0 --delay-ms 1 --gather 512
expect_exit 0 agent run single --dataset many.jsonl --base-url "$BASE_URL" --model fake-model \
    --concurrency 512 --output crowd
all_answered crowd 512
assert_eq "$(most)" 512 "(requests at once)"

step "N-14 64 descriptors for 200 queries: the rest waits its turn"
start_fake --bench 0 --delay-ms 200
IPW_WRAP="prlimit --nofile=64:64" expect_exit 0 agent run single --dataset many.jsonl --limit 200 \
    --base-url "$BASE_URL" --model fake-model --concurrency 200 --output few --max-retries 0
all_answered few 200
[ "$(most)" -gt 8 ] || fail "$(most) at once"

step "N-14 16 ports for 100 queries: who finds none asks again, and is told so"
[ -n "${IPW_IN_NAMESPACE-}" ] || { echo "note: ports not tried (no network namespace: unshare -n)"; end_test; }
start_fake --bench 0 --delay-ms 200
echo "50000 50015" >/proc/sys/net/ipv4/ip_local_port_range || fail "the range of ports"
expect_exit 0 agent run single --dataset many.jsonl --limit 100 --base-url "$BASE_URL" --model fake-model \
    --concurrency 100 --output ports
assert_file_lines ports/traces.jsonl 100
assert_json ports/traces.jsonl 'sum(q["completed"] for q in d) >= 16'
assert_json ports/traces.jsonl 'all(q["completed"] or "give a smaller --concurrency" in q["error"] for q in d)'
assert_json ports/events.jsonl 'any("no descriptor or port left" in (e.get("error") or "") for e in d if e["event"] == "lm_inference_end")'
# The question about it needs a port too, and those of closed connections stay taken for a while.
echo "32768 60999" >/proc/sys/net/ipv4/ip_local_port_range || fail "the range of ports"
[ "$(most)" -le 16 ] || fail "$(most) at once through 16 ports"

end_test
