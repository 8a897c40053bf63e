"""Lines of traces.jsonl for the tests, with what is absent by a rule of docs/trace-format.md put in its place.

A key that is absent because its value is unknown reads as None.  A domain of which nothing is known has the query's
reason, in a span nothing at all.  A device gets what it has of its domain.  A value gets the `provenance` of
one level up.  Any other absent key is an error.

The keys that may be unknown are those with a `?` in their type in docs/trace-format.md."""
import json
import os
import re

DOMAINS = {"cpu", "dram", "gpu", "machine"}
OF_DOMAIN = {"coverage", "provenance", "reason", "samples", "split_fraction"}


def _keys():
    path = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "trace-format.md")
    with open(path, encoding="utf-8") as page:
        rows = re.findall(r"^\| (`[^|]*`) \| \w+\? \|", page.read(), re.M)
    return {key for row in rows for key in re.findall(r"`(\w+)`", row)}


UNKNOWN = _keys()


class Line(dict):
    def __missing__(self, key):
        if key in DOMAINS:
            return Line()
        if key in UNKNOWN:
            return None
        raise KeyError(key)


def _line(members):
    for device in members.get("devices", {}).values():
        for key in OF_DOMAIN & members.keys() - device.keys():
            device[key] = members[key]
    return Line(members)


def _within(energy, whole):
    for domain, figure in energy.items():
        if "joules" in figure and figure["joules"] is not None:
            figure.setdefault("provenance", whole[domain].get("provenance"))
            for device in figure.get("devices", {}).values():
                device.setdefault("provenance", figure["provenance"])


def _part(query, energy, spans):
    _within(energy, query["energy"])
    for span in spans:
        _within(span["energy"], energy)
    for domain in DOMAINS - energy.keys():
        energy[domain] = Line(reason=query["energy"][domain].get("reason"))


def loads(text):
    query = json.loads(text, object_hook=_line)
    if "energy_before" in query:
        _part(query, query["energy_before"], query["spans_before"])
        for turn in query["turns"]:
            _part(query, turn["energy"], turn["spans"])
    return query
