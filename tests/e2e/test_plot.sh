# Figures of saved runs: every kind in every format, from the user's texts nothing is executed, and without gnuplot a
# message names the package.
. "$(dirname "$0")/lib.sh"

start_tree tree --watts-package 80 --watts-dram 5 --interval-ms 1
export IPW_POWERCAP_ROOT="$WORK/tree"
expect_exit 0 agent run react --dataset gaia-sample --model demo --sample-interval 5ms --concurrency 2 --baseline 300ms -o one -q
expect_exit 0 agent run react --dataset gaia-sample --model demo --sample-interval 5ms --seed 2 -o two -q

step "scripts with their data, without gnuplot"
mkdir empty
for kind in breakdown timeline waterfall density ecdf scatter tools; do
    expect_exit 0 env PATH="$WORK/empty" "$IPW_AGENT" plot one --kind $kind -o $kind.gp
    [ -s $kind.gp ] && [ -s $kind.caption.txt ] || fail "$kind: no script or no caption"
    assert_lacks $kind.gp "[^a-z]nan[^a-z]"
done
python3 - <<'PY' || fail "the bounds in a caption"
import json, re
bounds = json.load(open("one/summary.json"))["totals"]["bounds"]
for kind in ("breakdown", "density", "ecdf", "tools", "timeline", "scatter", "waterfall"):
    m = re.search(r"Sensor bounds: (\S+) to (\S+) (m|k|)J for all queries \(u (\S+) (m|k|)J\); a query's own within \u00b1\S+ % \(median\)\.\n",
                  open(kind + ".caption.txt").read())
    size = {"m": 1e-3, "": 1, "k": 1e3}
    lo, hi, u = float(m[1]) * size[m[3]], float(m[2]) * size[m[3]], float(m[4]) * size[m[5]]
    want = [sum(bounds[d + "_energy_joules"][k] for d in ("cpu", "dram")) for k in ("lo", "hi", "u")]
    assert abs(hi - want[1]) < 0.01 * want[1] and abs(lo - want[0]) < 0.01 * want[1] and u < 1.01 * want[2], (m[0], want)
PY
expect_exit 1 env PATH="$WORK/empty" "$IPW_AGENT" plot one --kind breakdown -o none.svg
check_err "apt-get install gnuplot-nox"
[ ! -e none.svg ] || fail "a figure that was not drawn"

step "the joules of the breakdown are those of the run"
python3 - <<'PY' || fail "breakdown"
import json, re
s = json.load(open("one/summary.json"))
total = sum(p["joules"][d] for p in s["parts"] for d in ("cpu", "dram"))
assert abs(total - sum(s["accounts"][d]["attributed_j"] for d in ("cpu", "dram"))) < 1e-3
# the bar of all parts, end to end
bars = [(float(a), float(b)) for a, b in re.findall(r"rect from first (\S+), first -1.5 to first (\S+), first -0.3", open("breakdown.gp").read())]
assert len(bars) == len(s["parts"]) and bars[0][0] == 0 and abs(bars[-1][1] - total) < 1e-3 * max(1, total), (bars, total)
assert all(abs(a[1] - b[0]) < 1e-6 * total for a, b in zip(bars, bars[1:])), bars
# power over time: all devices that were measured, stacked; their mean is the run's, as far as bins of 200 ms tell
stacks = re.findall(r"\$data(\d+) << EOD\n(.*?)\nEOD", open("timeline.gp").read(), re.S)
assert len(stacks) == 2
rows = [[float(x) for x in line.split()] for line in stacks[-1][1].split("\n")]
known = [row[2] for row in rows if row[2] == row[2]]
assert known and all(row[2] >= row[1] or row[2] != row[2] for row in rows), rows
# the idle line is the baseline's; the lanes' labels begin with the numbers of the queries, whose ids are long
timeline = open("timeline.gp").read()
idle = sum(s["baseline"]["domains"][d]["before_w"] for d in ("cpu", "dram"))
line = re.search(r"set arrow from graph 0, first (\S+) to graph 1, first (\S+) nohead lw 0.8 dt 2", timeline)
assert line and abs(float(line[1]) - idle) < 1e-6 * idle and line[1] == line[2], (line, idle)
assert f"set label 'idle {idle:.3g} W'" in timeline
queries = [json.loads(l) for l in open("one/traces.jsonl")]
labels = [int(n) for n in re.findall(r"set label '(\d+)(?: [✓✗!][^']*)?' at first", timeline)]
assert labels and len(set(labels)) == len(labels) and set(labels) <= set(range(1, len(queries) + 1)), labels
# every point of the scatter has the bounds of its joules
rows = re.findall(r"\$data(\d+) using 1:3:\(0\):\(\$4-\$3\) with vectors heads", open("scatter.gp").read())
blocks = dict(re.findall(r"\$data(\d+) << EOD\n(.*?)\nEOD", open("scatter.gp").read(), re.S))
whiskers = sorted(tuple(float(x) for x in l.split()[1:]) for n in rows for l in blocks[n].split("\n"))
def bounds(q): return tuple(sum(q["energy"][d][k] for d in ("cpu", "dram")) for k in ("joules", "lo", "hi"))
wanted = sorted(bounds(q) for q in queries if all(q["energy"][d]["joules"] is not None for d in ("cpu", "dram")))
assert len(whiskers) == 2 * len(wanted), (len(whiskers), len(wanted))
assert all(abs(a - b) <= 1e-6 * max(1, b) for w, q in zip(whiskers[::2], wanted) for a, b in zip(w, q)), whiskers
PY

