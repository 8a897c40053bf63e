"""Cuts a run into overlapping shards on one device: cut_run.py RUN FOLDER N [GPUS]

FOLDER/I-of-N has the queries whose ids hash to I, with the events and readings as they were
recorded.  The first shard begins with the run and the last one ends with it; the others begin just
before their first query and end just after their last.  So the readings of one device are in
several shards, and the merged run must have the balance of RUN.

With GPUS, shard I sees one GPU alone, number I modulo GPUS, and calls it gpu0, as a job of Slurm
does.  All shards see the other sensors, and go on for as long as RUN, so that every device has the
total of RUN.
"""
import hashlib
import json
import os
import sys

run, folder, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
gpus = int(sys.argv[4]) if len(sys.argv) > 4 else 0


def lines(name):
    with open(os.path.join(run, name), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def write(path, docs):
    with open(path, "w", encoding="utf-8") as file:
        for doc in docs:
            file.write(json.dumps(doc, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n")


def shard_of(name):
    return int(hashlib.sha256(name.encode()).hexdigest()[:15], 16) % n


def sees(channel, own):
    """Is it of the GPU with this number, or of no GPU?"""
    return own is None or channel["domain"] != "gpu" or channel["name"].split("/")[0] == "gpu%d" % own


def called(channel):
    """In the shard the GPU is number 0."""
    if channel["domain"] != "gpu":
        return channel
    return dict(channel, name="/".join(["gpu0"] + channel["name"].split("/")[1:]))


def own_header(header, own):
    return dict(header, sources=[
        dict(s, channels=[called(c) for c in s["channels"] if sees(c, own)]) for s in header["sources"]])


def own_row(row, own):
    channels = header["sources"][row[1]]["channels"]
    return row[:2] + [v for v, c in zip(row[2:], channels) if sees(c, own)]


def see(session, data, own):
    """The session and the data of its run_start, without the other GPUs."""
    hardware = session["hardware"]
    hardware["channels"] = [called(c) for c in hardware["channels"] if sees(c, own)]
    watts = data["device_baseline_w"].pop("gpu", None)
    if watts:
        data["baseline_w"]["gpu"] = watts[own]


manifest = json.load(open(os.path.join(run, "manifest.json"), encoding="utf-8"))
events, power, traces = lines("events.jsonl"), lines("power.jsonl"), lines("traces.jsonl")
header, rows = power[0], power[1:]
start, end = events[0], events[-1]
assert start["event"] == "run_start" and end["event"] == "run_end"
ids = {e["query"]: e["id"] for e in events if e["event"] == "query_start"}
tasks = [i for i in dict.fromkeys(ids[q] for q in sorted(ids))]
first = min(shard_of(i) for i in tasks)
last = max(shard_of(i) for i in tasks)
for i in range(n):
    own = [task for task in tasks if shard_of(task) == i]
    if not own:
        continue
    gpu = i % gpus if gpus else None
    mine = [e for e in events if e["query"] in ids and ids[e["query"]] in own]
    t0 = start["t_ns"] if gpus or i == first else min(e["t_ns"] for e in mine) - 1000
    t1 = end["t_ns"] if gpus or i == last else max(e["t_ns"] for e in mine) + 1000
    # Sensors are read before a session begins, and past its end.
    around_ns = 100 * 10**6
    from_ns = 0 if gpus or i == first else t0 - around_ns
    upto_ns = 1 << 63 if gpus or i == last else t1 + around_ns
    kept = sorted((r for r in rows if from_ns <= r[0] <= upto_ns), key=lambda r: r[0])
    numbers = {}
    for e in mine:
        numbers.setdefault(e["query"], len(numbers))
    part = json.loads(json.dumps(manifest))
    part["config"]["shard"] = {"count": n, "index": i, "selected": len(tasks), "taken": None,
                               "selection_sha256": manifest["config"]["selection_sha256"]}
    part["config"]["max_queries"] = len(own)
    session = part["segments"][0]
    session["start_ns"], session["end_ns"] = t0, t1
    out = []
    start_of = json.loads(json.dumps(dict(start, t_ns=t0)))
    if gpus:
        see(session, start_of["data"], gpu)
    for e in [start_of] + mine + [dict(end, t_ns=t1)]:
        e = json.loads(json.dumps(e))
        if e["query"] in numbers:
            if e["event"] == "query_start":
                e["data"]["place"] = tasks.index(e["id"]) + 1
            e["query"] = numbers[e["query"]]
        e["rows"] = len([r for r in kept if r[0] <= e["t_ns"]])
        out.append(e)
    path = os.path.join(folder, "%d-of-%d" % (i, n))
    os.makedirs(path)
    write(os.path.join(path, "events.jsonl"), out)
    write(os.path.join(path, "power.jsonl"), [own_header(header, gpu)] + [own_row(r, gpu) for r in kept])
    write(os.path.join(path, "traces.jsonl"),
          [dict(t, query_index=numbers[t["query_index"]]) for t in traces if t["query_id"] in own])
    write(os.path.join(path, "manifest.json"), [part])
