"""The figures: which commands are compared, under what, and what must come out.
Subjects take turns within a round, in an order that rotates, so that no one always has the quiet moment."""

import os
import shutil
import struct
import subprocess
import time
from contextlib import closing
from pathlib import Path

from benchlib import kernel
from benchlib.process import (Subject, Unusable, compile_helper, find_program, output_of, running, say, time_to_attach_ns)
from benchlib.report import make_row, missing
from benchlib.workload import Switches, Writes

MB = 1e6
WITHOUT_STACKS = ("runqlat", "biolatency", "drsnoop", "cachestat", "compactsnoop")
WITH_STACKS = ("offcputime",)
QUIET = 0.8  # the workload must make this part of all operations, or the round is taken again


class Bench:
    """What all figures need to know: where the subjects are, how often to measure, where to write."""

    def __init__(self, options, scratch):
        self.options, self.scratch, self.rounds = options, scratch, options.rounds
        self._helpers = {}

    def coretap(self, tool, *args):
        path = Path(self.options.coretap, tool)
        if not path.exists():
            raise Unusable(f"{tool} is not in {self.options.coretap}")
        return Subject("coretap", [str(path), *args])

    def peer(self, tool, *args):
        path = Path(self.options.peer, tool) if self.options.peer else find_program(tool)
        if not path or not os.access(path, os.X_OK):
            raise Unusable(f"no {tool} {'in ' + self.options.peer if self.options.peer else '(package libbpf-tools)'}")
        return Subject("peer", [str(path), *args])

    def helper(self, name, *libraries):
        if name not in self._helpers:
            self._helpers[name] = compile_helper(Path(__file__).with_name(f"{name}.c"), self.scratch, *libraries)
        return self._helpers[name]

    def floor(self, *tracepoints):
        return Subject("floor", [self.helper("empty", "-lbpf"), *tracepoints])

    def available(self, *makers):
        """Those of the subjects that are here, and what became of the others."""
        subjects, notes = [], []
        for maker in makers:
            try:
                subjects.append(maker())
                if subjects[-1].note:
                    notes.append(subjects[-1].note)
            except Unusable as reason:
                notes.append(str(reason))
        return subjects, notes

    def take_turns(self, what, subjects, notes, measure, rounds=None):
        """measure(subject) for all subjects, round by round. A subject that cannot run leaves the race."""
        runs = {subject.label: [] for subject in subjects}
        racing, rounds = list(subjects), rounds or self.rounds
        for number in range(rounds):
            say(f"{what}, round {number + 1} of {rounds}: {', '.join(s.label for s in racing)}")
            for subject in racing[number % len(racing):] + racing[: number % len(racing)] if racing else ():
                try:
                    runs[subject.label].append(measure(subject))
                except Unusable as reason:
                    racing.remove(subject)
                    notes.append(f"{subject.label}: {reason}")
        return runs


# --- cost of the programs in the kernel, and what the workload feels ---------------------------------

def _in_kernel(bench, workload):
    """A measure: ns that a subject's programs take per operation of the machine.

    All operations are counted, not only the workload's: the programs see them all, too."""

    def measure(subject):
        with running(subject, bench.scratch) as pid:
            progs, _ = kernel.held_by(pid)
            if not progs:
                raise Unusable("holds no BPF program")
            workload.run(0.02)  # the first events pay for what later ones find made
            for _ in range(3):
                before = kernel.run_time_ns(progs)
                ran = workload.run()
                spent = kernel.run_time_ns(progs) - before
                if ran.own >= QUIET * ran.operations:
                    break
            return spent / ran.operations

    return measure


def _felt(bench, workload):
    """A measure: the workload's own ns per operation beside a subject."""

    def measure(subject):
        if subject.label == "nothing":
            ran = workload.run()
        else:
            with running(subject, bench.scratch):
                workload.run(0.02)
                ran = workload.run()
        return ran.seconds * 1e9 / ran.own

    return measure


def _cost(bench, figure, workload, subjects, notes):
    """Rounds with the kernel's own clock on, then rounds without it for the workload's."""
    with kernel.RunStats():
        inside = bench.take_turns(f"{figure}, time in the kernel", subjects, notes, _in_kernel(bench, workload))
    felt = {}
    if not bench.options.no_slowdown:
        present = [s for s in subjects if inside[s.label]]
        felt = bench.take_turns(f"{figure}, time of the workload", [Subject("nothing", []), *present], notes, _felt(bench, workload))
    return inside, felt


