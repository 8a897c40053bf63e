"""Holds the joules of a run against what is known of its sensors.  Every check holds on any schedule:
nothing is compared with a share of itself, only with what the run's own files bound.

  truth.py books RUN              to the microjoule: parts sum to the query, queries, warm-up, waste
                                  and idle to the device, devices to the domain, in figures and in
                                  accounts; net is the figure less the idle baseline.  And what a
                                  counter moved by, as far as the rows of power.jsonl say, bounds
                                  its total and every window with one query in flight
  truth.py within RUN NAME=W...   a device (or a domain) drew W watts all the time, its counter being a
                                  function of the clock at the read: for each query, turn, span the
                                  truth, W times the integral of dt / n(t), lies within [lo, hi].  n(t)
                                  is who was in flight, by the run's events.jsonl; a figure is
                                  "distributed" where n(t) > 1.  Prints how far the figures are off

IPW_AGENT names the program (it prints the rows).  Exit code 1: the first thing that is wrong."""

import bisect
import json
import os
import subprocess
import sys

import trace_lines

# Of the counter's clock (the stub takes milliseconds) and of stamps: a reading that was interrupted
# is taken again unless it took less than 0.2 ms and a few usual ones, so 0.3 ms at 300 W.
SLACK_S = 3e-4
# And of a microjoule in each cell that a figure is made of.
SLACK_J = 1e-4

DOMAINS = ("cpu", "dram", "gpu", "machine")


def lines(run, name):
    path = os.path.join(run, name)
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as f:
        return [trace_lines.loads(line) for line in f]


def fail(text):
    sys.exit("truth.py: " + text)


def micro(joules):
    return round(joules * 1e6)


def windows(query):
    """Every window of a query that has figures: its name, its ends in ns, its energy."""
    t0 = query["start_ns"]

    def at(seconds):
        return t0 + round(seconds * 1e9)

    name = query["query_id"]
    yield name, t0, query["end_ns"], query["energy"]
    yield name + " before", t0, at(query["agent_before_s"]), query["energy_before"]
    spans = [(name + " before", s) for s in query["spans_before"]]
    for k, turn in enumerate(query["turns"]):
        where = "%s turn %d" % (name, k)
        yield where, at(turn["start_s"]), at(turn["end_s"]), turn["energy"]
        spans += [(where, s) for s in turn["spans"]]
    for where, span in spans:
        yield "%s %s" % (where, span["kind"]), at(span["start_s"]), at(span["end_s"]), energy_of_span(query, span)


def is_span(where):
    """Whether windows() named a span so, not a query, the time before its turns, or a turn."""
    return " " in where and where.split()[-1] != "before" and where.split()[-2] != "turn"


def energy_of_span(query, span):
    """With the domains that are absent: nothing is known of them but the reason of the query's own figure."""
    energy = dict(span["energy"])
    for domain in DOMAINS:
        whole = query["energy"][domain]
        if domain not in energy and (whole["joules"] is not None or not whole["reason"] or "devices" in whole):
            fail("%s: %s: no %s figure, and the query has %s" % (query["query_id"], span["kind"], domain, whole))
        energy.setdefault(domain, {"joules": None, "reason": whole.get("reason")})
    return energy


def figure_of(energy, name):
    """The figure of a domain or of a device of one; None: there is none of that name."""
    if name in DOMAINS:
        return energy[name]
    for domain in DOMAINS:
        if name in energy[domain].get("devices", {}):
            return energy[domain]["devices"][name]
    return None


# ---- within: the integral of dt / n(t) ----


