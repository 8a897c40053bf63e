# The demo model has no answers in it: other numbers in questions and attachments, other answers.
. "$(dirname "$0")/lib.sh"

cp -r "$IPW_SOURCE_DIR/datasets/gaia-sample" sample || fail "no sample"
python3 - <<'PY' || fail "the sample could not be changed"
import re
def edit(name, *pairs):
    path = "sample/" + name
    text = open(path, encoding="utf-8").read()
    for old, new in pairs:
        assert old in text, (name, old)
        text = text.replace(old, new)
    open(path, "w", encoding="utf-8").write(text)

edit("metadata.jsonl", ("412 watts", "460 watts"), ("power of 200", "power of 100"),
     ("below 5000", "below 100"), ("0.25 euros", "0.50 euros"), ("site Quarry", "site Mill"),
     ("New boathouse", "Higher fee"), ("8 hours each day", "10 hours each day"), ("loss to frost", "loss to wasps"))
edit("power_log.csv", ("10:30,B2,1858", "10:30,B2,1958"), ("10:00,B1,794", "10:00,B1,914"),
     ("10:00,A1,1349", "10:00,A1,1469"))
edit("ship_log.txt", ('schooner "Amaryllis"', 'schooner "Beatrix"'), ("NW force 5", "NW force 7"),
     ("bread 96 pounds", "bread 960 pounds"))
edit("inventory.json", ('"quantity": 36,', '"quantity": 136,'))
edit("timetable.csv", ("RE 326,14:12,15:04,Harbour,1,Mon-Fri", "RE 326,14:12,15:04,Harbour,1,daily"))
edit("expenses.csv", ("Second Shelf,93.75", "Second Shelf,993.75"))
import zipfile
packed = zipfile.ZipFile("sample/rain.zip")
tables = {name: packed.read(name).decode() for name in packed.namelist()}
with zipfile.ZipFile("sample/rain.zip", "w") as z:
    for name, text in tables.items():
        z.writestr(name, text.replace("2026-05-04,3.2", "2026-05-04,13.2"))
png = open("sample/catch.png", "rb").read()  # green and red change places in the palette
red, green = bytes.fromhex("d02020"), bytes.fromhex("209020")
assert png.count(red) == png.count(green) == 1
open("sample/catch.png", "wb").write(png.replace(red, b"RED").replace(green, red).replace(b"RED", green))
text = open("sample/observatory.json").read()
open("sample/observatory.json", "w").write(text.replace('"Osprey"', '"Petrel"'))
PY

for name in react tools; do
    rm -rf run
    expect_exit 0 agent run $name --dataset gaia --data-dir sample --model demo --output run --quiet
    # The arithmetic of the changed files, done by hand.
    while IFS='|' read -r id answer; do
        step "$name $id"
        if [ "$id" = 57c0e3ab ] && ! command -v pdftotext >/dev/null; then
            echo "left out: pdftotext is not installed (poppler-utils)"
            continue
        fi
        assert_json run/traces.jsonl \
            "[t['answer'] for t in d if t['metadata']['task_id'].startswith('$id')] == ['$answer']"
    done <<'ROWS'
a54dca18|380
d91e3f72|1958
3460be31|Beatrix
7c2999fd|power supply, thermal paste
27a0aeb3|RE 326
b10becb5|115
55e5cd8e|856
7706f85d|9839.40
ccc935f6|5, 648
4d33ba0d|books
f5f79f2b|6
2e85bb55|salt pork, 8
0e8ff184|Petrel, Merle, Gannet
cd2b5157|1230.6
47de636c|R-151, 15.00
8c1f5be0|19306
1b7d4c52|22
e94a02d7|red
57c0e3ab|64
c26b9f14|4, 2
3fd8a65e|harbour, 42.2
ROWS
done
end_test
