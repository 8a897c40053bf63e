#!/usr/bin/env python3
"""Makes the system calls of the commands fail one by one, and looks at what they say and leave.

    tests/drill/call_drill.py --agent build/dev/ipw-agent --fakes build/dev/tests/fake [--points N] [--share N] [--only COMMAND]

tests/fake/calls/fail_call.c is loaded into each command that reads a saved run, or needs none.  The calls that a
command makes are counted, and it is begun anew for the n-th of them to fail, for every n or, with --points, for that
many spread over them; with --share 4 for every fourth of all these.  (What a run loses is inject_drill.py's.)  Held each time:

  - it ends by itself, with an exit status from 0 to 3;
  - another status than 0 comes with a message that says whose it is ("ipw-agent: ");
  - with status 0 the standard output is what it is when nothing fails, or a remark says what is missing;
  - the files of a run that is only read have not changed; a new run that a command says it has made follows the format;
  - `new` makes both of its files or none;
  - EINTR changes nothing at all.

Exit status 0: all of it held."""
import argparse, atexit, concurrent.futures, json, os, re, shutil, subprocess, sys, tempfile

# Where no sandbox can be made, the program runs tools without one (tests/e2e/lib.sh).
UNCONFINED = " --unsafe-tools" if os.environ.get("IPW_CONFINED") else ""

KINDS = {"open": ("EIO", "EMFILE"), "read": ("EIO", "EINTR"), "write": ("ENOSPC", "EINTR"), "pread": ("EIO", "EINTR"),
         "stat": ("EIO",), "sync": ("EIO",), "rename": ("EIO",), "mkdir": ("ENOSPC",), "ftruncate": ("EIO",),
         "close": ("EIO",), "opendir": ("EACCES",), "stdout": ("ENOSPC",), "pipe": ("EMFILE",), "realpath": ("EACCES",),
         "spawn": ("EAGAIN",), "thread": ("EAGAIN",)}
NUMBERS = {"EIO": 5, "EINTR": 4, "ENOSPC": 28, "EMFILE": 24, "EACCES": 13, "EAGAIN": 11}
COMMANDS = {
    "validate": "validate RUN",
    "show": "replay RUN",
    "follow": "replay RUN --follow",
    "hermetic": "replay RUN --mode hermetic -o OUT",
    "tools": "replay RUN --mode tools -o OUT" + UNCONFINED,
    "one": "replay RUN --mode hermetic --query q0001 -o OUT",
    "ledger": "ledger RUN --check --json",
    "jsonl": "export RUN",
    "file": "export RUN --output OUT",
    "mooncake": "export RUN --format mooncake",
    "redacted": "export RUN --format run --redact all -o OUT",
    "compare": "compare RUN GOOD",
    "score": "score COPY --dataset ROWS",
    "meter": "meter RUN --log METER --offset 0",
    "power": "telemetry --read RUN/power.jsonl",
    "repair": "repair COPY",
    "list": "list tools",
    "datasets": "list datasets",
    "print": "show agents/react.lua",
    "new": "new tool TOOL",
    "check": "check --kind agent AGENT",
    "test": "test TEST",
    "tool": "tool calculator {\"expression\":\"1+1\"}",
    "python": "tool python {\"code\":\"print(1+1)\"}" + UNCONFINED,
    "doctor": "doctor --model demo",
    "help": "run --help",
    "run": "run tools --dataset ROWS --model demo --tools calculator -o OUT -q",
    "resume": "resume COPY --rerun all",
    "workload": "replay RUN --mode workload --model demo -o OUT --speed 1000",
    "repl": "repl --model demo",
    "telemetry": "telemetry --json",
    "sensors": "list sensors",
    "models": "list models --base-url http://127.0.0.1:1/v1",
}
# What depends on the hour, the machine or the order of a folder; of doctor and new the status alone is looked at.
VARIES = ("hermetic", "one", "tools", "python", "doctor", "new", "meter", "test", "run", "resume", "workload", "telemetry")
WRITES = {"hermetic", "tools", "redacted", "run", "workload"}