class InFlight:
    def __init__(self, events):
        if sum(e["event"] == "run_start" for e in events) != 1:
            fail("who was in flight is told of a run of one session only")
        edges = sorted(
            (e.get("ended_ns", e["t_ns"]), 1 if e["event"] == "query_start" else -1)
            for e in events
            if e["event"] in ("query_start", "query_end")
        )
        self.t, self.n = [], []
        self.part, self.crowd = [], []  # up to t: of dt / n, and of dt with n > 1
        n, part, crowd = 0, 0.0, 0
        for t, step in edges:
            if n:
                part += (t - self.t[-1]) / n
                crowd += (t - self.t[-1]) * (n > 1)
            n += step
            self.t.append(t)
            self.n.append(n)
            self.part.append(part)
            self.crowd.append(crowd)

    def upto(self, t):
        k = bisect.bisect_right(self.t, t) - 1
        if k < 0 or self.n[k] == 0:
            return (self.part[k], self.crowd[k]) if k >= 0 else (0.0, 0)
        dt = t - self.t[k]
        return self.part[k] + dt / self.n[k], self.crowd[k] + dt * (self.n[k] > 1)

    def seconds(self, t0, t1):
        return (self.upto(t1)[0] - self.upto(t0)[0]) / 1e9

    def crowded(self, t0, t1):
        return self.upto(t1)[1] > self.upto(t0)[1]


