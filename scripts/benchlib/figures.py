"""The figures: the compared commands, their workload, and the required results.
Subjects take turns within a round, in rotating order, so that none always gets the quietest moment."""

import json
import os
import re
import shutil
import subprocess
import time
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path

import budget
from benchlib import fleet, kernel, unwinding
from benchlib.process import (Subject, Unusable, compile_helper, find_program, log_of, output_of, running, say,
                              time_to_attach_ns, time_to_say_ns)
from benchlib.report import make_row, missing
from benchlib.traced import started
from benchlib.workload import (Busy, Bytes, Calls, Contention, Datagrams, Execs, Files, Hits, Interrupts, Kills, Lives, Opens,
                               Reads, Rounds, Switches, Waits, Web, Writes, cgroup, program)
from elffile import is_static

MB = 1e6
WORKLOADS = Path(__file__).resolve().parents[2] / "tests/workload"
QUIET = 0.8  # minimum share of the workload in all operations, otherwise the round is repeated


def _hooks_of(argv):
    said = (json.loads(line) for line in output_of([*argv, "--explain", "--json"]).splitlines() if line.startswith("{"))
    used = (way for hook in said if hook["type"] == "hook" for way in hook["candidates"] if way["used"])
    for point in (point for way in used for point in way["attach_points"]):
        kind, _, names = point.partition("/")
        if kind != "tracepoint":
            yield point
            continue
        group, _, events = names.partition("/")
        for event in events.split(","):  # a kernel may lack the newest calls
            if Path("/sys/kernel/tracing/events", group, event).is_dir():
                yield f"{group}/{event}"


class Bench:
    """Common data of all figures: the subjects' paths, the numbers of measurements, the output."""

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

    def helper(self, name, *libraries, folder=Path(__file__).parent, target=None):
        target = target or name
        if target not in self._helpers:
            self._helpers[target] = compile_helper(Path(folder, f"{name}.c"), Path(self.scratch, target), *libraries)
        return self._helpers[target]

    def workload(self, name):
        return self.helper(name, "-pthread", folder=WORKLOADS)

    def floor(self, *hooks):
        return Subject("floor", [self.helper("empty", "-lbpf"), *hooks])

    def floor_of(self, *subjects):
        """The floor on the hooks that coretap's tools report for this kernel."""
        hooks = [hook for subject in subjects for hook in _hooks_of(subject.argv)]
        if not hooks:
            raise Unusable("floor: coretap has no hooks here")
        return self.floor(*hooks)

    def available(self, *makers):
        """The available subjects, and the reasons why others are missing. With --against the older coretap is the peer of
        each that is coretap; others are left out."""
        subjects, notes = [], []
        for maker in makers:
            try:
                subject = maker()
                older = self.options.against
                if older and not subject.label.startswith("coretap"):
                    continue
                subjects.append(subject)
                if older:
                    subjects.append(subject.by(older))
                if subject.note:
                    notes.append(subject.note)
            except Unusable as reason:
                if not self.options.against:
                    notes.append(str(reason))
        return subjects, notes

    def take_turns(self, what, subjects, notes, measure, rounds=None):
        """measure(subject) for all subjects, round by round. A subject that cannot run is left out from then on."""
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


# --- cost of the programs in the kernel, and for the workload ------------------------------------------

def _in_kernel(bench, workload):
    """A measure: ns of a subject's programs per operation of the machine.

    All operations count, not only the workload's: the programs see them all, too."""

    def measure(subject):
        with running(subject, bench.scratch) as pids:
            progs, _ = kernel.held_by(pids)
            if not progs:
                raise Unusable("holds no BPF program")
            workload.run(0.02)  # the first events pay for initialisation
            for _ in range(3):
                before = kernel.run_stats(progs)
                ran = workload.run()
                spent, seen = (now - then for now, then in zip(kernel.run_stats(progs), before))
                if ran.operations is None or ran.own >= QUIET * ran.operations:
                    break
            return spent / max(1, seen if ran.operations is None else ran.operations)

    return measure


def _felt(bench, workload):
    """A measure: the workload's ns per operation while a subject runs."""

    def measure(subject):
        if subject.label == "nothing":
            ran = workload.run()
        else:
            with running(subject, bench.scratch):
                workload.run(0.02)
                ran = workload.run()
        return ran.seconds * 1e9 / ran.own

    return measure


def _cost(bench, figure, workload, subjects, notes, feel=_felt):
    """Rounds with the kernel's run time statistics on, then rounds without for `feel`."""
    with kernel.RunStats():
        inside = bench.take_turns(f"{figure}, time in the kernel", subjects, notes, _in_kernel(bench, workload))
    felt = {}
    if not bench.options.no_slowdown:
        present = [s for s in subjects if inside[s.label]]
        felt = bench.take_turns(f"{figure}, time of the workload", [Subject("nothing", []), *present], notes, feel(bench, workload))
    return inside, felt


