"""The parts of the tests, in order of importance: those that find most in the least time come first."""

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import Callable

import gtestreport
from testlib import changed, clock
from testlib.totals import say

AT_ONCE = 3  # shards of tests that mostly wait
PER_CPU = len(os.sched_getaffinity(0))  # shards of tests that compute
LINT_SECONDS = 45  # with --ci, for files that clang-tidy has not found clean yet
SANITIZERS = {"ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1"}
# Instead of all: the targets of a run without --ci.
TARGETS_OF_TEST = ["coretap", "coretap-docs", "unit_tests", "tool_tests", "workloads"]
BESIDE = object()  # returned by a part whose tests continue in parallel with the next parts
BUILDS = ("main", "sanitize", "static", "clang")  # those of --ci
# Only some on arm64: doctor, which loads all programs, and a test of each subsystem on one kernel.
ARM64_KERNEL = "6.12"
ARM64_TESTS = ":".join((
    "Gethostlatency.EveryCallWithItsName", "Biosnoop.ShowsEveryWriteOfAProcess", "Offcputime.TotalOfKnownSleeps",
    "Execsnoop.EveryTryWithItsArguments", "Readahead.ReadsUseAllOfIt", "Memleak.OutstandingOfEachFunction",
    "Tcplife.ClientCloses", "Opensnoop.EveryCallWithItsResult", "Syscount.CountsAreExact", "Traceloop.BadEndsOfProcesses",
    "Unwind.ChainOfAllKindsOfFrames", "Unwind.SignalHandlers", "Unwind.ProcedureLinkageTables"))


@dataclass(frozen=True)
class Part:
    name: str
    words: str
    call: Callable
    seconds: float  # on a usual machine with two CPUs
    tiers: tuple = ()  # "test", "ci"; --everything includes all
    needs: tuple = ()  # groups of scripts/deps
    by_turn: bool = False
    must: bool = False  # regardless of the plan
    traces: bool = False  # traces this machine, as root


PARTS = []
OVERDUE_DAYS = 14  # a part by turns that has not run for this long is run regardless of the plan, or fails


def part(name, words, seconds, tiers=(), **more):
    def add(call):
        PARTS.append(Part(name, words, call, seconds, tuple(tiers), **more))
        return call
    return add


def prepare(run, chosen):
    """Installs dependencies: those of a build now, others in the background. -> whether a build can start"""
    if not run.step("packages of the distribution", [run.root / "scripts/deps", "build", "compile-tests"]):
        return False
    if all("test" in one.tiers for one in chosen):
        run.targets = TARGETS_OF_TEST
    run.unit_beside = not run.options.ci and any(one.name == "life" for one in chosen) and os.geteuid() == 0
    later = ["test", *sorted({group for one in chosen for group in one.needs})]
    run.logs.mkdir(parents=True, exist_ok=True)
    script = " && ".join([f"'{run.root}/scripts/deps' {' '.join(later)}"] * bool(later)
                         + [f"'{run.root}/scripts/vm' fetch {kernels(run).replace(',', ' ')}"] * ("vm" in later))
    run.fetched = clock.Beside(["sh", "-c", script or ":"], run.logs / "deps.log", run.limit(900))
    return True


def fetched(run):
    """Once the dependencies installed in the background are complete."""
    status, words = run.fetched.wait()
    if words:
        say(f"not all that was to be fetched is here:\n{words}")
        run.totals.one("packages and kernels that are fetched beside the build", False)
        run.fetched.said = True
    return status == 0


