#!/usr/bin/env python3
"""Compares src/data with Python itself: float(), lower(), white space, and the whole scorer.

    cc -shared -fPIC -D_GNU_SOURCE -Isrc src/data/gaia.c src/data/pytext.c src/base/*.c \
        -lunistring -lm -o /tmp/libgaia.so
    python3 tests/data/oracle_gaia.py /tmp/libgaia.so [PAIRS]

The rule below is our own wording of the benchmark's published scorer.  Prints how many
comparisons were made; exit status 1 when one differs."""
import ctypes
import math
import random
import re
import string
import sys

lib = ctypes.CDLL(sys.argv[1])
lib.ipw_gaia_score.restype = ctypes.c_bool
lib.ipw_gaia_score.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
lib.ipw_py_float.restype = ctypes.c_bool
lib.ipw_py_float.argtypes = [ctypes.c_char_p, ctypes.POINTER(ctypes.c_double)]


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


def c_float(text):
    value = ctypes.c_double()
    return value.value if lib.ipw_py_float(text.encode(), ctypes.byref(value)) else None


def same(a, b):
    return a == b or (a is not None and b is not None and math.isnan(a) and math.isnan(b))


def main():
    bad = compared = 0

    def check(ok, *what):
        nonlocal bad, compared
        compared += 1
        if not ok:
            bad += 1
            if bad <= 20:
                print("differs:", *map(ascii, what))

    for c in range(1, 0x110000):
        if 0xd800 <= c < 0xe000:
            continue
        ch = chr(c)
        for text in (ch, ch + "1", "1" + ch, "1" + ch + "2"):
            check(same(c_float(text), as_float(text)), "float", text)
        small = ch.lower()
        check(lib.ipw_gaia_score(ch.encode(), small.encode()) == right(ch, small), "lower", ch)
        for text in ("A" + ch + "\u03a3", "A\u03a3" + ch + "B", ch + "\u03a3", "A\u03a3" + ch):
            check(lib.ipw_gaia_score(text.encode(), text.lower().encode()) == right(text,
                  text.lower()), "sigma", text)
        check(lib.ipw_gaia_score(("a" + ch + "b").encode(), b"ab") == right("a" + ch + "b", "ab"),
              "space", ch)

    pick = random.Random(20261121)
    pieces = list("0123456789..__eE+-  ") + ["inf", "nan", "Infinity", "\u0663", "\uff15", "\u00a0"]
    for _ in range(200000):
        text = "".join(pick.choice(pieces) for _ in range(pick.randrange(1, 9)))
        check(same(c_float(text), as_float(text)), "float", text)

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
        check(lib.ipw_gaia_score(answer.encode(), truth.encode()) == right(answer, truth), answer,
              truth)
    print(f"{compared} comparisons, {bad} differ")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
