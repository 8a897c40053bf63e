"""Reads exports back, by the rules that their own readers have.

  export_readers.py FORMAT OUTPUT RUN...    the format's rules hold, and its joules are those of the runs
  export_readers.py collector SAID FILE     takes OTLP requests, into FILE; its port is written to SAID

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

import trace_lines

DOMAINS = ("cpu", "dram", "gpu", "machine")


def lines(path):
    with open(path, encoding="utf-8", newline="\n") as f:
        text = f.read()
    assert text == "" or text.endswith("\n"), "no newline at the end"
    return [trace_lines.loads(line) for line in text.split("\n")[:-1]]


def traces(run):
    path = run if os.path.isfile(run) else run + "/traces.jsonl"
    with open(path, encoding="utf-8") as f:
        return [trace_lines.loads(line) for line in f.read().split("\n")[:-1]]  # a torn last line is none


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


def bounds_hold(value, lo, hi):
    """Bounds stand beside a value, measured or estimated, and include it."""
    if lo not in ("", None):
        assert float(lo) <= float(value) + 1e-6 and float(value) <= float(hi) + 1e-6, (lo, value, hi)


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
            bounds_hold(q[d + "_joules"] or q[d + "_estimate_joules"], q[d + "_lo"], q[d + "_hi"])
            assert (q[d + "_estimate_joules"] != "") == (q[d + "_provenance"] == "estimated" and q[d + "_joules"] == "")
            if q[d + "_joules"] == "":
                assert q[d + "_provenance"] in ("", "estimated") and q[d + "_u"] == ""
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
        for row in one("SELECT total_j, total_j_lo, total_j_hi FROM ledger WHERE domain = '%s'" % d):
            bounds_hold(*row)
        for row in one("SELECT %s_joules, %s_lo, %s_hi FROM queries WHERE %s_joules IS NOT NULL" % (d, d, d, d)):
            bounds_hold(*row)
    tools = one("SELECT name, n, cpu_joules, cpu_known FROM joules_by_tool")
    assert all((known == 0) == (joules is None) and known <= n for _, n, joules, known in tools), tools
    assert sum(known for *_, known in tools) == one("SELECT count(cpu_joules) FROM spans WHERE kind = 'tool'")[0][0]
    assert sum(tool[1] for tool in tools) == one("SELECT count(*) FROM spans WHERE kind = 'tool'")[0][0]
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
    for row, query in zip(rows, (q for run in runs for q in traces(run) if q["epoch"] == 0)):
        used = {s["name"] for t in query["turns"] for s in t["spans"] if s["kind"] == "tool"}
        assert all(name in row["reasoning_trace"] for name in used), row
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
        if name == "ipw_run_energy_joules":
            lo, hi = (samples.get(("ipw_run_energy_%s_joules" % x, labels)) for x in ("lo", "hi"))
            bounds_hold(value, lo, hi)
            summaries = [os.path.join(run, "summary.json") for run in runs]
            if all(map(os.path.exists, summaries)) and dict(labels)["use"] == "queries":
                key = dict(labels)["domain"] + "_energy_joules"
                bounds = [json.load(open(p))["totals"]["bounds"].get(key) for p in summaries if len(runs) == 1]
                assert not bounds or (bounds[0] or {}).get("lo") == lo, (bounds, lo)
    count = sum(v for (n, _), v in samples.items() if n == "ipw_run_queries")
    assert count == sum(len(traces(r)) for r in runs)
    assert {n for (_, labels) in samples for n, _ in labels} <= {"agent", "model", "dataset", "domain", "use", "outcome",
                                                                "resolved", "type", "le"}, "labels"
    return sums


def number_of(value):
    return value is None or isinstance(value, (int, float)) and not isinstance(value, bool)


def metered(run):
    """Some sensor read power or energy: a model's estimate is none."""
    path = run + "/power.jsonl"
    headers = [json.loads(l) for l in open(path) if l.startswith("{")] if os.path.exists(path) else []
    return any(c["kind"] in ("counter", "gauge") for h in headers for s in h["sources"] for c in s["channels"])


