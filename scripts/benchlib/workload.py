"""The workloads. Each counts and times its own operations."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from benchlib import kernel
from benchlib.process import Unusable, find_program


def run_program(argv, cgroup=None, directory=None):
    def prepare():
        kernel.die_with_parent()
        if cgroup:
            Path(cgroup, "cgroup.procs").write_text("0")

    process = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=directory,
        preexec_fn=prepare,
        start_new_session=True,
    )
    try:
        out, errors = process.communicate()
    except BaseException:
        # perf's two halves wait for each other forever if only one is ended.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    if process.returncode:
        raise Unusable(f"{argv[0]}: {errors.strip()[:160] or 'failed'}")
    return out


@dataclass
class Ran:
    seconds: float  # the workload's own time
    operations: int  # on the whole machine meanwhile, which the tracer saw as well; None: the number that it saw
    own: int  # those made by the workload


def program(name, package):
    path = find_program(name)
    if not path:
        raise Unusable(f"{name} is missing (package {package})")
    return path


def on_one_cpu():
    return ["taskset", "-c", str(max(os.sched_getaffinity(0)))]


@contextmanager
def cgroup():
    """A cgroup during a with block."""
    mount = kernel.cgroup2_mount()
    if not mount:
        raise Unusable("cgroup v2 is mounted nowhere")
    path = Path(mount, f"coretap-bench.{os.getpid()}")
    try:
        path.mkdir()
    except OSError as error:
        raise Unusable(f"no cgroup: {error}") from error
    try:
        yield path
    finally:
        for _ in range(50):  # it is busy until its last process has exited
            with suppress(OSError):
                path.rmdir()
                break
            time.sleep(0.1)


class Workload:
    """The defaults of most workloads."""

    def close(self):
        pass


class PerfBench(Workload):
    """One of the loops of perf bench, on one CPU."""

    def __init__(self, loops):
        self._perf, self._loops = program("perf", "linux-perf"), loops

    def _run_loop(self, share, *benchmark):
        """-> loops, seconds"""
        loops = max(1, int(self._loops * share))
        return loops, float(run_program([*on_one_cpu(), self._perf, "bench", "-f", "simple", *benchmark, str(loops)]))


class Switches(PerfBench):
    """Two processes on one CPU that pass a byte back and forth."""

    unit = "switch"

    def __init__(self):
        super().__init__(100_000)

    def run(self, share=1.0):
        before = kernel.context_switches()
        loops, seconds = self._run_loop(share, "sched", "pipe", "-l")
        return Ran(seconds, kernel.context_switches() - before, 2 * loops)


class Calls(PerfBench):
    """One process that repeats the shortest system call."""

    unit = "call"

    def __init__(self):
        super().__init__(5_000_000)

    def run(self, share=1.0):
        loops, seconds = self._run_loop(share, "syscall", "basic", "--loop")
        return Ran(seconds, loops, loops)


class Opens(Workload):
    """One process that opens a file repeatedly and times it: a workload of the tests."""

    unit = "open"
    shown = r"\bopener\b.*/proc/self/comm$"  # a tracer's line about one of them

    def __init__(self, opener, count=300_000):
        self._opener, self._count = opener, count

    def run(self, share=1.0):
        count = max(1, int(self._count * share))
        told = json.loads(run_program([self._opener, "--count", str(count)]).splitlines()[-1])
        return Ran(told["bulk_ns"] / 1e9, count, count)


class Rounds(Workload):
    """Rounds of calls by a workload of the tests, which prints their number: `key`, a number or a list.
    `shown`: a tracer's line about one of them."""

    def __init__(self, program, key, unit, count, option="--rounds", more=(), shown=None):
        self._argv, self._key, self.unit, self._count, self.shown = [program, *more, option], key, unit, count, shown

    def run(self, share=1.0):
        start = time.monotonic()
        told = json.loads(run_program([*self._argv, str(max(1, int(self._count * share)))]).splitlines()[-1])[self._key]
        made = told if isinstance(told, int) else len(told)
        return Ran(time.monotonic() - start, made, made)


class Hits(Rounds):
    """One function that a workload of the tests calls repeatedly: its own, or, by reads, one of the kernel's.
    It prints the time taken."""

    def __init__(self, program, count=100_000, more=(), shown=None):
        super().__init__(program, "hits", "hit", count, "--count", more, shown)

    def run(self, share=1.0):
        told = json.loads(run_program([*self._argv, str(max(1, int(self._count * share)))]).splitlines()[-1])
        return Ran(told["ns"] / 1e9, told["hits"], told["hits"])


class Lives(Workload):
    """Files that are created and removed, one after another."""

    unit = "file"

    def __init__(self, directory, count=50_000):
        self._path, self._count = str(Path(directory, "short-lived")), count

    def run(self, share=1.0):
        count = max(1, int(self._count * share))
        start = time.monotonic()
        for _ in range(count):
            os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            os.unlink(self._path)
        return Ran(time.monotonic() - start, count, count)


