# A run's memory does not grow with the number of finished queries.
. "$(dirname "$0")/lib.sh"
[ -z "${IPW_SANITIZE-}" ] || skip "a sanitizer keeps what was freed"

awk 'BEGIN { for (i = 1; i <= 500; i++) printf "{\"question\":\"Question %d?\",\"answer\":\"42\"}\n", i }' >rows.jsonl
start_fake --bench 0

# peak EPOCHS: the largest resident size of a run over so many, in kB
peak() {
    rm -rf run
    python3 - "$IPW_AGENT" run single --dataset rows.jsonl --epochs "$1" --base-url "$BASE_URL" --model fake-model \
        --telemetry none --sync off --concurrency 8 --quiet --output run <<'END' >peak 2>err || fail "the run: $(cat err)"
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
print(usage.ru_maxrss)
sys.exit(status != 0)
END
    cat peak
}

step "2,000 queries and 20,000"
small=$(peak 4) || exit 1
assert_json run/summary.json "d['totals']['completed'] == 2000 and d['repeats']['tasks'] == 500"
large=$(peak 40) || exit 1
assert_json run/summary.json "d['totals']['completed'] == 20000 and d['repeats']['epochs'] == 40"
assert_json run/summary.json "d['statistics']['wall_clock_s']['n'] == 20000 and d['normalized_statistics']['wall_clock_s']['n'] == 18000"
# A row of 173 bytes each would be 3 MB, and its sorting as much again.
[ $((large - small)) -le 2048 ] || fail "$small kB for 2,000 queries, $large kB for 20,000"

step "nothing is left of the file with the rows"
assert_eq "$(find run -name '.rows*' | wc -l)" 0
rm -rf run # what validate has to say of so many is another test's matter

end_test