def _slowdown_row(figure, workload, felt, ours="coretap", theirs="peer", bar=None):
    runs = {"coretap": felt.get(ours), "peer": felt.get(theirs), "floor": felt.get("floor"), "nothing": felt.get("nothing")}
    row = make_row(f"{figure}: workload", f"ns/{workload.unit}", {k: v or [] for k, v in runs.items()}, against="nothing", bar=bar)
    if row.medians.get("peer") and row.medians.get("nothing"):
        row.note = f"peer: {row.medians['peer'] / row.medians['nothing']:.2f} x nothing"
    return row


def _floor(bench, hooks, tool, *args):
    return bench.floor(*hooks) if hooks else bench.floor_of(bench.coretap(tool, *args))


def _beside_peer(bench, tool, workload, hooks, bar, *args, peer=None, unit=None, slowdown=None, above=None):
    """The measures of most tools: in the kernel against the peer and the floor; the workload against no tracer."""
    figure = " ".join((tool, *args))
    with closing(workload):
        subjects, notes = bench.available(lambda: bench.coretap(tool, *args), peer or (lambda: bench.peer(tool, *args)),
                                          lambda: _floor(bench, hooks, tool, *args))
        inside, felt = _cost(bench, figure, workload, subjects, notes)
    yield make_row(f"{figure}: in kernel", f"ns/{unit or workload.unit}", inside, bar=bar, note="; ".join(notes), above=above)
    if felt:
        yield _slowdown_row(figure, workload, felt, bar=slowdown)


CHEAP = {"bar": 0.6, "above": 60}  # relative to the peer, or ns above the floor: the limits of most tools


def _cheap(bench, tool, workload, *args):
    return _beside_peer(bench, tool, workload, None, CHEAP["bar"], *args, above=CHEAP["above"])


def runqlat(bench):
    return _beside_peer(bench, "runqlat", Switches(), ["sched_switch"], 0.25)


def runqslower(bench):
    return _beside_peer(bench, "runqslower", Switches(), ["sched_switch"], 0.6)


def cpudist(bench):
    return _beside_peer(bench, "cpudist", Switches(), ["sched_switch"], 0.6)


def softirqs(bench):
    return _beside_peer(bench, "softirqs", Datagrams(), ["softirq_entry", "softirq_exit"], 0.6)


def hardirqs(bench):
    hooks = ["irq_handler_entry", "irq_handler_exit"]
    return _beside_peer(bench, "hardirqs", Interrupts(bench.options.io_dir), hooks, 0.6)


def biolatency(bench):
    return _beside_peer(bench, "biolatency", Writes(bench.options.io_dir), ["block_rq_issue", "block_rq_complete"], 0.6)


def biosnoop(bench):
    hooks = ["block_io_start", "block_rq_issue", "block_rq_complete"]
    return _beside_peer(bench, "biosnoop", Writes(bench.options.io_dir), hooks, 0.4)


def slabratetop(bench):
    """An open allocates two or three objects."""
    hooks = ["kmem_cache_alloc", "kmalloc"]
    return _beside_peer(bench, "slabratetop", Opens(bench.workload("opener")), hooks, 0.6)


def syscount(bench):
    yield from _beside_peer(bench, "syscount", Calls(), ["sys_exit"], 0.8)
    yield from _beside_peer(bench, "syscount", Calls(), ["sys_enter", "sys_exit"], 0.8, "-L")


def fsdist(bench):
    """Calls that are not operations of a file system count, too: dd makes one for each read."""
    workload = Reads(bench.options.io_dir)
    return _beside_peer(bench, "fsdist", workload, ["sys_enter", "sys_exit"], 0.6, "-t", workload.file_system)


def futexctn(bench):
    """The peer's stacks need frame pointers."""
    hooks = ["syscalls/sys_enter_futex", "syscalls/sys_exit_futex"]
    peer = lambda: bench.peer("futexctn")
    for args in ((), ("--unwind", "fp")):
        yield from _beside_peer(bench, "futexctn", Waits(bench.workload("waiter")), hooks, 0.6, *args, peer=peer)


def klockstat(bench):
    hooks = ["contention_begin", "contention_end"]
    return _beside_peer(bench, "klockstat", Contention(bench.workload("contender")), hooks, 0.6)


def oomkill(bench):
    return _beside_peer(bench, "oomkill", Kills(bench.workload("reclaim")), ["signal_generate", "mark_victim"], 0.6)


