// An independent importer of Perfetto's traces: does what trace_processor does with them, and
// asserts what it counts as errors. Written from the importers' source, not from the writer.
#pragma once

#include "harness.hpp"
#include "profile_reader.hpp"

namespace coretap::tooltest {

inline const std::string kReadTrace = kProtobuf + R"py(
def text(b):
    s = b.decode()  # UTF-8
    assert all(c >= " " for c in s), s
    return s

one = lambda m, n, otherwise=0: m.get(n, [otherwise])[0]
STATES = [(1, "S"), (2, "D"), (4, "T"), (8, "t"), (0x10, "X"), (0x20, "Z"), (0x40, "P"), (0x80, "I")]

snapshots, release = [], None
threads, processes, tracks, cpus = {}, {}, {}, {}
events, sched = [], []
# What packets refer to is of their sequence: each tool of a file has one.
class Sequence:
    def __init__(self):
        self.names, self.arguments, self.categories, self.texts, self.valid, self.clock = {}, {}, {}, {}, False, 6

sequences = {}
for bytes in members(gzip.open(sys.argv[1]).read())[1]:
    p = members(bytes)
    assert one(p, 10), "packets have a sequence"
    seq = sequences.setdefault(one(p, 10), Sequence())
    flags = one(p, 13)
    if flags & 1:
        seq.__init__()
        seq.valid = True
    if 59 in p:
        seq.clock = one(members(p[59][0]), 58, 6)
    if flags & 2:
        assert seq.valid, "it needs state that was never begun"
    for i in map(members, p.get(12, [])):
        for number, table in ((1, seq.categories), (2, seq.names), (3, seq.arguments), (29, seq.texts)):
            for e in map(members, i.get(number, [])):
                assert one(e, 1) not in table, "interned twice"
                table[one(e, 1)] = text(one(e, 2, b""))
    if 6 in p:
        clocks = {one(c, 1): one(c, 2) for c in map(members, members(p[6][0])[1])}
        assert set(clocks) == {1, 3, 6} and one(members(p[6][0]), 2) == 6
        snapshots.append(clocks)
    assert snapshots, "the first packet has the clocks"
    offset = snapshots[-1][6] - snapshots[-1][3]
    if 45 in p:
        release = text(members(members(p[45][0])[1][0])[3][0])
    for tree in map(members, p.get(2, [])):
        for m in map(members, tree.get(1, [])):
            processes[one(m, 1)] = {"name": text(one(m, 3, b"")), "ppid": one(m, 2)}
        for m in map(members, tree.get(2, [])):
            threads[one(m, 1)] = {"tgid": one(m, 3), "name": text(one(m, 2, b""))}
    if 60 in p:
        t = members(p[60][0])
        track = {"name": text(one(t, 2, b""))}
        if 4 in t:
            track["pid"], track["tid"] = (one(members(t[4][0]), n) for n in (1, 2))
        if 3 in t:
            process = members(t[3][0])
            track["pid"] = one(process, 1)
            if 6 in process:  # the first name stays
                processes.setdefault(one(process, 1), {"name": text(process[6][0]), "ppid": 0})
        if 5 in t:
            assert one(t, 5) in tracks, "a track without its parent"
            track["parent"] = one(t, 5)
            assert "parent" not in tracks[one(t, 5)]
            track.update((k, tracks[one(t, 5)][k]) for k in ("pid", "tid") if k in tracks[one(t, 5)])
        assert tracks.get(one(t, 1), track) == track, "a track changes"
        tracks[one(t, 1)] = track
    if 11 in p:
        e = members(p[11][0])
        assert one(e, 11) in tracks, "an event without track"
        assert seq.clock == 3
        args = {}
        for a in map(members, e.get(4, [])):
            name = seq.arguments[one(a, 1)]
            kind, value = [(n, v[0]) for n, v in a.items() if n != 1][0]
            assert len(a) == 2 and name not in args, name
            if kind == 17:
                value = seq.texts[value]
            elif kind == 6:
                value = text(value)
            elif kind == 5:
                value = struct.unpack("<d", value)[0]
            elif kind == 2:
                value = bool(value)
            else:
                assert kind in (3, 4, 7), kind
                if kind == 4:
                    value -= value >> 63 << 64
            args[name] = value
        events.append({"ts": one(p, 8) + offset, "type": one(e, 9), "track": one(e, 11),
                       "name": seq.names[one(e, 10)] if 10 in e else None, "args": args,
                       "category": seq.categories[one(e, 3)] if 3 in e else "",
                       "flows": [struct.unpack("<Q", f)[0] for f in e.get(47, [])],
                       "ends": [struct.unpack("<Q", f)[0] for f in e.get(48, [])]})
    if 1 in p:
        bundle = members(p[1][0])
        cpu = one(bundle, 1)
        assert cpu < 1024
        c = members(bundle[4][0])
        table = [text(n) for n in c.get(5, [])]
        columns = {n: packed(one(c, n, b"")) for n in (1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12)}
        for group in ((1, 2, 3, 4, 6), (7, 8, 9, 10, 11, 12)):
            assert len({len(columns[n]) for n in group}) == 1, "columns differ in length"
        ts = 0
        for dt, state, pid, prio, name in zip(*(columns[n] for n in (1, 2, 3, 4, 6))):
            ts += dt
            sched.append((ts, len(sched), cpu, "switch", state, pid, table[name], 0))
        ts = 0
        for dt, pid, target, prio, name, flags in zip(*(columns[n] for n in (7, 8, 9, 10, 11, 12))):
            ts += dt
            sched.append((ts, len(sched), cpu, "waking", target, pid, table[name], flags))
assert release, "without the release the states have other meanings"

# Slices of a track nest.
events.sort(key=lambda e: e["ts"])
slices, open_slices, flows, ended = [], {}, {}, set()
for e in events:
    stack = open_slices.setdefault(e["track"], [])
    for f in e["flows"] + e["ends"]:
        assert f not in ended, "a flow goes on after its end"
        flows.setdefault(f, []).append(e["name"])
    ended.update(e["ends"])
    if e["type"] == 2:
        s = stack.pop()
        s["dur"] = e["ts"] - s["ts"]
    elif e["type"] in (1, 3):
        s = dict(tracks[e["track"]], track=tracks[e["track"]]["name"], slice=e["name"], ts=e["ts"], dur=0,
                 depth=len(stack), args=e["args"], category=e["category"], flows=e["flows"] + e["ends"], instant=e["type"] == 3)
        s.pop("name")
        slices.append(s)
        if e["type"] == 1:
            stack.append(s)
assert not any(open_slices.values()), "slices without end"
assert set(flows) == ended and all(len(f) >= 2 for f in flows.values()), "flows that lead nowhere"

# What CPUs run, and states of threads.
sched.sort(key=lambda e: e[:2])
running, waits, runs, wakes, names_of, out = {}, {}, [], [], {}, 0
for ts, _, cpu, kind, what, pid, name, flags in sched:
    if kind == "switch":
        before = running.get(cpu)
        if before and before["counts"]:
            before["end"], before["state"] = ts, what
            runs.append(before)
            if not what & 0x1ff:
                assert what in (0, 0x200), hex(what)
        if before:
            waits[before["tid"]] = what
        for other, r in running.items():
            if other != cpu and pid and r["tid"] == pid and r["counts"]:
                out += 1  # on two CPUs at once
        running[cpu] = {"cpu": cpu, "tid": pid, "name": name, "begin": ts, "counts": bool(before)}
        waits.pop(pid, None)
        names_of[pid] = name
    elif cpu in running:
        wakes.append({"ts": ts, "tid": pid, "name": name, "cpu": cpu, "target": what, "flags": flags,
                      "waker": running[cpu]["tid"], "blocked": waits.get(pid, -1)})
        if pid in waits:
            waits[pid] = 0
    else:
        assert False, "a wakeup before the first switch of its CPU"
last = max([e[0] for e in sched], default=0)
for r in running.values():
    if r["counts"]:
        runs.append(dict(r, end=last, state=-1))
on_cpu, tids = {}, set()
for r in runs:
    assert r["end"] >= r["begin"]
    on_cpu[r["tid"]] = on_cpu.get(r["tid"], 0) + r["end"] - r["begin"]
    tids.add(r["tid"])
lost = [s for s in slices if s["track"] == "coretap: lost"]
print(json.dumps({
    "release": release, "boot_ahead": snapshots[0][6] - snapshots[0][3], "snapshots": len(snapshots), "twice": out,
    "unknown": sorted(t for t in tids if t and t not in threads and t < 1 << 22),
    "threads": [dict(v, tid=k) for k, v in threads.items()],
    "processes": [dict(v, pid=k) for k, v in processes.items()],
    "on_cpu": [{"tid": k, "ns": v, "name": names_of[k]} for k, v in on_cpu.items()],
    "runs": [r for r in runs if len(sys.argv) < 3 or r["tid"] in map(int, sys.argv[2].split(","))],
    "run_count": len(runs), "switches": sum(e[3] == "switch" for e in sched), "begun": len(running),
    "wakes": [w for w in wakes if len(sys.argv) < 3 or w["tid"] in map(int, sys.argv[2].split(","))],
    "wake_count": len(wakes), "slices": slices, "first": min([e[0] for e in sched], default=0), "last": last}))
)py";

/// The trace in such a file. Fails the test if it is not as importers expect it.
inline Json read_trace(const std::string& path) { return read_by_python(kReadTrace, path); }

}  // namespace coretap::tooltest