step "the user's own"
expect_exit 0 agent new plot mine
expect_exit 0 agent check plots/mine.lua
expect_exit 0 agent test plots/mine_test.lua
expect_exit 0 agent plot one --kind mine -o mine.gp
assert_contains mine.caption.txt 'a dot for each of '
printf 'return { name = "odd", about = "x", runs = { 1, 1 }, height = 2, drew = 1 }\n' >odd.lua
expect_exit 3 agent plot one --kind ./odd.lua -o odd.gp
check_err "unknown field 'drew' (name, about"
check_err "(did you mean 'draw'?)"

step "a query is named as replay names it, and as a screen shows it"
id=$(json one/traces.jsonl "d[1]['query_id']") index=$(json one/traces.jsonl "d[1]['query_index']")
expect_exit 0 agent plot one --kind waterfall --query "$id" -o by-id.gp
for name in "$index" "${id%?}…"; do
    expect_exit 0 agent plot one --kind waterfall --query "$name" -o by-name.gp
    expect_exit 0 agent replay one --query "$name"
    cmp by-id.gp by-name.gp || fail "another query is meant by $name"
done

step "wrong usage"
expect_exit 2 agent plot one -o x.svg
check_err "--kind is missing"
expect_exit 2 agent plot one --kind breakdown -o x.gif
check_err "ends in .svg, .pdf, .png, .tex or .gp"
expect_exit 2 agent plot one --kind brakdown -o x.svg
check_err "did you mean 'breakdown'?"
expect_exit 2 agent plot one --kind paired -o x.svg
check_err "takes 2 runs, not 1"
expect_exit 3 agent plot one --kind waterfall --query nobody -o x.svg
check_err 'there is no query "nobody"'
expect_exit 3 agent plot nowhere --kind ecdf -o x.svg
expect_exit 3 agent plot . --kind ecdf -o x.svg
check_err ".: is no run, but a folder of "
check_err ": name one, such as ./"
expect_exit 0 agent plot --list
check_out "pareto "

if ! command -v gnuplot >/dev/null; then
    echo "skipped: gnuplot is not installed (apt-get install gnuplot-nox); its pictures are not tested"
    end_test
    exit 0
fi

step "every kind as a picture"
for kind in breakdown timeline waterfall density ecdf scatter tools; do
    expect_exit 0 agent plot one --kind $kind -o $kind.svg
done
expect_exit 0 agent plot one two --kind paired -o paired.svg
expect_exit 0 agent plot one two --kind pareto --wide -o pareto.svg
python3 - <<'PY' || fail "a picture is no XML, or an empty one"
import glob, xml.etree.ElementTree as ET
pictures = glob.glob("*.svg")
assert len(pictures) == 9, pictures
for name in pictures:
    marks = [e for e in ET.parse(name).iter() if e.tag.rsplit("}")[-1] in ("path", "polygon", "use", "circle")]
    assert len(marks) > 5, name
PY
expect_exit 0 agent plot one --kind breakdown -o again.svg
cmp breakdown.svg again.svg || fail "the same run gives another picture"
for format in pdf png tex; do
    expect_exit 0 agent plot one --kind ecdf -o figure.$format
    [ -s figure.$format ] || fail "$format is empty"
done
head -c 4 figure.pdf | grep -q %PDF || fail "no PDF"

step "texts of users are only shown"
cp -r one evil
damaged evil
python3 - <<'PY'
import json, trace_lines
lines = [trace_lines.loads(l) for l in open("evil/traces.jsonl")]
text = "`touch pwned`' \"; system('touch pwned')\n_^{a}~@"
for q in lines:
    q["query_id"] = text + q["query_id"]
    for p in q["parts"]:
        if p["part"] == "tool": p["name"] = text
    for t in q["turns"]:
        for s in t["spans"]:
            if s["kind"] == "tool": s["name"] = text
open("evil/traces.jsonl", "w").write("".join(json.dumps(q, sort_keys=True) + "\n" for q in lines))
PY
for kind in breakdown tools waterfall timeline; do
    expect_exit 0 agent plot evil --kind $kind -o evil.svg
    [ ! -e pwned ] || fail "$kind executed a text"
done
expect_exit 0 agent plot evil evil --kind paired -o evil.svg
[ ! -e pwned ] || fail "paired executed a text"
end_test
