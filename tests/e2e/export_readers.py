"""Reads exports back, by the rules that their own readers have.

  export_readers.py FORMAT OUTPUT RUN...    the format's rules hold, and its joules are those of the runs

Nothing here is shared with the program. Each reader gives the joules of the queries by domain, as the format
has them; they are compared with the sum over traces.jsonl, and with the ledger of the summary where there is one.
"""
import csv
import json
import math
import os
import re
import sqlite3
import sys

DOMAINS = ("cpu", "dram", "gpu", "machine")


def lines(path):
    with open(path, encoding="utf-8", newline="\n") as f:
        text = f.read()
    assert text == "" or text.endswith("\n"), "no newline at the end"
    return [json.loads(line) for line in text.split("\n")[:-1]]


def traces(run):
    path = run if os.path.isfile(run) else run + "/traces.jsonl"
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f.read().split("\n")[:-1]]  # a torn last line is none


def add(sums, domain, joules):
    if joules is not None:
        sums[domain] = sums.get(domain, 0) + joules


def expected(runs):
    sums = {}
    for run in runs:
        for q in traces(run):
            for domain in DOMAINS:
                add(sums, domain, q["energy"][domain]["joules"])
    return sums


def read_jsonl(path, runs):
    sums = {}
    for q in lines(path):
        for domain in DOMAINS:
            add(sums, domain, q["energy"][domain]["joules"])
    return sums


def read_csv(path, runs):
    """RFC 4180; the parts of a query are its turns and the time before them."""
    tables = {}
    for name in ("queries", "turns", "spans"):
        with open(path if name == "queries" else "%s.%s" % (path, name), encoding="utf-8", newline="") as f:
            text = f.read()
        assert text.endswith("\r\n")
        tables[name] = list(csv.DictReader(text.splitlines(True), strict=True))
        assert all(None not in row and None not in row.values() for row in tables[name]), "width of " + name
    sums = {}
    assert len(tables["queries"]) == sum(len(traces(r)) for r in runs)
    assert len(tables["turns"]) == sum(len(q["turns"]) for r in runs for q in traces(r))
    assert len(tables["spans"]) == sum(len(t["spans"]) for r in runs for q in traces(r) for t in q["turns"]) + \
        sum(len(q["spans_before"]) for r in runs for q in traces(r))
    for q in tables["queries"]:
        for d in DOMAINS:
            if q[d + "_joules"] == "":
                assert q[d + "_provenance"] == ""
                continue
            add(sums, d, float(q[d + "_joules"]))
            parts = [float(t[d + "_joules"]) for t in tables["turns"] if t["query"] == q["query"]]
            whole = sum(parts, float(q[d + "_before_joules"]))
            assert math.isclose(whole, float(q[d + "_joules"]), rel_tol=1e-9), "turns do not sum"
    return sums


def read_sqlite(path, runs):
    """By joins; views answer; the ledger is that of the summary."""
    db = sqlite3.connect("file:%s?mode=ro" % path, uri=True)
    one = lambda sql: db.execute(sql).fetchall()
    assert one("PRAGMA integrity_check") == [("ok",)]
    assert one("SELECT count(*) FROM queries") == [(sum(len(traces(r)) for r in runs),)]
    assert one("SELECT count(*) FROM runs") == [(len(runs),)]
    sums = {}
    for d in DOMAINS:
        total = one("SELECT sum(%s_joules) FROM queries" % d)[0][0]
        if total is None:
            assert one("SELECT count(*) FROM turns WHERE %s_joules IS NOT NULL" % d) == [(0,)]
            continue
        sums[d] = total
        known = "SELECT query FROM queries WHERE %s_joules IS NOT NULL" % d
        parts = one("SELECT (SELECT sum(%s_before_joules) FROM queries WHERE query IN (%s)), "
                    "(SELECT sum(%s_joules) FROM turns WHERE query IN (%s))" % (d, known, d, known))[0]
        assert math.isclose(total, sum(p or 0 for p in parts), rel_tol=1e-9), (d, total, parts)
        for run, queries_j in one("SELECT run, queries_j FROM ledger WHERE domain = '%s' AND queries_j IS NOT NULL" % d):
            joined = one("SELECT sum(%s_joules) FROM queries JOIN runs USING (run) WHERE run = '%s'" % (d, run))[0][0]
            assert math.isclose(queries_j, joined, rel_tol=1e-9), (run, d)
        devices = one("SELECT sum(d.joules), sum(q.%s_joules) FROM queries q JOIN (SELECT query, sum(joules) AS joules "
                      "FROM devices WHERE domain = '%s' GROUP BY query) d USING (query)" % (d, d))[0]
        assert devices[0] is None or math.isclose(*devices, rel_tol=1e-6), devices
    tools = one("SELECT name, n FROM joules_by_tool")
    assert sum(n for _, n in tools) == one("SELECT count(*) FROM spans WHERE kind = 'tool'")[0][0]
    rows = sum(len([l for l in open(r + "/power.jsonl") if l.startswith("[")]) for r in runs if os.path.exists(r + "/power.jsonl"))
    assert bool(one("SELECT count(*) FROM samples")[0][0]) == bool(rows), "samples"
    assert one("SELECT count(*) FROM samples WHERE watts < 0") == [(0,)]
    one("SELECT * FROM joules_by_query"), one("SELECT * FROM joules_by_model"), one("SELECT * FROM joules_by_span_kind")
    return sums