def sigsnoop(bench):
    return _beside_peer(bench, "sigsnoop", Rounds(bench.workload("signals"), "calls", "call", 2000), ["signal_generate"], 0.6)


def capable(bench):
    hooks = ["cap_capable"]
    return _beside_peer(bench, "capable", Rounds(bench.workload("privileged"), "checks", "check", 20_000), hooks, 0.6)


def solisten(bench):
    hooks = ["syscalls/sys_enter_listen", "syscalls/sys_exit_listen"]
    return _beside_peer(bench, "solisten", Rounds(bench.workload("sockets"), "listen_calls", "call", 2000), hooks, 0.6)


def bindsnoop(bench):
    hooks = ["syscalls/sys_enter_bind", "syscalls/sys_exit_bind"]
    return _beside_peer(bench, "bindsnoop", Rounds(bench.workload("sockets"), "bind_calls", "call", 2000), hooks, 0.6)


def biopattern(bench):
    return _cheap(bench, "biopattern", Writes(bench.options.io_dir))


def biostacks(bench):
    return _cheap(bench, "biostacks", Writes(bench.options.io_dir))


def bitesize(bench):
    return _cheap(bench, "bitesize", Writes(bench.options.io_dir))


def biotop(bench):
    return _cheap(bench, "biotop", Writes(bench.options.io_dir))


def filelife(bench):
    return _cheap(bench, "filelife", Lives(bench.scratch))


def filetop(bench):
    return _cheap(bench, "filetop", Reads(bench.options.io_dir))


def fsslower(bench):
    """None of the reads is slow: rejecting events must be cheap."""
    workload = Reads(bench.options.io_dir)
    return _cheap(bench, "fsslower", workload, "-t", workload.file_system)


def vfsstat(bench):
    """dd writes each byte that it reads, and that counts, too."""
    return _cheap(bench, "vfsstat", Reads(bench.options.io_dir))


def mountsnoop(bench):
    return _cheap(bench, "mountsnoop", Rounds(bench.workload("mounts"), "unmounts", "call", 50_000, "--unmounts"))


def _sessions(bench):
    """The kernel chooses the clients' ports, as for most programs."""
    more = ["--unbound", "--client-bytes", "100", "--server-bytes", "1000"]
    return Rounds(bench.workload("tcp"), "client_ports", "session", 5_000, "--sessions", more)


def tcpconnect(bench):
    return _cheap(bench, "tcpconnect", _sessions(bench))


def tcpaccept(bench):
    return _cheap(bench, "tcpaccept", _sessions(bench))


def tcpconnlat(bench):
    return _cheap(bench, "tcpconnlat", _sessions(bench))


def tcpstates(bench):
    """A session is about ten state changes, over both ends."""
    return _cheap(bench, "tcpstates", _sessions(bench))


def tcprtt(bench):
    """A message is a segment, and its acknowledgement another one."""
    return _cheap(bench, "tcprtt", Rounds(bench.workload("tcpio"), "messages", "message", 50_000, "--messages"))


def tcptop(bench):
    """Calls that send or receive."""
    return _cheap(bench, "tcptop", Rounds(bench.workload("tcpio"), "calls", "call", 25_000, "--messages"))


def profile(bench):
    return _beside_peer(bench, "profile", Busy(), ["99"], 1.0, "-F", "99", unit="sample", slowdown=1.01)


def offwaketime(bench):
    """Against both tools that it replaces, running together."""

    def both():
        pair = bench.peer("offcputime")
        return Subject(pair.label, pair.argv, "the peer: offcputime and wakeuptime at once", [bench.peer("wakeuptime").argv])

    return _beside_peer(bench, "offwaketime", Switches(), ["sched_switch", "sched_waking"], 1.0, peer=both)


def offcputime(bench):
    name = "offcputime"

    def kernel_only(subject, label):
        """The same tool without user stacks, if this version has the option."""
        if "--kernel-stacks-only" in output_of([*subject.argv, "--help"]):
            return Subject(label, [*subject.argv, "-K"])
        raise Unusable(f"{subject.label} has no -K: its default counts")

    with closing(Switches()) as workload:
        subjects, notes = bench.available(
            lambda: bench.coretap(name), lambda: bench.peer(name), lambda: bench.floor("sched_switch"),
            lambda: kernel_only(bench.coretap(name), "coretap -K"))
        extra, k_notes = bench.available(lambda: kernel_only(bench.peer(name), "peer -K"))
        inside, felt = _cost(bench, name, workload, subjects + extra, notes)
    theirs = "peer -K" if "peer -K" in inside else "peer"
    in_k = {"coretap": inside.get("coretap -K"), "peer": inside.get(theirs), "floor": inside.get("floor")}
    yield make_row(f"{name}: in kernel", "ns/switch", inside, bar=0.7, note="; ".join(notes))
    yield make_row(f"{name} -K: in kernel", "ns/switch", in_k, bar=0.5, note="; ".join(k_notes))
    if felt:
        yield _slowdown_row(name, workload, felt)
        yield _slowdown_row(f"{name} -K", workload, felt, "coretap -K", theirs)