def _slowdown_row(figure, workload, felt, ours="coretap", theirs="peer"):
    runs = {"coretap": felt.get(ours), "peer": felt.get(theirs), "floor": felt.get("floor"), "nothing": felt.get("nothing")}
    row = make_row(f"{figure}: workload", f"ns/{workload.unit}", {k: v or [] for k, v in runs.items()}, against="nothing")
    if row.medians.get("peer") and row.medians.get("nothing"):
        row.note = f"peer: {row.medians['peer'] / row.medians['nothing']:.2f} x nothing"
    return row


def runqlat(bench):
    name, bar = "runqlat", 0.25
    with closing(Switches()) as workload:
        subjects, notes = bench.available(lambda: bench.coretap(name), lambda: bench.peer(name), lambda: bench.floor("sched_switch"))
        inside, felt = _cost(bench, name, workload, subjects, notes)
    yield make_row(f"{name}: in kernel", "ns/switch", inside, bar=bar, note="; ".join(notes))
    if felt:
        yield _slowdown_row(name, workload, felt)


def offcputime(bench):
    name = "offcputime"

    def kernel_only(subject, label):
        """The same tool without user stacks, where this version can do so."""
        if "--kernel-stacks-only" in output_of([subject.argv[0], "--help"]):
            return Subject(label, [*subject.argv, "-K"])
        raise Unusable(f"{subject.label} has no -K: its default counts")

    with closing(Switches()) as workload:
        subjects, notes = bench.available(
            lambda: bench.coretap(name), lambda: bench.peer(name), lambda: bench.floor("sched_switch"),
            lambda: kernel_only(bench.coretap(name), "coretap -K"))
        extra, k_notes = bench.available(lambda: kernel_only(bench.peer(name), "peer -K"))
        inside, felt = _cost(bench, name, workload, subjects + extra, notes)
    theirs = "peer -K" if extra else "peer"
    in_k = {"coretap": inside.get("coretap -K"), "peer": inside.get(theirs), "floor": inside.get("floor")}
    yield make_row(f"{name}: in kernel", "ns/switch", inside, bar=0.7, note="; ".join(notes))
    yield make_row(f"{name} -K: in kernel", "ns/switch", in_k, bar=0.5, note="; ".join(k_notes))
    if felt:
        yield _slowdown_row(name, workload, felt)
        yield _slowdown_row(f"{name} -K", workload, felt, "coretap -K", theirs)


def biolatency(bench):
    name = "biolatency"
    with closing(Writes(bench.options.io_dir)) as workload:
        subjects, notes = bench.available(lambda: bench.coretap(name), lambda: bench.peer(name),
                                          lambda: bench.floor("block_rq_issue", "block_rq_complete"))
        inside, felt = _cost(bench, name, workload, subjects, notes)
    yield make_row(f"{name}: in kernel", "ns/request", inside, bar=0.7, note="; ".join(notes))
    if felt:
        yield _slowdown_row(name, workload, felt)


# --- memory ------------------------------------------------------------------------------------------

def memory(bench):
    """At rest: attached and idle for a second. PSS parts a shared library among those who use it now, so a
    dynamically linked subject looks smaller beside others; the private part is in --json as well."""
    bar = 2.5
    for tool in (*WITHOUT_STACKS, *WITH_STACKS):
        subjects, notes = bench.available(lambda: bench.coretap(tool), lambda: bench.peer(tool))
        if bench.options.static and any(s.label == "coretap" for s in subjects):
            subjects.append(Subject("static", [bench.options.static, tool]))
        details = {}

        def measure(subject):
            with running(subject, bench.scratch) as pid:
                time.sleep(1)
                details[subject.label] = {key: value * 1024 / MB for key, value in kernel.memory_kb(pid).items()}
                details[subject.label]["maps"] = kernel.held_by(pid)[1] / MB
                return details[subject.label]["pss"]

        runs = bench.take_turns(f"memory of {tool}", subjects, notes, measure, rounds=1)
        must = bar if tool in WITHOUT_STACKS else None
        parts = [f"{label}: peak {d['peak']:.2f}, private {d['private']:.2f}, maps in the kernel {d['maps']:.2f}" for label, d in details.items()]
        yield make_row(f"{tool}: memory at rest", "MB PSS", runs, against="", bar=must, note="; ".join(parts + notes))
        if runs.get("static"):
            yield make_row(f"{tool}: the same, static", "MB PSS", {"coretap": runs["static"]}, against="", bar=must)


# --- time until attached ---------------------------------------------------------------------------