def read_gaia(path, runs):
    """The leaderboard's rules: every line an object with task_id and model_answer, both texts, no task twice."""
    rows = lines(path)
    assert all(set(r) <= {"task_id", "model_answer", "reasoning_trace"} for r in rows)
    assert all(isinstance(r["task_id"], str) and r["task_id"] and isinstance(r["model_answer"], str) for r in rows)
    assert len({r["task_id"] for r in rows}) == len(rows)
    assert [r["model_answer"] for r in rows] == [q["answer"] or "" for run in runs for q in traces(run) if q["epoch"] == 0]
    return None


def openmetrics(text):
    """OpenMetrics 1.0, as far as gauges and histograms go; every sample is also one of Prometheus text 0.0.4."""
    assert text.endswith("# EOF\n") and text.count("# EOF") == 1
    family, seen, samples, meta = None, set(), {}, {}
    for line in text.split("\n")[:-2]:
        m = re.fullmatch(r"# (HELP|TYPE|UNIT) ([a-z_:][a-z0-9_:]*) (.+)", line)
        if m:
            if m.group(2) != family:
                family = m.group(2)
                assert family not in seen, "a family comes twice: " + family
                seen.add(family)
                meta = {}
            assert m.group(1) not in meta, line
            meta[m.group(1)] = m.group(3)
            if m.group(1) == "UNIT":
                assert family.endswith("_" + m.group(3)), line
            continue
        m = re.fullmatch(r'([a-z_:][a-z0-9_:]*)\{((?:[a-z_][a-z0-9_]*="(?:[^"\\\n]|\\[\\n"])*",?)*)\} (\S+)', line)
        assert m and not m.group(2).endswith(","), line
        name, labels = m.group(1), re.findall(r'([a-z_][a-z0-9_]*)="((?:[^"\\]|\\.)*)"', m.group(2))
        assert len(dict(labels)) == len(labels), line
        suffix = name[len(family):]
        assert name.startswith(family) and suffix in (("",) if meta["TYPE"] == "gauge" else ("_bucket", "_sum", "_count")), line
        key = (name, tuple(sorted(labels)))
        assert key not in samples, "twice: " + line
        samples[key] = float(m.group(3))
        if meta["TYPE"] == "histogram" and suffix == "_count":
            buckets = [(math.inf if dict(l)["le"] == "+Inf" else float(dict(l)["le"]), v) for (n, l), v in samples.items()
                       if n == family + "_bucket" and dict(l, le="") == dict(labels, le="")]
            assert buckets == sorted(buckets) and [v for _, v in buckets] == sorted(v for _, v in buckets)
            assert buckets[-1] == (math.inf, samples[key]), line
    return samples


def read_openmetrics(path, runs):
    with open(path, encoding="utf-8") as f:
        samples = openmetrics(f.read())
    sums = {}
    for (name, labels), value in samples.items():
        if name == "ipw_run_energy_joules" and dict(labels)["use"] == "queries":
            add(sums, dict(labels)["domain"], value)
    count = sum(v for (n, _), v in samples.items() if n == "ipw_run_queries")
    assert count == sum(len(traces(r)) for r in runs)
    assert {n for (_, labels) in samples for n, _ in labels} <= {"agent", "model", "dataset", "domain", "use", "outcome",
                                                                "resolved", "type", "le"}, "labels"
    return sums


def main(form, path, *runs):
    sums = globals()["read_" + form.replace("-", "_")](path, runs)
    if sums is None:
        return
    want = expected(runs)
    assert set(sums) == set(want), (sums, want)
    for domain, joules in want.items():
        assert math.isclose(sums[domain], joules, rel_tol=1e-9, abs_tol=1e-12), (domain, sums[domain], joules)
    if len(runs) == 1 and os.path.exists(runs[0] + "/summary.json"):
        ledger = json.load(open(runs[0] + "/summary.json"))["ledger"] or {}
        for domain, row in ledger.items():
            if row["queries_j"] is not None:
                assert math.isclose(sums[domain], row["queries_j"], rel_tol=1e-9), (domain, sums[domain], row)


if __name__ == "__main__":
    main(*sys.argv[1:])
