#!/usr/bin/env python3
"""tests/lint/circles.py [ROOT]: circles of files inside a floor of src/.

A node is a module: NAME.c and NAME.h, with its parts, which carry its name before an underscore
(NAME_part.c, NAME_priv.h).  An edge is an #include of a header of the same floor.  Prints
"src/FLOOR: circle: A -> B -> A" for each circle; exit 1 when there is one."""
import os
import re
import sys

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.M)


def files_of(floor):
    for folder, folders, names in os.walk(floor):
        folders.sort()
        for name in sorted(names):
            if name.endswith((".c", ".h")):
                yield os.path.join(folder, name)


def includes_of(src, floor):
    """Of each file, without its ending: the files of its floor that it includes, likewise."""
    found = {}
    for path in files_of(os.path.join(src, floor)):
        with open(path, encoding="utf-8") as f:
            names = [n for n in INCLUDE.findall(f.read()) if n.split("/")[0] == floor]
        found.setdefault(path[:-2], set()).update(os.path.join(src, n)[:-2] for n in names)
    return found


def owner_of(stem, stems):
    """The file whose name is the longest beginning of this one's: rebuild, of rebuild_files."""
    folder, name = os.path.split(stem)
    parts = name.split("_")
    for n in range(len(parts) - 1, 0, -1):
        owner = os.path.join(folder, "_".join(parts[:n]))
        if owner in stems:
            return owner
    return None


def modules_of(includes):
    """Of each file: the module that it is part of.  NAME_part belongs to NAME when its header is
    built on NAME's, or when no file of another module includes it; NAME_priv always does."""
    module = {}
    for stem in sorted(includes):
        owner = owner_of(stem, includes)
        users = {s for s in includes if stem in includes[s] and s != stem}
        part = owner and (
            stem.endswith(("_priv", "_part"))
            or owner in includes[stem]
            or all(s == owner or s.startswith(f"{owner}_") for s in users))
        module[stem] = module[owner] if part else stem
    return module


def graph_of(src, floor):
    includes = includes_of(src, floor)
    module = modules_of(includes)
    edges = {}
    for stem, names in includes.items():
        here = module[stem]
        edges.setdefault(here, set()).update(module.get(n, n) for n in names)
    for here in edges:
        edges[here].discard(here)
    return edges


def components(edges):
    """Sets of modules that reach each other (Tarjan, without recursion)."""
    index, low, on, stack, found = {}, {}, set(), [], []
    for root in sorted(edges):
        if root in index:
            continue
        work = [(root, iter(sorted(edges[root])))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on.add(root)
        while work:
            node, rest = work[-1]
            for to in rest:
                if to not in edges:
                    continue
                if to not in index:
                    index[to] = low[to] = len(index)
                    stack.append(to)
                    on.add(to)
                    work.append((to, iter(sorted(edges[to]))))
                    break
                if to in on:
                    low[node] = min(low[node], index[to])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    group = set()
                    while True:
                        top = stack.pop()
                        on.discard(top)
                        group.add(top)
                        if top == node:
                            break
                    if len(group) > 1:
                        found.append(group)
    return found


def circle_in(edges, group):
    """One shortest way round, from the first module by name."""
    start = min(group)
    ways = [[start]]
    seen = {start}
    while ways:
        way = ways.pop(0)
        for to in sorted(edges[way[-1]] & group):
            if to == start:
                return way + [start]
            if to not in seen:
                seen.add(to)
                ways.append(way + [to])
    return [start]


def main(argv):
    root = argv[0] if argv else os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
    src = os.path.join(root, "src")
    bad = 0
    for floor in sorted(os.listdir(src)):
        if not os.path.isdir(os.path.join(src, floor)):
            continue
        edges = graph_of(src, floor)
        groups = components(edges)
        for group in groups:
            names = [os.path.relpath(m, src) for m in circle_in(edges, group)]
            size = f" ({len(group)} modules)" if len(group) > len(names) - 1 else ""
            print(f"src/{floor}: circle: {' -> '.join(names)}{size}")
            bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
