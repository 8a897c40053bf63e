"""Reads an Arrow IPC stream by its specification: rows(path) gives the fields and a list of dictionaries.

Shares nothing with the program. Flatbuffers: a table begins with the distance back to its vtable; vectors and texts
with their length. Types: Int 64, Double, Utf8, Bool, Struct.
"""
import struct
import sys


class Table:
    def __init__(self, data, at):
        self.data, self.at = data, at
        self.vtable = at - struct.unpack_from("<i", data, at)[0]
        assert at % 4 == 0 and self.vtable % 2 == 0

    def where(self, slot):
        size = struct.unpack_from("<H", self.data, self.vtable)[0]
        offset = struct.unpack_from("<H", self.data, self.vtable + 4 + 2 * slot)[0] if 4 + 2 * slot < size else 0
        return self.at + offset if offset else None

    def get(self, slot, form, default=0):
        at = self.where(slot)
        if at is None:
            return default
        assert at % struct.calcsize("<" + form) == 0, "alignment"
        return struct.unpack_from("<" + form, self.data, at)[0]

    def target(self, slot):
        at = self.where(slot)
        return None if at is None else at + struct.unpack_from("<I", self.data, at)[0]

    def table(self, slot):
        return Table(self.data, self.target(slot))

    def text(self, slot):
        at = self.target(slot)
        n = struct.unpack_from("<I", self.data, at)[0]
        assert self.data[at + 4 + n] == 0
        return self.data[at + 4:at + 4 + n].decode()

    def tables(self, slot):
        at = self.target(slot)
        n = struct.unpack_from("<I", self.data, at)[0]
        places = [at + 4 + 4 * i for i in range(n)]
        return [Table(self.data, p + struct.unpack_from("<I", self.data, p)[0]) for p in places]

    def pairs(self, slot):
        at = self.target(slot)
        n = struct.unpack_from("<I", self.data, at)[0]
        assert (at + 4) % 8 == 0, "structs of 64-bit integers"
        return [struct.unpack_from("<qq", self.data, at + 4 + 16 * i) for i in range(n)]


def field_of(t):
    kind = t.get(2, "B")
    assert t.get(1, "B") == 1, "nullable"
    of, children = t.table(3), [field_of(c) for c in t.tables(5)]
    if kind == 2:
        assert (of.get(0, "i"), of.get(1, "B")) == (64, 1)
    if kind == 3:
        assert of.get(0, "h") == 2
    assert kind in (2, 3, 5, 6, 13) and (kind == 13) == bool(children)
    return t.text(0), kind, children


def column(field, nodes, buffers, body):
    name, kind, children = field
    n, nulls = nodes.pop(0)

    def take():
        at, size = buffers.pop(0)
        assert at % 8 == 0 and at + size <= len(body)
        return body[at:at + size]

    bit = lambda bits, i: bits[i // 8] >> i % 8 & 1
    mask = take()
    known = [bool(bit(mask, i)) if mask else True for i in range(n)]
    assert known.count(False) == nulls
    if kind == 13:
        inner = {c[0]: column(c, nodes, buffers, body) for c in children}
        values = [{k: v[i] for k, v in inner.items()} for i in range(n)]
    elif kind == 5:
        ends = struct.unpack("<%di" % (n + 1), take())
        text = take()
        assert ends[0] == 0 and list(ends) == sorted(ends) and ends[-1] == len(text)
        values = [text[a:b].decode() for a, b in zip(ends, ends[1:])]
    elif kind == 6:
        bits = take()
        values = [bool(bit(bits, i)) for i in range(n)]
    else:
        values = list(struct.unpack("<%d%s" % (n, "q" if kind == 2 else "d"), take()))
    return [v if k else None for v, k in zip(values, known)]


def rows(path):
    data, at, fields, out, metadata = open(path, "rb").read(), 0, None, [], {}
    while True:
        mark, n = struct.unpack_from("<Ii", data, at)
        assert mark == 0xFFFFFFFF and n % 8 == 0 and at % 8 == 0
        at += 8
        if n == 0:
            assert at == len(data), "bytes after the end"
            return fields, out, metadata
        meta = data[at:at + n]
        root = Table(meta, struct.unpack_from("<I", meta, 0)[0])
        assert root.get(0, "h") == 4
        kind, header, size = root.get(1, "B"), root.table(2), root.get(3, "q")
        body = data[at + n:at + n + size]
        at += n + size
        if kind == 1:
            assert fields is None and size == 0
            fields = [field_of(f) for f in header.tables(1)]
            metadata = {kv.text(0): kv.text(1) for kv in header.tables(2)}
            continue
        assert kind == 3 and fields is not None
        nodes, buffers = header.pairs(1), header.pairs(2)
        columns = {f[0]: column(f, nodes, buffers, body) for f in fields}
        assert not nodes and not buffers
        out += [{k: v[i] for k, v in columns.items()} for i in range(header.get(0, "q"))]


if __name__ == "__main__":
    import json
    for row in rows(sys.argv[1])[1]:
        print(json.dumps(row, ensure_ascii=False))
