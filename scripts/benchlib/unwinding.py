"""Figures about user stacks without frame pointers: whether they are complete and correct, and their cost."""

import json
import os
import platform
import re
import signal
import stat
import statistics
import subprocess
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchlib import kernel, traced
from benchlib.process import Subject, Unusable, find_program, log_of, running, say
from benchlib.report import make_row, missing
from benchlib.workload import Ran, Workload, on_one_cpu, program, run_program

MB = 1e6
NOT_READY = "file not read yet"  # shortly after a file is first seen
NO_STACK = ("exiting", "none at all")  # its memory is released, or it is in exec
SECONDS = 3
FLAGS = ("-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-fasynchronous-unwind-tables", "-pthread", "-ldl", "-Wl,-z,lazy")
HERE = Path(__file__).parent
WORKLOAD = HERE.parents[1] / "tests/workload/unwind"


def _need_tables():
    if platform.machine() != "x86_64":
        raise Unusable("unwind tables are for x86-64")


# --- are they complete? ------------------------------------------------------------------------------

@contextmanager
def _chain(bench, end):
    """The workload of the tests: 50 functions without frame pointers, some of which realign the stack."""
    with traced.started([bench.helper("unwind", *FLAGS, folder=WORKLOAD), "--end", end, "--ms", "60000", "--times", "1000000"]) as pid:
        yield pid


def _stacks(bench, tool, *options, seconds=SECONDS):
    """A tool's lines about stacks, from a few seconds."""
    subject = bench.coretap(tool, "--json", *options)
    with running(subject, bench.scratch):
        time.sleep(seconds)
    return _records(bench)


def _records(bench):
    with log_of(bench.scratch).open(errors="replace") as lines:
        records = [json.loads(line) for line in lines if line.startswith("{")]
    return [record for record in records if record["type"] == "stack"]


class Whole:
    """Shares of user stacks: how many are complete, and why others are not."""

    def __init__(self, young=False):
        """`young`: includes stacks of files that were not read in time, excludes tasks without a user stack."""
        self.whole, self.waiting, self.guessed, self.frames, self.reasons = 0, 0, 0, 0, Counter()
        self.apart = NO_STACK if young else (NOT_READY,)

    def add(self, stacks):
        for stack in stacks:
            reason, count = stack["user_stack_truncated"] if stack["user_stack"] else "none at all", stack["count"]
            if reason in self.apart:
                self.waiting += count
                continue
            self.frames += count * len(stack["user_stack"])
            self.guessed += count * stack["user_stack_guessed"]
            if reason is None:
                self.whole += count
            else:
                self.reasons[reason] += count

    @property
    def all(self):
        return self.whole + self.reasons.total()

    def percent(self):
        if not self.all:
            raise Unusable("no user stack was seen")
        return 100 * self.whole / self.all

    def text(self):
        cut = ", ".join(f"{count} {reason}" for reason, count in self.reasons.most_common())
        when = "in execve or after their memory was gone" if self.apart == NO_STACK else "before the tables were there"
        waiting = f"; {self.waiting} more {when}" if self.waiting else ""
        guessed = f", {self.guessed} guessed" if self.guessed else ""
        return f"{self.all} stacks of {self.frames / max(1, self.all):.1f} frames{guessed}{': ' + cut if cut else ''}{waiting}"


def _targets(bench, tool):
    """The targets: name, required share of complete stacks, how to run it, and the tool's option for it."""
    pid = lambda pid: ["-p", str(pid)]
    yield "a chain", 100, lambda: _chain(bench, "spin" if tool == "profile" else "sleep"), pid
    for name in ("python3", "perl", "bash"):
        yield name, 100, lambda name=name: traced.interpreter(name), pid
    yield "postgres", 99.5, traced.pgbench, lambda _: ["--comm", "postgres"]


