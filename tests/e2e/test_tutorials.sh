# The tutorials, as a reader runs them: every line of their sh blocks in order, in a fresh folder, with
# the demo model as the server of port 8000 and simulated sensors.  Lines of other programs (vllm, sbatch)
# are not run, nor, where rsvg-convert is missing, figures that it makes; waiting is shortened.
. "$(dirname "$0")/lib.sh"
PAGES=$IPW_SOURCE_DIR/docs/tutorials
export IPW_NVML_LIBRARY="$(dirname "$IPW_FAKE")/libnvidia-ml-stub.so" IPW_STUB_NVML="$WORK/gpu.txt"
cat >gpu.txt <<'EOF'
device GPU-00000000-0000-0000-0000-000000000001 Stub_H200 700000
energy 0 counter watts=300 period_ms=20
EOF
mkdir bin
ln -s "$IPW_AGENT" bin/ipw-agent
PATH="$WORK/bin:$PATH"
start_serve --ttft 60ms

command -v rsvg-convert >/dev/null && NO_FIGURE=never || NO_FIGURE='plot .*pdf$'

# The sh blocks of a page; a line may go on over a here document.
commands() {
    awk '/^```sh$/ { on = 1; next } /^```$/ { on = 0 } on' "$1" |
        sed -e "s|http://127.0.0.1:8000/v1|$BASE_URL|; s/--baseline 30s/--baseline 1s/; s/--model [^ ]*/--model demo/" \
            -e 's/^\(vllm\|sbatch\) /: /' |
        grep -Ev "$NO_FIGURE"
}

# A meter's log around a run: 60 W idle and 180 W more while the model works.
meter_log() {
    python3 - "$1" >meter.csv <<'PY'
import json, sys, trace_lines
clock = json.load(open(sys.argv[1] + "/manifest.json"))["clock"]
wall = lambda ns: (clock["wall_ns"] + ns - clock["mono_ns"]) / 1e9
busy = []
for line in open(sys.argv[1] + "/traces.jsonl"):
    q = trace_lines.loads(line)
    start = wall(q["start_ns"])
    busy += [(start + s["start_s"], start + s["end_s"]) for t in q["turns"] for s in t["spans"] if s["kind"] == "lm"]
first, last = min(a for a, b in busy), max(b for a, b in busy)
print("time,watts")
t = first - 3
while t < last + 3:
    t += 0.05
    share = sum(max(0, min(t, b) - max(t - 0.05, a)) for a, b in busy) / 0.05
    print("%.3f,%.3f" % (t, 60 + 180 * share))
PY
}

for page in "$PAGES"/*.md; do
    name=$(basename "$page" .md)
    [ "$name" != README ] || continue
    assert_contains "$PAGES/README.md" "($name.md)"
    step "$name"
    mkdir "$WORK/$name"
    cd "$WORK/$name" || fail "cd"
    if [ "$name" = wall-meter ]; then # it goes on from the page before, and its logger runs beside it
        cp "$WORK/two-models/questions.jsonl" . || fail "questions"
    fi
    commands "$page" >all.sh
    grep -q '^ipw-agent ' all.sh || fail "no command in $page"
    # One piece a command, so that a failure names it.
    awk 'open { print > file; if ($0 == "END") { open = 0; close(file) } next }
        NF { file = sprintf("%03d.sh", ++n); print > file; if (/<</) open = 1; else close(file) }' all.sh
    for piece in [0-9]*.sh; do
        case $(cat "$piece") in
        *'meter.csv'*) [ -f meter.csv ] || meter_log runs/metered ;;
        esac
        timeout -k 5 120 sh -eu "$piece" >"$WORK/out" 2>"$WORK/err" </dev/null || fail "exit status $?: $(cat "$piece")"
    done
    cd "$WORK" || fail "cd"
done

step "what the pages promise"
assert_json two-models/runs/small/summary.json 'd["totals"]["queries"] == 12'
assert_json vllm-box/runs/first/traces.jsonl 'all(q["energy"]["gpu"]["joules"] > 0 for q in d)'
assert_json slurm-array/runs/big/summary.json 'd["totals"]["queries"] == 22'
assert_contains slurm-array/big.slurm "#SBATCH --gres=gpu:1"
for file in small.html both.html breakdown.svg pareto.pdf pareto.caption.txt; do
    [ -s "figure/$file" ] || [ "$NO_FIGURE" != never ] || fail "$file is missing"
done
assert_json own-tool/runs/mine/traces.jsonl 'len(d) == 1'
stop_serve
end_test