# Newer versions of bpftrace's tool use these tracepoints; older ones use functions that some kernels lack.
_BIOLATENCY_BT = """
BEGIN { printf("Tracing block device I/O... Hit Ctrl-C to end.\\n"); }
tracepoint:block:block_rq_issue { @start[args->dev, args->sector] = nsecs; }
tracepoint:block:block_rq_complete /@start[args->dev, args->sector]/ {
	@usecs = hist((nsecs - @start[args->dev, args->sector]) / 1000);
	delete(@start[args->dev, args->sector]);
}
END { clear(@start); }
"""


def _bpftrace_candidates(bench, tool):
    """bpftrace's own script first; then the same made to load without kernel headers and without kprobes."""
    program, script = find_program("bpftrace"), find_program(f"{tool}.bt")
    if not program:
        raise Unusable("bpftrace is missing (package bpftrace)")
    if not script:
        raise Unusable(f"bpftrace's {tool}.bt is missing")
    adapted = Path(bench.scratch, f"{tool}.bt")
    if tool == "biolatency":
        adapted.write_text(_BIOLATENCY_BT)
    else:
        adapted.write_text(Path(script).read_text().replace("#include <linux/sched.h>", "").replace("TASK_RUNNING", "0"))
    return [
        Subject("bpftrace", [program, script]),
        Subject("bpftrace", [program, str(adapted)], note=f"{tool}.bt as installed does not attach here: adapted"),
    ]


def _bpftrace(bench, tool, helper):
    for candidate in _bpftrace_candidates(bench, tool):
        try:
            time_to_attach_ns(helper, candidate, bench.scratch)
            return candidate
        except Unusable as reason:
            why = reason
    raise Unusable(f"bpftrace: {why}")


def startup(bench):
    """exec to the last attachment. The first start of each is not counted: it reads files from the disk."""
    helper = bench.helper("attached")
    for tool in ("runqlat", "biolatency", "offcputime", "drsnoop", "cachestat"):
        makers = [lambda: bench.coretap(tool), lambda: bench.peer(tool)]
        beside_bpftrace = tool in ("runqlat", "biolatency")
        if beside_bpftrace:
            makers.append(lambda: _bpftrace(bench, tool, helper))
        say(f"start-up of {tool}: first starts")
        subjects, notes = bench.available(*makers)
        for subject in list(subjects):
            try:
                time_to_attach_ns(helper, subject, bench.scratch)
            except Unusable as reason:
                subjects.remove(subject)
                notes.append(f"{subject.label}: {reason}")
        measure = lambda subject: time_to_attach_ns(helper, subject, bench.scratch) / 1e6
        runs = bench.take_turns(f"start-up of {tool}", subjects, notes, measure, rounds=bench.rounds + 2)
        yield make_row(f"{tool}: exec to attached", "ms", runs, bar=1.0, note="; ".join(notes))
        if beside_bpftrace:
            yield make_row(f"{tool}: the same", "ms", {k: v for k, v in runs.items() if k != "peer"}, against="bpftrace", bar=0.15)


# --- size ------------------------------------------------------------------------------------------

def _is_static(path):
    """No program interpreter among the ELF program headers."""
    image = Path(path).read_bytes()
    wide, order = image[4] == 2, "<" if image[5] == 1 else ">"
    table, = struct.unpack_from(order + ("Q" if wide else "I"), image, 32 if wide else 28)
    size, count = struct.unpack_from(order + "HH", image, 54 if wide else 42)
    return all(struct.unpack_from(order + "I", image, table + i * size)[0] != 3 for i in range(count))


def size(bench):
    figure, unit, bar = "static executable, stripped", "MB", 6
    if not bench.options.static:
        yield missing(figure, unit, "no static executable: build one with -DCORETAP_STATIC=ON and name it by --static", "", bar)
        return
    if not _is_static(bench.options.static):
        yield missing(figure, unit, f"{bench.options.static} is not static", "", bar)
        return
    stripped = Path(bench.scratch, "stripped")
    shutil.copy(bench.options.static, stripped)
    subprocess.run([find_program("strip") or "strip", stripped], check=True)
    yield make_row(figure, unit, {"coretap": [stripped.stat().st_size / MB]}, against="", bar=bar)


FIGURES = {
    "runqlat": (runqlat, "ns per context switch, and the slowdown"),
    "offcputime": (offcputime, "the same, by default and with -K"),
    "biolatency": (biolatency, "ns per request, and the slowdown"),
    "memory": (memory, "at rest, at its peak, and in the kernel's maps"),
    "startup": (startup, "exec to attached"),
    "size": (size, "the static executable"),
}
