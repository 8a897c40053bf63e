"""Damages a saved run's events.jsonl, one line at a time, and replays each damaged run: removes the line, doubles it,
swaps it with the next line, or cuts the file after it.

    event_lines.py AGENT RUN MODE...    RUN: a few queries with tool calls

Held each time: the replay ends by itself with status 0 (nothing that it looks at has changed), 4 (it went another way, and
its words say where) or 3 (the record cannot be read, and the message says where); and the record stays as it is."""
import os, shutil, subprocess, sys

agent, run, *modes = sys.argv[1:]
work, out = run + ".changed", run + ".again"


def changes(lines):
    for i, line in enumerate(lines):
        yield "line %d taken away" % (i + 1), lines[:i] + lines[i + 1:]
        yield "line %d doubled" % (i + 1), lines[:i + 1] + lines[i:]
        yield "line %d behind the next" % (i + 1), lines[:i] + lines[i + 1:i + 2] + [line] + lines[i + 2:]
        yield "cut behind line %d" % (i + 1), lines[:i + 1]


def call(*words):
    return subprocess.run([agent, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)


bad = n = 0
shutil.copytree(run, work)
lines = open(run + "/events.jsonl").read().split("\n")[:-1]
for what, changed in changes(lines):
    text = "".join(line + "\n" for line in changed)
    with open(work + "/events.jsonl", "w") as f:
        f.write(text)
    for mode in modes:
        shutil.rmtree(out, True)
        got = call("replay", work, "--mode", *mode.split(" "), "--output", out)
        n += 1
        fault = None
        if got.returncode not in (0, 3, 4):
            fault = "exit status %d" % got.returncode
        elif got.returncode == 4 and not got.stderr:
            fault = "another way, without a word"
        elif got.returncode == 3 and "changed" not in got.stderr:
            fault = "the message names no file"
        elif open(work + "/events.jsonl").read() != text:
            fault = "the record has changed"
        if fault:
            bad += 1
            print("%s, %s: %s\n  %s" % (mode, what, fault, (got.stderr + got.stdout)[:500]))
print("%d replays, %d faults" % (n, bad))
sys.exit(bad > 0)
