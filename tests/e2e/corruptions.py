"""Changes a good run in one place at a time; validate has to name each.

    corruptions.py AGENT RUN     RUN: three queries or more, with a CPU counter
"""
import json
import os
import shutil
import subprocess
import sys

agent, run = sys.argv[1:3]
work = run + ".changed"


def lines(name):
    with open(f"{work}/{name}", encoding="utf-8") as f:
        return f.read().split("\n")[:-1]


def write(name, text):
    with open(f"{work}/{name}", "w", encoding="utf-8") as f:
        f.write(text)


def dump(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def edit(name, at, change):
    """Changes the value of line `at` (a number from 0, or the first line for which it is true)."""
    def do():
        all_lines = lines(name)
        i = at if isinstance(at, int) else next(
            i for i, line in enumerate(all_lines) if at(json.loads(line)))
        value = json.loads(all_lines[i])
        change(value)
        all_lines[i] = dump(value)
        write(name, "\n".join(all_lines) + "\n")
    return do


def document(name, change):
    def do():
        value = json.load(open(f"{work}/{name}", encoding="utf-8"))
        change(value)
        write(name, dump(value))
    return do


def text(name, at, change):
    def do():
        all_lines = lines(name)
        i = at % len(all_lines)
        all_lines[i:i + 1] = change(all_lines[i])
        write(name, "\n".join(all_lines) + "\n")
    return do


def put(*path_and_value):
    *path, value = path_and_value

    def do(target):
        for key in path[:-1]:
            target = target[key]
        target[path[-1]] = value
    return do


def drop(*path):
    def do(target):
        for key in path[:-1]:
            target = target[key]
        del target[path[-1]]
    return do


def more(*path, by):
    def do(target):
        for key in path[:-1]:
            target = target[key]
        target[path[-1]] += by
    return do


def is_event(name):
    return lambda event: event["event"] == name


def twice(name, is_it):
    def do():
        all_lines = lines(name)
        i = next(i for i, line in enumerate(all_lines) if is_it(json.loads(line)))
        write(name, "\n".join(all_lines[:i + 1] + all_lines[i:]) + "\n")
    return do


def move_line(name, a, b):
    def do():
        all_lines = lines(name)
        all_lines.insert(b, all_lines.pop(a))
        write(name, "\n".join(all_lines) + "\n")
    return do


def plus(joules, more):
    """As the program adds: in whole microjoules, of which a sum of doubles may be a bit apart."""
    return round(joules + more, 6)


def whole_query_energy(trace):
    """One joule more, everywhere where the sums of the line itself would tell."""
    first = next(turn["energy"]["cpu"] for turn in trace["turns"] if "joules" in turn["energy"]["cpu"])
    for figure in first, trace["energy"]["cpu"]:
        figure["hi"] = plus(figure["hi"], 1)
    first["joules"] = plus(first["joules"], 1)
    total = trace["energy_before"]["cpu"]["joules"]
    for turn in trace["turns"]:
        turn["cpu_energy_joules"] = turn["energy"]["cpu"]["joules"]
        total = plus(total, turn["cpu_energy_joules"])
    trace["energy"]["cpu"]["joules"] = trace["query_cpu_energy_joules"] = total


T, E, P = "traces.jsonl", "events.jsonl", "power.jsonl"
table = [
    ("not JSON", text(T, 1, lambda line: [line[:-1]]), "traces.jsonl:2: at byte"),
    ("a line that is no object", text(T, 1, lambda line: ["[]"]), "traces.jsonl:2: expected an object"),
    ("a missing key", edit(T, 0, drop("outcome")), "traces.jsonl:1: outcome: missing"),
    ("a wrong type", edit(T, 0, put("query_text", 7)), "traces.jsonl:1: query_text: expected text, found an integer"),
    ("null where none may be", edit(T, 0, put("num_turns", None)), "num_turns: expected an integer, found null"),
    ("a count below zero", edit(T, 0, put("turns", 0, "attempts", -1)), "turns[0].attempts: is negative"),
    ("a missing key in a turn", edit(T, 0, drop("turns", 0, "agent_s")), "turns[0].agent_s: missing"),
    ("a key twice", text(T, 0, lambda line: ['{"accounts":{},' + line[1:]]), "accounts: occurs twice"),
    ("keys out of order", text(T, 0, lambda line: ['{"zzz":1,' + line[1:]]), "keys are not in order"),
    ("a later version", edit(T, 0, put("schema_version", 9)), "schema_version: 9; this program knows 2"),
    ("a figure that does not say how", edit(T, 0, drop("energy", "cpu", "provenance")),
     "energy.cpu: has joules but no provenance"),
    ("an unknown provenance", edit(T, 0, put("energy", "cpu", "provenance", "guessed")),
     "energy.cpu.provenance: 'guessed' is not an allowed value"),
    ("joules outside of their bounds", edit(T, 0, put("energy", "cpu", "lo", 1e6)), "is outside its bounds"),
    ("a turn that does not sum", edit(T, 0, put("energy_before", "cpu", "joules", 0.123)), "energy"),
    ("turns that do not tile", edit(T, 0, more("turns", 0, "start_s", by=0.5)), "turns[0].start_s:"),
    ("a wrong number of turns", edit(T, 0, more("num_turns", by=1)), "num_turns: the turns sum to"),
    ("tokens that do not sum", edit(T, 0, more("total_input_tokens", by=1)), "total_input_tokens: the turns sum to"),
    ("a wrong clock", edit(T, 0, more("end_ns", by=10**9)), "total_wall_clock_s: is not end_ns - start_ns"),
    ("a score that disagrees", edit(T, 0, put("accuracy_score", None)), "accuracy_score: does not agree with is_resolved"),
    ("a query twice", text(T, 0, lambda line: [line, line]), "query_id: '"),
    ("a query lost", text(T, 0, lambda line: []), ""),
    ("a joule invented, with every sum mended", edit(T, 0, whole_query_energy), "its line does not follow from the events and samples"),
    ("an event of no kind", edit(E, is_event("note"), put("event", "notes")), "event: unknown event 'notes'"),
    ("an event without a time", edit(E, is_event("query_end"), drop("t_ns")), "t_ns: missing"),
    ("an outcome that is none", edit(E, is_event("lm_inference_end"), put("outcome", "fine")), "outcome: 'fine' is not an allowed value"),
    ("an end without its start", edit(E, is_event("lm_inference_end"), put("span", 77)), "ends without a start"),
    ("a query that starts twice", text(E, 1, lambda line: [line, line]), "starts a second time"),
    ("no run_start", text(E, 0, lambda line: []), "before any run_start"),
    ("events out of order", move_line(E, -1, 3), "events.jsonl:"),
    ("an event gone back in time", edit(E, is_event("query_end"), more("t_ns", by=-10**12)), "t_ns: goes back by"),
    ("no run_end", text(E, -1, lambda line: []), "ends without the run_end"),
    ("a reply's tokens changed", edit(E, is_event("lm_inference_end"), more("output_tokens", by=1)),
     "its line does not follow from the events and samples"),
    ("a row that is none", text(P, 3, lambda line: ["[1,2"]), "power.jsonl:4: not a row of the channels"),
    ("a row gone back in time", text(P, 2, lambda line: [line, lines(P)[1]]), "t_ns goes back"),
    ("no header", text(P, 0, lambda line: []), "power.jsonl"),
    ("a channel of no kind", edit(P, 0, put("sources", 0, "channels", 0, "kind", "counters")), "power.jsonl"),
    ("a total that is wrong", document("summary.json", more("totals", "turns", by=1)), "summary.json: totals.turns:"),
    ("books that do not balance", document("summary.json", more("ledger", "cpu", "idle_j", by=1.0)),
     "summary.json: ledger.cpu: does not balance"),
    ("another total than the sessions'", document("summary.json", more("ledger", "cpu", "total_j", by=1.0)),
     "the sessions sum to"),
    ("a summary without totals", document("summary.json", drop("totals")), "summary.json: totals: missing"),
    ("a session that is not numbered", document("manifest.json", put("segments", 0, "segment", 3)), "segments[0].segment: is not 0"),
    ("a manifest without its clock", document("manifest.json", drop("clock")), "manifest.json: clock: missing"),
    ("a span that ends before it starts", edit(T, 0, put("turns", 0, "spans", 0, "end_s", -1.0)), "ends before it starts"),
    ("a turn's clock that is wrong", edit(T, 0, more("turns", 0, "wall_clock_s", by=1.0)), "wall_clock_s: is not end_s - start_s"),
    ("a provenance without joules", edit(T, 0, put("energy", "gpu", "provenance", "measured")), "energy.gpu: has a provenance but no joules"),
    ("more coverage than there is", edit(T, 0, put("energy", "cpu", "coverage", 1.5)), "energy.cpu"),
    ("a span's figure outside of its bounds", edit(T, 0, put("turns", 0, "spans", 0, "energy", "cpu", "lo", 1e6)), "is outside its bounds"),
    ("a figure before the turns outside of its bounds", edit(T, 0, put("energy_before", "cpu", "lo", 1e6)), "energy_before.cpu"),
    ("a copy that is not its figure's", edit(T, 0, put("query_gpu_energy_joules", 5.0)), "query_gpu_energy_joules"),
    ("a turn's copy that is not its figure's", edit(T, 0, put("turns", 0, "gpu_energy_joules", 5.0)), "gpu_energy_joules"),
    ("a turn's copy of DRAM", edit(T, 0, put("turns", 0, "dram_energy_joules", 1e6)), "dram_energy_joules"),
    ("retries that do not sum", edit(T, 0, more("n_retries", by=1)), "n_retries: the turns sum to"),
    ("tool calls that do not sum", edit(T, 0, more("total_tool_calls", by=1)), "total_tool_calls"),
    ("output that does not sum", edit(T, 0, more("total_output_tokens", by=1)), "total_output_tokens: the turns sum to"),
    ("tokens of a turn that are not known", edit(T, 0, put("turns", 0, "input_tokens", None)), "total_input_tokens"),
    ("a number that is none", text(T, 0, lambda line: [line.replace('"end_s":', '"end_s":1e999,"end_s":', 1)]), "traces.jsonl:1"),
    ("a session that is not there", edit(T, 0, put("segment", 7)), "segment: 7; the manifest has 1"),
    ("text that is no UTF-8", text(T, 0, lambda line: [line.replace("answered", "\\ud83d", 1)]), "traces.jsonl:1"),
    ("a query that is below zero", edit(E, is_event("query_start"), put("query", -7)), "query: -7 is not the index of a query"),
    ("a query beyond all", edit(E, is_event("query_start"), put("query", 2**31 - 1)), "events.jsonl"),
    ("a start without its number", edit(E, is_event("lm_inference_start"), put("span", 0)), "span: a start needs a number from 1"),
    ("a span that starts twice", text(E, 3, lambda line: [line, line]), "events.jsonl:"),
    ("a query that ends twice", twice(E, is_event("query_end")), "ends a second time"),
    ("an event without its name", edit(E, 2, drop("event")), "event: missing"),
    ("an event whose name is no text", edit(E, 2, put("event", 5)), "event: missing, or not a string"),
    ("an event of a query that has not started", edit(E, is_event("lm_inference_start"), put("query", 77)), "query: 77 has not started"),
    ("a session that begins twice", text(E, 0, lambda line: [line, line]), "events.jsonl:2"),
    ("rows that go back", edit(E, -1, put("rows", -5)), "events.jsonl"),
    ("a later version of the manifest", document("manifest.json", put("schema_version", 9)), "manifest.json: schema_version: this program knows 2"),
    ("a later version of the summary", document("summary.json", put("schema_version", 9)), "summary.json: schema_version: this program knows 2"),
    ("a list in place of the manifest", lambda: write("manifest.json", "[]"), "manifest.json"),
    ("a manifest that is cut", lambda: write("manifest.json", '{"clock":'), "manifest.json"),
    ("totals of tool calls", document("summary.json", more("totals", "tool_calls", by=1)), "summary.json: totals.tool_calls:"),
    ("totals of what is right", document("summary.json", more("totals", "resolved", by=1)), "summary.json: totals.resolved:"),
    ("totals of what is complete", document("summary.json", more("totals", "completed", by=1)), "summary.json: totals.completed:"),
    ("totals of joules", document("summary.json", more("totals", "cpu_energy_joules", by=1.0)), "summary.json: totals.cpu_energy_joules"),
    ("another number of sessions", document("summary.json", more("run", "sessions", by=1)), "summary.json: run.sessions:"),
    ("no traces", lambda: os.unlink(f"{work}/traces.jsonl"), "traces.jsonl"),
    ("no manifest", lambda: os.unlink(f"{work}/manifest.json"), "manifest.json"),
    ("no power", lambda: os.unlink(f"{work}/power.jsonl"), ""),
    ("no summary", lambda: os.unlink(f"{work}/summary.json"), "summary.json: missing, although the run ended normally"),
    ("no events", lambda: os.unlink(f"{work}/events.jsonl"), "events.jsonl"),
]

bad = 0
for name, change, want in table:
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(run, work)
    change()
    got = subprocess.run([agent, "validate", work], capture_output=True, text=True, timeout=60)
    if got.returncode not in (1, 3) or want not in got.stderr or got.stderr.count("\n") != 1:
        bad += 1
        print(f"{name}: exit {got.returncode}, wanted {want!r}: {got.stderr.strip()} {got.stdout.strip()}")
shutil.rmtree(work, ignore_errors=True)
print(f"{len(table)} corruptions, {bad} not named as they should be")
sys.exit(bad > 0)