def read_perfetto(path, runs):
    """The Trace Event Format, as chrome://tracing and Perfetto's importer take it; slices of one thread nest."""
    doc = json.load(open(path, encoding="utf-8"))
    assert set(doc) == {"displayTimeUnit", "traceEvents"} and doc["displayTimeUnit"] in ("ms", "ns")
    names, threads, sums, queries = {}, {}, {}, 0
    for e in doc["traceEvents"]:
        assert e["ph"] in "MXC" and isinstance(e["pid"], int) and isinstance(e["name"], str), e
        if e["ph"] == "M":
            assert e["name"] in ("process_name", "thread_name", "process_sort_index"), e
            assert isinstance(e["args"].get("name", e["args"].get("sort_index")), (str, int))
            names[e["pid"], e.get("tid")] = e["args"]
            continue
        assert number_of(e["ts"]) and (e["pid"], None) in names, e
        if e["ph"] == "C":
            assert e["args"] and all(number_of(v) and v >= 0 for v in e["args"].values()), e
            threads.setdefault(("counter", e["pid"], e["name"]), []).append(e["ts"])
            continue
        assert e["dur"] >= 0 and (e["pid"], e["tid"]) in names and isinstance(e["cat"], str), e
        start = round(e["ts"] * 1000)
        threads.setdefault((e["pid"], e["tid"]), []).append((start, start + round(e["dur"] * 1000), e["cat"]))
        if e["cat"] == "query":
            queries += 1
            for d in DOMAINS:
                joules, about, lo, hi = (e["args"].get(d + of) for of in ("_joules", "_estimate", "_lo", "_hi"))
                add(sums, d, joules)
                bounds_hold(about if joules is None else joules, lo, hi)
                assert joules is None or e["args"][d + "_provenance"] != "estimated" or lo is not None, e
    kinds = {"query": 0, "turn": 1}
    for key, slices in threads.items():
        if key[0] == "counter":
            assert slices == sorted(slices), "a counter goes back"
            continue
        open_ends = []
        for start, end, kind in sorted(slices, key=lambda s: (s[0], -s[1], kinds.get(s[2], 2))):
            while open_ends and open_ends[-1][0] <= start:
                open_ends.pop()
            assert not open_ends or end <= open_ends[-1][0], "slices of a thread overlap: %r" % (key,)
            if kind == "turn" and end > start:
                assert [k for _, k in open_ends] == ["query"], "a turn lies in its query"
            open_ends.append((end, kind))
    assert queries == sum(len(traces(r)) for r in runs)
    assert any(metered(r) for r in runs) == any(k[0] == "counter" for k in threads), "power"
    return sums


VALUE = {"stringValue": str, "intValue": (str, int), "doubleValue": (int, float), "boolValue": bool, "arrayValue": dict}


def attributes(pairs):
    out = {}
    for pair in pairs:
        assert set(pair) == {"key", "value"} and len(pair["value"]) == 1 and pair["key"] not in out, pair
        kind, value = next(iter(pair["value"].items()))
        assert isinstance(value, VALUE[kind]), pair
        out[pair["key"]] = int(value) if kind == "intValue" else value["values"] if kind == "arrayValue" else value
    return out


def otlp_spans(requests):
    """Spans of ExportTraceServiceRequests in OTLP/JSON: ids as hex, times as decimal texts, enums as numbers."""
    spans = []
    for request in requests:
        assert set(request) == {"resourceSpans"}
        for resource in request["resourceSpans"]:
            assert attributes(resource["resource"]["attributes"])["service.name"]
            for scope in resource["scopeSpans"]:
                assert scope["scope"]["name"]
                for s in scope["spans"]:
                    assert set(s) <= {"traceId", "spanId", "parentSpanId", "name", "kind", "startTimeUnixNano",
                                      "endTimeUnixNano", "attributes", "status"}, s
                    assert re.fullmatch("[0-9a-f]{32}", s["traceId"]) and re.fullmatch("[0-9a-f]{16}", s["spanId"])
                    assert all(isinstance(s[k], str) and s[k].isdigit() for k in ("startTimeUnixNano", "endTimeUnixNano"))
                    assert s["kind"] in (1, 3) and s["status"]["code"] in (0, 1, 2) and s["name"]
                    spans.append(dict(s, attributes=attributes(s["attributes"]), start=int(s["startTimeUnixNano"]),
                                      end=int(s["endTimeUnixNano"])))
    return spans


