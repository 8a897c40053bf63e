#!/usr/bin/env python3
"""saved_runs.py DIR [NAME...]: writes saved runs of many shapes, for tests and pictures of what is drawn of them.

A run is simulated: queries in so many lanes, each with turns of prefill, decode and tools; some fail, some are tried
again. The watts follow the load: 92 W idle, 300 W more while a prompt is read, 95 W + 40 W * sqrt(n) while n replies are
written. What is in flight together shares the power equally, so the joules of the parts, of the queries and of idle sum
to what the counters say. The same name gives the same bytes.
"""
import json
import math
import os
import random
import sys

SHAPES = {  # queries, in flight, and what is special
    "one": dict(n=1, lanes=1),
    "four": dict(n=4, lanes=1),
    "small": dict(n=28, lanes=3, retries=0.1),
    "large": dict(n=28, lanes=3, retries=0.1, size=2.2, right=0.8, model="sim-large", cost=0.004),
    "middle": dict(n=120, lanes=16, retries=0.1),
    "many": dict(n=500, lanes=16, retries=0.05),
    "spans": dict(n=6, lanes=2, turns=17, retries=0.1, size=4),
    "folded": dict(n=3, lanes=1, turns=34),
    "sessions": dict(n=28, lanes=3, sessions=2),
    "none": dict(n=12, lanes=2, sensor=False),
    "long": dict(n=10000, lanes=64, turns=1, size=0.4),
}
DOMAINS = ("gpu", "cpu", "dram")
SHARE = {"gpu": 0.8, "cpu": 0.18, "dram": 0.02}
TOOLS = (("web_search", 0.35), ("read_page", 0.2), ("calculator", 0.002))


class Query:
    def __init__(self, index, start, rng, shape):
        self.index, self.start, self.spans, self.turns = index, start, [], []
        self.failed = rng.random() < 0.08 and shape["n"] > 10
        self.right = not self.failed and rng.random() < shape.get("right", 0.6)
        t, tokens, size = start + 0.001, 300 + rng.randrange(200), shape.get("size", 1)
        turns = shape.get("turns") or 1 + rng.randrange(5)
        for k in range(turns):
            begin, spans, out = t, [], 10 + int(rng.expovariate(1 / (60 * size)))
            if rng.random() < shape.get("retries", 0):
                spans.append(dict(kind="lm", part="lm", a=t, b=t + 0.15, outcome="error", error="HTTP 503: busy"))
                t += 0.15
                spans.append(dict(kind="wait", part="wait", a=t, b=t + 0.5))
                t += 0.5
            prefill, decode = 0.05 + tokens * 0.0001 * size, out * 0.008 * size
            spans.append(dict(kind="lm", a=t, b=t + prefill + decode, outcome="ok", attempt=len(spans) + 1))
            spans.append(dict(kind="prefill", part="prefill", a=t, b=t + prefill))
            spans.append(dict(kind="decode", part="decode", a=t + prefill, b=t + prefill + decode))
            t += prefill + decode
            if k + 1 < turns:
                name, seconds = TOOLS[rng.choice((0, 0, 1, 1, 2))]
                seconds *= 0.5 + rng.random()
                spans.append(dict(kind="tool", part="tool", name=name, a=t, b=t + seconds, outcome="ok"))
                t += seconds
            t += 0.001
            self.turns.append(dict(a=begin, b=t, input=tokens, output=out, ttft=prefill, spans=spans))
            tokens += out + 400
        self.end = t
        for turn in self.turns:
            self.spans += [s for s in turn["spans"] if "part" in s]


def simulate(shape, rng):
    free, queries = [0.0] * shape["lanes"], []
    for i in range(shape["n"]):
        lane = min(range(len(free)), key=lambda k: free[k])
        queries.append(Query(i, free[lane], rng, shape))
        free[lane] = queries[-1].end + 0.002
    return queries


def integrals(queries):
    """Edges, and for each the joules of the machine and of one query in flight up to it."""
    marks = []
    for q in queries:
        marks += [(q.start, 0, 1), (q.end, 0, -1)]
        for s in q.spans:
            kind = {"prefill": 1, "decode": 2}.get(s["part"])
            if kind:
                marks += [(s["a"], kind, 1), (s["b"], kind, -1)]
    marks.sort()
    n, at, all_j, own_j, above_j = [0, 0, 0], 0.0, 0.0, 0.0, 0.0
    steps = [(0.0, 0.0, 0.0, 0.0, 0.0)]
    for t, kind, change in marks:
        watts = 92 + (300 if n[1] else 0) + (95 + 40 * math.sqrt(n[2]) if n[2] else 0)
        all_j += watts * (t - at)
        if n[0]:
            own_j += watts * (t - at) / n[0]
            above_j += (watts - 92) * (t - at) / n[0]
        steps.append((t, all_j, own_j, above_j, watts))
        at = t
        n[kind] += change
    return steps


