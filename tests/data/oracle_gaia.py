#!/usr/bin/env python3
"""Compares lua/ipw/gaia_rule.lua with Python itself: float(), lower(), white space, and the whole scorer.

    python3 tests/data/oracle_gaia.py build/release/ipw-agent [PAIRS]

The rule below is our own wording of the benchmark's published scorer.  Prints how many
comparisons were made; exit status 1 when one differs."""
import json
import math
import os
import random
import re
import string
import subprocess
import sys
import tempfile

# Reads rows of FILE.jsonl: [text, float(text) as text or null], or [answer, truth, is it right].
LUA = """
local json, fs, rule = require "ipw.json", require "ipw.fs", require "ipw.gaia_rule"
return { { "rows", function()
  local shown = 0
  for line in fs.read("rows.jsonl"):gmatch "[^\\n]+" do
    local row = json.decode(line)
    local got
    if #row == 2 then
      local value = rule.float(row[1])
      got = value == nil and "none" or ("%.17g"):format(value):gsub("^%-nan", "nan")
    else
      got = rule.score(row[1], row[2])
    end
    if got ~= row[#row] and shown < 20 then
      print("differs", line, got)
      shown = shown + 1
    end
  end
  assert(shown == 0)
end } }
"""
AT_ONCE = 20000


def as_float(text):
    try:
        return float(text)
    except ValueError:
        return None


def cleaned(answer):
    value = as_float(answer.translate(str.maketrans("", "", "$%,")))
    return math.inf if value is None else value


def folded(text, punctuation_out):
    text = re.sub(r"\s", "", text).lower()
    return text.translate(str.maketrans("", "", string.punctuation)) if punctuation_out else text


def right(answer, truth):
    number = as_float(truth)
    if number is not None:
        return cleaned(answer) == number
    if not re.search("[,;]", truth):
        return folded(answer, True) == folded(truth, True)
    given, wanted = re.split("[,;]", answer), re.split("[,;]", truth)
    if len(given) != len(wanted):
        return False
    return all(folded(g, False) == folded(w, False) if as_float(w) is None
               else cleaned(g) == as_float(w) for g, w in zip(given, wanted))


def told(value):
    if value is None:
        return "none"
    return "nan" if math.isnan(value) else "%.17g" % value


class Checker:
    """Collects rows, and gives them to the program many at a time."""

    def __init__(self, program):
        self.program, self.rows, self.compared, self.bad = program, [], 0, 0

    def take(self, *row):
        self.rows.append(json.dumps(row))
        if len(self.rows) == AT_ONCE:
            self.run()

    def run(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "rows.jsonl"), "w") as out:
                out.write("\n".join(self.rows) + "\n")
            with open(os.path.join(folder, "rows.lua"), "w") as out:
                out.write(LUA)
            done = subprocess.run([self.program, "test", os.path.join(folder, "rows.lua"), "--workspace",
                                   folder, "--lua-cpu", "600s"],
                                  capture_output=True, text=True, check=False)
            if done.returncode:
                print(done.stdout, done.stderr)
                self.bad += 1
        self.compared += len(self.rows)
        self.rows = []

    def number(self, text):
        self.take(text, told(as_float(text)))

    def pair(self, answer, truth):
        self.take(answer, truth, right(answer, truth))


def main():
    check = Checker(sys.argv[1])
    for c in range(1, 0x110000):
        if 0xd800 <= c < 0xe000:
            continue
        ch = chr(c)
        for text in (ch, ch + "1", "1" + ch, "1" + ch + "2"):
            check.number(text)
        check.pair(ch, ch.lower())
        for text in ("A" + ch + "\u03a3", "A\u03a3" + ch + "B", ch + "\u03a3", "A\u03a3" + ch):
            check.pair(text, text.lower())
        check.pair("a" + ch + "b", "ab")

    pick = random.Random(20261121)
    pieces = list("0123456789..__eE+-  ") + ["inf", "nan", "Infinity", "\u0663", "\uff15", "\u00a0"]
    for _ in range(200000):
        check.number("".join(pick.choice(pieces) for _ in range(pick.randrange(1, 9))))

    words = pieces + list("abcXYZ,,;;$%?!'\u2019\u03a3\u03c3\u03c2\u0130\u0307\u00df\u0391.-") + [
        "\u200b", "\u3000", "\u00ad", "\u0345", "\x1c", "\x85", "cat", "None"]
    for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 200000):
        truth = "".join(pick.choice(words) for _ in range(pick.randrange(1, 8)))
        answer = list(truth)
        for _ in range(pick.randrange(0, 3)):
            at = pick.randrange(0, len(answer) + 1)
            answer[at:at + pick.randrange(0, 2)] = [pick.choice(words)]
        answer = "".join(answer)
        if pick.random() < 0.3:
            answer = answer.upper()
        check.pair(answer, truth)
    check.run()
    print(f"{check.compared} comparisons, {check.bad} differ")
    return 1 if check.bad else 0


if __name__ == "__main__":
    sys.exit(main())