# --- events: none may be lost ------------------------------------------------------------------------

def _lost(log):
    """Events that a tracer reports as lost: from coretap's ledger, or the peer's messages."""
    said = re.findall(r"^ +(\d+)  (?:lost|not tracked|missed)\b|[Ll]ost (\d+) events", log.read_text(errors="replace"), re.M)
    return sum(int(a or b) for a, b in said)


def _delivered(bench, workload):
    """A measure: the workload's ns per operation, its operations missing in the tracer's file, the tracer's own report."""

    def measure(subject):
        if subject.label == "nothing":
            ran = workload.run()
            return ran.seconds * 1e9 / ran.own, 0, 0
        with running(subject, bench.scratch):
            made = workload.run(0.02).own
            ran = workload.run()
            made += ran.own
        log = log_of(bench.scratch)
        with log.open(errors="replace") as lines:
            shown = sum(bool(re.search(workload.shown, line)) for line in lines)
        return ran.seconds * 1e9 / ran.own, abs(made - shown), _lost(log)

    return measure


def _events(bench, tool, workload, hooks, bar, slowdown=None, above=None):
    """A tool that prints a line for each event: its cost, and whether all lines arrive when it writes to a file."""
    subjects, notes = bench.available(lambda: bench.coretap(tool), lambda: bench.peer(tool), lambda: _floor(bench, hooks, tool))
    inside, felt = _cost(bench, tool, workload, subjects, notes, _delivered)
    yield make_row(f"{tool}: in kernel", f"ns/{workload.unit}", inside, bar=bar, note="; ".join(notes), above=above)
    if not felt:
        return
    ns, lacking, told = ({label: [run[i] for run in runs] for label, runs in felt.items()} for i in range(3))
    yield make_row(f"{tool}: workload", f"ns/{workload.unit}", ns, beyond="nothing", bar=slowdown)
    tracers = {label: [max(pair) for pair in zip(lacking[label], told[label])] for label in ("coretap", "peer") if lacking.get(label)}
    note = "; ".join(f"{label} says {sum(told[label])} lost in {len(told[label])} runs" for label in tracers)
    yield make_row(f"{tool}: lost", f"{workload.unit}s", tracers, against="", bar=0, note=note)


def opensnoop(bench):
    hooks = ["syscalls/sys_enter_openat", "syscalls/sys_exit_openat"]
    return _events(bench, "opensnoop", Opens(bench.workload("opener")), hooks, 0.12, slowdown=0.35)


def execsnoop(bench):
    return _events(bench, "execsnoop", Execs(bench.scratch), ["sched_process_exec"], 0.5)


def exitsnoop(bench):
    return _events(bench, "exitsnoop", Execs(bench.scratch), ["sched_process_exit"], 0.6)


def statsnoop(bench):
    workload = Rounds(bench.workload("filecalls"), "stats", "look", 300_000, "--stats", shown=r"\bfilecalls\b.*/proc/self/comm$")
    return _events(bench, "statsnoop", workload, None, **CHEAP)


def dcsnoop(bench):
    """Each name is new, so that none is in the cache. libbpf-tools has no such tool."""
    workload = Rounds(bench.workload("lookups"), "absent", "look-up", 300_000, "--absent", shown=r"\blookups\b.*\babsent-\d+$")
    return _events(bench, "dcsnoop", workload, None, None)


# --- any function: named on the command line --------------------------------------------------------

@dataclass
class _Target:
    """A traced target, as arguments of coretap and of bpftrace, and the hooks for the floor."""

    name: str
    word: str
    probe: str
    hooks: list  # at the entry, and at the return
    reads: bool = True  # the workload reads for each hit
    filtered: tuple = ()  # a filter that rejects everything, and two fields: for coretap, for bpftrace

    def workload(self, bench, count=100_000, shown=None):
        return Hits(bench.workload("hits"), count, ["--reads"] if self.reads else [], shown)


def _user_function(bench):
    hits = bench.workload("hits")
    offset = json.loads(output_of([hits, "--where"]).splitlines()[-1])["offset"]
    return _Target("user function", f"{hits}:hit", f"uprobe:{hits}:hit",
                   [f"{kind}/{hits}+{offset}" for kind in ("uprobe", "uretprobe")], False,
                   ('(arg2 > 100000000) "%d %d", arg1, arg2', '/arg1 > 100000000/ { printf("%d %d\\n", arg0, arg1); }'))