class Waits(Workload):
    """A thread that waits for a futex by each of the calls, and another one that wakes it: a workload of the tests."""

    unit = "wait"

    def __init__(self, waiter, count=20_000):
        self._waiter, self._count = waiter, count

    def run(self, share=1.0):
        count = max(1, int(self._count * share))
        told = json.loads(run_program([self._waiter, "--only", "woken", "--count", str(count)]).splitlines()[-1])
        return Ran(told["waited_ns"] / 1e9, told["waits"], told["waits"])


class Contention(Workload):
    """A thread that waits for kernel locks held by another one: a workload of the tests."""

    unit = "wait"

    def __init__(self, contender, rounds=1_000):
        self._contender, self._rounds = contender, rounds

    def run(self, share=1.0):
        rounds = max(1, int(self._rounds * share))
        told = json.loads(run_program([self._contender, "--ms", "0", "--rounds", str(rounds)]).splitlines()[-1])
        if not told["counted"]:
            raise Unusable("this kernel does not say how often a lock is waited for")
        waited = told["pipe"]["waited_ns"] + told["file"]["waited_ns"]
        return Ran(waited / 1e9, told["contention_ends"], told["waits"])


class Execs(Workload):
    """Many processes that are forked, exec a program that does nothing, and exit; one after another on each CPU."""

    unit = "exec"
    shown = r"^bench-true\b"

    def __init__(self, scratch, count=5_000):
        self._program, self._count = Path(scratch, "bench-true"), count
        if not self._program.exists():
            self._program.symlink_to(program("true", "coreutils"))

    def run(self, share=1.0):
        count = max(1, int(self._count * share))
        loop = f"seq {count} | xargs -n 1 -P {len(os.sched_getaffinity(0))} {self._program}"
        start = time.monotonic()
        run_program(["sh", "-c", loop])
        return Ran(time.monotonic() - start, count, count)


class Sysbench(Workload):
    """One of the tests of sysbench."""

    def __init__(self, events, *test):
        self._command, self._events = [program("sysbench", "sysbench"), *test], events

    def _run_test(self, share, under=(), **where):
        """-> events, seconds"""
        limit = ["--time=0", f"--events={max(1, int(self._events * share))}"]
        text = run_program([*under, *self._command, *limit, "run"], **where)
        found = [re.search(rf"total {words}:\s+([\d.]+)", text) for words in ("number of events", "time")]
        if not all(found):
            raise Unusable("sysbench does not say what it did")
        return int(found[0].group(1)), float(found[1].group(1))


class Busy(Sysbench):
    """Computes on all CPUs. Only the tracer knows the number of its samples."""

    unit = "event"

    def __init__(self):
        super().__init__(6_000, "cpu", f"--threads={len(os.sched_getaffinity(0))}")

    def run(self, share=1.0):
        events, seconds = self._run_test(share)
        return Ran(seconds, None, events)


class Bytes(Workload):
    """One process in a cgroup that copies single bytes: two system calls each."""

    name, unit = "dd", "byte"

    def __init__(self, cgroup, count=300_000):
        self._cgroup, self._count = cgroup, count

    def run(self, share=1.0, under=()):
        count = max(1, int(self._count * share))
        start = time.monotonic()
        run_program([*on_one_cpu(), *under, "dd", "if=/dev/zero", "of=/dev/null", "bs=1", f"count={count}"], self._cgroup)
        return Ran(time.monotonic() - start, count, count)

    @staticmethod
    def gaps(dump):
        """Its reads and writes alternate: how often a tracer's dump breaks that; None if it shows none."""
        calls = re.findall(r"\b(read|write)\b\W+(?:fd\W+)?[01]\b", dump)
        return sum(a == b for a, b in zip(calls, calls[1:])) if calls else None


class Reads(Workload):
    """One process that reads single bytes of a file; its output goes to no file system."""

    name, unit = "dd", "read"

    def __init__(self, directory, count=300_000):
        self._count = count
        try:
            self._file = tempfile.NamedTemporaryFile(prefix="coretap-bench.", dir=directory)
        except OSError as error:
            raise Unusable(f"no directory for files: {error}") from error
        self._file.truncate(count)
        self.file_system = run_program(["findmnt", "-no", "FSTYPE", "-T", self._file.name]).strip()

    def run(self, share=1.0):
        count = max(1, int(self._count * share))
        start = time.monotonic()
        run_program([*on_one_cpu(), "dd", f"if={self._file.name}", "of=/dev/null", "bs=1", f"count={count}"])
        return Ran(time.monotonic() - start, count, count)

    def close(self):
        self._file.close()


class Files(Sysbench):
    """One process in a cgroup that reads and writes files at random."""

    name, unit = "sysbench fileio", "request"

    def __init__(self, cgroup, directory):
        super().__init__(40_000, "fileio", "--file-total-size=64M", "--file-num=4", "--file-test-mode=rndrw")
        self._cgroup = cgroup
        try:
            self._directory = tempfile.mkdtemp(prefix="coretap-bench.", dir=directory)
        except OSError as error:
            raise Unusable(f"no directory for files: {error}") from error
        try:
            run_program([*self._command, "prepare"], directory=self._directory)
        except BaseException:
            self.close()
            raise

    def run(self, share=1.0, under=()):
        events, seconds = self._run_test(share, under, cgroup=self._cgroup, directory=self._directory)
        return Ran(seconds, events, events)

    def close(self):
        shutil.rmtree(self._directory, ignore_errors=True)


