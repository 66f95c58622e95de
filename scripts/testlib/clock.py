"""Time limits of a run, and the end of all that it has started."""

import ctypes
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
GRACE_SECONDS = 10  # between SIGTERM and SIGKILL
ENDED = None  # instead of an exit status: ended by the clock

_started = set()  # pids; other children are orphans


class Clock:
    """`plan`: no part starts that would not end by then, unless it must. `limit`: everything ends by then. Seconds from now."""

    def __init__(self, plan=None, limit=None):
        self.begun, self.plan, self.limit = time.monotonic(), plan, limit

    def passed(self):
        return time.monotonic() - self.begun

    def fits(self, seconds):
        return self.plan is None or self.passed() + seconds <= self.plan

    def left(self):
        """Seconds until the limit; None: no limit."""
        return None if self.limit is None else max(0.0, self.limit - self.passed())


def adopt_orphans():
    """Processes whose parents have ended become this one's children, so that end_tree() finds them."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _parents():
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                # The command's name, in parentheses, may contain anything.
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
    return parents


def _started_by(process):
    """The process, its descendants, and processes whose parents have ended."""
    parents = _parents()
    found = {process.pid} | {pid for pid, parent in parents.items() if parent == os.getpid() and pid not in _started}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def start(command, **options):
    process = subprocess.Popen([str(c) for c in command], start_new_session=True, **options)
    _started.add(process.pid)
    return process


def end_tree(process):
    """Ends a process of start() and all that it has started."""
    pids = _started_by(process)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in pids:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass
        end = time.monotonic() + GRACE_SECONDS
        while time.monotonic() < end and any(Path(f"/proc/{pid}").exists() for pid in pids - {process.pid}):
            process.poll()
            for pid in pids - {process.pid}:
                try:
                    os.waitpid(pid, os.WNOHANG)
                except ChildProcessError:
                    pass
            time.sleep(0.05)
        pids |= _started_by(process)
    process.wait()


def call(command, limit=None, **options):
    """-> exit status, or ENDED after `limit` seconds; all that it started has then ended, too"""
    process = start(command, **options)
    try:
        return process.wait(limit)
    except subprocess.TimeoutExpired:
        return ENDED
    finally:
        if process.returncode is None:
            end_tree(process)


def only_idle_time():
    """This thread, and processes that it starts from now on, run only while a CPU is otherwise idle."""
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


class Beside:
    """A command that runs in parallel; its output is shown only if it fails. `idle`: while CPUs are otherwise idle."""

    def __init__(self, command, log, limit=None, idle=False, **options):
        self.log, self.status, self.said = log, 0, False
        self.thread = threading.Thread(target=self._run, args=(command, limit, idle, options), daemon=True)
        self.thread.start()

    def _run(self, command, limit, idle, options):
        if idle:
            only_idle_time()
        with open(self.log, "w") as log:
            self.status = call(command, limit, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, **options)

    def wait(self):
        """-> its status, the end of its output unless that was `said`"""
        self.thread.join()
        return self.status, "" if self.status == 0 or self.said else "".join(Path(self.log).read_text(errors="replace").splitlines(True)[-60:])
