# Figures of saved runs of many shapes: every kind in every format, no text leaves a figure or lies over another, the
# numbers are the page's, texts of others are only shown, and without rsvg-convert the figure is there as SVG.
. "$(dirname "$0")/lib.sh"
shapes="one four small large middle many spans folded sessions none long"
# shellcheck disable=SC2086 # a list of words
python3 "$IPW_SOURCE_DIR/tests/e2e/saved_runs.py" . $shapes || fail "no saved runs"
# shellcheck disable=SC2086
damaged $shapes

step "every kind of every shape, at the widths of paper and of a page"
for shape in $shapes; do
    expect_exit 0 agent plot "$shape" --kind "$IPW_SOURCE_DIR/tests/e2e/figures.lua" -o all.svg
done
expect_exit 0 agent plot small large --kind "$IPW_SOURCE_DIR/tests/e2e/figures.lua" -o all.svg
for kind in compare pareto paired; do assert_contains all.caption.txt "$kind"; done
expect_exit 0 agent plot small large middle four small none --kind "$IPW_SOURCE_DIR/tests/e2e/figures.lua" -o all.svg

step "the parts of the figure are those of the page, and sum to what the sensors counted"
for kind in breakdown waterfall timeline scatter distribution; do
    expect_exit 0 agent plot small --kind $kind -o $kind.svg
    expect_exit 0 agent plot small --kind $kind --wide -o $kind-wide.svg
done
expect_exit 0 agent report small -o small.html
python3 - <<'PY' || fail "page and figure differ"
import csv, html, io, json, re
summary = json.load(open("small/summary.json"))
texts = [html.unescape(t) for t in re.findall(r"<text[^>]*>([^<]*)</text>", open("breakdown-wide.svg").read())]
page = open("small.html").read()
table = re.search(r'<table class="parts">(.*?)</table>', page, re.S)[1]
rows = re.findall(r"<tr[^>]*>(.*?)</tr>", table.split("<tbody>")[1], re.S)
cells = [[html.unescape(re.sub("<[^>]*>", "", re.sub(r'<span class="nojs">.*?</span>', "", c))) for c in
          re.findall(r"<td[^>]*>(.*?)</td>", row, re.S)] for row in rows]
for row in cells:
    assert row[1] + " J" in texts, (row, texts)