def check_otlp(spans, runs):
    """Every span's parent and time, against the traces; and its joules."""
    by_id = {s["spanId"]: s for s in spans}
    assert len(by_id) == len(spans), "a span's id comes twice"
    sums, got, want = {}, {}, {}
    for s in spans:
        operation, parent = s["attributes"].get("gen_ai.operation.name"), by_id.get(s.get("parentSpanId"))
        assert s["start"] <= s["end"]
        if operation == "invoke_workflow":
            assert "parentSpanId" not in s
            continue
        assert parent and parent["traceId"] == s["traceId"], "a span without its parent: " + s["name"]
        assert parent["start"] <= s["start"] and s["end"] <= parent["end"] + 1000, s["name"]
        above = parent["attributes"].get("gen_ai.operation.name")
        if operation == "invoke_agent":
            assert above == "invoke_workflow"
            for d in DOMAINS:
                add(sums, d, s["attributes"].get("ipw.energy.%s_joules" % d))
        elif operation == "chat":
            assert above == "invoke_agent" and s["kind"] == 3 and s["name"].startswith("chat ")
        elif operation == "execute_tool":
            assert above == "invoke_agent" and s["attributes"]["gen_ai.tool.name"] in s["name"]
        else:
            assert above == ("chat" if s["name"] in ("prefill", "decode") else "invoke_agent"), s["name"]
        got.setdefault(s["attributes"]["gen_ai.conversation.id"], []).append((s["start"], s["end"] - s["start"]))
    for run in runs:
        clock = json.load(open(run + "/manifest.json"))["clock"]
        for q in traces(run):
            zero = q["start_ns"] + clock["wall_ns"] - clock["mono_ns"]
            parts = [(0, q["total_wall_clock_s"])] + [(x["start_s"], x["end_s"]) for x in q["spans_before"]]
            parts += [(x["start_s"], x["end_s"]) for t in q["turns"] for x in t["spans"]]
            want.setdefault(q["query_id"], []).extend((zero + round(a * 1e9), round((b - a) * 1e9)) for a, b in parts)
    assert set(got) == set(want)
    for key in want:
        a, b = sorted(got[key]), sorted(want[key])
        assert len(a) == len(b) and all(abs(x - y) <= 2 for p, q in zip(a, b) for x, y in zip(p, q)), key
    return sums


def read_otlp(path, runs):
    return check_otlp(otlp_spans(lines(path)), runs)


STEP = {"step_id", "timestamp", "source", "message", "model_name", "reasoning_effort", "reasoning_content", "tool_calls",
        "observation", "metrics", "llm_call_count", "is_copied_context", "extra"}


def atif(doc):
    """The published rules: sequential ids, ISO times, fields of the agent alone, calls that are referred to."""
    assert set(doc) <= {"schema_version", "session_id", "trajectory_id", "agent", "steps", "notes", "final_metrics",
                        "continued_trajectory_ref", "extra", "subagent_trajectories"}, set(doc)
    assert doc["schema_version"] in ("ATIF-v1.7", "ATIF-v1.8") and doc["steps"]
    assert set(doc["agent"]) <= {"name", "version", "model_name", "tool_definitions", "extra"}
    assert isinstance(doc["agent"]["name"], str) and isinstance(doc["agent"]["version"], str)
    for tool in doc["agent"].get("tool_definitions", []):
        assert tool["type"] == "function" and isinstance(tool["function"]["name"], str)
    for i, step in enumerate(doc["steps"]):
        assert step["step_id"] == i + 1 and set(step) <= STEP, step
        assert step["source"] in ("system", "user", "agent") and isinstance(step["message"], str), step
        if "timestamp" in step:
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", step["timestamp"]), step
        if step["source"] != "agent":
            assert not set(step) & {"model_name", "reasoning_effort", "reasoning_content", "tool_calls", "metrics"}, step
        if step["source"] == "user":
            assert "observation" not in step
        if step.get("llm_call_count") == 0:
            assert not set(step) & {"metrics", "reasoning_content"}, step
        ids = []
        for call in step.get("tool_calls", []):
            assert set(call) <= {"tool_call_id", "function_name", "arguments", "extra"}, call
            assert isinstance(call["arguments"], dict) and call["function_name"] and call["tool_call_id"], call
            ids.append(call["tool_call_id"])
        assert len(set(ids)) == len(ids), ids
        for result in step.get("observation", {}).get("results", []):
            assert set(result) <= {"source_call_id", "content", "subagent_trajectory_ref", "extra"}, result
            assert result.get("source_call_id") in ids and isinstance(result.get("content", ""), str), result
        metrics = step.get("metrics", {})
        assert set(metrics) <= {"prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd", "prompt_token_ids",
                                "completion_token_ids", "logprobs", "extra"}, metrics
        assert all(isinstance(metrics.get(k, 0), int) for k in ("prompt_tokens", "completion_tokens", "cached_tokens"))
    final = doc["final_metrics"]
    assert set(final) <= {"total_prompt_tokens", "total_completion_tokens", "total_cached_tokens", "total_cost_usd",
                          "total_steps", "extra"}, final
    assert final["total_steps"] == len(doc["steps"])