def _kernel_function():
    """By multi-kprobe links, if the kernel has them."""
    multi = ".multi" if "kprobe_multi" in Path("/proc/kallsyms").read_text() else ""
    return _Target("kernel function", "vfs_read", "kprobe:vfs_read",
                   [f"{kind}{multi}/vfs_read" for kind in ("kprobe", "kretprobe")],
                   filtered=('(count > 100000000) "%d %d", count, pos', '/arg2 > 100000000/ { printf("%d %d\\n", arg2, arg3); }'))


def _system_call():
    word = "t:syscalls:sys_enter_read"
    return _Target("system call", word, word.replace("t:", "tracepoint:", 1), ["tp_btf/sys_enter"],
                   filtered=('(args->count > 100000000) "%d %d", args->fd, args->count',
                             '/args->count > 100000000/ { printf("%d %d\\n", args->fd, args->count); }'))


def _tracepoint(hook):
    """It has its own fields, and fires at each system call."""
    word = "t:raw_syscalls:sys_enter"
    return _Target("tracepoint", word, word.replace("t:", "tracepoint:", 1), [hook],
                   filtered=('(args->id > 100000) "%d %d", args->id, args->args[0]',
                             '/args->id > 100000/ { printf("%d %d\\n", args->id, args->args[0]); }'))


def _bpftrace_of(*words):
    path = find_program("bpftrace")
    if not path:
        raise Unusable("bpftrace is missing (package bpftrace)")
    return Subject("bpftrace", [path, *words])


def _bcc_trace(*words):
    path = find_program("trace-bpfcc") or shutil.which("/usr/share/bcc/tools/trace")
    if not path:
        raise Unusable("bcc's trace is missing (package bpfcc-tools)")
    return Subject("bcc", ["env", "PYTHONUNBUFFERED=1", path, *words])


def _on(bench, tool, target, makers, hooks, unit="hit", **bars):
    """In the kernel against the floor and others; the workload, too."""
    figure, workload = f"{tool} of a {target.name}", target.workload(bench)
    subjects, notes = bench.available(*makers, lambda: bench.floor(*hooks))
    inside, felt = _cost(bench, figure, workload, subjects, notes)
    yield make_row(f"{figure}: in kernel", f"ns/{unit}", inside, note="; ".join(notes), **bars)
    if felt.get("coretap"):
        yield make_row(f"{figure}: workload", f"ns/{unit}", felt, against="floor")


def funccount(bench):
    for target in (_user_function(bench), _kernel_function(), _tracepoint("raw_tp/sys_enter")):
        makers = [lambda: bench.coretap("funccount", target.word), lambda: _bpftrace_of("-e", target.probe + " { @ = count(); }")]
        yield from _on(bench, "funccount", target, makers, target.hooks[:1], against="floor", bar=1.1)


def funclatency(bench):
    """libbpf-tools accept FILE:FUNCTION for a user function, too."""
    for target in (_user_function(bench), _kernel_function()):
        makers = [lambda: bench.coretap("funclatency", target.word), lambda: bench.peer("funclatency", target.word)]
        yield from _on(bench, "funclatency", target, makers, target.hooks, unit="call", bar=0.7)


def trace(bench):
    yield from _rejected(bench)
    yield from _first_line(bench)
    yield from _all_lines(bench)


def _rejected(bench):
    """Two fields and a filter that rejects all hits."""
    for target in (_user_function(bench), _kernel_function(), _system_call(), _tracepoint("raw_syscalls/sys_enter")):
        ours, theirs = target.filtered
        makers = [lambda: bench.coretap("trace", f"{target.word} {ours}"), lambda: _bpftrace_of("-e", f"{target.probe} {theirs}")]
        yield from _on(bench, "trace", target, makers, target.hooks[:1], against="bpftrace", above=30)


def _first_line(bench):
    """From exec to the first line about one of the calls that a program makes every millisecond."""
    target = _user_function(bench)
    command = [bench.workload("hits"), "--sleep-us", "1000", "--count", str(10**9)]
    makers = [lambda: bench.coretap("trace", f'{target.word} "seen %d", arg1'),
              lambda: _bpftrace_of("-B", "line", "-e", target.probe + ' { printf("seen %d\\n", arg0); }'),
              lambda: _bcc_trace(f'p:{target.word} "seen %d", arg1')]
    subjects, notes = bench.available(*makers)
    with started(command):
        for subject in list(subjects):  # the first start reads files from the disk
            try:
                time_to_say_ns(subject, rb"seen \d+\n", bench.scratch)
            except Unusable as reason:
                subjects.remove(subject)
                notes.append(f"{subject.label}: {reason}")
        measure = lambda subject: time_to_say_ns(subject, rb"seen \d+\n", bench.scratch) / 1e6
        runs = bench.take_turns("trace: exec to first line", subjects, notes, measure, rounds=bench.rounds + 2)
    yield make_row("trace: exec to first line", "ms", runs, against="", bar=60, note="; ".join(notes))