class Datagrams(Workload):
    """Datagrams over the loopback device: one softirq receives each. They are not read."""

    unit = "softirq"

    def __init__(self, count=300_000):
        self._count = count

    def run(self, share=1.0):
        count = max(1, int(self._count * share))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as to, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            to.bind(("127.0.0.1", 0))
            sender.connect(to.getsockname())
            before, start = kernel.softirqs(), time.monotonic()
            for _ in range(count):
                sender.send(b"x")
            seconds = time.monotonic() - start
            return Ran(seconds, kernel.softirqs() - before, count)


class Writes(Workload):
    """One process that writes blocks with direct I/O, over a file whose blocks are already allocated."""

    unit = "request"

    def __init__(self, directory, count=20_000):
        self._count = count
        if not directory:
            raise Unusable("no directory given for direct writes")
        try:
            handle, name = tempfile.mkstemp(prefix="coretap-bench.", dir=directory)
            os.close(handle)
        except OSError as error:
            raise Unusable(f"no file for direct writes: {error}") from error
        self._file = Path(name)
        try:
            run_program(["dd", "if=/dev/zero", f"of={self._file}", "bs=1M", "count=80", "oflag=direct", "conv=fsync"])
        except Unusable:
            self.close()
            raise
        if self.run(0.05).operations < 0.05 * count:
            self.close()
            raise Unusable(f"direct writes in {directory} reach no disk that counts its requests (choose another with --io-dir)")

    def run(self, share=1.0):
        count = max(1, int(self._count * share))
        before, start = kernel.block_requests(), time.monotonic()
        run_program(["dd", "if=/dev/zero", f"of={self._file}", "bs=4k", f"count={count}", "oflag=direct", "conv=notrunc"])
        seconds = time.monotonic() - start
        return Ran(seconds, kernel.block_requests() - before, count)

    def close(self):
        self._file.unlink(missing_ok=True)


class Interrupts(Writes):
    """The same, by device interrupts; most of them are the disk's."""

    unit = "interrupt"

    def run(self, share=1.0):
        before = kernel.interrupts()
        ran = super().run(share)
        # They must be most of the machine's, as all are traced: the requests are those of one process.
        seen = kernel.interrupts() - before
        return Ran(ran.seconds, seen, min(seen, ran.own))


class Kills(Workload):
    """Processes that are killed because their memory cgroup is out of memory: a workload of the tests."""

    unit = "kill"

    def __init__(self, reclaim, count=20):
        self._reclaim, self._count = reclaim, count

    def run(self, share=1.0):
        count = max(1, int(self._count * share))
        start = time.monotonic()
        told = json.loads(run_program([self._reclaim, "--memcg", "--kills", str(count)]).splitlines()[-1])
        return Ran(time.monotonic() - start, told["memcg"]["oom_kill"], count)


class Web(Workload):
    """A web server with one worker process, and eight clients in one process that request a small file over the
    loopback. `keep`: a connection serves many requests; otherwise each has its own."""

    unit = "request"

    def __init__(self, scratch, keep, count=20_000):
        self._directory = tempfile.mkdtemp(prefix="web.", dir=scratch)
        nginx, ab = program("nginx", "nginx"), program("ab", "apache2-utils")
        with socket.socket() as any_port:
            any_port.bind(("127.0.0.1", 0))
            self._at = any_port.getsockname()
        Path(self._directory, "file").write_text("x" * 1000)
        settings = Path(self._directory, "nginx.conf")
        settings.write_text(f"""
            user root; daemon off; worker_processes 1; pid {self._directory}/pid; error_log {self._directory}/errors;
            events {{ worker_connections 512; }}
            http {{
                access_log off; sendfile on; server {{ listen {self._at[0]}:{self._at[1]}; root {self._directory}; }}
            }}""")
        self._ask = [ab, "-q", "-c", "8", *(["-k"] if keep else []), "-n"]
        self._count = count
        self._server = subprocess.Popen([nginx, "-c", settings], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, preexec_fn=kernel.die_with_parent)
        try:
            self._wait()
        except BaseException:
            self.close()
            raise

    def _wait(self):
        for _ in range(100):
            with suppress(OSError):
                socket.create_connection(self._at).close()
                return
            time.sleep(0.1)
        raise Unusable("nginx does not answer")

    def run(self, share=1.0):
        where = f"http://{self._at[0]}:{self._at[1]}/file"
        text = run_program([*self._ask, str(max(8, int(self._count * share))), where])
        said = {words: re.search(rf"^{words}:\s+([\d.]+)", text, re.M)
                for words in ("Complete requests", "Failed requests", "Time taken for tests")}
        if not all(said.values()) or said["Failed requests"].group(1) != "0":
            raise Unusable("ab: some requests failed")
        asked = int(said["Complete requests"].group(1))
        return Ran(float(said["Time taken for tests"].group(1)), asked, asked)

    def close(self):
        self._server.terminate()
        self._server.wait()
