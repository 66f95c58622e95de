"""The two workloads: context switches and direct writes. Each counts its own operations."""

import os
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchlib import kernel
from benchlib.process import Unusable, find_program


def _run(argv):
    process = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=kernel.die_with_parent,
        start_new_session=True,
    )
    try:
        out, errors = process.communicate()
    except BaseException:
        # perf's two halves wait for each other for ever if only one is ended.
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
    operations: int  # on the whole machine while it ran, as the tracer saw them too
    own: int  # those the workload made


class Switches:
    """Two processes on one CPU that hand a byte to and fro."""

    unit = "switch"

    def __init__(self, loops=100_000):
        self._perf = find_program("perf")
        if not self._perf:
            raise Unusable("perf is missing (package linux-perf)")
        self._loops = loops
        self._cpu = max(os.sched_getaffinity(0))

    def run(self, share=1.0):
        loops = max(1, int(self._loops * share))
        before = kernel.context_switches()
        seconds = float(_run(["taskset", "-c", str(self._cpu), self._perf, "bench", "-f", "simple", "sched", "pipe", "-l", str(loops)]))
        return Ran(seconds, kernel.context_switches() - before, 2 * loops)

    def close(self):
        pass


class Writes:
    """One process that writes blocks past the page cache, over a file that has its blocks already."""

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
            _run(["dd", "if=/dev/zero", f"of={self._file}", "bs=1M", "count=80", "oflag=direct", "conv=fsync"])
        except Unusable:
            self.close()
            raise
        if self.run(0.05).operations < 0.05 * count:
            self.close()
            raise Unusable(f"direct writes in {directory} reach no disk that counts its requests (choose another with --io-dir)")

    def run(self, share=1.0):
        count = max(1, int(self._count * share))
        before, start = kernel.block_requests(), time.monotonic()
        _run(["dd", "if=/dev/zero", f"of={self._file}", "bs=4k", f"count={count}", "oflag=direct", "conv=notrunc"])
        seconds = time.monotonic() - start
        return Ran(seconds, kernel.block_requests() - before, count)

    def close(self):
        self._file.unlink(missing_ok=True)
