# A server that closes its kept-alive connections after a streamed reply, without saying so: a request
# that meets the closed one is sent again at once, and is no failed attempt.
# Sanitizer: connections that end at any moment.
. "$(dirname "$0")/lib.sh"

start_closing() {
    rm -f closing.out
    mkfifo closing.out || fail "mkfifo"
    python3 "$IPW_SOURCE_DIR/tests/e2e/closing.py" "$1" >closing.out 2>closing.err &
    FAKES="$FAKES $!"
    word=
    read -r word port <closing.out
    [ "$word" = listening ] || fail "closing.py did not start: $(cat closing.err)"
    BASE_URL=http://127.0.0.1:$port/v1
}

seq 1 1000 | sed 's/.*/{"question":"What is & + &?","answer":"42"}/' >thousand.jsonl
for when in each second; do
    for at_once in 1 4; do
        step "1,000 turns, closed after $when, $at_once at once"
        start_closing $when
        expect_exit 0 agent run single --dataset thousand.jsonl --base-url "$BASE_URL" --max-retries 0 \
            --concurrency $at_once --output "$when-$at_once"
        assert_json "$when-$at_once/summary.json" 'd["totals"]["queries"] == d["totals"]["completed"] == 1000 and d["totals"]["retries"] == 0'
        assert_json "$when-$at_once/traces.jsonl" 'all(t["attempts"] == 1 and t["retry_wait_s"] == 0 for q in d for t in q["turns"])'
        assert_json "$when-$at_once/events.jsonl" '[e["outcome"] for e in d if e["event"] == "lm_inference_end"] == ["ok"] * 1000'
        # Sent again is marked, on a new connection, and its times are in order.
        assert_json "$when-$at_once/events.jsonl" 'all(not e.get("reused") for e in d if e.get("resent"))'
        assert_json "$when-$at_once/traces.jsonl" 'all(t["ttft_s"] > 0 for q in d for t in q["turns"])'
        stop_all
    done
done

# A request that is sent on a connection whose last reply came a moment ago, in one go of the program: it is held
# up after each write, so that the reply and the close are there when it looks.
if command -v strace >/dev/null && strace -f -o /dev/null true 2>/dev/null && [ -z "${IPW_SANITIZE-}" ]; then
    step "the connection is closed while the program is held up"
    start_closing second
    head -n 200 thousand.jsonl >some.jsonl
    strace -f -o /dev/null -e trace=sendto -e inject=sendto:delay_exit=1000 "$IPW_AGENT" run single --dataset some.jsonl \
        --base-url "$BASE_URL" --max-retries 0 --concurrency 4 --output held >out 2>err || fail "$(cat err)"
    assert_json held/events.jsonl '[e["outcome"] for e in d if e["event"] == "lm_inference_end"] == ["ok"] * 200'
    assert_json held/events.jsonl 'any(e.get("resent") for e in d)'
    stop_all
fi

end_test
