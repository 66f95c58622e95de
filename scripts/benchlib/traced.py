"""Programs whose user stacks are traced: they compute and sleep a little, until they are ended."""

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

from benchlib import kernel
from benchlib.process import Unusable
from benchlib.workload import program

PYTHON = """
import json, re, time
word = re.compile(r"([a-z]+)(\\d*)")
def weigh(pair):
    return len(word.sub(lambda found: found.group(2) + found.group(1), pair[0])), pair[1]
def tree(depth):
    return {"leaf": depth} if not depth else {f"node{i}": tree(depth - 1) for i in range(2)}
def names(node):
    return sorted(((key, names(below)) for key, below in node.items()), key=weigh) if isinstance(node, dict) else []
while True:
    names(json.loads(json.dumps(tree(6)), object_hook=dict))
    time.sleep(0.001)
"""
_PERL = """
sub weigh { my ($word) = @_; $word =~ s/([a-z]+)(\\d*)/$2$1/; return length $word }
sub tree { my ($depth) = @_; return $depth ? [map { tree($depth - 1) } 1 .. 2] : ["leaf$depth"] }
sub names { my ($node) = @_; return ref $node ? sort { weigh($a) <=> weigh($b) or $a cmp $b } map { names($_) } @$node : $node }
while (1) { names(tree(6)); select(undef, undef, undef, 0.001) }
"""
# A pipe without a writer lets bash sleep without a child.
_BASH = """
tree() { local i; if (( $1 == 0 )); then words+=("leaf${#words[@]}"); return; fi; for i in 1 2; do tree $(( $1 - 1 )); done; }
while :; do words=(); tree 5; for word in "${words[@]}"; do [[ $word =~ ^([a-z]+)([0-9]*)$ ]] && word=${word//leaf/x}; done
read -r -t 0.001 -u 9; done
"""


@contextmanager
def started(argv, end=None, **more):
    """Runs a program during a with block, and yields its pid. `end`: the signal that ends it cleanly."""
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               preexec_fn=kernel.die_with_parent, **more)
    try:
        yield process.pid
        if process.poll() is not None:
            raise Unusable(f"{argv[0]} has ended with status {process.returncode}")
    finally:
        process.send_signal(end or signal.SIGKILL)
        process.wait()


def python():
    """The distribution's, not another one earlier on the path."""
    return "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable


def interpreter(name):
    """Runs a small endless program: python3, perl or bash; yields its pid."""
    if name == "python3":
        return started([python(), "-c", PYTHON])
    if name == "perl":
        return started([program("perl", "perl"), "-e", _PERL])
    return _bash()


@contextmanager
def _bash():
    reader, writer = os.pipe()
    try:
        with started([program("bash", "bash"), "-c", f"exec 9<&{reader}\n{_BASH}"], pass_fds=[reader]) as pid:
            yield pid
    finally:
        os.close(reader)
        os.close(writer)


class Postgres:
    """A private database server, in a private directory, reachable only there."""

    def __init__(self):
        self._undo = ExitStack()
        versions = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name))
        self._bin = versions[-1] if versions else Path(program("postgres", "postgresql")).parent
        self._pgbench = program("pgbench", "postgresql-contrib")
        owner = next((entry for entry in pwd.getpwall() if entry.pw_name in ("postgres", "nobody")), None)
        owner = next((entry for entry in pwd.getpwall() if entry.pw_name == "postgres"), owner)
        if not owner:
            raise Unusable("postgres does not run as root, and there is no user postgres or nobody")
        self._as = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
        self._directory = tempfile.mkdtemp(prefix="coretap-bench.")
        self._undo.callback(shutil.rmtree, self._directory, ignore_errors=True)
        os.chown(self._directory, owner.pw_uid, owner.pw_gid)
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def _start(self):
        data = f"{self._directory}/data"
        self._run([self._bin / "initdb", "-D", data, "-A", "trust", "-U", "bench", "-N"])
        self._undo.enter_context(_stopping(subprocess.Popen(
            [self._bin / "postgres", "-D", data, "-k", self._directory, "-c", "listen_addresses=", "-F", "-c", "autovacuum=off"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self._directory,
            preexec_fn=kernel.die_with_parent, **self._as)))
        self._to = ["-h", self._directory, "-U", "bench", "postgres"]
        for attempt in range(100):
            with suppress(Unusable):
                self._run([self._pgbench, "-i", "-q", "-s", "2", *self._to])
                return
            time.sleep(0.1)
        raise Unusable("postgres does not answer")

    def _run(self, argv):
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              cwd=self._directory, **self._as)
        if done.returncode:
            raise Unusable(f"{argv[0]}: {(done.stderr.strip() or 'failed').splitlines()[-1][:160]}")

    def busy(self):
        """Clients that read continuously, each from a permanent server process."""
        clients = str(len(os.sched_getaffinity(0)))
        return started([self._pgbench, "-S", "-c", clients, "-T", "600", *self._to], cwd=self._directory, **self._as)

    def close(self):
        self._undo.close()


@contextmanager
def _stopping(server):
    try:
        yield
    finally:
        server.send_signal(signal.SIGQUIT)  # immediately, including its children
        server.wait()


@contextmanager
def pgbench():
    """pid of pgbench; its server's processes are called postgres."""
    with closing(Postgres()) as server, server.busy() as pid:
        time.sleep(1)  # until all clients have their server process
        yield pid
