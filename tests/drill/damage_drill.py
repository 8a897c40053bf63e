#!/usr/bin/env python3
"""Cuts files of finished runs at random bytes, or puts NUL bytes in place of their ends, and has them mended.

    tests/drill/damage_drill.py --agent build/release/ipw-agent --fakes build/release/tests/fake \
        [--damages 150] [--seed 1] [--keep DIR]

Two runs are the victims: one of one session, and one that was killed and interrupted, with earlier attempts; both with
queries in flight, a warm-up and fake powercap counters.  Of a copy one file (now and then two) is cut, cut and filled
with NUL bytes, or removed, or a line in its middle is spoilt.  Then `resume` or `repair` is called, and it is checked that

  - neither is ended by a signal, and each has a word for what it cannot mend: exit status 0, or a message;
  - after exit status 0 `validate` passes; after `resume` every query is there exactly once;
  - where neither events nor samples nor traces were touched, no line of traces.jsonl has changed;
  - what `repair` left `resume` goes on with, to the same end.

Exit status 0: all of it held."""
import argparse, json, os, random, shutil, signal, subprocess, sys, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kill_drill import World, lines

FILES = ("manifest.json", "summary.json", "events.jsonl", "power.jsonl", "traces.jsonl", "attempts.jsonl",
         "warmup.jsonl")


def fail(text):
    print("damage_drill: " + text, file=sys.stderr)
    sys.exit(1)


def start(world, path, more):
    o = world.o
    return [o.agent, "run", "tools", "--dataset", world.rows, "--base-url", world.url, "--model", "fake-model",
            "--concurrency", str(o.concurrency), "--sample-interval", "5ms", "--warmup", "1", "--grace", "1ms",
            "--output", path] + more


def run(world, command):
    got = subprocess.run(command, env=world.env, cwd=world.dir, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                         timeout=300, errors="replace")
    return got.returncode, got.stderr


def make(world, path, kills):
    for signum in kills:
        child = subprocess.Popen(start(world, path, ["--resume"]), cwd=world.dir, env=world.env,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        want = len(lines(path + "/traces.jsonl")) + world.o.queries // 3
        while child.poll() is None and len(lines(path + "/traces.jsonl")) < want:
            time.sleep(0.005)
        child.send_signal(signum)
        child.wait()
    code, err = run(world, start(world, path, ["--resume"]))
    if code:
        fail("a run to be damaged: exit status %d: %s" % (code, err))
    return path


def damage(rng, path, name):
    """What was done, in words."""
    file = os.path.join(path, name)
    n = os.path.getsize(file)
    at = rng.choice((rng.randint(0, n - 1), max(0, n - rng.randint(1, 300))))
    how = rng.random()
    if how < 0.1:
        os.unlink(file)
        return name + " removed"
    if how > 0.7 and name.endswith(".jsonl"):
        with open(file, "rb") as f:
            all_lines = f.read().splitlines(True)
        spoilt = rng.randrange(1, max(2, len(all_lines)))
        if spoilt < len(all_lines):
            all_lines[spoilt] = b"#" + all_lines[spoilt]
            with open(file, "wb") as f:
                f.writelines(all_lines)
            return "%s line %d spoilt" % (name, spoilt + 1)
    with open(file, "r+b") as f:
        f.truncate(at)
        if how < 0.4:
            f.truncate(n)
    return "%s %s from byte %d of %d" % (name, "NUL" if how < 0.4 else "cut", at, n)


def wrong_end(world, path, code, err, resumed):
    """None: as it should be."""
    if code < 0 or code > 100:
        return "exit status %d: %s" % (code, err)
    if code:
        return None if err.strip() else "exit status %d without a word" % code
    bad, why = run(world, [world.o.agent, "validate", "-q", path])
    if bad:
        return "validate: %s(said before: %s)" % (why, err)
    ids = sorted(json.loads(line)["query_id"] for line in lines(path + "/traces.jsonl"))
    if resumed and ids != ["q%04d" % i for i in range(world.o.queries)]:
        return "not every query exactly once: %s" % ids
    return None


def check(world, victims, number, counts):
    rng = random.Random("%d-%d" % (world.o.seed, number))
    path = os.path.join(world.dir, "copy")
    shutil.rmtree(path, True)
    shutil.copytree(rng.choice(victims), path)
    names = rng.sample([name for name in FILES if os.path.exists(os.path.join(path, name))], 2 if rng.random() < 0.2 else 1)
    before = lines(path + "/traces.jsonl")
    done = "; ".join(damage(rng, path, name) for name in names)
    if world.o.keep:
        shutil.rmtree(world.o.keep, True)
        shutil.copytree(path, world.o.keep)
    first = rng.choice(("resume", "repair"))
    code, err = run(world, [world.o.agent, first, path])
    wrong = wrong_end(world, path, code, err, first == "resume")
    counts[first, code] = counts.get((first, code), 0) + 1
    if not wrong and not code and not {"events.jsonl", "power.jsonl", "traces.jsonl"} & set(names) and \
            lines(path + "/traces.jsonl") != before:
        wrong = "lines of traces.jsonl changed"
    if not wrong and first == "repair" and not code:
        code, err = run(world, [world.o.agent, "resume", path])
        wrong = wrong_end(world, path, code, err, True) or (code and "resume after repair: " + err)
    if wrong:
        return "damage %d (%s), %s: %s" % (number, done, first, wrong)
    if code and world.o.verbose:
        print("damage %d (%s), %s: exit status %d: %s" % (number, done, first, code, err.strip()), flush=True)
    return None


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--agent", required=True)
    p.add_argument("--fakes", required=True)
    p.add_argument("--damages", type=int, default=150)
    p.add_argument("--first", type=int, default=0, help="number of the first one")
    p.add_argument("--queries", type=int, default=12)
    p.add_argument("--concurrency", type=int, default=3)
    p.add_argument("--delay-ms", type=int, default=10)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--verbose", action="store_true", help="print what could not be mended")
    p.add_argument("--keep", metavar="DIR", help="where the first folder that was mended wrongly is kept, as damaged")
    o = p.parse_args()
    o.agent, o.fakes = os.path.abspath(o.agent), os.path.abspath(o.fakes)
    o.keep = o.keep and os.path.abspath(o.keep)
    world = World(o)
    victims = [make(world, os.path.join(world.dir, "plain"), ()),
               make(world, os.path.join(world.dir, "resumed"), (signal.SIGKILL, signal.SIGINT))]
    counts, failed = {}, 0
    for number in range(o.first, o.first + o.damages):
        wrong = check(world, victims, number, counts)
        if wrong:
            failed += 1
            print(wrong, flush=True)
            if o.keep:
                break
    world.close()
    print("%s; %d damaged: %d held" % (", ".join("%s exit %d: %d" % (*key, n) for key, n in sorted(counts.items())),
                                       o.damages, o.damages - failed), flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