def read_atif(path, runs):
    files = sorted(os.listdir(path))
    queries = [q for r in runs for q in traces(r)]
    assert len(files) == len(queries)
    sums, ids = {}, set()
    for name, q in zip(files, queries):
        doc = json.load(open(path + "/" + name, encoding="utf-8"))
        atif(doc)
        ids.add(doc["trajectory_id"])
        agent = [s for s in doc["steps"] if s["source"] == "agent"]
        assert len(agent) == len(q["turns"]), "a step a turn"
        assert [len(s.get("tool_calls", [])) for s in agent] == [len(t["tools_called"]) for t in q["turns"]]
        extra = doc["final_metrics"]["extra"]
        for d in DOMAINS:
            whole = extra.get("energy", {}).get(d, {}).get("joules")
            assert whole == q["energy"][d]["joules"]
            add(sums, d, whole)
            if whole is not None:
                parts = [s["metrics"]["extra"]["energy"][d]["joules"] for s in agent]
                assert math.isclose(whole, sum(parts, extra["energy_before"][d]["joules"]), rel_tol=1e-9)
    assert len(ids) == len(files)
    return sums


def read_swe_bench(path, runs):
    """The harness's prediction lines: three texts each, no instance twice."""
    rows = lines(path)
    assert all(set(r) == {"instance_id", "model_name_or_path", "model_patch"} for r in rows)
    assert all(isinstance(v, str) for r in rows for v in r.values()) and all(r["instance_id"] for r in rows)
    assert len({r["instance_id"] for r in rows}) == len(rows)
    assert all(r["model_patch"] == "" or r["model_patch"].endswith("\n") for r in rows)
    return None


def read_eee(path, runs):
    """Schema 0.2.1, as far as it has rules for these keys: a document a run; details are texts."""
    sums, documents = {}, lines(path)
    assert len(documents) == len(runs)
    for doc in documents:
        assert set(doc) == {"schema_version", "evaluation_id", "retrieved_timestamp", "evaluation_timestamp", "source_metadata",
                            "model_info", "eval_library", "evaluation_results"} and doc["schema_version"] == "0.2.1"
        assert doc["evaluation_id"].count("/") == 2 and doc["retrieved_timestamp"].isdigit()
        assert doc["source_metadata"]["source_type"] == "evaluation_run" and doc["model_info"]["id"]
        assert doc["source_metadata"]["evaluator_relationship"] in ("first_party", "third_party", "collaborative", "other")
        for r in doc["evaluation_results"]:
            assert set(r) <= {"evaluation_name", "score_details", "metric_config", "source_data", "evaluation_timestamp"}
            assert isinstance(r["metric_config"]["lower_is_better"], bool) and r["metric_config"]["score_type"] == "continuous"
            score, details = r["score_details"]["score"], r["score_details"]["details"]
            assert number_of(score) and all(isinstance(v, str) for v in details.values())
            if r["evaluation_name"] == "accuracy":
                assert 0 <= score <= 1 and math.isclose(score, int(details["resolved"]) / int(details["scored"]))
                continue
            domain = re.fullmatch("(%s)_joules_per_query" % "|".join(DOMAINS), r["evaluation_name"]).group(1)
            assert math.isclose(score * int(details["queries_measured"]), float(details["total_joules"]), rel_tol=1e-12)
            add(sums, domain, float(details["total_joules"]))
    return sums


