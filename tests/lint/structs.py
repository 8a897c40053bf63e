#!/usr/bin/env python3
"""tests/lint/structs.py [--report] [ROOT]: no struct of src/ has 40 members or more.

A member is a declared name: `int64_t start_ns, end_ns;` are two.  The members of an unnamed struct or
union inside another count with the outer one, a named group counts once: a reader who meets the type
has to hold that many names in the head.  Prints "file:line: struct NAME: N members" for each breach;
exit 1 when there is one.  --report prints the ten longest, and exits 0."""
import os
import re
import sys

LIMIT = 40
STRUCT = re.compile(r"\bstruct\s+(\w+)\s*\{")
QUIET = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'', re.S)


def blank(text):
    """The text without comments, strings and preprocessor lines; every line keeps its number."""
    text = QUIET.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: "\n" * m.group().count("\n"), text,
                  flags=re.M)


def close_of(text, start, opening, closing):
    """The place of the bracket that closes the one at `start`."""
    depth = 0
    for i in range(start, len(text)):
        depth += (text[i] == opening) - (text[i] == closing)
        if not depth:
            return i
    return len(text) - 1


def split(text, mark):
    """At the marks that stand outside of all brackets."""
    parts, depth, at = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "({[") - (c in ")}]")
        if c == mark and not depth:
            parts.append(text[at:i])
            at = i + 1
    return parts + [text[at:]]


def count(body):
    """The members of a struct's body."""
    n = 0
    for declaration in split(body, ";"):
        declaration = declaration.strip()
        group = re.match(r"(?:struct|union|enum)\s*(\w*)\s*\{", declaration)
        if group:
            brace = declaration.index("{")
            end = close_of(declaration, brace, "{", "}")
            inner, rest = declaration[brace + 1:end], declaration[end + 1:].strip()
            if not rest and not declaration.startswith("enum"):
                n += count(inner)
                continue
            declaration = rest
        if declaration:
            n += len(split(declaration, ","))
    return n


def structs_of(path):
    with open(path, encoding="utf-8") as f:
        text = blank(f.read())
    for match in STRUCT.finditer(text):
        end = close_of(text, match.end() - 1, "{", "}")
        yield count(text[match.end():end]), match.group(1), text.count("\n", 0, match.start()) + 1


def main(argv):
    roots = [a for a in argv if not a.startswith("--")]
    root = roots[0] if roots else os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
    found = []
    for folder, _, names in os.walk(os.path.join(root, "src")):
        for name in names:
            if name.endswith((".c", ".h")):
                path = os.path.join(folder, name)
                found += [(n, struct, os.path.relpath(path, root), line)
                          for n, struct, line in structs_of(path)]
    if "--report" in argv:
        for n, struct, path, line in sorted(found, reverse=True)[:10]:
            print(f"{n:4} struct {struct}  {path}:{line}")
        return 0
    long = [f for f in found if f[0] >= LIMIT]
    for n, struct, path, line in sorted(long, key=lambda f: f[2:]):
        print(f"{path}:{line}: struct {struct}: {n} members; {LIMIT - 1} are the most: "
              "make parts of it, each a struct with a name of its own")
    return bool(long)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
