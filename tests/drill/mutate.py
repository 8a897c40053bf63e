#!/usr/bin/env python3
"""Would the unit tests see a fault?  Makes small changes of src/ and runs the unit tests of the floor for each.

    tests/drill/mutate.py [--count 200] [--floor ledger]... [--seed 1] [--jobs 2] [--sanitize] [--list]

A change turns a comparison round or moves its edge, exchanges && and ||, + and -, ++ and --, * and /, adds one to a
constant, drops a negation, turns a returned value round, or leaves a statement out.  Each line of code is drawn by a
hash of the seed, its file and its text: the same lines are drawn when others change.  A floor gets its part of
--count by its lines, eight at least.

A change counts as found when a unit test of its floor fails or ends too late.  tests/drill/mutants.txt names those
that cannot matter, with the reason.  Exit status 0: at least 85 % of the others are found, on each floor.

What does not build, warnings included, does not count.  --sanitize builds with AddressSanitizer and UBSan, which see
leaks and reads beyond an end.  Everything happens in a copy below build/mutate.  The tests run in a sandbox of bubblewrap: a changed program may
kill or remove something else than it should."""
import argparse, collections, concurrent.futures, hashlib, json, os, re, subprocess, sys, threading, time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WORK = os.path.join(ROOT, "build", "mutate")
TREE, BUILD = os.path.join(WORK, "tree"), os.path.join(WORK, "build")
FLOORS = "base json io energy data trace ledger llm script report audit run serve replay telemetry app".split()
GOAL = 85  # per cent
LEAST = 8  # changes of a floor

# A token of C that may be changed, and what it becomes.  Operators have blanks around them (clang-format).
CHANGES = [
    (re.compile(r" (<|<=|>|>=) "), {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}),
    (re.compile(r" (==|!=) "), {"==": "!=", "!=": "=="}),
    (re.compile(r" (&&|\|\|)(?= |$)"), {"&&": "||", "||": "&&"}),
    (re.compile(r" ([-+*/]) "), {"+": "-", "-": "+", "*": "/", "/": "*"}),
    (re.compile(r" ([-+]=) "), {"+=": "-=", "-=": "+="}),
    (re.compile(r"(\+\+|--)"), {"++": "--", "--": "++"}),
    (re.compile(r"(?<![\w.])(\d+)(?![\w.])"), lambda number: str(int(number) + 1)),
    (re.compile(r"(!)(?=[\w(*])"), {"!": ""}),
    (re.compile(r"return (true|false);"), {"true": "false", "false": "true"}),
]
# A call or an assignment that fills its line.
STATEMENT = re.compile(r"^( +)([a-z_][\w.>\[\]-]*(\(.*\)| [-+|&]?= .*));$")

Change = collections.namedtuple("Change", "file line before after")


def code_lines(path):
    """(number, line, the line with blanks for what is no code): no comment, text or preprocessor line."""
    with open(path, encoding="utf-8") as f:
        text = f.read()

    def blank(match):
        return re.sub(r"[^\n]", " ", match.group())

    bare = re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text, flags=re.S)
    bare = re.sub(r"^#(?:[^\n]*\\\n)*[^\n]*", blank, bare, flags=re.M)
    inside = False  # of a function: a line at the margin begins and ends one
    for number, (line, code) in enumerate(zip(text.split("\n"), bare.split("\n")), 1):
        if code.startswith("{"):
            inside = True
        elif code.startswith("}"):
            inside = False
        elif inside and code.strip():
            yield number, line, code


def changes_of(line, code):
    """What the line may become."""
    for pattern, new in CHANGES:
        for found in pattern.finditer(code):
            token = found.group(1)
            changed = new(token) if callable(new) else new[token]
            yield line[: found.start(1)] + changed + line[found.end(1):]
    if STATEMENT.match(code) and code.count("(") == code.count(")"):
        yield STATEMENT.sub(r"\1;", code)


def drawn(seed, floor):
    """The changes of a floor in the order in which they are taken: one a line."""
    order = []
    for folder, _, names in os.walk(os.path.join(TREE, "src", floor)):
        for name in sorted(names):
            if not name.endswith(".c") or (floor == "app" and name == "main.c"):
                continue
            path = os.path.join(folder, name)
            file, seen = os.path.relpath(path, TREE), collections.Counter()
            for number, line, code in code_lines(path):
                choices = list(changes_of(line, code))
                seen[line] += 1
                key = "%d %s %d %s" % (seed, file, seen[line], line)
                value = int.from_bytes(hashlib.sha256(key.encode()).digest()[:16], "big")
                if choices:
                    order.append((value, Change(file, number, line, choices[value % len(choices)])))
    return [change for _, change in sorted(order)]