def read_eval_results(path, runs):
    """YAML as the hub reads it: a list; every text in it is a JSON string, which YAML is a superset of."""
    text, sums, rows = open(path, encoding="utf-8").read(), {}, []
    if text == "[]\n":
        assert not any(q["is_resolved"] is not None for r in runs for q in traces(r))
        return None
    for line in text.split("\n")[:-1]:
        m = re.fullmatch(r'(- dataset:|    id: ".*"|    task_id: ".*"|  value: ([\d.e-]+)|  date: "\d{4}-\d\d-\d\d"|  source:|'
                         r'    url: ".*"|    name: ".*"|  notes: (".*"))', line)
        assert m, line
        if line == "- dataset:":
            rows.append({})
        if m.group(2):
            rows[-1]["value"] = float(m.group(2))
        if m.group(3):
            for domain, joules in re.findall(r"(\w+) (\S+) J(?: \(\S+ to \S+\))? in", json.loads(m.group(3))):
                add(sums, domain, float(joules))
    for row, run in zip(rows, runs):
        scored = [q["is_resolved"] for q in traces(run) if q["is_resolved"] is not None]
        assert math.isclose(row["value"], 100 * sum(scored) / len(scored))
    assert len(rows) == len(runs)
    return sums


def read_set(folder):
    """A folder as load_from_disk reads it: the Arrow file's fields are those of dataset_info.json."""
    import arrow_stream
    state = json.load(open(folder + "/state.json"))
    assert set(state) == {"_data_files", "_fingerprint", "_format_columns", "_format_kwargs", "_format_type",
                          "_output_all_columns", "_split"} and re.fullmatch("[0-9a-f]{16}", state["_fingerprint"])
    info = json.load(open(folder + "/dataset_info.json"))
    assert set(info) == {"citation", "description", "features", "homepage", "license"}
    fields, rows, metadata = arrow_stream.rows(folder + "/" + state["_data_files"][0]["filename"])
    dtypes = {2: "int64", 3: "float64", 5: "string", 6: "bool"}
    feature = lambda f: {c[0]: feature(c) for c in f[2]} if f[1] == 13 else {"dtype": dtypes[f[1]], "_type": "Value"}
    assert {f[0]: feature(f) for f in fields} == info["features"]
    assert json.loads(metadata["huggingface"])["info"]["features"] == info["features"]
    return fields, rows


def read_hf(path, runs):
    """Every value of every row against its trace."""
    fields, rows = read_set(path)
    queries = [q for r in runs for q in traces(r)]
    assert len(fields) == 25 and len(rows) == len(queries)
    renamed = {"total_gpu_energy_joules": "query_gpu_energy_joules", "total_cpu_energy_joules": "query_cpu_energy_joules",
               "avg_gpu_power_watts": "query_gpu_power_avg_watts", "avg_cpu_power_watts": "query_cpu_power_avg_watts",
               "energy_per_token_joules": "energy_per_output_token_joules"}
    for row, q in zip(rows, queries):
        trace = trace_lines.loads(row.pop("trace_json"))
        assert trace["query_id"] == q["query_id"] and trace["energy"] == q["energy"]
        assert json.loads(row.pop("score_metadata_json")) == trace["score_metadata"]
        for key, value in row.items():
            assert value == trace[renamed.get(key, key)], (key, value)
    sums = {}
    for row in rows:
        for d in ("cpu", "gpu"):
            add(sums, d, row["total_%s_energy_joules" % d])
    want = expected(runs)
    for d in ("dram", "machine"):  # no column: trace_json has them
        if d in want:
            sums[d] = want[d]
    return sums


