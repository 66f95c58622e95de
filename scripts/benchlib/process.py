"""Starts a tracer, detects when it is attached, and ends it in any case."""

import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchlib import kernel

SETTLE = 0.25  # attached: no further attachment for this long
TIMEOUT = 60  # attaching to all functions takes long under emulation


class Unusable(Exception):
    """This subject cannot be measured here; the text has the reason."""


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def find_program(name):
    return shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")


def output_of(argv):
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


@dataclass
class Subject:
    """A command to be measured. Its label is its column: coretap, peer, floor, bpftrace, strace..."""

    label: str
    argv: list
    note: str = ""
    beside: list = field(default_factory=list)  # commands that run at the same time, and are included

    def by(self, coretap):
        """The same commands of another coretap, as the peer."""
        ours = lambda argv: [coretap, Path(argv[0]).name, *argv[1:]]
        return Subject(self.label.replace("coretap", "peer"), ours(self.argv), beside=[ours(argv) for argv in self.beside])


def _last_words(log):
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    # libbpf's last line is about clean-up; the first failure is the cause.
    cause = [line for line in lines if "ermission" in line or "rror" in line or "fail" in line]
    return (cause or lines or ["said nothing"])[0][:160]


def _end(process):
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(20)  # it may still have much to write
        except subprocess.TimeoutExpired:
            pass
    if process.poll() is None:
        process.kill()
        process.wait()


def log_of(scratch, number=0):
    """The subject's output and errors, complete when it has ended."""
    return Path(scratch, f"subject{number}.log")


@contextmanager
def running(subject, scratch):
    """Runs the subject during a with block, attached and at rest; yields the pids of its commands."""
    with ExitStack() as stack:
        yield [stack.enter_context(_running(argv, log_of(scratch, number)))
               for number, argv in enumerate([subject.argv, *subject.beside])]


@contextmanager
def _running(argv, log):
    with log.open("wb") as errors:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=errors,
            stderr=errors,
            preexec_fn=kernel.die_with_parent,
            start_new_session=True,
        )
    try:
        _wait_attached(process, log)
        yield process.pid
    finally:
        _end(process)


def _wait_attached(process, log):
    seen, since, begin = 0, 0, time.monotonic()
    while True:
        if process.poll() is not None:
            raise Unusable(f"cannot run here: {_last_words(log)}")
        found, now = kernel.attachments(process.pid), time.monotonic()
        if found != seen:
            seen, since = found, now
        if seen and now - since > SETTLE:
            return
        if now - begin > TIMEOUT:
            raise Unusable(f"not attached after {TIMEOUT} s: {_last_words(log)}")
        time.sleep(0.02)


def time_to_attach_ns(helper, subject, scratch):
    """From exec to the last attachment, polled by a helper every 0.2 ms."""
    log = log_of(scratch)
    done = subprocess.run(
        [helper, str(int(SETTLE * 1000)), str(TIMEOUT * 1000), log, *subject.argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=kernel.die_with_parent,
    )
    said = log.read_text(errors="replace")
    if done.returncode or "could not attach" in said:
        raise Unusable(_last_words(log) if said.strip() else done.stderr.strip())
    return int(done.stdout)


def time_to_say_ns(subject, words, scratch):
    """From exec until its output matches this pattern of bytes."""
    log, said = log_of(scratch), b""
    start = time.monotonic_ns()
    with log.open("wb") as errors:
        process = subprocess.Popen(subject.argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
                                   preexec_fn=kernel.die_with_parent, start_new_session=True)
    try:
        while time.monotonic_ns() - start < TIMEOUT * 1e9:
            if select.select([process.stdout], [], [], 1)[0]:
                part = os.read(process.stdout.fileno(), 4096)
                said += part
                if re.search(words, said):
                    return time.monotonic_ns() - start
                if not part:
                    break
        raise Unusable(f"cannot run here: {_last_words(log)}")
    finally:
        _end(process)
        process.stdout.close()


def compile_helper(source, target, *libraries):
    """Builds a helper of benchlib for this machine."""
    compiler = find_program("cc") or find_program("gcc")
    if not compiler:
        raise Unusable("no C compiler")
    done = subprocess.run([compiler, "-O2", "-o", target, source, *libraries], stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise Unusable(f"{source.name} cannot be compiled: {done.stderr.strip().splitlines()[0]}")
    return str(target)
