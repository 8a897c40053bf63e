#!/usr/bin/env python3
"""Computes the answers of datasets/gaia-sample from its files, independently of the metadata, and
compares.  Run it after editing a question or a file there: exit status 0 means that all agree."""
import csv
import datetime
import json
import math
import pathlib
import re
import struct
import subprocess
import sys
import xml.etree.ElementTree as xml
import zipfile
import zlib

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "datasets" / "gaia-sample"


def table(name):
    with open(FOLDER / name, newline="", encoding="utf-8") as f:
        return list(csv.DictReader(f))


def document(name):
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def number(x, places):
    return f"{x:.{places}f}"


def only(ranked):
    """The first of a list of (value, name), which must not tie with the second."""
    assert ranked[0][0] != ranked[1][0], ranked
    return ranked[0]


def ship_days():
    text = (FOLDER / "ship_log.txt").read_text(encoding="utf-8")
    found = re.findall(r"^(\d+) March +(?:Wind \w+ force (\d+)|Calm)\. Distance (\d+)", text, re.M)
    assert len(found) == 11
    return text, [(int(day), int(force or 0), int(miles)) for day, force, miles in found]


def ferry():
    adult, child, car, metre = 1800, 900, 4600, 1150  # in cents
    passengers = 9 * adult + 3 * child
    assert 9 + 3 >= 10
    single = passengers * 80 // 100 + car + math.ceil(6.3 - 5) * metre
    assert passengers * 80 % 100 == 0
    both = 2 * single * 85
    assert both % 100 == 0
    return number(both / 100 / 100, 2)