def _all_lines(bench):
    """300,000 calls in a row, a line each, to a file. The program's start reads more than a byte at once."""
    for target, value, only in ((_user_function(bench), "arg1", ""), (_kernel_function(), "count", "count == 1 && "),
                                (_system_call(), "args->count", "args->count == 1 && ")):
        workload = target.workload(bench, 300_000, r"\bhits\b.*\bthis: \d+$")
        subjects, notes = bench.available(
            lambda: bench.coretap("trace", f'{target.word} ({only}STREQ("hits", $comm)) "this: %d", {value}'))
        runs = bench.take_turns(f"trace of a {target.name}: lost", subjects, notes, _delivered(bench, workload))
        lost = {label: [max(run[1:]) for run in all_runs] for label, all_runs in runs.items()}
        yield make_row(f"trace of a {target.name}: lost", "hits", lost, against="", bar=0, note="; ".join(notes))


# --- tools that run together: effect on a server ------------------------------------------------

def web(bench):
    """Three TCP tools at once. Many short turns, because the effect is small."""

    def together(make):
        first, *others = (make(tool) for tool in ("tcptop", "tcplife", "tcpstates"))
        return Subject(first.label, first.argv, beside=[other.argv for other in others])

    def measure(subject):
        with nullcontext() if subject.label == "nothing" else running(subject, bench.scratch):
            workload.run(0.1)
            ran = workload.run()
        return ran.own / ran.seconds

    for figure, keep in (("web", True), ("web, a connection each", False)):
        with closing(Web(bench.scratch, keep)) as workload:
            subjects, notes = bench.available(
                lambda: together(bench.coretap), lambda: together(bench.peer),
                lambda: bench.floor_of(*map(bench.coretap, ("tcptop", "tcplife", "tcpstates"))))
            runs = bench.take_turns(figure, [Subject("nothing", []), *subjects], notes, measure, 3 * bench.rounds)
        yield make_row(f"{figure}: requests", "requests/s", runs, against="nothing", bar=0.97, least=True,
                       note="; ".join(notes))


# --- the recorder: against tracers that see every call ----------------------------------------

SHARE_OF_SLOW = 0.1  # the cost of each operation does not depend on their number


def _recorder(bench, where, workload, bar):
    """The workload in a recorded cgroup, and under strace and perf trace."""
    output = str(Path(bench.scratch, "calls"))
    subjects, notes = bench.available(
        lambda: bench.coretap("traceloop", "--dump-on-exit", "-c", str(where)),
        lambda: Subject("strace", [program("strace", "strace"), "-f", "-o", output]),
        lambda: Subject("perf trace", [program("perf", "linux-perf"), "trace", "-o", output, "--"]))
    gaps, told = [], []

    def measure(subject):
        if subject.label == "nothing":
            ran = workload.run()
        elif subject.label == "coretap":
            with running(subject, bench.scratch):
                ran = workload.run()
            dump = log_of(bench.scratch)
            told.append(_lost(dump))
            if isinstance(workload, Bytes):
                gaps.append(workload.gaps(dump.read_text(errors="replace")))
        else:
            ran = workload.run(SHARE_OF_SLOW, subject.argv)
        return ran.seconds * 1e9 / ran.own

    name = f"traceloop of {workload.name}"
    runs = bench.take_turns(name, [Subject("nothing", []), *subjects], notes, measure)
    yield make_row(f"{name}: workload", f"ns/{workload.unit}", runs, against="nothing", bar=bar, note="; ".join(notes))
    if gaps and None in gaps:
        yield missing(f"{name}: missing", "calls", "its dump shows no read or write of dd's", "", 0)
    elif gaps:
        yield make_row(f"{name}: missing", "calls", {"coretap": [max(pair) for pair in zip(gaps, told)]}, against="", bar=0,
                       note="breaks in the order of the calls that are in the dump, or what the ledger says")


def traceloop(bench):
    with cgroup() as where:
        for make, bar in ((lambda: Bytes(where), 4), (lambda: Files(where, bench.options.io_dir), 1.1)):
            with closing(make()) as workload:
                yield from _recorder(bench, where, workload, bar)


