#!/usr/bin/env python3
"""Makes the system calls on a run's files fail one by one, with strace, and looks at what is left.

    tests/drill/inject_drill.py --agent build/dev/ipw-agent --fakes build/dev/tests/fake \
        [--points 3] [--brief] [--stage run,resume] [--only write:EIO] [--queries 3]

For each call (write, fdatasync, fsync, rename, openat, ...) and error: the calls of a run that nothing
happens to are counted, and then a run is begun for the n-th of them to fail, for every n or, with
`--points`, for that many spread over them.  Held each time:

  - an error: one clear line that names the run's file or folder, exit status 1 or 3, no death by a
    signal; EINTR: nothing at all;
  - what was announced ("done ID") is in traces.jsonl, and what is there follows the format;
  - the run is gone on with (`run --resume`) to its end, no kept line has changed, every query is
    there once, and it follows the format.

A call may also kill the run (`rename:KILL`): then nothing is said, and the rest holds all the same.
Exit status 0: all of it held; 77: strace may not trace here."""
import argparse, atexit, json, os, re, shutil, subprocess, sys, tempfile

# call -> what may happen to it.  Of the calls that only tidy up (close, unlink) no failure is told.
PLAN = {"run": [
    ("write", ("EIO", "ENOSPC", "EINTR", "KILL")),
    ("fdatasync", ("EIO", "ENOSPC", "EINTR", "KILL")),
    ("fsync", ("EIO", "EINTR", "KILL")),
    ("rename", ("EIO", "EINTR", "ENOSPC", "KILL")),
    ("openat", ("EIO", "EINTR", "ENOSPC", "EMFILE")),
    ("pwrite64", ("EIO", "EINTR")),
    ("ftruncate", ("EIO", "EINTR")),
    ("mkdir", ("EIO", "EINTR", "ENOSPC")),
    ("flock", ("EIO", "EINTR")),
], "resume": [  # of a run that was killed in the middle
    ("read", ("EIO", "EINTR")),
    ("pread64", ("EIO",)),
    ("write", ("EIO", "ENOSPC", "EINTR", "KILL")),
    ("fdatasync", ("EIO", "EINTR", "KILL")),
    ("fsync", ("EIO", "EINTR")),
    ("rename", ("EIO", "EINTR", "KILL")),
    ("openat", ("EIO", "EINTR", "EMFILE")),
    ("ftruncate", ("EIO", "EINTR")),
    ("flock", ("EINTR",)),
]}
NAMES = ("manifest.json", "manifest.json.tmp", "events.jsonl", "power.jsonl", "traces.jsonl", "traces.jsonl.tmp",
         "attempts.jsonl", "events.jsonl.torn", "power.jsonl.torn", "summary.json", "summary.json.tmp", "lock")


def fail(text):
    print("inject_drill: " + text, file=sys.stderr)
    sys.exit(1)


def lines(path):
    try:
        with open(path, "rb") as f:
            return f.read().split(b"\n")[:-1]
    except FileNotFoundError:
        return []