def xml_of(name, part):
    """The XML of a part of an office file, without namespaces."""
    text = zipfile.ZipFile(FOLDER / name).read(part).decode()
    return xml.fromstring(re.sub(r'(</?|\s)\w+:(?=\w)', r"\1", re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", text)))


def texts(node, tag):
    return ["".join(t.text or "" for t in p.iter("t")) for p in node.iter(tag)]


def quarry():
    strings = texts(xml_of("solar.xlsx", "xl/sharedStrings.xml"), "si")
    for row in xml_of("solar.xlsx", "xl/worksheets/sheet2.xml").iter("row"):
        values = [c.find("v").text for c in row.iter("c")]
        if strings[int(values[0])] == "Quarry":
            return str(sum(int(v) for v in values[1:]))
    return None


def boathouse():
    rows = [texts(row, "tc") for row in xml_of("minutes.docx", "word/document.xml").iter("tr")]
    return dict(rows_with(rows, "New boathouse"))["Against"]


def rows_with(rows, name):
    return zip(rows[0], next(row for row in rows if row[0] == name))


def frost():
    found = []
    for n in range(1, 5):
        for line in texts(xml_of("harvest.pptx", f"ppt/slides/slide{n}.xml"), "p"):
            found += [(n, t) for t in re.findall(r"frost.*: (\d+) tonnes", line)]
    assert len(found) == 1
    return "%d, %s" % found[0]


def rain():
    sums = []
    with zipfile.ZipFile(FOLDER / "rain.zip") as z:
        for name in z.namelist():
            rows = csv.DictReader(z.read(name).decode().splitlines())
            sums.append((round(sum(float(r["rain_mm"]) for r in rows), 1), name[:-4]))
    mm, name = only(sorted(sums, reverse=True))
    return f"{name}, {mm}"


def tallest_bar():
    """The colour that begins highest, of those that fill an area.  gnuplot filters no row of a palette."""
    data, at, parts = (FOLDER / "catch.png").read_bytes(), 8, {}
    while at < len(data):
        n, kind = struct.unpack(">I4s", data[at:at + 8])
        parts[kind] = parts.get(kind, b"") + data[at + 8:at + 8 + n]
        at += 12 + n
    width, height = struct.unpack(">II", parts[b"IHDR"][:8])
    raw = zlib.decompress(parts[b"IDAT"])
    rows = [raw[y * (width + 1):(y + 1) * (width + 1)] for y in range(height)]
    assert all(row[0] == 0 for row in rows)
    best = None
    for i in set(b"".join(row[1:] for row in rows)):
        r, g, b = parts[b"PLTE"][3 * i:3 * i + 3]
        if max(r, g, b) - min(r, g, b) > 100 and sum(row[1:].count(i) for row in rows) > 500:
            top = min(y for y, row in enumerate(rows) if i in row[1:])
            best = min(best or (height, ""), (top, "green" if g == max(r, g, b) else "another"))
    return best[1]


def filter_days():
    shown = subprocess.run(["pdftotext", FOLDER / "pump_leaflet.pdf", "-"], capture_output=True, check=True)
    hours = int(re.search(r"P40: \D*(\d+) hours", shown.stdout.decode()).group(1))
    assert hours % 8 == 0
    return str(hours // 8)


def answers():
    power = table("power_log.csv")
    racks = {}
    for row in power:
        racks.setdefault(row["rack"], []).append((int(row["power_w"]), row["status"]))
    assert all(len(r) == 12 for r in racks.values())
    b1 = sum(w for w, _ in racks["B1"]) * 5 / 60
    assert abs(b1 % 1 - 0.5) > 0.01
    filled = [w if s == "OK" else (racks["A1"][i - 1][0] + racks["A1"][i + 1][0]) / 2
              for i, (w, s) in enumerate(racks["A1"])]
    a1 = sum(filled) / 12
    assert abs(a1 * 10 % 1 - 0.5) > 0.01

    items = document("inventory.json")["items"]
    below = sorted(i["name"] for i in items if i["quantity"] < i["reorder_level"])
    north = sum(i["quantity"] * round(100 * i["unit_price"]) for i in items
                if i["warehouse"] == "North")

    log, days = ship_days()
    strong = [miles for _, force, miles in days if force >= 7]
    stock = {}
    for kind in ("water", "bread", "salt pork"):
        have, need = re.findall(kind + r" (\d+)", log)
        stock[kind] = int(have) / int(need)
    rations, first = only(sorted((days, kind) for kind, days in stock.items()))

    sums = {}
    for row in table("expenses.csv"):
        sums[row["category"]] = sums.get(row["category"], 0) + round(100 * float(row["amount"]))
    _, category = only(sorted(((v, k) for k, v in sums.items()), reverse=True))

    usable = sorted(((sum(n["clear_h"] - n["fault_h"] for n in t["nights"]), t["name"])
                     for t in document("observatory.json")["telescopes"]), reverse=True)
    assert len({hours for hours, _ in usable}) == 3

    owed = {}
    for row in table("loans.csv"):
        kept = (datetime.date.fromisoformat(row["returned"])
                - datetime.date.fromisoformat(row["lent"])).days
        owed[row["reader"]] = owed.get(row["reader"], 0) + 25 * max(0, kept - 21)
    cents, reader = only(sorted(((v, k) for k, v in owed.items()), reverse=True))

    trains = [t for t in table("timetable.csv")
              if t["destination"] == "Harbour" and t["departs"] > "14:05"
              and t["days"] in ("daily", "Sun", "Sat-Sun")]
    primes = [n for n in range(2, 5000) if all(n % d for d in range(2, math.isqrt(n) + 1))]
    return {
        "server": number((412 * 35 + 268 * 25) / 60, 0),
        "B2": str(max(w for w, _ in racks["B2"])),
        "schooner": re.search(r'14 March.*schooner "(\w+)"', log).group(1),
        "below": ", ".join(below),
        "train": min(trains, key=lambda t: t["departs"])["train"],
        "digits": str(sum(int(c) for c in str(2 ** 200))),
        "B1": number(b1, 0),
        "north": number(north / 100, 2),
        "ship": f"{len(strong)}, {sum(strong)}",
        "cat": category,
        "primes": str(sum(1 for p in primes if p % 10 == 7)),
        "ration": f"{first}, {math.floor(rations)}",
        "rank": ", ".join(name for _, name in usable),
        "ferry": ferry(),
        "A1": number(a1, 1),
        "loans": f"{reader}, {number(cents / 100, 2)}",
        "quarry": quarry(),
        "boathouse": boathouse(),
        "bar": tallest_bar(),
        "filter": filter_days(),
        "frost": frost(),
        "rain": rain(),
    }


# In the order of metadata.jsonl.
ORDER = ["server", "B2", "schooner", "below", "train", "digits", "B1", "north", "ship", "cat",
         "primes", "ration", "rank", "ferry", "A1", "loans", "quarry", "boathouse", "bar",
         "filter", "frost", "rain"]
COLUMNS = ["task_id", "Question", "Level", "Final answer", "file_name", "file_path",
           "Annotator Metadata"]


def main():
    with open(FOLDER / "metadata.jsonl", encoding="utf-8") as f:
        tasks = [json.loads(line) for line in f]
    right = answers()
    bad = 0
    if len(tasks) != len(ORDER):
        print(f"{len(tasks)} tasks, expected {len(ORDER)}")
        bad += 1
    for key, task in zip(ORDER, tasks):
        if list(task) != COLUMNS or task["Level"] not in ("1", "2", "3"):
            print(f"{task['task_id']}: columns or level differ from GAIA's")
            bad += 1
        if task["file_name"] and not (FOLDER / task["file_name"]).is_file():
            print(f"{task['task_id']}: {task['file_name']} is missing")
            bad += 1
        if task["Final answer"] != right[key]:
            print(f"{task['task_id']} ({key}): {task['Final answer']!r}, computed {right[key]!r}")
            bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