def within(run, names):
    flight = InFlight(lines(run, "events.jsonl"))
    queries = lines(run, "traces.jsonl") + lines(run, "warmup.jsonl")
    checked, errors = 0, []
    for query in queries:
        for where, t0, t1, energy in windows(query):
            for name, watts in names.items():
                figure = figure_of(energy, name)
                if figure is None and name not in DOMAINS and is_span(where):
                    continue  # a span has no figures of single devices
                truth = watts * flight.seconds(t0, t1)
                slack = watts * SLACK_S + SLACK_J
                if figure is None or figure["joules"] is None:
                    fail("%s: %s: no figure of %s: %s" % (run, where, name, figure))
                if figure["joules"] == 0 and t0 == t1:
                    continue
                if not figure["lo"] - 1e-6 <= figure["joules"] <= figure["hi"] + 1e-6:
                    fail("%s: %s: %s is outside its own bounds: %s" % (run, where, name, figure))
                if not figure["lo"] - slack <= truth <= figure["hi"] + slack:
                    fail("%s: %s: %s: %.6f J in truth, and %s" % (run, where, name, truth, figure))
                if flight.crowded(t0, t1) and figure["provenance"] != "distributed":
                    fail("%s: %s: in flight with others, and %s" % (run, where, figure))
                checked += 1
                if not is_span(where) and not where.endswith(" before"):
                    errors.append(abs(figure["joules"] - truth) / truth)
    if not errors:
        fail(run + ": there is nothing to check")
    errors.sort()
    print(
        "%s: %d figures within their bounds; queries and turns are off by %.2g %% (median), %.2g %% (p95)"
        % (run, checked, 100 * errors[len(errors) // 2], 100 * errors[len(errors) * 95 // 100])
    )


# ---- books ----


def check_sums(query, run):
    energies = [query["energy_before"]] + [t["energy"] for t in query["turns"]]
    for domain in DOMAINS:
        names = [domain] + sorted(query["energy"][domain].get("devices", {}))
        whole = query["energy"][domain]
        parts = [figure_of(e, domain)["joules"] for e in energies]
        if whole["joules"] is not None and None not in parts:
            if sum(map(micro, parts)) != micro(whole["joules"]):
                fail("%s: %s: %s: parts sum to %r of %r" % (run, query["query_id"], domain, total, whole))
        for where, _, _, energy in windows(query):
            devices = energy[domain].get("devices")
            if not devices or energy[domain]["joules"] is None:
                continue
            if sum(micro(d["joules"]) for d in devices.values()) != micro(energy[domain]["joules"]):
                fail("%s: %s: %s: its devices do not sum to it" % (run, where, domain))
        check_account(query, run, domain, names)


def check_account(query, run, domain, names):
    account = query["accounts"][domain]
    if (not account) != (query["energy"][domain]["joules"] is None):
        fail("%s: %s: accounts of %s: %s" % (run, query["query_id"], domain, account))
    if not account:
        return
    if account["attributed_j"] != query["energy"][domain]["joules"]:
        fail("%s: %s: the account of %s is not its figure" % (run, query["query_id"], domain))
    for key in ("exclusive_j", "waste_j", "idle_tax_j"):
        part = account[key]
        if part is not None and not 0 <= micro(part) <= micro(account["attributed_j"]) + 100:
            fail("%s: %s: %s.%s is %r of %r" % (run, query["query_id"], domain, key, part, account))
    devices = account.get("devices")
    if (devices is not None) != (len(names) > 1):
        fail("%s: %s: accounts of %s: devices %s" % (run, query["query_id"], domain, devices))
    if devices is None:
        return
    if sorted(devices) != names[1:]:
        fail("%s: %s: accounts of %s: devices %s" % (run, query["query_id"], domain, devices))
    for key in ("attributed_j", "exclusive_j", "marginal_j", "waste_j", "idle_tax_j"):
        parts = [d[key] for d in devices.values()]
        whole = account[key]
        if (whole is None) != (None in parts):
            fail("%s: %s: %s.%s: %r of %r" % (run, query["query_id"], domain, key, parts, whole))
        if whole is not None and sum(map(micro, parts)) != micro(whole):
            fail("%s: %s: %s.%s: devices sum to %r of %r" % (run, query["query_id"], domain, key, parts, whole))


def check_book(run, name, book, joules, warm):
    if book.get("total_j") is None:
        return
    total, queries, idle, warmup, wasted = (
        micro(book[k] or 0) for k in ("total_j", "queries_j", "idle_j", "warmup_j", "wasted_j")
    )
    # Of several sessions each rounds its own parts.
    with open(run + "/manifest.json", encoding="utf-8") as f:
        spare = max(0, len(json.load(f).get("segments", [])) - 1)
    if abs(total - queries - idle - warmup - wasted) > spare:
        fail("%s: %s: %d uJ in total, %d + %d + %d + %d in parts" % (run, name, total, queries, idle, warmup, wasted))
    if book["balanced"] is not True:
        fail("%s: %s is not balanced: %s" % (run, name, book))
    if sum(map(micro, joules)) != queries or sum(map(micro, warm)) != warmup:
        fail("%s: %s: its queries' joules do not sum to the book's" % (run, name))


# ---- books: what the counters say themselves ----


class Counter:
    """What a counter can have stood at, by its readings: it moves on between two of them, and a
    reading may show a value that was published a while before.  So an instant lies between the
    value before the present one and the one after the next."""

    def __init__(self, rows, modulus):
        self.t, self.value = [], []
        turns = 0
        for t, value in rows:
            if self.value and value + turns < self.value[-1]:
                turns += modulus
            self.t.append(t)
            self.value.append(value + turns)
        self.low, self.high = self.distinct(self.value, 1), self.distinct(self.value[::-1], 2)[::-1]

    @staticmethod
    def distinct(values, steps):
        """Of each value the one `steps` changes before it; the first of all when there are fewer."""
        out, last = [], [values[0]] * (steps + 1)
        for value in values:
            if value != last[-1]:
                last = last[1:] + [value]
            out.append(last[0])
        return out

    def bounds(self, t):
        k = max(bisect.bisect_right(self.t, t) - 1, 0)
        return self.low[k], self.high[k]

    def moved(self, t0, t1):
        (lo0, hi0), (lo1, hi1) = self.bounds(t0), self.bounds(t1)
        return max(lo1 - hi0, 0), hi1 - lo0


def read_counters(run):
    """Domain to the names and counters of its sum; None where one of them is no counter."""
    text = subprocess.run(
        [os.environ["IPW_AGENT"], "telemetry", "--read", run], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    header, *rows = [json.loads(line) for line in text.splitlines()]
    domains = {}
    for i, source in enumerate(header["sources"]):
        for k, channel in enumerate(source["channels"]):
            if not channel["in_sum"]:
                continue
            values = [(r[0], r[2 + k]) for r in rows if r[1] == i and r[2 + k] is not None]
            known = domains.setdefault(channel["domain"], {})
            if channel["kind"] == "counter" and values and known is not None:
                known[channel["name"]] = Counter(values, channel["modulus_uj"])
            else:
                domains[channel["domain"]] = None
    return {domain: counters for domain, counters in domains.items() if counters}


def check_counters(run, ledger, queries, events, flight):
    t0 = next(e["t_ns"] for e in events if e["event"] == "run_start")
    t1 = [e["t_ns"] for e in events if e["event"] == "run_end"][-1]
    for domain, counters in read_counters(run).items():
        check_moved(run + ": " + domain + " in total", counters.values(), t0, t1, ledger[domain].get("total_j"))
        for name, counter in counters.items():
            book = ledger[domain].get("devices", {}).get(name, {})
            check_moved(run + ": " + name + " in total", [counter], t0, t1, book.get("total_j"))
        for query in queries:
            for where, a, b, energy in windows(query):
                if not flight.crowded(a, b):
                    check_moved("%s: %s: %s" % (run, where, domain), counters.values(), a, b, energy[domain]["joules"])


def check_moved(where, counters, t0, t1, joules):
    moved = [c.moved(t0, t1) for c in counters]
    low, high = sum(m[0] for m in moved), sum(m[1] for m in moved)
    if joules is not None and not low - 2 <= micro(joules) <= high + 2:
        fail("%s: %r J; the counter moved by %d to %d uJ" % (where, joules, low, high))


def check_net(run, queries, events, flight, names):
    """Net is the figure less what the idle machine draws in the query's part of the time."""
    facts = next(e["data"] for e in events if e["event"] == "run_start")
    for domain, watts in facts["baseline_w"].items():
        of_devices = facts.get("device_baseline_w", {}).get(domain, [])
        for query in queries:
            account = query["accounts"][domain]
            if watts is None or account is None:
                continue
            seconds = flight.seconds(query["start_ns"], query["end_ns"])
            parts = [(account, watts)]
            for name, one in account.get("devices", {}).items():
                parts.append((one, of_devices[names[domain].index(name)]))
            for part, idle_w in parts:
                net = part["attributed_j"] - idle_w * seconds
                if abs(part["marginal_j"] - net) > 2e-6 * (len(parts) + 1):
                    fail("%s: %s: %s: %r J net of %g W; %r" % (run, query["query_id"], domain, net, idle_w, part))


def books(run):
    queries, warm = lines(run, "traces.jsonl"), lines(run, "warmup.jsonl")
    with open(os.path.join(run, "summary.json"), encoding="utf-8") as f:
        ledger = json.load(f)["ledger"]
    for query in queries + warm:
        check_sums(query, run)
    for domain in DOMAINS:
        if domain not in ledger:
            continue
        for name, book in [(domain, ledger[domain]), *ledger[domain].get("devices", {}).items()]:
            joules, warmed = (
                [f["joules"] for f in (figure_of(q["energy"], name) for q in of) if f and f["joules"] is not None]
                for of in (queries, warm)
            )
            check_book(run, name, book, joules, warmed)
    events = lines(run, "events.jsonl")
    if sum(e["event"] == "run_start" for e in events) != 1:
        return
    flight = InFlight(events)
    check_counters(run, ledger, queries + warm, events, flight)
    with open(os.path.join(run, "power.jsonl"), encoding="utf-8") as f:
        header = json.loads(f.readline())
    names = {d: [] for d in DOMAINS}
    for channel in (c for s in header["sources"] for c in s["channels"]):
        if channel["in_sum"]:
            names[channel["domain"]].append(channel["name"])
    check_net(run, queries + warm, events, flight, names)


if sys.argv[1] == "books":
    books(sys.argv[2])
elif sys.argv[1] == "within":
    within(sys.argv[2], {name: float(w) for name, w in (a.split("=") for a in sys.argv[3:])})
else:
    fail("books or within")
