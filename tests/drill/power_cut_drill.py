#!/usr/bin/env python3
"""Models power cuts: a run whose files lose what was not synced is resumed, and nothing may be wrong then.

    tests/drill/power_cut_drill.py --agent build/release/ipw-agent --fakes build/release/tests/fake \
        [--cuts 200] [--queries 24] [--concurrency 6] [--seed 1] [--keep DIR]

One run is recorded with strace: a session that is killed, one that is interrupted, one that ends.  Several queries
are in flight and fake powercap counters are read.  The recording has every write, sync, rename and cut of the run's
files.  Each power cut ends it at a random call.  Each file then holds what was synced, and of the rest a random part:
the beginning of it, or zeros in its place.  A rename counts when its folder was synced; before, by chance.  Then
`resume` goes on with the folder, and it is checked that

  - resume ends with exit status 0;
  - the line of every query that was announced ("done ID") before the cut was on the disk, and stands there unchanged
    if it has an answer;
  - at the end every query stands in traces.jsonl exactly once;
  - the books balance: `validate`, `ledger --check`, and the summary's own word;
  - a second resume finds nothing to do, and changes no file.

Exit status 0: all of it held; 77: strace may not trace here."""
import argparse, json, os, random, re, shutil, signal, subprocess, sys, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kill_drill import World, lines, read

CALLS = "openat,write,pwrite64,writev,fsync,fdatasync,ftruncate,rename,unlink"


def fail(text):
    print("power_cut_drill: " + text, file=sys.stderr)
    sys.exit(1)


# ---- the recording ----

CALL = re.compile(r"^(\d+) +(\w+)\((.*)$")
RESUMED = re.compile(r"^(\d+) +<\.\.\. (\w+) resumed>(.*)$")
FD = re.compile(r"^(?:AT_FDCWD|\d+)<([^>]*)>")


def unescape(text):
    return bytes(int(x, 16) for x in text.split("\\x")[1:])


def parse(path):
    """(moment it began, moment it ended, call, arguments, result) of each call, by the moment it ended."""
    calls, begun = [], {}
    with open(path, encoding="latin-1") as f:
        for at, line in enumerate(f):
            line = line.rstrip("\n")
            if line.endswith("<unfinished ...>"):
                m = CALL.match(line)
                if m:
                    begun[m.group(1)] = (at, m.group(2), m.group(3)[:-len("<unfinished ...>")])
                continue
            m = RESUMED.match(line)
            if m:
                start, call, args = begun.pop(m.group(1), (at, m.group(2), ""))
                args += m.group(3)
            else:
                m = CALL.match(line)
                if not m:
                    continue
                start, call, args = at, m.group(2), m.group(3)
            end = args.rfind(") = ")
            if end < 0:
                end = args.rfind(")")
                if " = " not in args[end:]:
                    continue
            result = args[end:].split("=", 1)[1].strip()
            if result.startswith(("-1", "?")):
                continue
            calls.append((start, at, call, args[:end].rstrip(), result))
    return calls


