"""Kernel queries of bench: run times of BPF programs, their owners, counters of operations."""

import ctypes
import os
import platform
import re
import struct
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)
_NR_BPF = {"x86_64": 321, "ppc64le": 361, "s390x": 351}.get(platform.machine(), 280)
_PROG_GET_FD_BY_ID, _MAP_GET_FD_BY_ID, _OBJ_GET_INFO_BY_FD, _ENABLE_STATS = 13, 14, 15, 32
_MAP_NAME = slice(24, 40)  # in struct bpf_map_info
_RUN_TIME_OFFSET = 192  # of run_time_ns and run_cnt in struct bpf_prog_info, the same since 5.1
_CLONE_NEWNS, _MS_REC, _MS_PRIVATE = 0x20000, 0x4000, 0x40000


def _checked(result, what):
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")
    return result


def _bpf(command, attr, what):
    buffer = ctypes.create_string_buffer(attr, 128)
    return _checked(_libc.syscall(_NR_BPF, command, buffer, 128), what)


class RunStats:
    """Enables run time statistics of BPF programs while it is open. The kernel disables them when this process ends,
    for whatever reason, so there is no setting to restore."""

    def __enter__(self):
        self._fd = _bpf(_ENABLE_STATS, struct.pack("I", 0), "BPF_ENABLE_STATS")
        return self

    def __exit__(self, *_):
        os.close(self._fd)


def stats_forced_on():
    return Path("/proc/sys/kernel/bpf_stats_enabled").read_text().strip() != "0"


def run_stats(prog_ids):
    """Sums over programs: run time in ns so far, and number of runs."""
    spent = runs = 0
    for prog_id in prog_ids:
        fd = _bpf(_PROG_GET_FD_BY_ID, struct.pack("I", prog_id), "BPF_PROG_GET_FD_BY_ID")
        try:
            info = ctypes.create_string_buffer(256)
            _bpf(_OBJ_GET_INFO_BY_FD, struct.pack("IIQ", fd, len(info), ctypes.addressof(info)), "BPF_OBJ_GET_INFO_BY_FD")
            ns, count = struct.unpack_from("QQ", info, _RUN_TIME_OFFSET)
            spent, runs = spent + ns, runs + count
        finally:
            os.close(fd)
    return spent, runs


def die_with_parent():
    """For preexec_fn: tracers end when bench is killed."""
    _libc.prctl(1, 9)


def descriptors(pid):
    """Link targets of a process's descriptors, e.g. anon_inode:bpf-prog."""
    for entry in os.scandir(f"/proc/{pid}/fd"):
        try:
            yield entry.name, os.readlink(entry.path)
        except OSError:
            continue


def attachments(pid):
    return sum(
        any(kind in target for kind in ("bpf_link", "bpf-link", "bpf-raw", "bpf-tracing", "[perf_event]"))
        for _, target in descriptors(pid)
    )


def _bpf_descriptors(pid):
    """fdinfo of the descriptors that belong to BPF."""
    for number, target in descriptors(pid):
        if "bpf" in target:
            lines = Path(f"/proc/{pid}/fdinfo/{number}").read_text().splitlines()
            yield dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def held_by(pids):
    """Ids of the BPF programs that processes hold, directly or by a link, and the bytes of their maps."""
    progs, maps = set(), {}
    for info in (info for pid in pids for info in _bpf_descriptors(pid)):
        if "prog_id" in info:
            progs.add(int(info["prog_id"]))
        if "map_id" in info:
            maps[info["map_id"]] = int(info["memlock"])
    return progs, sum(maps.values())


def maps_of(pid):
    """Names and bytes of the BPF maps that a process holds."""
    maps = {int(info["map_id"]): int(info["memlock"]) for info in _bpf_descriptors(pid) if "map_id" in info}
    return [(_map_name(map_id), size) for map_id, size in maps.items()]


def _map_name(map_id):
    fd = _bpf(_MAP_GET_FD_BY_ID, struct.pack("I", map_id), "BPF_MAP_GET_FD_BY_ID")
    try:
        info = ctypes.create_string_buffer(88)
        _bpf(_OBJ_GET_INFO_BY_FD, struct.pack("IIQ", fd, len(info), ctypes.addressof(info)), "BPF_OBJ_GET_INFO_BY_FD")
        return info.raw[_MAP_NAME].split(b"\0")[0].decode(errors="replace")
    finally:
        os.close(fd)


def memory_kb(pid):
    """PSS, its part in kernel maps (rings), private part and peak, in kB."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    field = lambda name, text: int(re.search(rf"^{name}:\s+(\d+)", text, re.M).group(1))
    areas = re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", Path(f"/proc/{pid}/smaps").read_text(), flags=re.M)
    rings = sum(field("Pss", area) for area in areas if "anon_inode:bpf-map" in area)
    return {
        "pss": field("Pss", rollup),
        "rings": rings,
        "private": field("Private_Clean", rollup) + field("Private_Dirty", rollup),
        "peak": field("VmHWM", Path(f"/proc/{pid}/status").read_text()),
    }


def context_switches():
    return int(re.search(r"^ctxt (\d+)", Path("/proc/stat").read_text(), re.M).group(1))


def softirqs():
    """Softirqs of all CPUs so far."""
    return sum(int(word) for line in Path("/proc/softirqs").read_text().splitlines()[1:] for word in line.split()[1:])


def interrupts():
    """Interrupts of devices so far, if they have handlers."""
    lines = Path("/proc/interrupts").read_text().splitlines()
    cpus = len(lines[0].split())
    rows = (line.split() for line in lines[1:])
    return sum(sum(int(n) for n in row[1:cpus + 1]) for row in rows if row[0].rstrip(":").isdigit())


def block_requests():
    """Requests completed on all disks with request queues (others make no requests, and no events)."""
    total = 0
    for line in Path("/proc/diskstats").read_text().splitlines():
        field = line.split()
        if os.path.isdir(f"/sys/block/{field[2].replace('/', '!')}/mq"):
            total += sum(int(field[i]) for i in (3, 7, 14, 18) if i < len(field))
    return total


def cgroup2_mount():
    """Where cgroup v2 is mounted, or None."""
    mounts = (line.split() for line in Path("/proc/self/mounts").read_text().splitlines())
    return next((fields[1] for fields in mounts if fields[2] == "cgroup2"), None)


def need_tracefs():
    """bpftrace needs tracefs mounted; if it is not, mounts it where only this process and its children see it."""
    if os.path.exists("/sys/kernel/tracing/events"):
        return False
    _checked(_libc.unshare(_CLONE_NEWNS), "unshare")
    _checked(_libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None), "mount --make-rprivate")
    _checked(_libc.mount(b"tracefs", b"/sys/kernel/tracing", b"tracefs", 0, None), "mount tracefs")
    return True
