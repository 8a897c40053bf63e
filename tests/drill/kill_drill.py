#!/usr/bin/env python3
"""Kills a run with SIGKILL at random moments and resumes it until it is done, again and again.

    tests/drill/kill_drill.py --agent build/release/ipw-agent --fakes build/release/tests/fake \
        [--kills 200] [--resume-kills 50] [--queries 50] [--concurrency 8] [--seed 1]

The run: N queries of three turns each with tool calls, against the fake server, with fake powercap
counters.  `--kills`: at random moments of a session; `--resume-kills`: within its first moments,
where what earlier sessions left is put in order (stacked faults).  After every kill and at the end
of every run it is checked that

  - every query that was announced ("done ID") has its line, and no line ever changes again;
  - events.jsonl only grows, a torn last line apart;
  - at the end every query stands in traces.jsonl exactly once, and the names of attempts are unique;
  - no finished turn is lost: the turns in traces and attempts are those of events.jsonl, with the
    tokens that the server reported;
  - the server got no more requests than kills times concurrency asks for;
  - no workspace is left of the sessions that were killed;
  - the books balance over all sessions, by the summary and by `ledger --check` from the files alone.

Exit status 0: all of it held; else 1, and the run's folder is kept and named."""
import argparse, atexit, collections, json, os, random, shutil, signal, subprocess, sys, tempfile, time

TURNS = 3  # fake_llm --bench 2: two tool calls, then an answer


def fail(text):
    print("kill_drill: " + text, file=sys.stderr)
    sys.exit(1)


def lines(path):
    """The whole lines of a file, as bytes; nothing when it is not there."""
    try:
        with open(path, "rb") as f:
            return f.read().split(b"\n")[:-1]
    except FileNotFoundError:
        return []


def read(path):
    return [json.loads(line) for line in lines(path)]


class World:
    def __init__(self, options):
        self.o = options
        self.dir = tempfile.mkdtemp(prefix="ipw-drill.")
        self.children = []
        atexit.register(self.stop)
        self.random = random.Random(options.seed)
        tree = os.path.join(self.dir, "tree")
        os.mkdir(tree)
        self.start([os.path.join(options.fakes, "fake_powercap"), tree, "--watts-package", "80", "--watts-dram",
                    "5", "--interval-ms", "1", "--seconds", "36000"], stdout=subprocess.DEVNULL)
        counter = os.path.join(tree, "intel-rapl:0", "energy_uj")
        for _ in range(200):
            if os.path.exists(counter):
                break
            time.sleep(0.05)
        else:
            fail("fake_powercap made no tree")
        self.log = os.path.join(self.dir, "requests")
        server = self.start([os.path.join(options.fakes, "fake_llm"), "--die-with-parent", "--log", self.log,
                             "--bench", "2", "--delay-ms", str(options.delay_ms)], stdout=subprocess.PIPE, text=True)
        self.url = "http://127.0.0.1:%s/v1" % server.stdout.readline().split()[1]
        none = os.path.join(self.dir, "none")
        self.env = dict(os.environ, IPW_POWERCAP_ROOT=tree, IPW_SYSFS_ROOT=none, IPW_NVML_LIBRARY=none, NO_COLOR="1")
        self.env["TMPDIR"] = os.path.join(self.dir, "tmp")
        os.mkdir(self.env["TMPDIR"])
        self.rows = os.path.join(self.dir, "rows.jsonl")
        with open(self.rows, "w") as f:
            for i in range(options.queries):
                f.write(json.dumps({"question": "Question %d?" % i, "answer": "42"}) + "\n")

    def start(self, command, **how):
        child = subprocess.Popen(command, cwd=self.dir, **how)
        self.children.append(child)
        return child

    def stop(self):
        for child in self.children:
            child.kill()
            child.wait()
        self.children = []

    def close(self):
        self.stop()
        shutil.rmtree(self.dir)

    def requests(self):
        with open(self.log, "rb") as f:
            return sum(b" POST /v1/chat/completions" in line for line in f)


