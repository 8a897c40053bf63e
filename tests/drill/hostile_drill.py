#!/usr/bin/env python3
"""Changes one value of a saved run, and gives the run to every command that reads one.

    tests/drill/hostile_drill.py --agent build/dev/ipw-agent --fakes build/dev/tests/fake [--share N] [--only N]

Each value that stands in a run's files is taken away, or becomes null, an empty text, a text, a list, an object, a
negative, a huge or a broken number, or a true.  Held each time, whatever the command and the value:

  - it ends by itself, with an exit status from 0 to 3 (of a replay 4);
  - another status than 0 comes with a message, and each of its lines says whose it is ("ipw-agent: ");
  - no control character reaches the terminal;
  - the files of a run that is only read have not changed; those of a run that is gone on with or repaired lose no
    whole line: each is in its file still, or in the file beside it for damaged ones (.torn, .damaged).

There are some thousand values and ten things to put in their place.  --share N takes every N-th of these pairs and
gives each to a part of the commands, so that all values, all things and all commands have their turn; --share 0
does all of it.  Exit status 0: all of it held."""
import argparse, atexit, concurrent.futures, copy, http.client, json, os, re, shutil, signal, subprocess, sys, tempfile
import urllib.error, urllib.request

GONE = object()
THINGS = [GONE, None, "", "nonsense", [], {}, -1, 10**18, 1e300, True, [{}], "\x1b[31m\u202e", 0, 0.5]
READ = {
    "validate": ["validate", "RUN"],
    "show": ["replay", "RUN"],
    "follow": ["replay", "RUN", "--follow"],
    "hermetic": ["replay", "RUN", "--mode", "hermetic", "-o", "OUT"],
    "one": ["replay", "RUN", "--mode", "hermetic", "--query", "1", "-o", "OUT"],
    "tools": ["replay", "RUN", "--mode", "tools", "-o", "OUT"],
    "workload": ["replay", "RUN", "--mode", "workload", "--speed", "1000", "-o", "OUT", "--base-url", "URL", "--model", "m"],
    "ledger": ["ledger", "RUN", "--check"],
    "jsonl": ["export", "RUN"],
    "mooncake": ["export", "RUN", "--format", "mooncake"],
    "redacted": ["export", "RUN", "--format", "run", "--redact", "all", "-o", "OUT"],
    "compare": ["compare", "RUN", "GOOD"],
    "compared": ["compare", "GOOD", "RUN", "--json"],
    "score": ["score", "RUN", "--dataset", "ROWS"],
    "meter": ["meter", "RUN", "--log", "METER", "--offset", "0"],
    "telemetry": ["telemetry", "--read", "RUN/power.jsonl"],
    "serve": ["serve", "--replay", "RUN", "--port", "0", "--speed", "max", "--with-failures", "--exit-with-parent"],
}
WRITE = {
    "repair": ["repair", "RUN"],
    "resume": ["run", "tools", "--dataset", "ROWS", "--base-url", "URL", "--model", "fake-model", "--output", "RUN",
               "--resume", "--force", "-q"],
}
LINES = ("events.jsonl", "traces.jsonl", "warmup.jsonl", "attempts.jsonl", "power.jsonl")
WHOLE = ("manifest.json", "summary.json")


def fail(text):
    raise AssertionError(text)


def read(path):
    with open(path, "rb") as f:
        return f.read()


def places(value, path=()):
    """The paths of all values; of a list the first two members, which stand for the others."""
    yield path
    if isinstance(value, dict):
        for key in sorted(value):
            yield from places(value[key], path + (key,))
    elif isinstance(value, list):
        for i in range(min(2, len(value))):
            yield from places(value[i], path + (i,))


def put(doc, path, thing):
    if not path:
        return thing
    doc = copy.deepcopy(doc)
    at = doc
    for key in path[:-1]:
        at = at[key]
    if thing is GONE:
        del at[path[-1]]
    else:
        at[path[-1]] = thing
    return doc


