// An independent reader of protobuf and of profiles in pprof's format.
#pragma once

#include "harness.hpp"

namespace coretap::tooltest {

/// Members of a message by number.
inline const std::string kProtobuf = R"py(
import gzip, json, struct, sys

def varint(b, at):
    n = shift = 0
    while True:
        n |= (b[at] & 127) << shift
        shift += 7
        at += 1
        if b[at - 1] < 128:
            return n, at

def members(b):
    at, all = 0, {}
    while at < len(b):
        tag, at = varint(b, at)
        if tag & 7 == 0:
            value, at = varint(b, at)
        else:
            size, at = varint(b, at) if tag & 7 == 2 else ({1: 8, 5: 4}[tag & 7], at)
            assert at + size <= len(b)
            value, at = b[at:at + size], at + size
        all.setdefault(tag >> 3, []).append(value)
    return all

def packed(b):
    at, all = 0, []
    while at < len(b):
        n, at = varint(b, at)
        all.append(n)
    return all
)py";

inline const std::string kReadProfile = kProtobuf + R"py(
p = members(gzip.open(sys.argv[1]).read())
text = [t.decode() for t in p[6]]
one = lambda m, n: m.get(n, [0])[0]
named = lambda n: {one(m, 1): m for m in map(members, p.get(n, []))}
mappings, locations, functions = named(3), named(4), named(5)

def frame(id):
    l = locations[id]
    m = mappings.get(one(l, 2), {})
    lines = [members(b) for b in l.get(4, [])]
    name = text[one(functions[one(lines[0], 1)], 2)] if lines else ""
    address = one(l, 3)
    inside = one(m, 2) <= address < one(m, 3)
    return {"name": name, "file": text[one(m, 5)], "build_id": text[one(m, 6)],
            "offset": address - one(m, 2) + one(m, 4) if inside else 0}

samples = []
for m in map(members, p.get(2, [])):
    labels = {}
    for l in map(members, m.get(3, [])):
        labels[text[one(l, 1)]] = text[one(l, 2)] or one(l, 3)
    samples.append({"frames": [frame(id) for id in packed(one(m, 1) or b"")],
                    "values": packed(m[2][0]), "comm": labels["comm"], "pid": labels.get("pid", 0)})
print(json.dumps({"types": ["/".join(text[one(t, n)] for n in (1, 2)) for t in map(members, p[1])],
                  "samples": samples, "period": one(p, 12), "lasted": one(p, 10),
                  "comments": [text[n] for n in packed(one(p, 13) or b"")]}))
)py";

/// The types of a profile's values, its samples with their frames and labels, and its comments.
inline Json read_profile(const std::string& path) { return read_by_python(kReadProfile, path); }

}  // namespace coretap::tooltest