def record(world, path):
    """The calls of all sessions, in order."""
    o, calls = world.o, []
    for session in ("killed", "interrupted", "ended"):
        log = os.path.join(world.dir, "strace." + session)
        command = ["strace", "-f", "-qq", "-y", "-xx", "-s", "100000000", "-o", log, "-e", "trace=" + CALLS,
                   o.agent, "run", "tools", "--dataset", world.rows, "--base-url", world.url, "--model", "fake-model",
                   "--concurrency", str(o.concurrency), "--sample-interval", "5ms", "--warmup", "1", "--verbose",
                   "--grace", "1ms", "--output", path, "--resume"]
        child = subprocess.Popen(command, cwd=world.dir, env=world.env, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        want = {"killed": 1, "interrupted": 2}.get(session, 0) * o.queries // 3
        while want and child.poll() is None and len(lines(path + "/traces.jsonl")) < want:
            time.sleep(0.005)
        if want and child.poll() is None:
            with open(path + "/lock") as f:
                pid = int(f.read().split()[1].rstrip(","))
            os.kill(pid, signal.SIGKILL if session == "killed" else signal.SIGINT)
        child.wait()
        n = len(calls)
        begin = calls[-1][1] + 1 if n else 0
        calls += [(a + begin, b + begin, call, args, result) for a, b, call, args, result in parse(log)]
        if len(calls) == n:
            fail("strace recorded nothing of the session that was to be " + session)
    return calls


# ---- the disk ----

class File:
    def __init__(self):
        self.data = bytearray()
        self.synced = 0  # bytes from its begin that the disk has

    def left(self, rng):
        tail = len(self.data) - self.synced
        kept = rng.choice((0, tail, rng.randint(0, tail)))
        text = bytes(self.data[:self.synced + kept])
        # The length reached the disk and the content did not.
        return text + bytes(rng.randint(0, tail - kept)) if rng.random() < 0.4 else text


class Disk:
    def __init__(self, folder):
        self.folder = folder
        self.names, self.durable = {}, {}  # name to File: as the program sees it, and as the disk has it
        self.announced = {}  # id to its line at that time

    def name(self, path):
        path = os.path.normpath(path)
        if os.path.dirname(path) == self.folder:
            return os.path.basename(path)
        return None

    def of_fd(self, args):
        m = FD.match(args)
        path = unescape(m.group(1)).decode() if m and m.group(1).startswith("\\x") else m.group(1) if m else ""
        return path, self.name(path)

    def begin_sync(self, args):
        path, name = self.of_fd(args)
        if path == self.folder:
            return ("folder", dict(self.names))
        if name in self.names:
            return ("file", self.names[name], len(self.names[name].data))
        return None

    def end_sync(self, what):
        if not what:
            return
        if what[0] == "folder":
            self.durable = what[1]
        else:
            what[1].synced = max(what[1].synced, min(what[2], len(what[1].data)))

    def apply(self, call, args, result):
        strings = [unescape(s) for s in re.findall(r'"((?:\\x[0-9a-f]{2})*)"', args)]
        if call == "openat":
            name = self.name(strings[0].decode())
            if name and "O_CREAT" in args and name not in self.names:
                self.names[name] = File()
                self.durable.setdefault(name, self.names[name]) if name == "lock" else None
            if name and "O_TRUNC" in args:
                self.names[name] = File()
        elif call == "rename":
            a, b = (self.name(s.decode()) for s in strings[:2])
            if a and b:
                self.names[b] = self.names.pop(a)
        elif call == "unlink":
            self.names.pop(self.name(strings[0].decode()), None)
        else:
            path, name = self.of_fd(args)
            if call == "write" and args.startswith("2<"):
                self.hear(strings[0])
            if name not in self.names:
                return
            f = self.names[name]
            n = int(result.split()[0])
            if call in ("write", "writev"):
                f.data += b"".join(strings)[:n]
            elif call == "pwrite64":
                offset = int(args.rsplit(",", 1)[1])
                f.data[offset:offset + n] = strings[0][:n]
            elif call == "ftruncate":
                f.data = f.data[:int(args.rsplit(",", 1)[1])]
                f.synced = min(f.synced, len(f.data))

    def hear(self, said):
        for name in re.findall(rb"^ipw-agent: done (.*)$", said, re.M):
            for line in bytes(self.names["traces.jsonl"].data).split(b"\n")[:-1]:
                if b'"query_id":"' + name + b'"' in line and name != b"q0000":  # which the warm-up is called, too
                    self.announced[name] = line

    def cut(self, rng, folder):
        """Writes what the disk has; answers the lines of traces.jsonl that were synced."""
        os.mkdir(folder, 0o700)
        names = {}
        for name in set(self.names) | set(self.durable):
            now, then = self.names.get(name), self.durable.get(name)
            f = now if now is then or rng.random() < 0.5 else then
            if f:
                names[name] = f
        for name, f in names.items():
            with open(os.path.join(folder, name), "wb") as out:
                out.write(f.left(rng))
        f = names.get("traces.jsonl")
        return bytes(f.data[:f.synced]).split(b"\n")[:-1] if f else []


def replay(calls, until, folder):
    """The disk after the first `until` calls.  A sync covers what was written before it began."""
    disk, moments = Disk(folder), []
    for i, (start, end, call, args, result) in enumerate(calls[:until]):
        if call in ("fsync", "fdatasync"):
            moments.append((start, 0, i))
            moments.append((end, 2, i))
        else:
            moments.append((end, 1, i))
    pending = {}
    for _, kind, i in sorted(moments):
        _, _, call, args, result = calls[i]
        if kind == 0:
            pending[i] = disk.begin_sync(args)
        elif kind == 2:
            disk.end_sync(pending.pop(i))
        else:
            disk.apply(call, args, result)
    return disk


# ---- one power cut ----

def run(world, command, where):
    got = subprocess.run(command, env=world.env, cwd=world.dir, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                         timeout=300, errors="replace")
    return got.returncode, got.stdout, got.stderr


def whole_folder(path):
    def content(name):
        with open(os.path.join(path, name), "rb") as f:
            return f.read()
    return {name: content(name) for name in os.listdir(path) if name != "lock"}


def check(world, calls, number, original):
    o = world.o
    rng = random.Random("%d-%d" % (o.seed, number))
    until = rng.randint(1, len(calls))
    disk = replay(calls, until, original)
    shutil.rmtree(original, True)
    kept = disk.cut(rng, original)
    done = [line for line in disk.announced.values() if json.loads(line)["completed"]]
    where = "cut %d (after call %d of %d)" % (number, until, len(calls))
    if o.keep:
        shutil.rmtree(o.keep, True)
        shutil.copytree(original, o.keep)
    command = [o.agent, "run", "tools", "--dataset", world.rows, "--base-url", world.url, "--model", "fake-model",
               "--concurrency", str(o.concurrency), "--sample-interval", "5ms", "--warmup", "1", "--output", original,
               "--resume"]
    if os.path.exists(original + "/manifest.json") and rng.random() < 0.7:
        command = [o.agent, "resume", original]
    code, _, err = run(world, command, where)
    if code:
        return "%s: resume: exit status %d: %s" % (where, code, err)
    traces = lines(original + "/traces.jsonl")
    lost = [line for line in done if line not in kept or line not in traces]
    if lost:
        return "%s: %d announced lines are gone; %s" % (where, len(lost), err)
    ids = sorted(json.loads(line)["query_id"] for line in traces)
    if ids != ["q%04d" % i for i in range(o.queries)]:
        return "%s: not every query exactly once: %s" % (where, ids)
    for what in (["validate", "-q", original], ["ledger", original, "--check"]):
        code, out, err2 = run(world, [o.agent] + what, where)
        if code:
            return "%s: %s: %s%s" % (where, what[0], "\n".join(out.split("\n")[-8:]), err2)
    summary = json.load(open(original + "/summary.json"))
    for domain in ("cpu", "dram"):
        if summary["ledger"][domain]["balanced"] is not True:
            return "%s: the books of %s: %s" % (where, domain, summary["ledger"][domain])
    before = whole_folder(original)
    code, _, err = run(world, [o.agent, "resume", original], where)
    if code or whole_folder(original) != before:
        return "%s: a second resume: exit status %d, %s: %s" % (where, code, sorted(
            n for n, t in whole_folder(original).items() if before.get(n) != t), err)
    return None


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--agent", required=True)
    p.add_argument("--fakes", required=True)
    p.add_argument("--cuts", type=int, default=200)
    p.add_argument("--first", type=int, default=0, help="number of the first cut")
    p.add_argument("--queries", type=int, default=24)
    p.add_argument("--concurrency", type=int, default=6)
    p.add_argument("--delay-ms", type=int, default=20)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--keep", metavar="DIR", help="where the folder of a cut that failed is kept, as the cut left it")
    o = p.parse_args()
    o.agent, o.fakes = os.path.abspath(o.agent), os.path.abspath(o.fakes)
    o.keep = o.keep and os.path.abspath(o.keep)
    probe = subprocess.run(["strace", "-f", "-qq", "-e", "trace=write", "-o", "/dev/null", "true"], capture_output=True,
                           text=True)
    if probe.returncode:
        print("skipped: strace cannot trace here: " + probe.stderr.strip())
        sys.exit(77)
    world = World(o)
    path = os.path.join(world.dir, "run")
    calls = record(world, path)
    start, failed = time.monotonic(), []
    for number in range(o.first, o.first + o.cuts):
        wrong = check(world, calls, number, path)
        if wrong:
            failed.append(wrong)
            print(wrong, flush=True)
            if o.keep:
                break
    world.close()
    print("%d power cuts over %d calls of a run of %d queries, %.0f s: %d held" %
          (o.cuts, len(calls), o.queries, time.monotonic() - start, o.cuts - len(failed)), flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