def kernels(run):
    return run.options.kernels or subprocess.run([run.root / "scripts/vm", "names"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def is_root(run, name):
    if os.geteuid() == 0:
        return True
    run.totals.skip(name, "tracing needs root (sudo scripts/test)")
    return False


# --- in each run ---------------------------------------------------------------------------------

@part("build", "the executable and the tests' programs", 530, ("test", "ci"), must=True)
def build(run):
    run.build()


@part("unit", "unit tests", 50, ("test", "ci"), must=True)
def unit(run):
    fetched(run)
    if not run.build():
        return None

    def tests():
        run.gtest("unit tests", run.directory() / "bin/unit_tests", shards=PER_CPU)

    if run.unit_beside:  # the tools' life test mostly waits
        run.begin_beside("unit", tests)
        return BESIDE
    return tests()


@part("documents", "golden files, manual pages, completion in shells, rules of the tree, the clock", 20, ("test", "ci"), must=True)
def documents(run):
    fetched(run)
    if not run.build():
        return
    if shutil.which("mandoc"):
        run.step("documentation", [run.root / "scripts/golden", "--check"], env={**os.environ, "CORETAP_BUILD": str(run.directory())})
    run.step("completion in shells", [run.root / "tests/docs/completion", run.directory()])
    run.step("rules of the tree", [run.root / "tests/docs/picture"])
    run.step("stack of kernel programs", [run.root / "scripts/kernel-stack", run.directory() / "skel"])
    run.step("mutants are of this tree", [run.root / "tests/mutants/run", "--list"], stdout=subprocess.DEVNULL)
    run.step("the clock", [run.root / "tests/scripts/clock_test.py"], stderr=subprocess.DEVNULL)


def here(run, name, chosen, shards=1, all_tools=False):
    """Tests that trace this machine."""
    if is_root(run, name) and run.build():
        environment = {"CORETAP_EXPECT": str(run.root / "tests/vm/expected/here.txt"), "CORETAP_ALL_TOOLS": str(int(all_tools))}
        run.gtest(name, run.directory() / "bin/tool_tests", chosen, environment, again=True, shards=shards)


def guests(run, directory, of, tests, *more, results="matrix"):
    """-> the command that runs tests in guests, the path of their results"""
    results = directory / results
    shutil.rmtree(results, ignore_errors=True)
    command = [run.root / "tests/vm/matrix", "--build", directory, "--results", results, "--kernels", of, *more]
    return command + (["--filter", tests] if tests else []), results


def count_guests(run, name, results):
    if run.interrupted:
        for log in results.glob("*.log"):
            if not (results / f"{log.stem}.json").exists():
                gtestreport.of_log(log, results / f"{log.stem}.json")
    problems = results / "problems.txt"
    run.totals.bad += problems.read_text().splitlines() if problems.exists() else []
    for report in sorted(results.glob("*.json")):
        run.totals.add_gtest(f"{name}, {report.stem}", report, 0, again=True)
        run.totals.skips(f"{name}, {report.stem}", gtestreport.skips_of_log(report.with_suffix(".log")))


def matrix(run, name, directory, of, tests, *more):
    command, results = guests(run, directory, of, tests, *more)
    run.step(name, command)
    count_guests(run, name, results)


def chosen_kernels(run):
    """All; with a time limit the oldest, the newest, and the other one that ran longest ago, with overdue ones."""
    names = kernels(run).split(",")
    if not run.options.ci or len(names) < 4:
        return names
    ages = {name: run.history.age(f"kernel {name}") for name in names[1:-1]}
    first, *rest = sorted(ages, key=lambda name: -(ages[name] if ages[name] is not None else 1e9))
    return [names[0], names[-1], first, *(name for name in rest if ages[name] is None or ages[name] > OVERDUE_DAYS)]


def of_matrix(run):
    """Arguments of tests/vm/matrix that all guests of a run share."""
    return (["--long"] if run.options.everything else []) + (["--share", run.history.runs] if run.options.ci else [])


def begin_guests_beside(run):
    """With --ci: the guests of all kernels except the oldest and the newest, in parallel with tests that mostly wait. They use
    the remaining CPU time; part "vm-beside" waits for them."""
    if run.options.ci and (later := chosen_kernels(run)[2:]) and fetched(run):
        command, results = guests(run, run.directory(), ",".join(later), None, "--stress", later[-1], "--at-once", 1, *of_matrix(run),
                                  results="matrix-beside")
        beside = clock.Beside(command, run.logs / "matrix-beside.log", run.limit(), idle=True)
        run.guests_beside = beside, later, results


@part("life", "the life of each tool here, each kind of report, rights, serve, user stacks: several tests at once", 100, ("test", "ci"), must=True,
      traces=True)
def life(run):
    if run.build():
        begin_guests_beside(run)
    here(run, "tools here", f"{gtestreport.ANY_KERNEL}:{gtestreport.OF_EACH_TOOL}", AT_ONCE, run.options.everything)


@part("changed", "own tests of the tools that are changed and not committed", 30, ("test",), traces=True)
def of_the_change(run):
    own, _ = changed.touched(run.root, changed.files(run.root), run.directory())
    if own and run.build():
        here(run, "own tests of changed tools", ":".join(changed.tests(run.directory() / "bin/tool_tests", own, [])))


@part("own", "own tests of tools here: tools beside each other, but for those that measure the machine", 200, ("ci",), traces=True)
def own(run):
    if not is_root(run, "own tests of tools here") or not run.build():
        return
    program = run.directory() / "bin/tool_tests"
    elsewhere = f"{gtestreport.ANY_KERNEL}:{gtestreport.OF_EACH_TOOL}"
    tests = gtestreport.listed(program, f"-{elsewhere}")
    declared = subprocess.run([program, "--declarations"], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    measuring = {tool["tool"] for tool in map(json.loads, declared) if tool["alone"]}
    alone = [name for name, test in tests.items()
             if gtestreport.tool_of(name, test) in measuring or name.startswith(gtestreport.MEASURING)]
    seconds = run.totals.records.seconds()
    here(run, "own tests of tools here", None, gtestreport.lanes(tests.keys() - alone, seconds, AT_ONCE, elsewhere))
    if not run.options.filter:
        here(run, "own tests of tools that measure the machine", None, gtestreport.lanes(alone, seconds, 1, elsewhere))


@part("stress", "tools in trouble: small buffers, stalled readers, full disks", 60, ("ci",), traces=True)
def stress(run):
    if is_root(run, "tools in trouble") and run.build():
        environment = {"CORETAP_EXPECT": str(run.root / "tests/vm/expected/here.txt"), "CORETAP_ALL_TOOLS": str(int(run.options.everything))}
        run.gtest("tools in trouble", run.directory() / "bin/stress_tests", "*Stress*", environment, again=True, shards=AT_ONCE)
        run.step("recordings of tools that are killed, and recordings that are cut",
                 [run.root / "tests/stress/recordings", "--coretap", run.directory() / "bin/coretap"])
        run.step("reasons of waits that are known",
                 [run.root / "tests/stress/waits", "--coretap", run.directory() / "bin/coretap", "--seconds", "1"])


@part("vm-beside", "the guests that run beside the three parts before: the life of each tool, and what changes a guest's clock, pids and CPUs", 60,
      ("ci",), needs=("vm",), must=True)
def vm_beside(run):
    if not run.guests_beside:
        return
    beside, kernels_beside, results = run.guests_beside
    status, words = beside.wait()
    name = "matrix of kernels, beside"
    if status is clock.ENDED:
        run.ended_by_clock(name)
    else:
        if status:
            say(f"{name}: FAILED\n{words}")
        run.totals.one(name, status == 0)
    count_guests(run, name, results)
    if not run.interrupted:
        for kernel in kernels_beside:
            run.history.ran(f"kernel {kernel}", 200)


@part("vm", "the life of each tool on other kernels, in guests, and some own tests that this one has no attach points for", 250, ("ci",),
      needs=("vm",))
def vm(run):
    if not fetched(run) or not run.build():
        return
    chosen = chosen_kernels(run)
    if run.options.ci:
        matrix(run, "matrix of kernels", run.directory(), ",".join(chosen[:2]), None, *of_matrix(run))
    else:
        matrix(run, "matrix of kernels", run.directory(), ",".join(chosen), run.options.filter, "--stress", chosen[-1], *of_matrix(run))


@part("fuzz", "the fuzzers, some seconds each", 230, ("ci",), needs=("fuzz",))
def fuzz(run):
    if fetched(run) and run.build() and run.build("sanitize"):
        # The same tree gives the same result; longer runs by hand start with another seed each time.
        run.step("fuzzers", [run.root / "tests/fuzz/run", "--build", run.directory("sanitize"), "--seed", "1", "--seconds", "4"])


@part("lint", "clang-format and clang-tidy", 100, ("ci",), needs=("lint",))
def lint(run):
    if fetched(run) and run.build():
        seconds = [] if run.options.everything else ["--seconds", LINT_SECONDS]
        run.step("lint", [run.root / "scripts/lint", "--build", run.directory(), *seconds])


def of_packages(run, *words):
    """The tests of the packages that are made of the existing builds."""
    if fetched(run) and run.build() and run.build("static"):
        run.step("packages", [run.root / "tests/packages/run", "--build", run.directory(), "--static-build", run.directory("static"),
                              "--results", run.directory("package"), *words])


@part("packages", "packages: what is in them", 60, ("ci",), needs=("package",))
def packages(run):
    of_packages(run, "--group", "each")


# --- by turns ------------------------------------------------------------------------------------

def in_turn(name, words, seconds, *only):
    """A part of the package tests that runs by turns; all of it with --everything."""
    @part(name, words, seconds, ("ci",), needs=("package", "package-checks", "vm"), by_turn=True)
    def call(run):
        of_packages(run, *(word for one in only for word in ("--only", one)))


in_turn("rpm", "packages: the RPM is checked, installed, used, removed; lintian", 60, "lintian", "rpmlint", "RPM")
in_turn("deb", "packages: the DEB is installed, used, removed", 140, "DEB")
in_turn("systemd", "packages: the exporter's service under systemd, in a guest", 90, "systemd")
in_turn("twice", "packages: made twice, objects compiled elsewhere: the same bytes; a release in a copy of the repository", 75, "reproducible",
        "release")


@part("all-source", "packages: what dpkg-buildpackage and rpmbuild make of the source packages", 1200, needs=("package", "package-checks"))
def all_source(run):
    of_packages(run, "--only", "Debian's build", "--only", "Fedora's build")


@part("all-twice", "packages: built from source a second time, from nothing: the same bytes", 2400, needs=("package", "package-checks"))
def all_twice(run):
    of_packages(run, "--group", "source", "--twice")


@part("sanitize", "unit tests with the address and undefined-behaviour sanitisers", 500, ("ci",), needs=("fuzz",), by_turn=True)
def sanitize(run):
    if fetched(run) and run.build() and run.build("sanitize", ["unit_tests"]):
        run.gtest("unit tests, sanitised", run.directory("sanitize") / "bin/unit_tests", environment=SANITIZERS, shards=PER_CPU)


@part("clang", "kernel programs built by a current clang, here and on the oldest kernel", 300, ("ci",), needs=("clang", "vm"), by_turn=True,
      traces=True)
def current_clang(run):
    if fetched(run) and is_root(run, "kernel programs of the current clang") and run.build() and run.build("clang"):
        run.step("stack of kernel programs", [run.root / "scripts/kernel-stack", run.directory("clang") / "skel"])
        run.step("tools of the current clang load here", [run.directory("clang") / "bin/coretap", "doctor"], stdout=subprocess.DEVNULL)
        matrix(run, "tools of the current clang", run.directory(), kernels(run).split(",")[0], gtestreport.LIFE, "--bin", run.directory("clang") / "bin")


@part("waits", "reasons of known waits, on the oldest and the newest kernel", 500, ("ci",), needs=("vm",), by_turn=True)
def waits(run):
    if fetched(run) and run.build():
        for kernel in (kernels(run).split(",")[0], kernels(run).split(",")[-1]):
            run.step(f"reasons of known waits on {kernel}",
                     [run.root / "scripts/vm", "run", kernel, "--memory", "1G", "--cpus", "2", "--timeout", "400", "--",
                      "/bin/sh", "-c", "mount -t tracefs none /sys/kernel/tracing; mount -t cgroup2 none /sys/fs/cgroup; "
                      f"exec '{run.root}/tests/stress/waits' --coretap '{run.directory()}/bin/coretap' --seconds 3 --at-once 8 "
                      "--place /mnt/disk"])


@part("runtimes", "programs in Go, Java, JavaScript, Python and Rust end as they do untraced", 150, ("ci",), needs=("runtimes",), by_turn=True,
      traces=True)
def runtimes(run):
    if fetched(run) and is_root(run, "runtimes") and run.build():
        run.step("runtimes", [run.root / "tests/stress/runtimes", run.directory() / "bin"])


@part("new-tool", "a tool is added as docs/new-tool.md says", 110, ("ci",), by_turn=True, traces=True)
def new_tool(run):
    if not is_root(run, "new tool") or not run.build():
        return
    results = run.directory() / "new-tool.json"
    results.unlink(missing_ok=True)
    run.step("a tool added as docs/new-tool.md says", [run.root / "tests/docs/new-tool", "--results", results])
    if results.exists():
        counted = json.loads(results.read_text())
        run.totals.ran += counted["ran"]
        run.totals.again += [f"new tool: {name}" for name in range(counted["tried_again"])]


@part("one-tool", "scripts/run's build of a single tool: what it says of the others", 60, ("ci",), by_turn=True)
def one_tool(run):
    run.step("a build of one tool", [run.root / "tests/docs/partial-build"])


@part("browser", "flame graphs and heat maps in headless Chromium", 60, ("ci",), needs=("browser",), by_turn=True)
def browser(run):
    if fetched(run) and run.build():
        for picture in ("flamegraph", "heatmap"):
            run.step(f"{picture}s in a browser", [run.root / f"tests/browser/{picture}_test.py", run.directory() / "bin/draw_picture"])


@part("arm64-build", "the executable and its kernel programs compile for arm64", 450, ("ci",), needs=("arm64",), by_turn=True)
def arm64_build(run):
    if fetched(run):
        run.build("arm64", ["coretap"])


# --- by hand -------------------------------------------------------------------------------------

@part("mutants", "changes of one token each: which test notices", 500, needs=("vm",), traces=True)
def mutants(run):
    if fetched(run) and is_root(run, "mutants"):
        run.step("mutants", [run.root / "tests/mutants/run", "--results", run.directory() / "mutants.json"])


@part("arm64", "tools built for arm64, on its kernels", 3000, needs=("arm64",))
def arm64(run):
    if fetched(run) and run.build("arm64"):
        full = not run.options.everything
        matrix(run, "arm64", run.directory("arm64"), kernels(run) if full else ARM64_KERNEL,
               run.options.filter or (None if full else ARM64_TESTS), "--arch", "arm64")


@part("fleet", "coretap serve under the engines of its users", 300, needs=("fleet",), traces=True)
def fleet(run):
    if fetched(run) and run.build():
        run.step("serve under its engines", [run.root / "tests/serve/engines", "--build", run.directory()])
        run.step("files of the exporter", [run.root / "tests/packages/run", "--build", run.directory(), "--only", "exporter"])