class Run:
    def __init__(self, world, number):
        self.w = world
        self.path = os.path.join(world.dir, "run%d" % number)
        self.announced, self.traces, self.events = set(), set(), []
        self.kills = 0
        self.before = world.requests()

    def command(self):
        o = self.w.o
        if os.path.exists(os.path.join(self.path, "manifest.json")) and self.w.random.random() < 0.5:
            return [o.agent, "resume", self.path]
        return [o.agent, "run", "tools", "--dataset", self.w.rows, "--base-url", self.w.url, "--model", "fake-model",
                "--concurrency", str(o.concurrency), "--sample-interval", "5ms", "--verbose", "--output", self.path,
                "--resume"]

    def session(self, kill_after_s):
        """True when it came to its end, False when it was killed."""
        err_path = os.path.join(self.w.dir, "stderr")
        with open(err_path, "wb") as err:
            child = subprocess.Popen(self.command(), cwd=self.w.dir, env=self.w.env, stdout=subprocess.DEVNULL,
                                     stderr=err, stdin=subprocess.DEVNULL)
            try:
                child.wait(kill_after_s)
            except subprocess.TimeoutExpired:
                child.send_signal(signal.SIGKILL)
                child.wait()
        said = [line.decode() for line in lines(err_path)]
        self.announced |= {line.rsplit(" ", 1)[1] for line in said if line.startswith("ipw-agent: done ")}
        if child.returncode not in (0, -signal.SIGKILL):
            fail("%s: exit status %d:\n%s" % (self.path, child.returncode, "\n".join(said[-20:])))
        if child.returncode:
            self.kills += 1
        self.check_growth()
        return child.returncode == 0

    def check_growth(self):
        traces = set(lines(self.path + "/traces.jsonl"))
        if not self.traces <= traces:
            fail("%s: a line of traces.jsonl changed or went" % self.path)
        self.traces = traces
        ids = {json.loads(line)["query_id"] for line in traces}
        if not self.announced <= ids:
            fail("%s: announced and not there: %s" % (self.path, sorted(self.announced - ids)))
        events = lines(self.path + "/events.jsonl")
        # The last whole line may be one that a later cut finds damaged: never here, a kill tears
        # only what has no line feed yet.
        if events[:len(self.events)] != self.events:
            fail("%s: events.jsonl lost what it had" % self.path)
        self.events = events
        for name in ("manifest.json", "summary.json"):  # the old one or the new one, whole
            if os.path.exists(self.path + "/" + name):
                json.load(open(self.path + "/" + name))

    def check_end(self):
        o, path = self.w.o, self.path
        traces, attempts, events = (read(path + "/" + name) for name in
                                    ("traces.jsonl", "attempts.jsonl", "events.jsonl"))
        if sorted(t["query_id"] for t in traces) != ["q%04d" % i for i in range(o.queries)]:
            fail("%s: not every query exactly once" % path)
        if not all(t["completed"] and len(t["turns"]) == TURNS for t in traces):
            fail("%s: a query without its turns" % path)
        names = collections.Counter((t["query_id"], t["epoch"], t["segment"]) for t in traces + attempts)
        if max(names.values()) > 1:
            fail("%s: an attempt stands there twice: %s" % (path, names.most_common(1)))
        ends = [e for e in events if e["event"] == "lm_inference_end"]
        for what in ("input_tokens", "output_tokens"):
            seen = sum(e[what] or 0 for e in ends)
            kept = sum(turn.get(what) or 0 for t in traces + attempts for turn in t["turns"])
            if seen != kept:
                fail("%s: %s of finished turns: %d seen, %d kept" % (path, what, seen, kept))
        done = sum(e["outcome"] == "ok" for e in ends)
        spans = sum(s["kind"] == "lm" and s.get("outcome") == "ok" for t in traces + attempts for turn in t["turns"]
                    for s in turn["spans"])
        if done != spans:
            fail("%s: %d turns finished, %d kept" % (path, done, spans))
        extra = self.w.requests() - self.before - o.queries * TURNS
        # A query that is cut down had at most TURNS requests.
        if extra > self.kills * o.concurrency * TURNS:
            fail("%s: %d requests too many after %d kills" % (path, extra, self.kills))
        summary = json.load(open(path + "/summary.json"))
        manifest = json.load(open(path + "/manifest.json"))
        for domain in ("cpu", "dram"):
            books = summary["ledger"][domain]
            if books["balanced"] is not True:
                fail("%s: the books of %s do not balance: %s" % (path, domain, books))
            total = sum(s["ledger"][domain]["total_j"] for s in manifest["segments"] if s["ledger"])
            if abs(total - books["total_j"]) > 1e-9 * total:
                fail("%s: %s: total %r, over the sessions %r" % (path, domain, books["total_j"], total))
        check = subprocess.run([o.agent, "ledger", path, "--check"], env=self.w.env, capture_output=True, text=True)
        if check.returncode:
            fail("%s: ledger --check: %s\n%s" % (path, check.stderr, "\n".join(check.stdout.split("\n")[-12:])))
        if os.path.exists(path + "/lock"):
            fail("%s: the lock was left" % path)
        if os.listdir(self.w.env["TMPDIR"]):
            fail("%s: workspaces were left: %s" % (path, os.listdir(self.w.env["TMPDIR"])))
        return len(attempts)


def drill(world, kills, window, what):
    """Runs are begun, killed and resumed until `kills` have hit."""
    done = runs = attempts = 0
    start = time.monotonic()
    while done < kills:
        run = Run(world, drill.number)
        drill.number += 1
        runs += 1
        while not run.session(world.random.uniform(0, window) if done + run.kills < kills else None):
            pass
        attempts += run.check_end()
        done += run.kills
        shutil.rmtree(run.path)
    print("%s: %d kills over %d runs of %d queries, %d attempts cut down, %.0f s: all held" %
          (what, done, runs, world.o.queries, attempts, time.monotonic() - start), flush=True)


drill.number = 0


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--agent", required=True)
    p.add_argument("--fakes", required=True)
    p.add_argument("--kills", type=int, default=200)
    p.add_argument("--resume-kills", type=int, default=50)
    p.add_argument("--queries", type=int, default=50)
    p.add_argument("--concurrency", type=int, default=8)
    p.add_argument("--delay-ms", type=int, default=60)
    p.add_argument("--seed", type=int, default=1)
    o = p.parse_args()
    o.agent, o.fakes = os.path.abspath(o.agent), os.path.abspath(o.fakes)
    world = World(o)
    # How long a run takes that nobody kills, and how long until its first event: on this machine, now.
    run = Run(world, drill.number)
    drill.number += 1
    start = time.monotonic()
    if not run.session(None):
        fail("the first run did not end")
    whole = time.monotonic() - start
    run.check_end()
    shutil.rmtree(run.path)
    work = o.queries * TURNS * o.delay_ms / 1000 / o.concurrency
    drill(world, o.kills, whole, "killed at random")
    # What comes before the first query: the interpreter, the server's probe, sensors, settling.
    drill(world, o.resume_kills, 1.3 * max(whole - work, 0.1), "killed inside resume")
    world.close()


if __name__ == "__main__":
    main()
