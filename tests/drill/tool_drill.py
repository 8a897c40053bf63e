#!/usr/bin/env python3
"""Calls a tool that starts a program many times in one run, and looks at what the runner holds meanwhile.

    tests/drill/tool_drill.py --agent build/dev/ipw-agent [--calls 10000] [--in-flight 4] [--unsafe-tools]
        [--kills 200]

Each call starts a program that leaves another behind, out of its session.  Held (P-15):

  - every call ends well;
  - the runner's descriptors and children do not grow: no more of either in the last tenth of the calls than in the
    first, and no zombie that stays;
  - afterwards no process of a tool is there, no file in the temporary folder, no workspace but with its own file.

With --kills the runner is then killed so many times while a tool's sandbox is being made: nothing of any sandbox
stays.  Prints the figures.  Exit status 0: all of it held."""
import argparse, json, os, random, shutil, signal, subprocess, sys, tempfile, time

AGENT = """
local proc = require "ipw.proc"
return { name = "drill", about = "Calls a tool.", run = function()
  local kit <close> = require("ipw.tools").open { {
    name = "start", about = "Starts a program.", input = {}, needs = { "proc" },
    run = function() return assert(proc.run { "sh", "-c",
      "setsid sleep 600 >/dev/null 2>&1 & echo fine", seconds = 30 }).stdout end } }
  local done = 0
  for _ = 1, CALLS do
    local text, ok = kit:invoke("start", {})
    if ok and text == "fine\\n" then done = done + 1 end
  end
  return tostring(done)
end }
"""


def listed(path):
    try:
        return os.listdir(path)
    except OSError:
        return []


def state_of(pid):
    try:
        with open("/proc/%s/stat" % pid) as f:
            return f.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return ""


def children_of(pid):
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
            return f.read().split()
    except OSError:
        return []


def tools_alive(runner):
    """Processes that carry the marker of the runner's tools."""
    found, mark = [], b"IPW_TOOL_ID=%d." % runner
    for pid in listed("/proc"):
        if not pid.isdigit():
            continue
        try:
            with open("/proc/%s/environ" % pid, "rb") as f:
                if mark in f.read():
                    found.append(pid)
        except OSError:
            pass
    return found


def named(folder):
    """Processes that have the folder in their arguments, other than the runner: bubblewrap's."""
    found = []
    for pid in filter(str.isdigit, listed("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as f:
                if folder.encode() in f.read():
                    found.append(pid)
        except OSError:
            pass
    return found


def kill_drill(o, folder):
    os.mkdir(folder)
    for _ in range(o.kills):
        runner = subprocess.Popen([os.path.abspath(o.agent), "tool", "shell", '{"command":"sleep 0.3"}'],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  env=dict(os.environ, TMPDIR=folder))
        while runner.poll() is None and not named(folder):
            pass
        time.sleep(random.uniform(0, 0.03))
        runner.send_signal(signal.SIGKILL)
        runner.wait()
    for _ in range(300):
        left = named(folder)
        if not left:
            break
        time.sleep(0.01)
    if o.kills:
        print("%d kills, %d processes left" % (o.kills, len(left)))
    for pid in left:
        os.kill(int(pid), signal.SIGKILL)
    if left:
        sys.exit("tool_drill: a killed runner leaves processes of its sandbox")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--agent", required=True)
    p.add_argument("--calls", type=int, default=10000)
    p.add_argument("--in-flight", type=int, default=4)
    p.add_argument("--unsafe-tools", action="store_true")
    p.add_argument("--kills", type=int, default=0)
    o = p.parse_args()
    work = tempfile.mkdtemp(prefix="ipw tools.")
    try:
        drill(o, work)
        kill_drill(o, work + "/killed")
    finally:
        shutil.rmtree(work, True)


def drill(o, work):
    each = max(1, o.calls // o.in_flight)
    with open(work + "/agent.lua", "w") as f:
        f.write(AGENT.replace("CALLS", str(each)))
    with open(work + "/rows.jsonl", "w") as f:
        for i in range(o.in_flight):
            f.write(json.dumps({"question": "q%d" % i, "answer": str(each)}) + "\n")
    os.mkdir(work + "/tmp")
    command = [os.path.abspath(o.agent), "run", work + "/agent.lua", "--dataset", work + "/rows.jsonl", "--model", "demo",
               "--concurrency", str(o.in_flight), "--telemetry", "none", "-q", "-o", work + "/run"]
    began = time.monotonic()
    with open(work + "/err", "w") as err:
        run = subprocess.Popen(command + ["--unsafe-tools"] * o.unsafe_tools, stdout=subprocess.DEVNULL, stderr=err,
                               env=dict(os.environ, TMPDIR=work + "/tmp"))
    seen, zombies = [], {}
    while run.poll() is None:
        now = children_of(run.pid)
        dead = [pid for pid in now if state_of(pid) == "Z"]
        zombies = {pid: zombies.get(pid, 0) + 1 for pid in dead}
        seen.append((len(listed("/proc/%d/fd" % run.pid)), len(now), max(zombies.values(), default=0)))
        time.sleep(0.01)
    took = time.monotonic() - began
    with open(work + "/err") as f:
        said = f.read()
    if run.returncode:
        sys.exit("tool_drill: exit status %d: %s" % (run.returncode, said))
    answers = [json.loads(line) for line in open(work + "/run/traces.jsonl")]
    tenth = max(1, len(seen) // 10)
    first, last = seen[tenth:2 * tenth], seen[-2 * tenth:-tenth]
    most = lambda rows, k: max((row[k] for row in rows), default=0)
    print("%d calls in %.1f s; descriptors %d, then %d; children %d, then %d; a zombie was seen %d times in a row"
          % (each * o.in_flight, took, most(first, 0), most(last, 0), most(first, 1), most(last, 1), most(seen, 2)))
    faults = [q["query_id"] for q in answers if q["answer"] != str(each)]
    if faults or len(answers) != o.in_flight:
        sys.exit("tool_drill: calls failed: %s" % (faults or len(answers)))
    if most(last, 0) > most(first, 0) + 2 * o.in_flight or most(last, 1) > most(first, 1) + 2 * o.in_flight:
        sys.exit("tool_drill: descriptors or children grow")
    if most(seen, 2) > 50:
        sys.exit("tool_drill: a zombie stays")
    left = tools_alive(run.pid) + listed(work + "/tmp")
    if left:
        sys.exit("tool_drill: left behind: %s" % left)


main()
