# Exports of records that are large, that lack what servers did not tell, or that cannot be read.
# Sanitizer: records that are large or lack something.
. "$(dirname "$0")/lib.sh"

cat >make.py <<'EOF'
"""make.py OUT COUNT TELL: a record of COUNT queries of one or two requests, all begun at once; with TELL `no` its server
told no tokens, with `some` of every other request."""
import json, os, sys
out, count, tell = sys.argv[1], int(sys.argv[2]), sys.argv[3]
os.mkdir(out)
json.dump({"config": {"agent": "x", "concurrency": 4}, "status": "complete", "schema_version": 1}, open(out + "/manifest.json", "w"))
with open(out + "/events.jsonl", "w") as f:
    def line(event, t, **more):
        print(json.dumps(dict(more, event=event, t_ns=t), sort_keys=True, separators=(",", ":")), file=f)
    line("run_start", 1, query=-1)
    for q in range(count):
        line("query_start", 2, query=q, id="q%04d" % q, data={"prompt": "p"})
    for turn in range(2):
        for q in range(count):
            if turn and q % 3: continue
            told = tell == "yes" or tell == "some" and q % 2
            text = ("same for all " if q % 5 == 0 else "question %d " % q) * (400 if q % 5 else 100)
            line("lm_inference_start", 3 + turn * 10**9, query=q, span=turn * 2 + 1, attempt=1, model="m",
                 data={"messages": [{"role": "user", "content": text}], "messages_kept": turn,
                       "request": {"tools": [{"type": "function", "function": {"name": "f"}}]} if q % 2 else {}})
            line("lm_inference_end", 4 + turn * 10**9, query=q, span=turn * 2 + 1, attempt=1, outcome="ok", calls=0,
                 **({"input_tokens": len(text) // 4, "output_tokens": 9} if told else {}), data={"text": "a", "calls": []})
    for q in range(count):
        line("query_end", 5 + 10**9, query=q, id="q%04d" % q, completed=True, outcome="answered", data={"response": "a"})
    line("run_end", 6 + 10**9, query=-1)
EOF
for tell in yes some no; do
    step "mooncake, tokens told: $tell"
    python3 make.py big$tell 300 $tell
    damaged big$tell
    expect_exit 0 agent export big$tell --format mooncake -o $tell.jsonl
    assert_file_lines $tell.jsonl 400
    python3 - $tell.jsonl <<'PY' || fail "the lines"
import json, sys
rows = [json.loads(l) for l in open(sys.argv[1])]
assert [r["timestamp"] for r in rows] == sorted(r["timestamp"] for r in rows)
assert all(r["input_length"] > 0 and len(r["hash_ids"]) == -(-r["input_length"] // 512) for r in rows), "blocks"
same = [tuple(r["hash_ids"]) for r in rows if "session_id" not in r]
assert len(set(same)) < len(same), "equal prompts have equal blocks"
ids = sorted({i for r in rows for i in r["hash_ids"]})
assert ids == list(range(len(ids))), "numbered from 0 without a gap"
PY
    case $tell in yes) no_err guessed ;; *) check_err "they are guessed" ;; esac
    # what was written can be replayed
    expect_exit 0 agent replay $tell.jsonl --mode workload --model demo --limit 3 --speed 1000 --output again$tell
done

step "records without a request, and records that break off"
python3 make.py none 0 yes
damaged none
expect_exit 3 agent export none --format mooncake
check_err "none: contains no request"
expect_exit 3 agent export none
for change in 's/"messages":/"massages":/' 's/"content":"[^"]*"/"content":7/' 's/"tools":\[.*\]}/"tools":5}/' 's/"span":1/"span":0/' \
    's/"query":1,/"query":-5,/' '5s/.*/nonsense/' '$d' 's/"t_ns":3/"t_ns":-3/'; do
    step "mooncake of a record changed by $change"
    rm -rf odd
    cp -r bigyes odd
    damaged odd
    sed -i "$change" odd/events.jsonl
    "$IPW_AGENT" export odd --format mooncake >out 2>err
    case $? in 0) ;; 3) check_err odd/ ;; *) fail "exit status" ;; esac
done

step "what was said is left out, of a whole run and of its lines; a folder that is there is left alone"
printf '{"question":"A secret question?","answer":"42"}\n' >rows.jsonl
start_fake --bench 1
expect_exit 0 agent run tools --dataset rows.jsonl --base-url "$BASE_URL" --model fake-model -q --warmup 1 --output run
for what in text tools all; do
    expect_exit 0 agent export run --format run --redact $what -o shared-$what
    expect_exit 0 agent validate shared-$what
    expect_exit 0 agent export run --redact $what -o lines-$what
    [ $what = tools ] || { ! grep -rq "secret question" shared-$what lines-$what || fail "$what: it is there"; }
    expect_exit 1 agent export run --format run --redact $what -o shared-$what
    check_err "shared-$what"
done
: >taken
expect_exit 1 agent export run --format run --redact all -o taken
check_err taken
expect_exit 1 agent export run --format run --redact all -o taken/below
expect_exit 3 agent export taken --format run --redact all -o x
expect_exit 3 agent export nowhere --format run --redact all -o x
for file in manifest.json events.jsonl traces.jsonl power.jsonl; do
    rm -rf bad x
    cp -r run bad
    damaged bad
    [ -f bad/$file ] || continue
    sed -i '1s/^./?/' bad/$file
    "$IPW_AGENT" export bad --format run --redact all -o x >out 2>err
    case $? in 3) check_err "bad/$file" ;; *) fail "$file was taken" ;; esac
    damaged x
done

end_test