parts = list(csv.DictReader(io.StringIO(json.loads(re.search(r'id="csv-energy">(.*?)</script>', page)[1]))))
total = sum(summary["ledger"][d]["total_j"] for d in ("gpu", "cpu", "dram"))
assert abs(sum(float(r["value"]) for r in parts) - total) < 1e-4 and {"idle, no query in flight"} <= {r["part"] for r in parts}
# the power of the figure and of the page are means of the same bins; medians of the distributions are the page's
columns = json.loads(re.search(r'id="columns">(.*?)</script>', page)[1])
own = sorted(j / 1000 for j, m in zip(columns["own"], columns["mark"]) if m == 0)
median = own[len(own) // 2] if len(own) % 2 else (own[len(own) // 2 - 1] + own[len(own) // 2]) / 2
assert f"right: median {median:.0f} J" in open("distribution.caption.txt").read(), median
# the dearest query above idle is the one that is drawn
best = columns["ids"][columns["own"].index(max(columns["own"]))]
assert open("waterfall.caption.txt").read().startswith(f"Query {best}:"), best
# its rows are those of the page, with the same joules
names, rows = columns["names"], json.loads(re.search(r'id="rows">(.*?)</script>', page, re.S)[1])[columns["ids"].index(best)]
drawn = [html.unescape(t).lstrip("~") for t in re.findall(r"<text[^>]*>([^<]*)</text>", open("waterfall-wide.svg").read())]
assert len(rows) > 10
for row in rows:
    assert names[row[1]] in drawn, (names[row[1]], drawn)
    if row[4] >= 99950: assert any(t.startswith(f"{round(row[4] / 1000):,}".replace(",", "\u202f") + " (") for t in drawn), row
# so are the colours of the lanes: each part of the run has one on the page and in the figure
lanes = re.search(r'data-name="lanes".*?</svg>', page, re.S)[0]
for part in columns["parts"]:
    if part["class"] not in ("idle", "other"): assert f'var(--{part["class"]})' in lanes, part
for kind in ("breakdown", "waterfall", "timeline", "scatter", "distribution"):
    said = open(kind + ".caption.txt").read()
    for words in ("sim-small", "28 November 2026", "NVIDIA H200", "AMD EPYC", "GPU, CPU and DRAM", "\u201cphase\u201d", "bounds" if
                  kind in ("waterfall", "scatter") else "The sensors leave"):
        assert words in said, (kind, words, said)
    assert "e+" not in said
# waiting for a retry has its own colour, and an attempt that failed is hatched
timeline = open("timeline.svg").read()
assert 'fill="#6b6a2a"' in timeline and "url(#hatch)" in timeline
PY
assert_contains breakdown.svg 'width="85mm"'
assert_contains breakdown-wide.svg 'width="180mm"'
expect_exit 0 agent plot small --kind breakdown -o again.svg
cmp breakdown.svg again.svg || fail "the same run gives another picture"

step "the user's own"
expect_exit 0 agent new plot mine
expect_exit 0 agent check plots/mine.lua
expect_exit 0 agent test plots/mine_test.lua
expect_exit 0 agent plot small --kind mine -o mine.svg
assert_contains mine.caption.txt 'a mark for each of 28 queries'
printf 'return { name = "odd", about = "x", runs = { 1, 1 }, drew = 1 }\n' >odd.lua
expect_exit 3 agent plot small --kind ./odd.lua -o odd.svg
check_err "unknown field 'drew' (name, about"
check_err "(did you mean 'draw'?)"

step "a query is named as replay names it, and as a screen shows it"
expect_exit 0 agent plot spans --kind waterfall --query frames-002 -o by-id.svg
expect_exit 0 agent plot spans --kind waterfall --query 2 -o by-name.svg
cmp by-id.svg by-name.svg || fail "another query is meant"
expect_exit 0 agent plot one --kind waterfall --query "frames-0…" -o by-name.svg

step "dollars; a part of the time"
expect_exit 0 agent plot large --kind pareto --by dollars -o cost.svg
assert_contains cost.caption.txt '0.00400 USD'
expect_exit 0 agent plot small --kind timeline --from 5 --to 9 -o part.svg

step "attempts that a kill cut are grey lanes with a mark, in the figure and on the page"
expect_exit 0 agent plot sessions --kind timeline -o cut.svg
assert_contains cut.caption.txt 'Grey lanes: 2 attempts that came to nothing; red at the end where the run was killed.'
assert_contains cut.svg '>lost attempt<'
expect_exit 0 agent report sessions -o sessions.html
assert_contains sessions.html 'Grey: 2 attempts that came to nothing; red where the run was killed.'
assert_contains sessions.html 'data-text1="901 lost"'
expect_exit 0 agent plot small --kind timeline -o whole.svg
assert_lacks whole.svg 'lost attempt'

step "wrong usage"
expect_exit 2 agent plot small -o x.svg
check_err "--kind is missing"
expect_exit 2 agent plot small --kind breakdown -o x.gif
check_err "ends in .svg, .pdf or .png"
expect_exit 2 agent plot small --kind brakdown -o x.svg
check_err "did you mean 'breakdown'?"
expect_exit 2 agent plot small --kind paired -o x.svg
check_err "takes 2 runs, not 1"
expect_exit 2 agent plot small --kind pareto --by grams -o x.svg
check_err "joules or dollars"
expect_exit 3 agent plot small --kind waterfall --query nobody -o x.svg
check_err 'there is no query "nobody"'
expect_exit 3 agent plot nowhere --kind distribution -o x.svg
expect_exit 3 agent plot . --kind distribution -o x.svg
check_err ".: is no run, but a folder of "
expect_exit 0 agent plot --list
check_out "pareto "

step "texts of others are only shown"
cp -r small evil
damaged evil
python3 - <<'PY'
import json
lines = [json.loads(l) for l in open("evil/traces.jsonl")]
text = "</text><script>x</script>&\"' `touch pwned` \u202e\x1b[2J"
for q in lines:
    q["query_id"] = text + q["query_id"]
    for part in q["parts"] + [s for t in q["turns"] for s in t["spans"]]:
        if "name" in part and part.get("part", part.get("kind")) == "tool": part["name"] = text
open("evil/traces.jsonl", "w").write("".join(json.dumps(q) + "\n" for q in lines))
summary = json.load(open("evil/summary.json"))
for part in summary["parts"]: part["name"] = part["name"] and text + part["name"]
json.dump(summary, open("evil/summary.json", "w"))
PY
for kind in breakdown waterfall timeline; do
    expect_exit 0 agent plot evil --kind $kind -o evil.svg
    python3 -c 'import sys, xml.etree.ElementTree as E
t = E.parse("evil.svg"); assert not [e for e in t.iter() if e.tag.endswith("script")]' || fail "$kind: a text is markup"
done
expect_exit 0 agent plot evil evil --kind paired -o evil.svg

step "without rsvg-convert the figure is there as SVG, and the message names the package"
mkdir empty
expect_exit 1 env PATH="$WORK/empty" "$IPW_AGENT" plot small --kind breakdown -o none.pdf
check_err "apt-get install librsvg2-bin"
cmp none.svg breakdown.svg || fail "no SVG in its place"
[ ! -e none.pdf ] || fail "a PDF that was not made"

if ! command -v rsvg-convert >/dev/null || ! command -v pdftotext >/dev/null; then
    echo "skipped: no rsvg-convert or no pdftotext (apt-get install librsvg2-bin poppler-utils): PDF and PNG are not tested"
    end_test
    exit 0
fi

step "PDF and PNG: the size of the page, and no word of it leaves the page or lies over another"
for kind in breakdown waterfall timeline scatter distribution; do
    for shape in four small spans many sessions none; do
        expect_exit 0 agent plot $shape --kind $kind -o $kind-$shape.pdf
    done
    expect_exit 0 agent plot small --kind $kind --wide -o $kind-wide.pdf
done
expect_exit 0 agent plot small large middle four --kind compare -o compare-four.pdf
expect_exit 0 agent plot small large --kind pareto -o pareto.pdf
expect_exit 0 agent plot small large --kind compare -o compare.pdf
expect_exit 0 agent plot small large --kind paired --wide -o paired-wide.pdf
for pdf in *.pdf; do pdftotext -bbox "$pdf" "${pdf%.pdf}.bbox" || fail "$pdf is no PDF"; done
python3 - <<'PY' || fail "words of a PDF"
import glob, re
for name in sorted(glob.glob("*.bbox")):
    text = open(name, encoding="utf-8").read()
    width, height = (float(x) for x in re.search(r'<page width="([\d.]+)" height="([\d.]+)"', text).groups())
    assert abs(width - (180 if "wide" in name else 85) / 25.4 * 72) < 1, (name, width)
    words = [(*map(float, w[:4]), w[4]) for w in
             re.findall(r'<word xMin="([-\d.]+)" yMin="([-\d.]+)" xMax="([-\d.]+)" yMax="([-\d.]+)">(.*?)</word>', text)]
    assert len(words) > 5, name
    for i, (x0, y0, x1, y1, word) in enumerate(words):
        assert x0 > -0.5 and x1 < width + 0.5 and y0 > -2 and y1 < height + 2, (name, word, x0, x1, width)
        for a0, b0, a1, b1, other in words[:i]:
            # the boxes of words have the height of the type's lines, which is more than its letters
            if min(x1, a1) - max(x0, a0) > 0.7 and min(y1, b1) - max(y0, b0) > 0.45 * min(y1 - y0, b1 - b0):
                raise AssertionError((name, word, other))
PY
expect_exit 0 agent plot small --kind breakdown -o breakdown.png
python3 -c 'import struct; b = open("breakdown.png", "rb").read(24); assert struct.unpack(">I", b[16:20])[0] in range(1002, 1006)' ||
    fail "85 mm are not 1004 dots at 300 an inch"
end_test