# --- memory ------------------------------------------------------------------------------------------

AT_REST = (  # MB, with the rings or without, tools
    (2.5, True, ("runqlat", "biolatency", "drsnoop", "cachestat", "compactsnoop", "syscount", "readahead", "numamove",
                "extfrag")),
    (4, False, ("opensnoop", "execsnoop", "biosnoop", "tcplife", "tcpretrans", "tcpconnect", "tcpconnlat", "tcpstates",
                "tcptracer", "gethostlatency", "bashreadline")),
    (8, True, ("offcputime", "offwaketime", "wakeuptime", "profile", "chaintrace", "memleak", "futexctn", "klockstat")),
)


def memory(bench):
    """At rest: attached and idle for a second; no stacks printed. PSS divides a shared library among its current users, so a
    dynamically linked subject looks smaller beside others; the private part is in --json as well."""
    for bar, rings, tools in AT_REST:
        for tool in tools:
            yield from _memory_of(bench, tool, bar, rings)


def _memory_of(bench, tool, bar, rings):
    subjects, notes = bench.available(lambda: bench.coretap(tool), lambda: bench.peer(tool))
    if bench.options.static and any(s.label == "coretap" for s in subjects):
        subjects.append(Subject("static", [bench.options.static, tool]))
    details = {}

    def measure(subject):
        with running(subject, bench.scratch) as pids:
            time.sleep(1)
            found = {key: value * 1024 / MB for key, value in kernel.memory_kb(pids[0]).items()}
            found["maps"] = kernel.held_by(pids)[1] / MB
            details[subject.label] = found
            return found["pss"] - (0 if rings else found["rings"])

    runs = bench.take_turns(f"memory of {tool}", subjects, notes, measure, rounds=1)
    parts = [f"{label}: peak {d['peak']:.2f}, private {d['private']:.2f}, rings {d['rings']:.2f}, maps in the kernel {d['maps']:.2f}"
             for label, d in details.items()]
    unit = "MB PSS" if rings else "MB PSS without rings"
    yield make_row(f"{tool}: memory at rest", unit, runs, against="", bar=bar, note="; ".join(parts + notes))
    if runs.get("static"):
        yield make_row(f"{tool}: the same, static", unit, {"coretap": runs["static"]}, against="", bar=bar)


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
    """bpftrace's own script first; then a copy that loads without kernel headers and without kprobes."""
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
    for tool in ("runqlat", "biolatency", "offcputime", "profile", "drsnoop", "cachestat"):
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