def dump(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


class World:
    def __init__(self, options):
        self.o = options
        self.dir = tempfile.mkdtemp(prefix="ipw-hostile.", dir=os.environ.get("TMPDIR"))
        atexit.register(shutil.rmtree, self.dir, True)
        rows = self.path("rows.jsonl")
        with open(rows, "w") as f:
            for i in range(2):
                f.write(json.dumps({"question": "Question %d?" % i, "answer": "42", "level": "1"}) + "\n")
        zone = self.path("tree/intel-rapl:0")
        os.makedirs(zone)
        for name, text in (("name", "package-0"), ("energy_uj", "1000000"), ("max_energy_range_uj", "262143328850")):
            with open(os.path.join(zone, name), "w") as f:
                f.write(text + "\n")
        server = subprocess.Popen([os.path.join(options.fakes, "fake_llm"), "--die-with-parent", "--bench", "1"],
                                  stdout=subprocess.PIPE, text=True)
        atexit.register(server.wait)
        atexit.register(server.kill)
        none = self.path("none")
        self.env = dict(os.environ, IPW_POWERCAP_ROOT=self.path("tree"), IPW_SYSFS_ROOT=none, IPW_NVML_LIBRARY=none,
                        NO_COLOR="1", TMPDIR=self.dir)
        self.words = {"ROWS": rows, "URL": "http://127.0.0.1:%s/v1" % server.stdout.readline().split()[1],
                      "GOOD": self.path("good"), "METER": self.path("meter.csv")}
        good = self.words["GOOD"]
        begin = ["run", "tools", "--dataset", rows, "--base-url", self.words["URL"], "--model", "fake-model", "-q",
                 "--output", good, "--warmup", "1", "--sample-interval", "2ms"]
        for command in (begin + ["--token-limit", "10"], begin + ["--resume", "--rerun", "all", "--force"]):
            got = self.run(command)
            if got.returncode and "--force" in command:  # every query of the first hits its limit
                fail("the run itself: exit status %d: %s" % (got.returncode, got.stderr))
        clock = json.load(open(good + "/manifest.json"))["clock"]
        with open(self.words["METER"], "w") as f:
            f.write("time,w\n" + "".join("%.3f,100\n" % (clock["wall_ns"] / 1e9 + s) for s in range(-5, 10)))

    def path(self, name):
        return os.path.join(self.dir, name)

    def run(self, command):
        if command[0] == "serve":
            return self.serve(command)
        return subprocess.run([self.o.agent] + command, env=self.env, cwd=self.dir, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace", timeout=120)

    def serve(self, command):
        """Two requests of the record, one of them as a stream; then it is told to end."""
        server = subprocess.Popen([self.o.agent] + command, env=self.env, cwd=self.dir, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
        word = server.stdout.readline().split()
        for i in range(2 if word else 0):
            body = {"model": "fake-model", "messages": [{"role": "user", "content": "Question %d?" % i}], "stream": i == 0}
            request = urllib.request.Request(word[1] + "/chat/completions", json.dumps(body).encode(),
                                             {"Content-Type": "application/json"})
            try:
                with urllib.request.urlopen(request, timeout=20) as answer:
                    answer.read()
            except urllib.error.HTTPError as e:
                json.load(e)
            except (OSError, http.client.HTTPException):
                pass  # a recorded failure: the connection breaks
        if word:
            server.send_signal(signal.SIGTERM)
        out, err = server.communicate(timeout=60)
        return subprocess.CompletedProcess(command, server.returncode, out, err)


def mutants(good):
    """(file, line number or -1, path, the whole file's text with the value at `path` as it was)"""
    for name in WHOLE:
        doc = json.loads(read(os.path.join(good, name)))
        for path in places(doc):
            yield name, -1, path
    for name in LINES:
        seen = set()
        for i, line in enumerate(read(os.path.join(good, name)).decode().split("\n")[:-1]):
            doc = json.loads(line)
            kind = doc.get("event") if isinstance(doc, dict) else type(doc).__name__
            if isinstance(doc, dict) and kind == "note":
                kind += doc.get("name", "")
            # each kind of line once, at its second time: the first is often the special one
            if (kind, 2) in seen:
                continue
            seen.add((kind, 2 if (kind, 1) in seen else 1))
            for path in places(doc):
                yield name, i, path


def write(folder, name, at, path, thing):
    whole = read(os.path.join(folder, name)).decode()
    if at < 0:
        new = put(json.loads(whole), path, thing)
        text = "" if new is GONE else dump(new) + "\n"
    else:
        lines = whole.split("\n")
        new = put(json.loads(lines[at]), path, thing)
        lines[at:at + 1] = [] if new is GONE else [dump(new)]
        text = "\n".join(lines)
    with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
        f.write(text)


def one(world, number, mutant, thing, commands):
    name, at, path = mutant
    run = world.path("run%d" % number)
    shutil.copytree(world.words["GOOD"], run)
    write(run, name, at, path, thing)
    before = {f: read(os.path.join(run, f)) for f in os.listdir(run)}
    what = "%s:%d %s = %s" % (name, at + 1, ".".join(map(str, path)), "gone" if thing is GONE else dump(thing))
    for word in commands:
        out = world.path("out%d" % number)
        words = dict(world.words, RUN=run, OUT=out)
        command = [re.sub(r"RUN|OUT|ROWS|URL|GOOD|METER", lambda m: words[m.group()], w) for w in {**READ, **WRITE}[word]]
        told = "%s: %s (number %d)" % (word, what, number)
        try:
            got = world.run(command)
        except subprocess.TimeoutExpired:
            fail(told + ": does not end")
        most = 4 if word in ("hermetic", "one", "tools") else 3  # 4: the replay went another way
        if not 0 <= got.returncode <= most:
            fail("%s: exit status %d: %s" % (told, got.returncode, got.stderr))
        said = [line for line in got.stderr.split("\n") if line]
        if got.returncode and not said and not got.stdout:
            fail(told + ": exit status %d without a word" % got.returncode)
        # A JSON text may hold what turns the direction of writing; its readers escape it or not.
        shown = got.stderr + (re.sub("[\u202a-\u202e]", "", got.stdout) if word in ("jsonl", "compared", "telemetry") else got.stdout)
        if re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]", shown):
            fail(told + ": a control character: %r" % shown[:600])
        for f, bytes in before.items():
            if word in READ:
                if read(os.path.join(run, f)) != bytes:
                    fail("%s: %s has changed" % (told, f))
            elif f in LINES:
                kept = b"".join(read(os.path.join(run, f + end)) for end in ("", ".torn", ".damaged")
                                if os.path.exists(os.path.join(run, f + end)))
                if f == "traces.jsonl" and os.path.exists(os.path.join(run, "attempts.jsonl")):
                    kept += read(os.path.join(run, "attempts.jsonl"))
                for line in bytes.split(b"\n")[:-1]:
                    if f == "events.jsonl" and line not in kept:
                        fail("%s: %s lost %r" % (told, f, line))
        shutil.rmtree(out, True)
        if word in WRITE:  # the next one begins where this one began
            shutil.rmtree(run)
            shutil.copytree(world.words["GOOD"], run)
            write(run, name, at, path, thing)
    shutil.rmtree(run)
    return len(commands)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--agent", required=True)
    p.add_argument("--fakes", required=True)
    p.add_argument("--share", type=int, default=0)
    p.add_argument("--only", type=int)
    p.add_argument("--commands", default=",".join(list(READ) + list(WRITE)))
    o = p.parse_args()
    o.agent, o.fakes = os.path.abspath(o.agent), os.path.abspath(o.fakes)
    world = World(o)
    names = o.commands.split(",")
    jobs = []
    number = 0
    for m in mutants(world.words["GOOD"]):
        for thing in THINGS:
            number += 1
            if not m[2] and thing is GONE and m[1] < 0:
                continue
            if o.only is not None and o.only != number:
                continue
            if o.only is None and o.share and number % o.share:
                continue
            k = len(jobs) * 3
            commands = names if o.only is not None or not o.share else [names[(k + i) % len(names)] for i in range(3)]
            jobs.append((number, m, thing, commands))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        running = [pool.submit(one, world, *job) for job in jobs]
    faults = [str(r.exception()) for r in running if r.exception()]
    for fault in faults[:20]:
        print("hostile_drill: " + fault[:1000], file=sys.stderr)
    if faults:
        sys.exit("hostile_drill: %d of %d changed runs were not taken well" % (len(faults), len(jobs)))
    done = sum(r.result() for r in running)
    print("%d changed runs, %d commands: all held" % (len(jobs), done))


main()