def harmless():
    """{(file, line before, line after)} of mutants.txt."""
    known = set()
    with open(os.path.join(ROOT, "tests", "drill", "mutants.txt"), encoding="utf-8") as f:
        entries = [entry.split("\n") for entry in f.read().split("\n\n")]
    for entry in entries:
        if entry[0].startswith("#") or not entry[0]:
            continue
        entry = [line for line in entry if line]
        if len(entry) != 4 or not entry[1].startswith("- ") or not entry[2].startswith("+ "):
            sys.exit("mutants.txt: not FILE, - BEFORE, + AFTER, REASON: " + repr(entry))
        known.add((entry[0], entry[1][2:].strip(), entry[2][2:].strip()))
    return known


def copy_tree():
    """Also takes away what is no longer in the tree: a source that is left over would be built."""
    names = subprocess.run(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT, check=True,
                           stdout=subprocess.PIPE).stdout.decode().split("\0")
    for name in filter(None, names):
        source, target = os.path.join(ROOT, name), os.path.join(TREE, name)
        if not os.path.isfile(source):
            continue
        with open(source, "rb") as f:
            content = f.read()
        if os.path.exists(target):
            with open(target, "rb") as f:
                if f.read() == content:
                    continue
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as f:
            f.write(content)
        os.chmod(target, os.stat(source).st_mode)
    kept = {os.path.join(TREE, name) for name in names if name and os.path.isfile(os.path.join(ROOT, name))}
    for folder, _, files in os.walk(TREE):
        for name in files:
            if os.path.join(folder, name) not in kept:
                os.unlink(os.path.join(folder, name))


class Floor:
    """The unit tests of a floor: name, command, seconds that it takes."""

    def __init__(self, name, jobs):
        self.name, self.jobs, self.units, self.unfit = name, jobs, {}, []
        known = subprocess.run(["ninja", "-C", BUILD, "-t", "targets", "all"], check=True, stdout=subprocess.PIPE, text=True).stdout
        self.targets = re.findall(r"^((?:test_%s|test_%s_\w+|%s_test_\w+)): phony$" % (name, name, name), known, re.M)
        if self.targets and not self.build():
            sys.exit("%s: does not build" % name)
        told = json.loads(subprocess.run(["ctest", "--test-dir", BUILD, "-R", r"^unit\.%s\." % name, "--show-only=json-v1"],
                                         check=True, stdout=subprocess.PIPE).stdout)
        for test in told["tests"]:
            environment = [p["value"] for p in test["properties"] if p["name"] == "ENVIRONMENT"]
            self.units[test["name"].split(".")[2]] = test["command"], dict(e.split("=", 1) for e in sum(environment, []))

    def build(self):
        return subprocess.run(["ninja", "-C", BUILD, "-j", str(self.jobs)] + self.targets, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL).returncode == 0

    def run_unit(self, unit, seconds, stop):
        command, environment = self.units[unit]
        sandbox = ["bwrap", "--ro-bind", "/", "/", "--bind", BUILD, BUILD, "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp",
                   "--unshare-pid", "--die-with-parent", "--chdir", os.path.join(BUILD, "tests")]
        begun = time.monotonic()
        child = subprocess.Popen(sandbox + command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL, env=dict(os.environ, **environment), start_new_session=True)
        while True:
            try:
                code = child.wait(0.1)
                break
            except subprocess.TimeoutExpired:
                if time.monotonic() - begun > seconds or stop.is_set():
                    child.kill()  # bwrap; all else of the sandbox goes with it
                    child.wait()
                    return None if stop.is_set() else "ended too late"
        return "failed" if code else time.monotonic() - begun

    def measure(self):
        """Which pass without a change, and how long they take."""
        self.seconds = {}
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            for unit, took in zip(self.units, pool.map(lambda u: self.run_unit(u, 300, threading.Event()), self.units)):
                if isinstance(took, str):
                    self.unfit.append(unit)
                else:
                    self.seconds[unit] = took

    def finds(self, change):
        """The unit that fails, or None.  The one that mirrors the file goes first, then the quick ones."""
        base = os.path.basename(change.file)[:-2]

        def place(unit):
            return not (unit.startswith(base) or base.startswith(unit)), self.seconds[unit]

        stop, found = threading.Event(), []

        def one(unit):
            if stop.is_set():
                return
            end = self.run_unit(unit, 20 + 10 * self.seconds[unit], stop)
            if isinstance(end, str):
                found.append("%s %s" % (unit, end))
                stop.set()

        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            list(pool.map(one, sorted(self.seconds, key=place)))
        return found[0] if found else None