def functions(bench):
    """All kernel functions that coretap attaches to. The floor only resolves their names."""
    helper, ours = bench.helper("attached"), bench.coretap("funccount", "*")
    said = subprocess.run([*ours.argv, "--debug", "-d", "1"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    names = set(re.findall(r"^ +(\w[\w.]*) \(kernel\)$", said.stdout + said.stderr, re.M))
    if not names:
        raise Unusable(f"all functions: {said.stderr.strip().splitlines()[-1] if said.stderr.strip() else 'there are none'}")
    chosen = Path(bench.scratch, "functions")
    chosen.write_text("".join(f"{name}\n" for name in sorted(names)))
    notes = [f"{len(names)} functions"]
    measure = lambda subject: time_to_attach_ns(helper, subject, bench.scratch) / 1e9
    subjects = [ours, bench.floor(f"kprobe.multi/@{chosen}"), _bpftrace_of("-e", "kprobe:* { @ = count(); }")]
    subjects[-1].argv[:0] = ["env", "BPFTRACE_MAX_PROBES=1000000"]
    runs = bench.take_turns("all functions: exec to attached", subjects, notes, measure)
    yield make_row("all functions: exec to attached", "s", runs, against="", bar=3, note="; ".join(notes))


# --- size ------------------------------------------------------------------------------------------

def size(bench):
    tools = sum(path.is_symlink() for path in Path(bench.options.coretap).iterdir())
    figure, unit, bar = "static executable, stripped", "MB", budget.static_executable(tools) / MB
    if not bench.options.static:
        yield missing(figure, unit, "no static executable: build one with -DCORETAP_STATIC=ON and name it by --static", "", bar)
        return
    if not is_static(bench.options.static):
        yield missing(figure, unit, f"{bench.options.static} is not static", "", bar)
        return
    stripped = Path(bench.scratch, "stripped")
    shutil.copy(bench.options.static, stripped)
    subprocess.run([find_program("strip") or "strip", stripped], check=True)
    yield make_row(figure, unit, {"coretap": [stripped.stat().st_size / MB]}, against="", bar=bar)


FIGURES = {
    "runqlat": (runqlat, "ns per context switch, and the slowdown"),
    "runqslower": (runqslower, "the same"),
    "cpudist": (cpudist, "the same"),
    "softirqs": (softirqs, "ns per softirq, and the slowdown"),
    "hardirqs": (hardirqs, "ns per interrupt of a device, and the slowdown"),
    "offcputime": (offcputime, "the same, by default and with -K"),
    "offwaketime": (offwaketime, "the same, beside offcputime and wakeuptime at once"),
    "profile": (profile, "99 samples a second: ns per sample, and the slowdown of a busy machine"),
    "biolatency": (biolatency, "ns per request, and the slowdown"),
    "biosnoop": (biosnoop, "the same"),
    "slabratetop": (slabratetop, "ns per open, and the slowdown"),
    "syscount": (syscount, "ns per system call, by default and with -L, and the slowdown"),
    "fsdist": (fsdist, "ns per read of a byte, and the slowdown"),
    "futexctn": (futexctn, "ns per wait for a futex, and the slowdown"),
    "klockstat": (klockstat, "ns per wait for a lock of the kernel, and the slowdown"),
    "oomkill": (oomkill, "ns per process that is killed, and the slowdown"),
    "sigsnoop": (sigsnoop, "ns per call that sends a signal, and the slowdown"),
    "capable": (capable, "ns per check of a capability, and the slowdown"),
    "solisten": (solisten, "ns per call of listen, and the slowdown"),
    "bindsnoop": (bindsnoop, "ns per call of bind, and the slowdown"),
    "biopattern": (biopattern, "ns per request, and the slowdown"),
    "biostacks": (biostacks, "the same"),
    "bitesize": (bitesize, "the same"),
    "biotop": (biotop, "the same"),
    "filelife": (filelife, "ns per file that is made and removed, and the slowdown"),
    "filetop": (filetop, "ns per read of a byte, and the slowdown"),
    "fsslower": (fsslower, "the same"),
    "vfsstat": (vfsstat, "the same"),
    "mountsnoop": (mountsnoop, "ns per call of umount, and the slowdown"),
    "tcpconnect": (tcpconnect, "ns per TCP session, and the slowdown"),
    "tcpaccept": (tcpaccept, "the same"),
    "tcpconnlat": (tcpconnlat, "the same"),
    "tcpstates": (tcpstates, "the same"),
    "tcprtt": (tcprtt, "ns per message over TCP, and the slowdown"),
    "tcptop": (tcptop, "ns per call that sends or receives, and the slowdown"),
    "opensnoop": (opensnoop, "ns per open; 300,000 in a row: the slowdown, and what is lost on the way to a file"),
    "execsnoop": (execsnoop, "the same for a storm of programs that are run"),
    "exitsnoop": (exitsnoop, "the same, of their ends"),
    "statsnoop": (statsnoop, "ns per call of stat; 300,000 in a row: the slowdown, and what is lost on the way to a file"),
    "dcsnoop": (dcsnoop, "the same for look-ups of names that are not there"),
    "funccount": (funccount, "ns per hit of a user function, a kernel function, a tracepoint, and the slowdown"),
    "funclatency": (funclatency, "ns per call of a user function, a kernel function, and the slowdown"),
    "trace": (trace, "the same of trace, where a filter rejects all; ms until the first line; what is lost of 300,000 lines"),
    "web": (web, "a web server under tcptop, tcplife and tcpstates at once: requests per second"),
    "traceloop": (traceloop, "the slowdown of a cgroup that is recorded, beside strace and perf trace; what the dump lacks"),
    "stacks": (unwinding.stacks, "user stacks by unwind tables: how many are whole, beside frame pointers"),
    "young": (unwinding.young, "the same of processes that live for moments, and of a command from its first stack on"),
    "edges": (unwinding.edges, "the same: are they right? Beside perf record --call-graph dwarf"),
    "walk": (unwinding.walk, "the same: ns of a walk in the kernel, per frame and whole"),
    "tables": (unwinding.tables, "the same: bytes and ms of the tables"),
    "at-work": (unwinding.cost, "the same: share of a CPU and memory of profile"),
    "memory": (memory, "at rest, at its peak, and in the kernel's maps"),
    "startup": (startup, "exec to attached"),
    "functions": (functions, "exec until attached to all functions of the kernel"),
    "size": (size, "the static executable"),
    "fleet": (fleet.fleet, "coretap serve beside node_exporter: memory, ms of a scrape, CPU; series of the shipped configuration"),
    "thousand": (fleet.thousand, "a Prometheus of 1,000 simulated hosts: series, memory, CPU, ms of a query; only where it is named"),
}
BY_NAME_ONLY = {"thousand"}