def stacks(bench):
    _need_tables()
    for tool in ("profile", "offcputime"):
        options = ["-F", "999"] if tool == "profile" else []
        for name, bar, run, tell in _targets(bench, tool):
            figure = f"{tool} of {name}: whole user stacks"
            try:
                with run() as pid:
                    found = {"coretap": Whole(), "fp": Whole()}

                    def measure(subject):
                        found[subject.label].add(_stacks(bench, tool, *options, *tell(pid), "--unwind", subject.argv[0]))
                        return found[subject.label].percent()

                    ways, notes = [Subject("coretap", ["auto"]), Subject("fp", ["fp"])], []
                    runs = bench.take_turns(figure, ways, notes, measure, rounds=1)
            except Unusable as reason:
                yield missing(figure, "%", str(reason), "", bar, least=True)
                continue
            notes = [f"{label}: {seen.text()}" for label, seen in found.items()] + notes
            yield make_row(figure, "%", runs, against="", bar=bar, least=True, note="; ".join(notes))


# --- those of short-lived processes? -----------------------------------------------------------------

YOUNG_FILES, YOUNG_LINES = 24, 400


def _many(times, body):
    return ["/bin/sh", "-c", f"i=0; while [ $i -lt {times} ]; do {body}; i=$((i+1)); done"]


def _make(bench):
    """A program of several files for make and the C compiler."""
    folder = Path(bench.scratch, "young")
    folder.mkdir(exist_ok=True)
    for i in range(YOUNG_FILES):
        body = "".join(f"int f{i}_{n}(int a) {{ int s = 0; for (int i = 0; i < a; i++) s += i % {n + 2}; return s; }}\n"
                       for n in range(YOUNG_LINES))
        Path(folder, f"f{i}.c").write_text(body)
    objects = " ".join(f"f{i}.o" for i in range(YOUNG_FILES))
    Path(folder, "Makefile").write_text(f"all: {objects}\n%.o: %.c\n\tgcc -O2 -c -o $@ $<\n")
    return ["make", "-s", "-j2", "-B", "-C", str(folder)]


def _young_stacks(bench, command, comms):
    """profile's stacks of these commands once it has run for a second."""
    with running(bench.coretap("profile", "-F", "499", "--json"), bench.scratch):
        time.sleep(1)
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return [stack for stack in _records(bench) if stack["comm"] in comms]