class World:
    def __init__(self, options):
        self.o = options
        self.dir = tempfile.mkdtemp(prefix="ipw-inject.", dir=os.environ.get("TMPDIR"))
        atexit.register(shutil.rmtree, self.dir, True)
        self.rows = os.path.join(self.dir, "rows.jsonl")
        with open(self.rows, "w") as f:
            for i in range(options.queries):
                f.write(json.dumps({"question": "Question %d?" % i, "answer": "42"}) + "\n")
        tree = os.path.join(self.dir, "tree")  # a counter that stands still: power.jsonl is written
        zone = os.path.join(tree, "intel-rapl:0")
        os.makedirs(zone)
        for name, text in (("name", "package-0"), ("energy_uj", "1000000"), ("max_energy_range_uj", "262143328850")):
            with open(os.path.join(zone, name), "w") as f:
                f.write(text + "\n")
        self.server = subprocess.Popen([os.path.join(options.fakes, "fake_llm"), "--die-with-parent", "--bench", "1"],
                                       stdout=subprocess.PIPE, text=True)
        atexit.register(self.server.wait)
        atexit.register(self.server.kill)
        self.url = "http://127.0.0.1:%s/v1" % self.server.stdout.readline().split()[1]
        none = os.path.join(self.dir, "none")
        self.env = dict(os.environ, IPW_POWERCAP_ROOT=tree, IPW_SYSFS_ROOT=none, IPW_NVML_LIBRARY=none, NO_COLOR="1",
                        TMPDIR=os.path.join(self.dir, "tmp"))  # the next run would tell of the killed run of another test
        os.mkdir(self.env["TMPDIR"])
        # A process that is traced cannot look for its own leaks.
        self.env["ASAN_OPTIONS"] = self.env.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
        self.number = 0
        self.half = None

    def begin(self, stage):
        """The folder of the next run: none yet, or one that was killed in the middle, with torn tails."""
        path = os.path.join(self.dir, "run%d" % self.number)
        self.number += 1
        if stage == "resume":
            if not self.half:
                half, self.half = os.path.join(self.dir, "half"), os.path.join(self.dir, "half")
                code, said, _ = self.run(half, "write:signal=KILL:when=8")
                if code not in (-9, 137):
                    fail("the run that is to be gone on with was not killed: %d: %s" % (code, said))
                for name in ("events.jsonl", "power.jsonl"):
                    with open(os.path.join(half, name), "a") as f:
                        f.write('{"event":"no')
            shutil.copytree(self.half, path)
        return path

    def command(self, path):
        return [self.o.agent, "run", "tools", "--dataset", self.rows, "--base-url", self.url, "--model", "fake-model",
                "--verbose", "--output", path, "--resume"]

    def strace(self, path, what, log):
        traced = ["-P" + os.path.join(path, name) for name in NAMES] + ["-P" + path]
        # A signal is not injected where the call was stopped by seccomp.
        fast = [] if "signal" in what else ["--seccomp-bpf"]
        return ["strace", "-f", "-qq", "-y"] + fast + ["-o", log, "-e", "trace=" + what.split(":")[0]] + traced + (
            ["-e", "inject=" + what] if ":" in what else [])

    def run(self, path, what=None):
        """(exit status, stderr's lines, the trace's lines)"""
        log = os.path.join(self.dir, "strace")
        command = self.command(path)
        if what:
            command = self.strace(path, what, log) + command
        got = subprocess.run(command, env=self.env, cwd=self.dir, stdin=subprocess.DEVNULL, capture_output=True,
                             text=True, timeout=120, errors="replace")
        return got.returncode, got.stderr.split("\n")[:-1], [l.decode() for l in lines(log)] if what else []

    def validate(self, path):
        got = subprocess.run([self.o.agent, "validate", path], env=self.env, capture_output=True, text=True, timeout=60)
        return got.stderr if got.returncode else ""


def most_of_one_thread(trace):
    """strace counts the calls of each thread apart."""
    counts = {}
    for line in trace:
        if "= " in line and "resumed" not in line:
            thread = line.split()[0]
            counts[thread] = counts.get(thread, 0) + 1
    return max(counts.values(), default=0)