def with_change(change, act):
    path = os.path.join(TREE, change.file)
    with open(path, encoding="utf-8") as f:
        text = f.read()
    lines = text.split("\n")
    assert lines[change.line - 1] == change.before
    lines[change.line - 1] = change.after
    try:
        with open(path, "w", encoding="utf-8") as f:
            f.write("\n".join(lines))
        return act()
    finally:
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)


def shares(count, sizes):
    whole = sum(sizes.values())
    return {floor: max(LEAST, round(count * size / whole)) for floor, size in sizes.items()}


def drill(floor, wanted, seed, known, jobs):
    """Counter of found, survived, harmless."""
    tests, sums = Floor(floor, jobs), collections.Counter()
    if not tests.units:
        print("%s: no unit tests" % floor)
        return sums
    tests.measure()
    if tests.unfit:
        print("%s: left out, because they fail without a change: %s" % (floor, " ".join(tests.unfit)))
    for change in drawn(seed, floor):
        if sum(sums.values()) == wanted:
            break
        what = "%s:%d: %s  ->  %s" % (change.file, change.line, change.before.strip(), change.after.strip())
        if (change.file, change.before.strip(), change.after.strip()) in known:
            sums["harmless"] += 1
            continue
        told = with_change(change, lambda: (tests.finds(change) or "") if tests.build() else None)
        if told is None:
            continue  # does not compile
        sums["found" if told else "survived"] += 1
        print("%s  %s%s" % ("found   " if told else "SURVIVED", what, "  (%s)" % told if told else ""), flush=True)
    return sums


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--floor", action="append", choices=FLOORS)
    parser.add_argument("--sanitize", action="store_true")
    parser.add_argument("--list", action="store_true", help="the changes, without doing anything")
    arguments = parser.parse_args()
    known = harmless()
    copy_tree()
    sizes = {floor: sum(1 for _ in drawn(arguments.seed, floor)) for floor in FLOORS}
    wanted = shares(arguments.count, sizes)
    floors = arguments.floor or [floor for floor in FLOORS if sizes[floor]]
    if arguments.list:
        for floor in floors:
            for change in drawn(arguments.seed, floor)[: wanted[floor]]:
                print("%s:%d:\n- %s\n+ %s" % (change.file, change.line, change.before.strip(), change.after.strip()))
        return 0
    launcher = ["-DCMAKE_C_COMPILER_LAUNCHER=" + os.environ["CMAKE_C_COMPILER_LAUNCHER"]] if os.environ.get("CMAKE_C_COMPILER_LAUNCHER") else []
    subprocess.run(["cmake", "-S", TREE, "-B", BUILD, "-G", "Ninja", "-DCMAKE_C_FLAGS=-O0", "-DIPW_WERROR=ON",
                    "-DIPW_SANITIZE=" + ("address,undefined" if arguments.sanitize else "")] + launcher, check=True,
                   stdout=subprocess.DEVNULL)
    sums = {floor: drill(floor, wanted[floor], arguments.seed, known, arguments.jobs) for floor in floors}
    print("\n%-10s %8s %8s %8s %8s" % ("floor", "changes", "harmless", "found", "per cent"))
    short = []
    for floor, counted in sums.items():
        mattering = counted["found"] + counted["survived"]
        share = 100 * counted["found"] / mattering if mattering else 100
        print("%-10s %8d %8d %8d %8.0f" % (floor, sum(counted.values()), counted["harmless"], counted["found"], share))
        if share < GOAL:
            short.append(floor)
    if short:
        print("\nmutate.py: less than %d %% on: %s" % (GOAL, " ".join(short)))
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main())