def reader(steps, column):
    times = [s[0] for s in steps]
    import bisect

    def at(t):
        i = min(max(1, bisect.bisect_left(times, t)), len(steps) - 1)
        (t0, a), (t1, b) = (steps[i - 1][0], steps[i - 1][column]), (steps[i][0], steps[i][column])
        return a if t1 <= t0 else a + (b - a) * min(1, max(0, (t - t0) / (t1 - t0)))
    return at


def figure(joules, seconds, wide=1.0):
    out = {}
    for d in DOMAINS:
        j, e = joules * SHARE[d], SHARE[d] * 20 * wide
        out[d] = dict(joules=round(j, 6), lo=round(max(0, j - e), 3), hi=round(j + e, 3), u=round(e / 2, 4), samples=9,
                      provenance="distributed")
    return out


def write(folder, name):
    shape = SHAPES[name]
    rng = random.Random(name)
    queries = simulate(shape, rng)
    end = max(q.end for q in queries) + 0.2
    sensor = shape.get("sensor", True)
    steps = integrals(queries)
    whole, each, above = reader(steps, 1), reader(steps, 2), reader(steps, 3)
    total = whole(end) + 92 * (end - steps[-1][0])
    parts, lines, tools, waste, tax = {}, [], {}, 0.0, 0.0
    seam = queries[len(queries) // 2].start if shape.get("sessions") else None
    gap = 7.0 if seam else 0
    session = lambda t: 1 if seam is not None and t >= seam else 0
    ns = lambda t: 1_000_000_000 + round((t + gap * session(t)) * 1e9)

    def part_of(table, q_part, seconds, joules, wasted, name=None):
        key = (q_part, name)
        row = table.setdefault(key, dict(part=q_part, name=name, calls=0, seconds=0.0, j=0.0, w=0.0))
        row["calls"] += 1
        row["seconds"] += seconds
        row["j"] += joules
        row["w"] += wasted

    known = lambda j: {d: round(j * SHARE[d], 6) if sensor else None for d in DOMAINS} | {"machine": None}
    unknown = {d: {"reason": "no_sensor"} for d in DOMAINS}
    for q in queries:
        mine, turns, held = {}, [], 0.0
        covered = []
        for turn in q.turns:
            spans = []
            for s in turn["spans"]:
                j = each(s["b"]) - each(s["a"])
                if s["kind"] != "wait":
                    span = dict(kind=s["kind"], start_s=s["a"] - q.start, end_s=s["b"] - q.start,
                                outcome=s.get("outcome", "ok"), attempt=s.get("attempt", 1), name=s.get("name", "sim"))
                    if s.get("error"):
                        span["error"] = s["error"]
                    span["energy"] = figure(j, s["b"] - s["a"], 0.25) if sensor else unknown
                    spans.append(span)
                if "part" in s:
                    wasted = j if s["part"] == "lm" else 0
                    part_of(mine, s["part"], s["b"] - s["a"], j, wasted, s.get("name"))
                    held += j if s["part"] in ("tool", "wait") else 0
                    covered.append((s["a"], s["b"], j))
            turns.append(dict(turn_index=len(turns), start_s=turn["a"] - q.start, end_s=turn["b"] - q.start,
                              wall_clock_s=turn["b"] - turn["a"], input_tokens=turn["input"], output_tokens=turn["output"],
                              ttft_s=turn["ttft"], itl_mean_s=0.008, decode_s=turn["output"] * 0.008, spans=spans,
                              energy=figure(each(turn["b"]) - each(turn["a"]), turn["b"] - turn["a"]) if sensor else unknown))
        joules = each(q.end) - each(q.start)
        rest, rest_s = joules - sum(c[2] for c in covered), q.end - q.start - sum(c[1] - c[0] for c in covered)
        part_of(mine, "agent", rest_s, rest, 0)
        energy = figure(joules, q.end - q.start) if sensor else unknown
        wasted = sum(p["w"] for p in mine.values())
        waste, tax = waste + wasted, tax + held
        for p in mine.values():
            part_of(parts, p["part"], p["seconds"], p["j"], p["w"], p["name"])
            if p["part"] == "tool":
                tools[p["name"]] = tools.get(p["name"], 0) + p["calls"]
                parts[(p["part"], p["name"])]["calls"] += p["calls"] - 1
        line = dict(schema_version=2, query_id=f"frames-{q.index:03}", query_index=q.index, segment=session(q.start), epoch=0,
                    outcome="max_turns" if q.failed else "answered", completed=not q.failed, is_resolved=q.right,
                    accuracy_score=float(q.right), num_turns=len(turns), tool_call_count=sum(p["calls"] for p in mine.values()
                    if p["part"] == "tool"), total_input_tokens=sum(t["input"] for t in q.turns),
                    total_output_tokens=sum(t["output"] for t in q.turns), total_wall_clock_s=q.end - q.start,
                    start_ns=ns(q.start), end_ns=ns(q.start) + round((q.end - q.start) * 1e9), energy=energy, turns=turns,
                    n_malformed=0, model="sim", query_text="?", response_text="!", shared_device_warning=True,
                    accounts={d: dict(attributed_j=round(joules * SHARE[d], 6), marginal_j=round((above(q.end) - above(q.start))
                              * SHARE[d], 6), waste_j=round(wasted * SHARE[d], 6), idle_tax_j=round(held * SHARE[d], 6))
                              for d in DOMAINS} if sensor else {},
                    parts=[dict(part=p["part"], calls=p["calls"], seconds=p["seconds"], **({"name": p["name"]} if p["name"]
                           else {}), **({"joules": {d: round(p["j"] * SHARE[d], 6) for d in DOMAINS}, "waste_joules":
                           {d: round(p["w"] * SHARE[d], 6) for d in DOMAINS}} if sensor else {})) for p in mine.values()])
        if shape.get("cost"):
            line["total_cost_usd"] = shape["cost"]
        lines.append(json.dumps(line, sort_keys=True))
    n, right = len(queries), sum(q.right for q in queries)
    failed = sum(q.failed for q in queries)
    booked = sum(each(q.end) - each(q.start) for q in queries)
    model = shape.get("model", "sim-small")
    config = dict(agent="react", model=model, dataset="frames", concurrency=shape["lanes"], epochs=1, max_turns=40,
                  telemetry_interval=0.05, share="phase", temperature=0.7, client_base_url="http://10.0.0.2:8000/v1",
                  energy="local", selection_sha256="s", tools=[])
    channel = lambda d: dict(device=d, domain=d, in_sum=True, kind="counter", name=d, modulus_uj=0, max_w=2000,
                             period_ns=100_000_000, remote=False, scope=d, unit="uJ")
    hardware = dict(gpu="NVIDIA H200" if sensor else None, gpu_count=1, gpus_read=1, driver="550.54", cpu="AMD EPYC 9654",
                    cpu_cores=96, cpu_sockets=1, governor="performance", kernel="6.1.0", virtualised=None,
                    basis=dict(gpu="1 GPU (nvml)", cpu="1 package (rapl)", dram="1 memory zone (rapl)"),
                    channels=[channel(d) for d in DOMAINS] if sensor else [], self_test=[])
    segments = [dict(segment=0, start_ns=ns(0), end_ns=ns(0) + round(seam * 1e9) if seam else ns(end), end="killed" if seam else
                     "complete", hardware=hardware)]
    if seam:
        segments.append(dict(segment=1, start_ns=ns(seam), end_ns=ns(end), end="complete", hardware=hardware))
    idle = {d: round(92 * SHARE[d], 3) for d in DOMAINS}
    # what was in flight when the first session was killed
    attempts = [dict(query_id=f"frames-{900 + k}", query_index=900 + k, segment=0, epoch=0, outcome="unfinished",
                     completed=False, start_ns=ns(seam - 0.4 - 0.9 * k), end_ns=ns(0) + round(seam * 1e9), superseded="cut")
                for k in range(2)] if seam else []
    lost = (total - booked) / 2 if seam else 0.0
    ledger = {d: dict(total_j=round(total * SHARE[d], 6), queries_j=round(booked * SHARE[d], 6), warmup_j=0.0,
                      wasted_j=round(lost * SHARE[d], 6), idle_j=round(total * SHARE[d], 6) - round(booked * SHARE[d], 6)
                      - round(lost * SHARE[d], 6), difference_j=0.0, balanced=True)
              if sensor else dict(total_j=None, reason="no_sensor") for d in DOMAINS}
    ledger["machine"] = dict(total_j=None, reason="no_sensor")
    mean = lambda values: sum(values) / len(values)
    per, seconds = [each(q.end) - each(q.start) for q in queries], [q.end - q.start for q in queries]

    def interval(values):
        if len(values) < 2:
            return dict(mean=mean(values), lo=None, hi=None, method="none", n=len(values))
        half = 2 * (sum((v - mean(values)) ** 2 for v in values) / (len(values) - 1) / len(values)) ** 0.5
        return dict(mean=mean(values), lo=mean(values) - half, hi=mean(values) + half, method="t", n=len(values))

    def quantiles(values):
        values = sorted(values)
        at = lambda p: values[min(len(values) - 1, int(p * len(values)))]
        return dict(n=len(values), avg=mean(values), p50=at(0.5), p90=at(0.9), p95=at(0.95), p99=at(0.99), median=at(0.5))
    z, share = 1.96, right / n
    middle, half = (share + z * z / 2 / n) / (1 + z * z / n), z / (1 + z * z / n) * (share * (1 - share) / n + z * z / 4 / n / n) ** 0.5
    summary = dict(
        schema_version=2, status="complete", run=dict(agent="react", model=model, dataset="frames", planned=n,
        sessions=len(segments), earlier_attempts=len(attempts)), config=config, hardware=hardware,
        totals=dict(queries=n, completed=n - failed, failed=failed, resolved=right, unresolved=n - right,
                    input_tokens=sum(t["input"] for q in queries for t in q.turns),
                    output_tokens=sum(t["output"] for q in queries for t in q.turns),
                    cost_usd=shape["cost"] * n if shape.get("cost") else None,
                    bounds={d + "_energy_joules": dict(lo=booked * SHARE[d] - 5, hi=booked * SHARE[d] + 5, u=3) for d in DOMAINS}
                    if sensor else {}),
        efficiency=dict(basis="+".join(DOMAINS) if sensor else None, joules_per_correct_answer=booked / right if right and sensor
                        else None, bounds={}),
        ledger=ledger, baseline=dict(domains={d: dict(before_w=idle[d]) for d in DOMAINS} if sensor else {}),
        accounts={d: dict(attributed_j=round(booked * SHARE[d], 6), waste_j=waste * SHARE[d], idle_tax_j=tax * SHARE[d])
                  for d in DOMAINS} if sensor else {},
        parts=[dict(part=p["part"], name=p["name"], calls=p["calls"], seconds=p["seconds"], joules=known(p["j"]),
                    waste_joules=known(p["w"])) for p in parts.values()],
        tools=[dict(name=name, calls=calls, outcomes={"ok": calls}, seconds=parts[("tool", name)]["seconds"],
                    idle_tax_joules=known(parts[("tool", name)]["j"])) for name, calls in sorted(tools.items())],
        latency=dict(ttft_s=quantiles([t["ttft"] for q in queries for t in q.turns]),
                     latency_content_s=quantiles([t["b"] - t["a"] for q in queries for t in q.turns])),
        repeats=dict(metrics=dict(accuracy=dict(mean=share, lo=middle - half, hi=middle + half, method="wilson", n=n),
                                  wall_clock_s=interval(seconds), **({"joules": interval(per)} if sensor else {}))),
        own_overhead=dict(runner_cpu_s=0.2, sampler_cpu_s=0.1, share=0.01))
    manifest = dict(schema_version=2, config=config, hardware=hardware, segments=segments, started_at="2026-11-28T14:31:54Z",
                    program=dict(name="ipw-agent", version="0.1.0"), hashes={})
    os.makedirs(folder, exist_ok=True)
    put = lambda file, text: open(os.path.join(folder, file), "w", encoding="utf-8").write(text)
    put("manifest.json", json.dumps(manifest))
    put("summary.json", json.dumps(summary))
    put("traces.jsonl", "\n".join(lines) + "\n")
    put("events.jsonl", "")
    if attempts:
        put("attempts.jsonl", "\n".join(json.dumps(a, sort_keys=True) for a in attempts) + "\n")
    rows = []
    step = max(0.1, end / 20000)
    for s in segments if sensor else []:
        rows.append(json.dumps(dict(format=1, schema_version=2, segment=s["segment"], interval_ns=50_000_000,
                    row=["t_ns", "source", "values..."], verdicts=[], basis={}, sources=[dict(name="sim", note="",
                    period_ns=100_000_000, channels=[channel(d) for d in DOMAINS])])))
        t = 0.0 if s["segment"] == 0 else seam
        while t <= (max(q.end for q in queries if not session(q.start)) if s["segment"] == 0 else end):
            j = whole(t) + max(0, t - steps[-1][0]) * 92
            rows.append(json.dumps([s["start_ns"] + round((t - (seam if s["segment"] else 0)) * 1e9), 0]
                                   + [round(j * SHARE[d] * 1e6) for d in DOMAINS]))
            t += step
    put("power.jsonl", "\n".join(rows) + "\n")


if __name__ == "__main__":
    for wanted in sys.argv[2:] or SHAPES:
        write(os.path.join(sys.argv[1], wanted), wanted)