def spread(n, points):
    """1 to n, or `points` of them; never the last alone, which not every run comes to."""
    if not points or n <= points:
        return list(range(1, n + 1))
    return sorted({1 + (2 * i + 1) * n // (2 * points) for i in range(points)})


def check(world, stage, call, error, n):
    """One run with its n-th call failing; False when it had fewer."""
    where = "%s: %s, number %d: %s" % (stage, call, n, error)
    path = world.begin(stage)
    before = lines(os.path.join(path, "traces.jsonl"))
    how = "signal=KILL" if error == "KILL" else "error=" + error
    code, said, trace = world.run(path, "%s:%s:when=%s" % (call, how, n))
    if code not in (-9, 137) and not any("INJECTED" in line for line in trace):
        if code:
            fail("%s: nothing was injected, and yet: exit status %d: %s" % (where, code, said))
        return False
    announced = [line[len("ipw-agent: done "):] for line in said if line.startswith("ipw-agent: done ")]
    told = [line for line in said if line and not re.match(r"ipw-agent: (done |to continue: |.*its lock was left|.*: continues: |warning: |rapl: no reading|package-0 (has not moved|does not move))", line)]
    # Whose a stale lock was is told where it can be read; nothing depends on it.
    stale = call == "pread64" and any("/lock>" in line and "INJECTED" in line for line in trace)
    if error == "EINTR" or stale:
        if code or told:
            fail("%s: exit status %d: %s" % (where, code, told))
    elif error == "KILL":
        if code not in (-9, 137) or told:
            fail("%s: exit status %d: %s" % (where, code, told))
    elif code not in (1, 3) or len(told) != 1 or path not in told[0]:
        fail("%s: exit status %d, not one message that names a file: %s\n%s" % (where, code, told, "\n".join(trace[-4:])))
    left = lines(os.path.join(path, "traces.jsonl"))
    if left[:len(before)] != before:
        fail("%s: a line that was there has changed" % where)
    kept = {json.loads(line)["query_id"]: line for line in left}
    if len(kept) != len(left) or not set(announced) <= set(kept):
        fail("%s: announced %s, there is %s" % (where, announced, sorted(kept)))
    for name in ("manifest.json", "summary.json"):  # the old one or the new one, whole; or none yet
        if os.path.exists(os.path.join(path, name)):
            json.load(open(os.path.join(path, name)))
    if os.path.exists(os.path.join(path, "manifest.json")):
        wrong = world.validate(path)
        if wrong:
            fail("%s: what was left: %s" % (where, wrong))
    code, said, _ = world.run(path)
    if code:
        fail("%s: cannot be gone on with: exit status %d: %s" % (where, code, said))
    after = {json.loads(line)["query_id"]: line for line in lines(os.path.join(path, "traces.jsonl"))}
    if sorted(after) != ["q%04d" % i for i in range(world.o.queries)]:
        fail("%s: after going on: %s" % (where, sorted(after)))
    if any(after[name] != line for name, line in kept.items()):
        fail("%s: a line that was there has changed" % where)
    wrong = world.validate(path)
    if wrong:
        fail("%s: after going on: %s" % (where, wrong))
    shutil.rmtree(path)
    return True


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--agent", required=True)
    p.add_argument("--fakes", required=True)
    p.add_argument("--points", type=int, default=0, help="of each call and error; 0: every one")
    p.add_argument("--brief", action="store_true", help="the first error of each call, once; of a write, each that differs")
    p.add_argument("--stage", default="run,resume")
    p.add_argument("--only", help="CALL:ERROR")
    p.add_argument("--queries", type=int, default=3)
    o = p.parse_args()
    o.agent, o.fakes = os.path.abspath(o.agent), os.path.abspath(o.fakes)
    probe = subprocess.run(["sh", "-c", "strace --seccomp-bpf -f -qq -e trace=write -e inject=write:error=EINTR:when=999 "
                            "true"], capture_output=True, text=True)
    if probe.returncode:
        print("skipped: strace cannot trace here: " + probe.stderr.strip())
        sys.exit(77)
    world = World(o)
    total = 0
    for stage in o.stage.split(","):
        for call, errors in PLAN[stage]:
            total += all_errors(world, stage, call, errors)
    print("%d injected: all held" % total)


def all_errors(world, stage, call, errors):
    counted = None
    total = 0
    if world.o.brief:
        errors = [e for e in errors if e == errors[0] or e == "EINTR" or (call == "write" and e == "KILL")]
    for error in errors:
        if world.o.only and world.o.only != "%s:%s" % (call, error):
            continue
        if counted is None:
            code, said, trace = world.run(world.begin(stage), call)
            if code:
                fail("the %s that nothing happens to: exit status %d: %s" % (stage, code, said))
            counted = most_of_one_thread(trace)
        done = sum(check(world, stage, call, error, n) for n in spread(counted, 1 if world.o.brief else world.o.points))
        print("%s: %s %s: %d of %d, one by one" % (stage, call, error, done, counted), flush=True)
        total += done
    return total


main()