def fail(text):
    raise AssertionError(text)


def read(path):
    with open(path, "rb") as f:
        return f.read()


def files(folder):
    return {name: read(os.path.join(folder, name)) for name in sorted(os.listdir(folder))}


class World:
    def __init__(self, options):
        self.o = options
        self.dir = tempfile.mkdtemp(prefix="ipw-calls.", dir=os.environ.get("TMPDIR"))
        atexit.register(shutil.rmtree, self.dir, True)
        zone = self.path("tree/intel-rapl:0")
        os.makedirs(zone)
        for name, text in (("name", "package-0"), ("energy_uj", "1000000"), ("max_energy_range_uj", "262143328850")):
            with open(os.path.join(zone, name), "w") as f:
                f.write(text + "\n")
        with open(self.path("rows.jsonl"), "w") as f:
            for i in range(2):
                f.write(json.dumps({"question": "Question %d?" % i, "answer": "42"}) + "\n")
        with open(self.path("agent.lua"), "w") as f:
            f.write('local llm = require "ipw.llm"\nreturn { name = "mine", about = "Asks once.", run = function(q)\n'
                    "  return llm.chat { messages = llm.thread(nil, q.prompt) }.text end }\n")
        with open(self.path("test.lua"), "w") as f:
            f.write('return { { "one is one", function() assert(1 == 1) end } }\n')
        none = self.path("none")
        self.env = dict(os.environ, IPW_POWERCAP_ROOT=self.path("tree"), IPW_SYSFS_ROOT=none, IPW_NVML_LIBRARY=none,
                        NO_COLOR="1", TMPDIR=self.dir, LC_ALL="C.UTF-8")
        run = self.path("run")
        got = self.run(["run", *UNCONFINED.split(), "tools", "--dataset", self.path("rows.jsonl"), "--model", "demo", "--warmup", "1", "-q",
                        "--output", run, "--sample-interval", "2ms"], {})
        if got.returncode:
            fail("the run itself: exit status %d: %s" % (got.returncode, got.stderr))
        shutil.copytree(run, self.path("good"))
        clock = json.load(open(run + "/manifest.json"))["clock"]
        with open(self.path("meter.csv"), "w") as f:
            f.write("time,w\n" + "".join("%.3f,100\n" % (clock["wall_ns"] / 1e9 + s) for s in range(-5, 10)))
        self.number = 0

    def path(self, name):
        return os.path.join(self.dir, name)

    def run(self, command, more, cwd=None):
        return subprocess.run([self.o.agent] + command, env={**self.env, **more}, cwd=cwd or self.dir, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace", timeout=120)

    def words(self, name, number):
        words = {"RUN": self.path("run"), "GOOD": self.path("good"), "OUT": self.path("out%d" % number),
                 "COPY": self.path("copy%d" % number), "METER": self.path("meter.csv"), "ROWS": self.path("rows.jsonl"),
                 "AGENT": self.path("agent.lua"), "TEST": self.path("test.lua"), "TOOL": "mine"}
        return words, [re.sub("^(RUN|GOOD|OUT|COPY|METER|ROWS|AGENT|TEST|TOOL)", lambda m: words[m.group()], w)
                       for w in COMMANDS[name].split(" ")]

    def call(self, name, number, kind, at, error):
        """The command with that call failing: what came of it, and whether it did fail."""
        words, command = self.words(name, number)
        log = self.path("log%d" % number)
        if "COPY" in COMMANDS[name]:
            shutil.copytree(words["GOOD"], words["COPY"])
        if name == "repair":  # there is something for it to take out
            with open(words["COPY"] + "/events.jsonl", "a") as f:
                f.write("nonsense\n{\"event\":")
        more = {"LD_PRELOAD": self.o.preload, "IPW_FAIL_LOG": log}
        if kind:
            more.update(IPW_FAIL_CALL=kind, IPW_FAIL_AT=str(at), IPW_FAIL_ERRNO=str(NUMBERS[error]))
        cwd = self.path("cwd%d" % number)
        os.makedirs(cwd, exist_ok=True)
        try:
            got = self.run(command, more, cwd)
        except subprocess.TimeoutExpired:
            fail("%s: %s %d: %s: does not end" % (name, kind, at, error))
        said = read(log).decode() if os.path.exists(log) else ""
        if os.path.exists(log):
            os.unlink(log)
        return got, said, words

    def clean(self, words, number):
        for word in ("OUT", "COPY"):
            if os.path.isdir(words[word]):
                shutil.rmtree(words[word])
            elif os.path.exists(words[word]):
                os.unlink(words[word])
        shutil.rmtree(self.path("cwd%d" % number), True)


def spread(n, points):
    if not points or n <= points:
        return list(range(1, n + 1))
    return sorted({1 + (2 * i + 1) * n // (2 * points) for i in range(points)})


def check(world, name, kind, usual, before, number, at, error):
    where = "%s: %s %d: %s" % (name, kind, at, error)
    got, said, words = world.call(name, number, kind, at, error)
    try:
        if said != "!":
            return 0
        text = got.stderr.strip()
        where += ": exit status %d: %s" % (got.returncode, text[:300])
        if not 0 <= got.returncode <= 3:
            fail(where)
        if got.returncode and not text and got.stdout == usual.stdout:
            fail(where + ": without a word")
        if error == "EINTR" and got.returncode != usual.returncode:
            fail(where + ": an interrupted call is no failure")
        told = text != usual.stderr.strip() or any(
            word in got.stdout and word not in usual.stdout for word in ("texts", "cannot be read"))
        if got.returncode == usual.returncode and name not in VARIES and not told:
            if re.sub("(copy|out)[0-9]+", "", got.stdout) != re.sub("(copy|out)[0-9]+", "", usual.stdout):
                fail(where + ": another output without a word: %s" % got.stdout[:300])
        left = [f for _, _, names in os.walk(world.path("cwd%d" % number)) for f in names]
        if name == "new" and got.returncode and left and kind != "stdout":
            fail(where + ": left behind: %s" % left)
        if files(words["RUN"]) != before:
            fail(where + ": the run has changed")
        if got.returncode == 0 and name in WRITES:
            valid = world.run(["validate", words["OUT"]], {})
            if valid.returncode:
                fail(where + ": what it made is no run: %s" % valid.stderr)
        return 1
    finally:
        world.clean(words, number)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--agent", required=True)
    p.add_argument("--fakes", required=True)
    p.add_argument("--points", type=int, default=0)
    p.add_argument("--share", type=int, default=1)
    p.add_argument("--only", default="")
    o = p.parse_args()
    o.agent, o.fakes = os.path.abspath(o.agent), os.path.abspath(o.fakes)
    world = World(o)
    # LD_PRELOAD is cut at blanks, and the folder of the build may have one in its name: a copy is loaded.
    o.preload = shutil.copy(os.path.join(o.fakes, "libfail_call.so"), world.dir)
    before = files(world.path("run"))
    number, jobs = 0, []
    for name in COMMANDS:
        if o.only and o.only not in name:
            continue
        usual, said, words = world.call(name, 0, None, 0, None)
        world.clean(words, 0)
        if usual.returncode and name not in ("doctor", "repair", "models"):
            fail("%s, with nothing that fails: exit status %d: %s" % (name, usual.returncode, usual.stdout + usual.stderr))
        for kind, errors in KINDS.items():
            n = int(re.search("^%s ([0-9]+)$" % kind, said, re.M).group(1))
            for error in errors:
                for at in spread(n, o.points):
                    number += 1
                    if number % o.share == 0:
                        jobs.append((name, kind, usual, before, number, at, error))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        running = [pool.submit(check, world, *job) for job in jobs]
    faults = [str(r.exception()) for r in running if r.exception()]
    for fault in faults[:40]:
        print("call_drill: " + fault[:800], file=sys.stderr)
    if faults:
        sys.exit("call_drill: %d of %d did not hold" % (len(faults), len(jobs)))
    print("%d calls failed, %d commands: all held" % (sum(r.result() for r in running), len(COMMANDS)))


main()
