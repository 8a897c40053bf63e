# tests/e2e/attacks.sh: the rows for attacks.lua and what must come of them; sourced after lib.sh.
#
#   write_attack_rows FILE    an attack, then a good query, in turns
#   check_attacks RUN         outcomes and answers in RUN/traces.jsonl

attack_ids="
L-1:loop=cpu L-1:pcall_loop=cpu L-1:xpcall_loop=cpu L-1:co_loop=cpu L-1:co_premade=cpu
L-1:sort_loop=cpu L-1:gsub_loop=cpu L-1:meta_loop=cpu L-1:close_loop=cpu L-1:tostring_loop=cpu
L-1:map_loop=cpu L-1:gc_loop=answered L-1:gc_late=answered L-1:pattern_loop=cpu
L-1:rep_empty=answered L-1:move_hang=answered L-1:insert_hang=answered L-1:sort_hang=answered
L-1:concat_long=answered L-1:find_long=answered L-1:chunks=answered
L-2:double=memory L-2:tables=memory L-2:mem_pcall=memory L-2:coroutines=memory
L-2:gsub_swell=memory L-2:concat_bomb=memory L-2:pack_bomb=memory L-2:json_bomb=memory,cpu,error
L-2:weak_meta=memory
L-3:deep=memory,error L-3:deep_meta=error,cpu,memory L-3:deep_co=error L-3:deep_gsub=answered
L-3:deep_map=answered L-3:deep_json=answered L-3:deep_parens=answered L-3:field_chain=answered
L-3:close_chain=answered,memory L-3:unpack_bomb=answered,memory
L-4:reach=answered L-4:bytecode=answered L-4:addresses=answered L-4:files=answered
L-4:request_meta=answered L-4:validate_meta=answered
L-5:pattern=answered L-5:trim=answered L-6:globals=answered
L-8:raise_nil=error L-8:raise_table=error L-8:raise_function=error L-8:raise_long=error
L-8:raise_escape=error L-8:raise_loop=error
L-9:alien_yield=error L-9:yield_sort=error L-9:yield_close=error L-9:two_tasks=answered
L-9:dead_task=answered L-9:returns_nothing=no_answer"

write_attack_rows() {
    n=0
    for attack in $attack_ids; do
        id=${attack%=*}
        n=$((n + 1))
        printf '{"id":"%s","question":"%s","answer":"42"}\n' "$id" "${id#*:}"
        printf '{"id":"good-%d","question":"good","answer":"42"}\n' $n
    done >"$1"
}

check_attacks() {
    step "outcomes"
    wrong=$(python3 - "$1/traces.jsonl" $attack_ids <<'PY'
import json, sys
traces = {q["query_id"]: q for q in map(json.loads, open(sys.argv[1], encoding="utf-8"))}
for attack in sys.argv[2:]:
    name, wanted = attack.split("=")
    got = traces.get(name, {"outcome": "not there", "error": None})
    if got["outcome"] not in wanted.split(","):
        print(f"{name}: {got['outcome']} ({got['error']}) instead of {wanted}")
PY
    )
    [ -z "$wrong" ] || fail "$wrong"
    step "those beside the attacks"
    assert_json "$1/traces.jsonl" \
        "all(q['outcome'] == 'answered' and q['is_resolved'] for q in d if q['query_id'].startswith('good'))"
    assert_json "$1/traces.jsonl" "all(q['is_resolved'] for q in d if q['outcome'] == 'answered')"
    assert_json "$1/traces.jsonl" "len(d) == len({q['query_id'] for q in d}) == $(wc -l <rows.jsonl)"
}
