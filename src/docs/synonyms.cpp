// Terms of users for what the tools' texts call otherwise, and for what no tool here shows.
#include "docs/search.hpp"

namespace coretap {

namespace {

/// Each `meant` names words that stand together in the texts of a tool.
constexpr Synonym kSynonyms[] = {
    // memory
    {"thp, transparent hugepage, transparent huge page, hugepage, khugepaged", "huge pages"},
    {"minor fault, major fault, minor page fault, major page fault, pagefault, page fault",
     "page faults"},
    {"oom, oom killer, out of memory, ran out of memory", "memory ran out killed"},
    {"swap, swapping, paging, swapped", "swap wait"},
    {"page cache hit ratio, cache hit ratio, hit ratio, hit rate, cache hit",
     "page cache hits and misses"},
    {"working set, refault, thrashing, wss", "enough memory for files"},
    {"reclaim, kswapd, memory pressure, low memory, not enough memory, page scan",
     "memory reclaim kswapd"},
    {"direct reclaim, allocation stall, allocstall", "direct reclaim allocations"},
    {"defragmentation, defrag, fragmented memory, buddyinfo, buddy allocator",
     "fragmentation memory"},
    {"slab, slabtop, kernel memory", "slab caches objects allocated"},
    {"leak, leaking, memory grows, memory growth, rss grows", "leak memory"},
    {"sbrk, brk, heap growth, heap", "grow heap"},
    {"ipcs, shm", "shared memory"},
    {"memory usage, memory consumption, rss, high memory", "holds memory"},
    // CPU
    {"context switch, csw, cswitch, voluntary switch, involuntary switch, time slice, timeslice",
     "runs before it leaves the CPU time slices"},
    {"run queue, runqueue, runq, scheduler latency, scheduling delay, scheduling latency, "
     "cpu saturation",
     "run queue latency"},
    {"cpu steal, steal time, stolen, hypervisor takes cpu", "stolen time"},
    {"throttle, throttling, throttled, cpu quota, cfs quota, cpu limit, cpu max",
     "limit cpu cgroup"},
    {"noisy neighbour, noisy neighbor, neighbor", "neighbours"},
    {"docker, kubernetes, k8s", "container"},
    {"flame graph, flamegraph, perf top, perf record, cpu profiler, profiler, hot function, hotspot, "
     "hot code, hot path",
     "CPU functions sampled"},
    {"off cpu, offcpu, blocked time, blocking", "off-CPU time"},
    {"wall clock, wallclock, latency breakdown, thread state, thread state analysis",
     "where the time goes"},
    {"irq, hard irq, interrupt, interrupt storm", "interrupt handlers"},
    {"softirq, soft irq, softnet, ksoftirqd", "softirqs"},
    {"fork bomb, fork, spawn, clone, procsnoop", "new processes fork"},
    {"short lived process, short lived, stealth process, short process, execve",
     "new programs exec arguments"},
    {"load, load average, uptime, high load", "load averages"},
    {"d state, uninterruptible, uninterruptible sleep, blocked task, hung task", "tasks state D"},
    {"lock contention, mutex contention, contended lock, pthread mutex, futex, mutex",
     "futexes locks contended"},
    {"contention", "contended"},
    {"kernel lock, spinlock, spin lock, rwsem", "kernel locks"},
    {"hang, hangs, hung, stuck, frozen", "hang waits"},
    {"cpu frequency, clock speed, turbo, cpu scaling, cpufreq governor", "CPU frequencies"},
    {"tlb, tlb shootdown, ipi, inter processor interrupt", "CPUs flush TLBs"},
    {"cache miss, llc, l3, last level cache, cpu cache", "last-level cache misses"},
    {"numa balancing, remote memory, numa node", "NUMA"},
    {"workqueue, kworker", "work queue kworkers"},
    {"imbalance, load balance, load balancing, idle cpu", "CPUs are idle"},
    {"hogging cpu, cpu hog, cpu usage, high cpu, cpu bound", "uses the CPU"},
    {"sys time, system time, sy time, kernel time", "kernel code CPU time"},
    // disks and file systems
    {"iowait, io wait, wa", "slow disk block I/O"},
    {"disk latency, io latency, await, slow disk, slow io, disk response time, storage latency",
     "block I/O latency histogram slow disk"},
    {"iops, iostat, iotop, disk throughput, disk usage by process, who uses the disk",
     "disk I/O process screen"},
    {"queue depth, io queue, io queue time, device queue", "I/O wait queue scheduler device"},
    {"fsync, sync, fdatasync", "wait for fsync"},
    {"delete, deleted, unlink, rm, removed, who deleted", "files removed by whom"},
    {"open file, lsof, file access, who opens", "files opened by whom"},
    {"dirty page, flush dirty, writeback, pdflush", "dirty pages"},
    {"sequential, random io, access pattern", "random and sequential I/O"},
    {"nfs latency, ext4 latency, xfs latency, file system latency, filesystem latency, filesystem",
     "file systems operations"},
    {"prefetch, readahead, read ahead", "read-ahead"},
    {"bad sector, io error, disk error, medium error, disk failure", "block I/O failed"},
    {"dentry, dcache, path lookup", "directory-entry cache"},
    {"raid, mdraid, mdadm", "RAID"},
    // networks
    {"dns, resolver, name resolution, name server, nameserver, getaddrinfo, nslookup",
     "host names resolved"},
    {"retransmit, retransmission, retransmitted, packet loss, lost packet, lossy",
     "TCP retransmits"},
    {"netstat, ss, connection, network connection, active connection",
     "TCP sessions who talked to whom"},
    {"port in use, address in use, eaddrinuse, bind, listening port, who uses port",
     "binds a port address"},
    {"connect time, connection time, connection latency", "latency of connects"},
    {"connection refused, econnrefused, cannot connect, refused, connect timeout, connection timeout, "
     "etimedout",
     "connections refused or time out"},
    {"rtt, round trip, ping, network latency", "round-trip time"},
    {"packet drop, dropped packet, drop, kfree skb", "TCP packets drops"},
    {"bandwidth, top talker, network throughput, nethogs, iftop, network usage",
     "bytes process connection screen"},
    {"syn flood, listen backlog, accept queue, backlog, listen overflow", "accept queues backlog"},
    {"time wait, close wait, socket state, fin wait", "states of TCP sockets"},
    {"tls, ssl, https, plaintext, decrypted, encrypted traffic", "TLS"},
    {"nic, network card, rss queue, multi queue", "network card queues"},
    {"congestion, cwnd", "congestion control"},
    // programs and system calls
    {"time, response time, duration, delay", "latency"},
    {"signal, sighup, sigterm, sigint", "signals"},
    {"zombie, defunct", "processes end"},
    {"wait for each other, circular wait", "deadlock"},
    {"strace, perf trace", "like strace"},
    {"changed file, modified, who changed, who modified, who writes, overwritten",
     "process writes directory"},
    // other programs
    {"vmstat, sar, free", "memory reclaim kswapd"},
    {"mpstat", "user system interrupt stolen idle time of each CPU"},
    {"perf stat, pmu, hardware counter, ipc, cpi, branch misprediction, branch miss",
     "counts of perf events instructions per cycle"},
    {"top, htop, pidstat", "uses the CPU"},
    {"perf sched", "run queue latency"},
    {"syscall", "system calls"},
    {"sql, query, mysql, postgres, slow query, database", "queries database"},
    {"gc, garbage collection, jvm, stop the world", "garbage collection"},
    {"kill, kills, killed by, sigkill, who killed", "process kills signals"},
    {"crash, segfault, core dump, coredump, died", "processes end"},
    {"permission denied, eacces, eperm, operation not permitted, privilege",
     "not permitted capabilities"},
    {"shell history, keystroke, typed, command history", "commands typed"},
    {"file not found, enoent, missing file, no such file", "file missing opened"},
    {"profile function, ltrace, function call", "calls of functions"},
    {"vm exit, hypervisor, virtualization, qemu", "virtual machine"},
    {"library load, shared library, dlopen", "libraries load"},
};

constexpr NotHere kNotHere[] = {
    {"false sharing, cache line, cacheline bouncing, cache line bouncing, c2c", "perf c2c record",
     "Which CPUs write to the same cache line: only the processor knows the addresses, and samples "
     "them for perf."},
    {"lbr, last branch record, branch stack", "perf record -b",
     "The processor's record of the last branches."},
    {"memory bandwidth", "perf stat -M", "Metrics of the memory controllers, which perf knows."},
    {"packet capture, pcap, packet content, tcpdump, wireshark", "tcpdump",
     "The contents of packets; the tools here show connections, and the processes that have them."},
    {"disk full, disk space, free space", "df",
     "How full file systems are; filetop and writesync show what writes to them."},
};

}  // namespace

std::span<const Synonym> synonyms() { return kSynonyms; }
std::span<const NotHere> not_here() { return kNotHere; }

}  // namespace coretap