def _of_command(bench, tool, *words):
    """Stacks of a command that the tool itself starts, from the first one on."""
    done = subprocess.run([*bench.coretap(tool, "--json").argv, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, errors="replace")
    records = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return [record for record in records if record.get("comm") == Path(words[words.index("--") + 1]).name]


def _names(stacks):
    """Percentage of frames that have names."""
    frames = [(frame, stack["count"]) for stack in stacks for frame in stack["user_stack"]]
    if not frames:
        raise Unusable("no user stack was seen")
    return 100 * sum(count for frame, count in frames if frame != "[unknown]") / sum(count for _, count in frames)


def young(bench):
    _need_tables()
    brief = bench.helper("brief", "-DNAME=brief", *FLAGS, folder=WORKLOAD)
    script = "ls /usr; date; sed -n 1p /etc/passwd; grep -c root /etc/passwd"
    commands = (
        ("1,000 x true", 95, _many(1000, "/bin/true"), {"true"}),
        ("make -j2 with gcc", 97, _make(bench), {"make", "gcc", "cc1", "as", "sh"}),
        ("200 short commands", 97, _many(50, script), {"sh", "ls", "date", "sed", "grep"}),
        ("300 programs of 3 ms", 95, _many(300, f"{brief} 3"), {"brief"}),
    )
    for name, bar, command, comms in commands:
        figure, found, named = f"profile of {name}: whole user stacks", Whole(young=True), []

        def measure(_):
            stacks = _young_stacks(bench, command, comms)
            found.add(stacks)
            one = Whole(young=True)
            one.add(stacks)
            named.append(_names(stacks))
            return one.percent()

        notes = []
        runs = bench.take_turns(figure, [Subject("coretap", [])], notes, measure, rounds=min(3, bench.rounds))
        yield make_row(figure, "%", runs, against="", bar=bar, least=True, note="; ".join([found.text(), *notes]))
        if comms == {"brief"}:  # all its files have symbols
            yield make_row("the same: frames with names", "%", {"coretap": named}, against="", bar=99, least=True)
    for tool, words in (("offcputime", ["--", brief, "200", "--sleep"]), ("profile", ["-F", "999", "--", brief, "300"]),
                        ("memleak", ["-o", "0", "--", str(Path(bench.options.coretap, "workloads/leaker"))])):
        figure = f"{tool} -- COMMAND: whole user stacks"
        try:
            found = Whole(young=True)
            found.add({"user_stack_guessed": 0, **stack} for stack in _of_command(bench, tool, *words))
            yield make_row(figure, "%", {"coretap": [found.percent()]}, against="", bar=100, least=True, note=found.text())
        except (Unusable, KeyError) as reason:
            yield missing(figure, "%", str(reason), "", 100, least=True)
    for mappings, bar in ((50, 250), (8000, None)):
        figure, notes = f"which file lies at an address, {mappings} mappings", []
        look = lambda _: json.loads(run_program([_built(bench, "unwind_look_ups"), str(mappings), "20000"]))["ns"]
        yield make_row(figure, "ns", bench.take_turns(figure, [Subject("coretap", [])], notes, look), against="", bar=bar, note="; ".join(notes))


# --- are they correct? -------------------------------------------------------------------------------

def _plain(name):
    """A function may have several names in glibc, and split-off parts."""
    name = re.sub(r"(\.(part|cold|constprop|isra|llvm)\b.*|@.*|_impl)$", "", name)
    name = re.sub(r"^(__GI_|_+libc_|_+)+", "", name)
    return "free" if name == "cfree" else name


def _edges(stacks):
    """Caller-callee pairs in stacks, from the leaf on, with their counts."""
    edges = Counter()
    for frames, count in stacks:
        names = [_plain(name) for name in frames]
        for pair in zip(names[1:], names):
            edges[pair] += count
    return edges


def _of_perf(path, perf, scratch):
    script = subprocess.run([perf, "script", "--no-inline", "-i", path, "-F", "ip,sym"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, text=True, errors="replace", cwd=scratch).stdout
    for block in script.split("\n\n"):
        frames = [line.split(None, 1) for line in block.splitlines() if line.strip()]
        yield [frame[-1] for frame in frames if not frame[0].startswith("ffffffff")], 1


def edges(bench):
    """Two samplers on the same run: caller-callee pairs seen by one must also be seen by the other."""
    _need_tables()
    perf = program("perf", "linux-perf")
    interpreters = ((name, lambda name=name: traced.interpreter(name)) for name in ("python3", "perl", "bash"))
    for name, run in (("a chain", lambda: _chain(bench, "spin")), *interpreters):
        figure = f"profile of {name}: call edges that perf's DWARF stacks have"
        path, notes = str(Path(bench.scratch, "perf.data")), []
        try:
            with run() as pid:
                time.sleep(0.5)
                say(figure)
                record = [perf, "record", "--call-graph", "dwarf,32768", "-e", "cpu-clock", "-F", "599", "-p", str(pid), "-o", path]
                with traced.started(record, end=signal.SIGINT):
                    seen = [stack for stack in _stacks(bench, "profile", "-F", "599", "-p", str(pid), seconds=2 * SECONDS)
                            if stack["user_stack_truncated"] != NOT_READY]
            ours = _edges((stack["user_stack"], stack["count"]) for stack in seen)
            theirs = _edges(_of_perf(path, perf, bench.scratch))
        except Unusable as reason:
            yield missing(figure, "%", str(reason), "", 99, least=True)
            continue
        shared = lambda these, those: 100 * sum(n for edge, n in these.items() if edge in those) / max(1, these.total())
        only = Counter({edge: n for edge, n in ours.items() if edge not in theirs}).most_common(3)
        note = f"{ours.total()} and {theirs.total()} calls; of perf's {shared(theirs, ours):.2f} % are in profile's"
        if only:
            note += "; only in profile's: " + ", ".join(f"{a} > {b} ({n})" for (a, b), n in only)
        yield make_row(figure, "%", {"coretap": [shared(ours, theirs)] if theirs else []}, against="", bar=99, least=True, note=note)


# --- the cost of a walk ------------------------------------------------------------------------------

DEPTHS = (42, 105)  # functions of the chain; its callers and callees add some


class Chain(Workload):
    """Two processes on one CPU that pass a byte back and forth, both deep in calls."""

    unit = "switch"

    def __init__(self, chain, depth, ways=1, count=60_000):
        self._command, self._count = lambda n: [*on_one_cpu(), chain, str(depth), str(n), str(ways)], count

    def run(self, share=1.0):
        count = max(1, int(self._count * share))
        before = kernel.context_switches()
        seconds = float(run_program(self._command(count)))
        return Ran(seconds, kernel.context_switches() - before, 2 * count)


def _per_switch(bench, workload):
    """A measure: ns of a subject's programs for each of the workload's switches. Others are filtered, and cheap."""

    def measure(subject):
        with running(subject, bench.scratch) as pids:
            progs, _ = kernel.held_by(pids)
            workload.run(0.05)
            before, _ = kernel.run_stats(progs)
            ran = workload.run()
            return (kernel.run_stats(progs)[0] - before) / ran.own

    return measure


def _frames(bench, workload, how):
    """Mean number of frames of its stacks."""
    with running(bench.coretap("offcputime", "-U", "--comm", "chain", "--unwind", how, "--json"), bench.scratch):
        workload.run(0.05)
        workload.run(0.1)
    found = Whole()
    found.add(_records(bench))
    return found.frames / max(1, found.all)


def _bpftrace(action):
    path = find_program("bpftrace")
    if not path:
        raise Unusable("bpftrace is missing (package bpftrace)")
    return [path, "-e", f'tracepoint:sched:sched_switch /comm == "chain"/ {{ @[{action}] = count(); }}']


BY_TABLES, BY_POINTERS = "chain", "framed"


def walk(bench):
    """Two processes in a chain switch back and forth: the cost of each further frame, and the whole program's per frame."""
    _need_tables()
    flags = ("-fno-optimize-sibling-calls", "-fasynchronous-unwind-tables")
    chains = {BY_TABLES: bench.helper("chain", "-fomit-frame-pointer", *flags, folder=HERE),
              BY_POINTERS: bench.helper("chain", "-fno-omit-frame-pointer", *flags, folder=HERE, target="framed")}
    tool = lambda how: bench.coretap("offcputime", "-U", "--comm", "chain", "--unwind", how).argv
    of = {"coretap": BY_TABLES, "fp": BY_POINTERS, "ustack": BY_POINTERS}
    subjects, notes = bench.available(lambda: Subject("coretap", tool("auto")), lambda: Subject("fp", tool("fp")),
                                      lambda: Subject("ustack", _bpftrace("ustack(127)")))
    runs, frames = {}, {}
    with kernel.RunStats():
        for depth in DEPTHS:
            chain = {label: Chain(chains[of[label]], depth) for label in of}
            runs[depth] = bench.take_turns(f"walks of {depth} calls", subjects, notes, lambda s: _per_switch(bench, chain[s.label])(s))
            frames[depth] = {"coretap": _frames(bench, chain["coretap"], "auto"), "fp": _frames(bench, chain["fp"], "fp")}
            frames[depth]["ustack"] = frames[depth]["fp"]
        few, many = DEPTHS
        known = [Subject("once", tool("auto")), Subject("by turns", tool("auto")), Subject("nothing", tool("off"))]
        chain = {subject.label: Chain(chains[BY_TABLES], few, 2 if subject.label == "by turns" else 1) for subject in known}
        beside = bench.take_turns("stacks that stay, and that take turns", known, notes, lambda s: _per_switch(bench, chain[s.label])(s))
    over = lambda label: frames[many][label] - frames[few][label]
    pairs = {label: zip(sorted(runs[few][label]), sorted(runs[many][label])) for label in runs[few]}
    each = {label: [(deep - flat) / over(label) for flat, deep in both] for label, both in pairs.items()}
    of_all = {label: [ns / frames[many][label] for ns in runs[many][label]] for label in each}
    depths = " and ".join(f"{frames[depth]['coretap']:.0f}" for depth in DEPTHS)
    notes.append(f"stacks of {depths} frames; fp and bpftrace's ustack: a chain with frame pointers")
    yield make_row("a walk: each frame more", "ns", each, against="", bar=45, note="; ".join(notes))
    yield make_row("offcputime -U by the frame", "ns", of_all, against="", bar=45)
    yield make_row(f"offcputime -U of {frames[few]['coretap']:.0f} frames", "ns/switch", {**runs[few], "nothing": beside["nothing"]},
                   against="", note="nothing: with --unwind off")
    once, twice = statistics.median(beside["once"]), statistics.median(beside["by turns"])
    yield make_row("the same, a known stack looked up", "%", {"coretap": [100 * (twice - once) / twice]}, against="",
                   note=f"{twice:.0f} ns where two stacks take turns, {once:.0f} where one stays and its key is enough")


# --- the memory of tables ----------------------------------------------------------------------------

SYSTEM = ("/usr/bin", "/usr/sbin", "/usr/lib")
BUDGET = 64 << 20  # the default of --unwind-memory


def _elf_files(folders):
    """Each file once, even if it has several names."""
    seen = set()
    for folder in folders:
        for place, _, names in os.walk(folder):
            for name in names:
                path = os.path.join(place, name)
                try:
                    about = os.lstat(path)
                    if not stat.S_ISREG(about.st_mode) or (about.st_dev, about.st_ino) in seen:
                        continue
                    seen.add((about.st_dev, about.st_ino))
                    with open(path, "rb") as file:
                        if file.read(4) == b"\x7fELF":
                            yield path
                except OSError:
                    continue


def _libc():
    for line in Path("/proc/self/maps").read_text().splitlines():
        if re.search(r"/libc\.so\.6$|/libc-2\.\d+\.so$", line):
            return line.split()[-1]
    raise Unusable("this Python runs without glibc")


def _built(bench, name):
    path = Path(bench.options.coretap, name)
    if not path.exists():
        raise Unusable(f"{name} is not in {bench.options.coretap} (-DCORETAP_TESTS=ON)")
    return str(path)


def _tables_of(bench, times, files):
    return [json.loads(line) for line in run_program([_built(bench, "unwind_tables"), str(times), *files]).splitlines()]


def tables(bench):
    try:
        libc = _tables_of(bench, 20, [_libc()])[0]
        *files, total = _tables_of(bench, 1, list(_elf_files(SYSTEM)))
    except Unusable as reason:
        yield missing("unwind tables", "", str(reason), "")
        return
    value = lambda number: {"coretap": [number]}
    yield make_row("unwind tables: a row, with the directory", "bytes", value(total["bytes"] / total["rows"]), against="", bar=4.5,
                   note=f"libc: {libc['bytes'] / libc['rows']:.2f}")
    yield make_row("unwind tables: libc's are read", "ms", value(libc["ms"]), against="", bar=10,
                   note=f"{libc['rows']} rows, {libc['bytes'] / 1e3:.0f} kB")
    yield make_row("unwind tables: of " + " ".join(SYSTEM), "MB", value(total["bytes"] / MB), against="",
                   note=f"{total['files']} files, {total['rows']} rows, {total['rules']} rules ({total['refused']} refused), "
                        f"{total['ms']:.0f} ms; {'within' if total['bytes'] <= BUDGET else 'more than'} --unwind-memory's "
                        f"{BUDGET / MB:.1f}")


# --- the cost of profile -----------------------------------------------------------------------------

def _cpu_ns(pid):
    """Of a process so far, in user mode and in the kernel."""
    return sum(int(Path(task, "schedstat").read_text().split()[0]) for task in Path(f"/proc/{pid}/task").iterdir())


AT_WORK = 8  # seconds


def _at_work(bench, *options):
    """Runs profile for a while: CPU time of its programs and of the process, in percent of a CPU; start-up time in ms."""
    with running(bench.coretap("profile", "-F", "99", *options), bench.scratch) as pids:
        time.sleep(1)
        progs, _ = kernel.held_by(pids)
        start, own, (programs, _) = time.monotonic_ns(), _cpu_ns(pids[0]), kernel.run_stats(progs)
        time.sleep(AT_WORK)
        took, (later, _) = time.monotonic_ns() - start, kernel.run_stats(progs)
        return 100 * (later - programs) / took, 100 * (_cpu_ns(pids[0]) - own) / took, own / 1e6


def _share(bench):
    figure, parts = "profile -F 99 of a busy python3", []

    def measure(subject):
        with traced.started([traced.python(), "-c", traced.PYTHON.replace("time.sleep(0.001)", "pass")]) as pid, kernel.RunStats():
            time.sleep(0.3)
            parts.append(_at_work(bench, *(["-p", str(pid)] if subject.argv else [])))
        return sum(parts[-1][:2])

    # Only with all processes: processes that start now count, too.
    for name, options, bar in (("that process", ["-p"], 0.2), ("all processes", [], None)):
        parts.clear()
        notes = []
        runs = bench.take_turns(f"{figure}, {name}", [Subject("coretap", options)], notes, measure, rounds=min(3, bench.rounds))
        programs, own, start = (statistics.median(part[i] for part in parts) for i in range(3)) if parts else (0, 0, 0)
        yield make_row(f"{figure}, {name}", "% of a CPU", runs, against="", bar=bar,
                       note="; ".join([f"{programs:.3f} in the kernel programs, {own:.3f} the loader; "
                                       f"its first second took {start:.0f} ms", *notes]))


def _memory(bench):
    """While programs of many kinds run, before anything is printed."""
    figure, notes = "profile: memory at work, without tables", []
    with ExitStack() as stack:
        for make in (*(lambda n=n: traced.interpreter(n) for n in ("python3", "perl", "bash")), traced.pgbench):
            try:
                stack.enter_context(make())
            except Unusable as reason:
                notes.append(str(reason))
        with running(bench.coretap("profile", "-F", "99"), bench.scratch) as pids:
            time.sleep(1)
            looks = []
            for _ in range(4 * SECONDS):
                looks.append(kernel.memory_kb(pids[0]))
                time.sleep(0.25)
            maps = kernel.maps_of(pids[0])
    by_tables = sum(size for name, size in maps if name.startswith("unwind_")) / MB
    others = sum(size for name, size in maps if not name.startswith("unwind_")) / MB
    of = {key: [look[key] * 1024 / MB for look in looks] for key in looks[0]}
    pss = sorted(of["pss"])
    yield make_row(figure, "MB", {"coretap": [mb + others for mb in pss]}, against="", bar=16,
                   note="; ".join([f"PSS {statistics.median(pss):.2f} ({pss[0]:.2f} to {pss[-1]:.2f}; rings {of['rings'][-1]:.2f}), "
                                   f"peak {of['peak'][-1]:.2f}, maps in the kernel {others:.2f}; tables {by_tables:.2f}", *notes]))


def cost(bench):
    _need_tables()
    yield from _share(bench)
    yield from _memory(bench)