def read_ipw(path, runs):
    """ProfilingRecord rows, under the name that the original gives its folders; the summary's keys of both generations."""
    want, sums, folders = expected(runs), {}, os.listdir(path)
    assert len(folders) == len(runs) == 1
    (run,), folder = runs, path + "/" + folders[0]
    manifest = json.load(open(run + "/manifest.json"))
    model = manifest["config"]["model"]
    assert folders[0] == "profile_%s_%s_%s" % (manifest["hardware"]["labels"]["upstream"], re.sub("[^A-Za-z0-9]", "_", model).strip("_"),
                                               manifest["config"]["dataset"])
    rows, queries = read_set(folder)[1], traces(run)
    assert len(rows) == len(queries)
    for row, q in zip(rows, queries):
        assert set(row) == {"problem", "answer", "dataset_metadata", "subject", "model_answers", "model_metrics"}
        assert len(row["problem"]) == len(q["query_text"]) and json.loads(row["dataset_metadata"]).keys() == q["metadata"].keys()
        m = row["model_metrics"][model]
        assert set(row["model_answers"]) == {model} and m["lm_response"] == row["model_answers"][model]
        energy = m["energy_metrics"]
        assert energy["per_query_joules"] == energy["total_joules"] == q["query_gpu_energy_joules"]
        assert energy["cpu_per_query_joules"] == energy["cpu_total_joules"] == q["query_cpu_energy_joules"]
        assert m["hardware_utilization"] == q["hardware_utilization"]
        hardware, gpu = manifest["hardware"], m["gpu_info"]
        assert m["system_info"] == {"os_name": hardware["os"], "os_version": None, "kernel_version": hardware["kernel"],
                                    "host_name": hardware["host"], "cpu_count": hardware["cpu_count"], "cpu_brand": hardware["cpu"]}
        if hardware["gpu"]:
            bytes = hardware["gpu_memory_bytes"]
            assert gpu == {"name": hardware["gpu"], "vendor": "NVIDIA", "device_id": 0, "device_type": "GPU", "backend": "NVML",
                           "count": hardware["gpu_count"], "driver": hardware["driver"],
                           "memory_total_gb": bytes and bytes / 2 ** 30}, gpu
        else:
            assert not gpu, gpu
        assert m["latency_metrics"]["total_query_seconds"] == q["total_wall_clock_s"]
        assert m["evaluation"]["is_correct"] is m["lm_correctness"] is q["is_resolved"]
        assert m["token_metrics"] == {"input": q["total_input_tokens"], "output": q["total_output_tokens"], "total": q["total_tokens"]}
        stats = (q["power_metrics"] or {}).get("gpu")
        assert (m["power_metrics"] or {}).get("gpu") == stats, (m["power_metrics"], stats)
        add(sums, "gpu", m["energy_metrics"]["per_query_joules"])
        add(sums, "cpu", m["energy_metrics"]["cpu_per_query_joules"])
    summary = json.load(open(folder + "/summary.json"))
    assert {"model", "dataset", "dataset_name", "hardware_label", "total_queries", "system_info", "gpu_info", "output_dir",
            "profiler_config", "versions"} <= set(summary) and summary["total_queries"] == len(rows)
    if os.path.exists(run + "/summary.json"):
        assert {"totals", "efficiency", "averages", "statistics", "generated_at", "config"} <= set(summary)
    return {d: sums.get(d, j) if d in ("gpu", "cpu") else j for d, j in want.items()}


def collector(said, requests):
    """A collector on a free port: writes the port to `said`, answers the first request with 503, keeps what comes."""
    import http.server

    class Handler(http.server.BaseHTTPRequestHandler):
        count = 0

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            Handler.count += 1
            good = self.path == "/v1/traces" and self.headers["Content-Type"] == "application/json" and \
                self.headers["x-key"] == "a b"
            self.send_response(503 if Handler.count == 1 else 200 if good else 400)
            if Handler.count == 1:
                self.send_header("Retry-After", "0")
            elif good:
                with open(requests, "ab") as f:
                    f.write(body + b"\n")
            answer = b"{}" if good else b"bad"
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    with open(said, "w") as f:
        print(server.server_address[1], file=f)
    server.serve_forever()


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
    collector(*sys.argv[2:]) if sys.argv[1] == "collector" else main(*sys.argv[1:])
