// The text of `coretap guide`.
#include "docs/guide.hpp"

namespace coretap {

namespace {

GuideStep why(std::string_view next) {
  return {
      .question = "What costs the most time?",
      .command = "why 10",
      .reading =
          "The first line tells how many threads were busy. Each cause has its share of the busy "
          "time, evidence, and a command that shows more. With -p PID or -c CGROUP it is about "
          "one program or service.",
      .next = next};
}

GuidePage checklist() {
  return {
      .name = "checklist",
      .summary = "the first minute on a slow machine",
      .about =
          "Ten commands, in this order, give a picture of the whole machine. Write down what is "
          "unusual, and follow it with the page of that name.",
      .parts = {
          {"Ten commands",
           {},
           {why("If it names a cause, go to the page for it. The rest of this list finds what "
                "costs little time now, but is wrong."),
            {"Do tasks run, or are they blocked?", "loads -e 1 1",
             "The load averages of 1, 5 and 15 minutes show whether the load rises or falls. Rows "
             "with R want a CPU; rows with D wait for disks or locks of the kernel.",
             "Mostly R: guide cpu. Mostly D: guide disk."},
            {"How long do tasks wait for a CPU?", "runqlat 5 1",
             "Waits below a millisecond are normal. Many waits of 8 ms or more mean that there "
             "are too few CPUs, or that a limit holds tasks back.",
             "If waits are long: guide cpu."},
            {"Are all CPUs used?",
             "cpuwalk 5 1",
             "Each row is a CPU, with the milliseconds in which it ran tasks. One long bar is a "
             "program with one thread, or interrupts that all go to one CPU.",
             {}},
            {"Which processes end before top shows them?", "execsnoop --duration 5",
             "A line per new program. Dozens per second come from scripts, health checks, or a "
             "service that is restarted again and again.",
             "If there are many: the part Short-lived processes of guide cpu."},
            {"Is memory short?", "vmscan 1 5",
             "D-RECLAIMms is time that programs lost because free memory was short, M-RECLAIMms "
             "because a cgroup was at its limit. KSWAPD alone is no problem.",
             "If one of these is not 0: guide memory."},
            {"Does the page cache help?", "cachestat 1 5",
             "A hit ratio that falls, with many misses, means that files are read from disks.",
             "If misses are many: the part Working set of guide memory."},
            {"Are disks slow?", "biolatency -D 5 1",
             "A histogram for each disk. Flash memory takes up to a millisecond, rotating disks "
             "take some 10 ms. A second group of bars far below is a queue, or an error that is "
             "tried again.",
             "If I/O is slow: guide disk."},
            {"Does the network lose packets?", "tcpretrans --duration 5",
             "A line per segment that was sent again. A few per minute are normal, many to one "
             "address are not.",
             "If there are many: guide network."},
            {"Which system calls fail?",
             "syscount -x 5 1",
             "EAGAIN and ENOENT are usual. EMFILE means that there are too few file descriptors, "
             "ENOMEM that memory is short, ETIMEDOUT that a peer does not answer.",
             {}}}}}};
}

GuidePage use() {
  return {
      .name = "use",
      .summary = "each resource by utilisation, saturation and errors (USE method)",
      .about =
          "For each resource, ask three questions: how much of it is used (utilisation), how "
          "much work waits for it (saturation), and what fails (errors). The list is complete, "
          "so it also finds what no one suspects. Errors are quick to check; saturation hurts "
          "most.",
      .parts = {
          {"All resources", {}, {why("The list below checks what costs no time yet.")}},
          {"CPUs",
           {},
           {{"Utilisation: how busy is each CPU?",
             "cpuwalk 5 1",
             "The milliseconds in which each CPU ran tasks, of the 5000 that there were.",
             {}},
            {"Saturation: how long do tasks wait for a CPU?", "runqlat 5 1",
             "Utilisation can be low on average while tasks wait: only the waits count.",
             "guide cpu"},
            {"Errors: are CPUs clocked down?", "cpufreq --duration 5",
             "Low frequencies under load mean that heat or a power limit slows the CPUs.",
             "Check cooling, and the governor in "
             "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor. The governor performance "
             "costs power."}}},
          {"Memory",
           {},
           {{"Utilisation: how much memory do files have?",
             "cachestat 1 3",
             "CACHED_MB and BUFFERS_MB are memory that the kernel can free. Memory that looks "
             "used up is normal; see MemAvailable in /proc/meminfo.",
             {}},
            {"Saturation: do programs wait for memory?", "vmscan -e 1 3",
             "D-RECLAIMms and M-RECLAIMms are waits, and with -e there is how many there were.",
             "guide memory"},
            {"Saturation: do programs wait for swap?", "swapin 5 1",
             "AVG(ms) is what a page fault costs that reads from swap.", "guide memory"},
            {"Errors: were processes killed?", "oomkill --duration 5",
             "A line per process that was killed for lack of memory, and the task that needed it.",
             "For kills in the past, see the kernel's log (dmesg)."}}},
          {"Disks",
           {},
           {{"Utilisation: which disk and process have most I/O?",
             "biotop -C 5 1",
             "I/O and KB per process and disk.",
             {}},
            {"Saturation: how long do requests wait in the queue?", "iosched -D 5 1",
             "Time from insertion to issue. Long waits here, and short ones in biolatency, mean "
             "that the disk gets more than it can do at a time.",
             "guide disk"},
            {"Errors: do requests fail?", "bioerr --duration 5",
             "A line per request that failed, with the sector.",
             "Errors of a disk call for a new one: save the data first."}}},
          {"Network",
           {},
           {{"Utilisation: which connections carry most bytes?",
             "tcptop -C 5 1",
             "Compare the sum with the speed of the interface.",
             {}},
            {"Saturation: do servers accept in time?", "tcpsynbl 5 1",
             "The length of accept queues. Values near the backlog mean that the server does not "
             "accept fast enough.",
             "guide network"},
            {"Errors: which packets are dropped, and why?", "tcpdrop -c --duration 5",
             "Counts by reason and stack.", "guide network"}}},
          {"Locks",
           {},
           {{"Utilisation: how long are locks of the kernel held?",
             "klockstat --holds --duration 5",
             "The callers that hold locks longest.",
             {}},
            {"Saturation: how long do tasks wait for them?", "klockstat --duration 5",
             "The callers that wait longest. For locks of programs, use futexctn.",
             "guide locks"}}},
          {"Descriptors and other limits",
           {},
           {{"Errors: which system calls fail for lack of something?",
             "syscount -x 5 1",
             "EMFILE, ENFILE, ENOMEM, ENOSPC and EAGAIN of fork or clone name what is used up.",
             {}}}}}};
}

GuidePage memory() {
  return {
      .name = "memory",
      .summary = "memory that is short, fragmented, reclaimed too early, or leaked",
      .about =
          "The kernel uses free memory for files, so little free memory is normal. It costs time "
          "only if programs must free memory themselves, read again what was removed, or move "
          "pages to get large blocks.",
      .parts = {
          {"Is memory short?",
           {},
           {why("If memory is among the causes, follow its command; \"reads again what memory had no "
                "room for\" is a working set that does not fit. If not, memory costs little now: "
                "the line with Not the cause says so."),
            {"Do programs wait until memory is freed?", "vmscan -e 1 5",
             "Direct reclaim (D-RECLAIMms, D-RUNS) is work that a program must do before it gets "
             "memory. Reclaim at the limit of a cgroup is M-RECLAIMms. If only KSWAPD counts, the "
             "kernel keeps up in the background.",
             "With M-RECLAIMms, raise memory.high or memory.max of the cgroup, if others can "
             "spare the memory, or use less."},
            {"Which programs wait, and how long?", "drsnoop -M -e --duration 5",
             "LAT(ms) is the delay of one allocation. KIND memcg is a cgroup at its limit. With "
             "much free memory and ORDER above 0, memory is not short but fragmented.",
             "Fragmented: the next part. Bursts: raise vm.min_free_kbytes or "
             "vm.watermark_scale_factor, so that kswapd starts earlier. Both take memory from "
             "programs: stay below 5 % of it, and go in small steps. Values that are too large "
             "cause out-of-memory kills."},
            {"Do programs wait for swap?", "swapin 5 1",
             "COUNT page faults had to read from swap. A few after a quiet time are normal; a "
             "steady rate is not.",
             "Find what grows (memleak, brkstack), or add memory. A lower vm.swappiness makes the "
             "kernel remove file pages first, which then are read again."},
            {"Was a process killed?",
             "oomkill --duration 5",
             "The line names the process, the task that triggered the kill, and whether the limit "
             "of a cgroup was the reason.",
             {}}}},
          {"Huge pages and fragmentation",
           "Transparent huge pages save time in the TLB, but need free blocks of 2 MB. If "
           "memory is fragmented, the kernel compacts and reclaims for them, and system time "
           "rises. Five steps show whether this happens.",
           {{"1. Do programs reclaim memory directly?",
             "vmscan -e 1 5",
             "D-RUNS and D-PAGES show what pgscand/s of sar -B stands for. If they stay at 0, "
             "huge pages cause no stalls by reclaim; go on with step 4.",
             {}},
            {"2. Is it lack of memory, or fragmentation?", "extfrag -i 1 1",
             "One number per order for each zone. Towards 0: memory is short. Towards 1: memory "
             "is fragmented. -1: an allocation would succeed. Order 9 is a huge page of 2 MB on "
             "x86-64.",
             "Above vm.extfrag_threshold / 1000 the kernel compacts, below it reclaims. Leave the "
             "setting alone: it moves the cost from one to the other."},
            {"3. How much of the free memory is too small?", "extfrag -u 1 1",
             "The share of free memory that an allocation of each order cannot use. Small "
             "shares at low orders and 1.000 at order 9 is fragmentation.",
             "extfrag -w 1 1 shows what the kernel would do at each order."},
            {"Which pages are in the way?", "extfrag --types 1 1",
             "Free blocks by zone, type and order. A mark says that all free memory below an order "
             "is unmovable: allocations of the kernel fill the page blocks.",
             "slabratetop shows which slab caches grow."},
            {"4. What do compaction and reclaim cost?",
             "compactsnoop -T -e --duration 5",
             "LAT(ms) of runs of KIND direct is a delay of the program in the line. STATUS tells "
             "whether it helped. drsnoop shows the same for reclaim.",
             {}},
            {"How long does one allocation wait in all?",
             "allocslower -T --duration 5",
             "One allocation can cause many runs of both: STEPS has them in their order, and "
             "RETRIES counts the repeated reclaims.",
             {}},
            {"Does compaction help at all?", "vmscan --counters 5 1",
             "compact_stall are allocations that compacted memory themselves; many compact_fail "
             "among them are work for nothing. thp_fault_fallback are faults that got no huge page.",
             "If most fail, free memory is unmovable: see --types above."},
            {"5. Does system time come from it?", "profile -K --functions=total 5",
             "Look for compact_zone, isolate_migratepages, shrink_lruvec and clear_huge_page: "
             "TOTAL is the share with all that they call.",
             "If they have much of the time, change the settings below."},
            {"Who gets huge pages?", "hfaults 5 1",
             "THP are page faults that got one, FALLBACK those that got none. Databases and "
             "language runtimes are the usual ones.",
             "The files enabled and defrag in /sys/kernel/mm/transparent_hugepage decide. Write "
             "madvise to enabled: then only programs that ask get huge pages. Or write "
             "defer+madvise to defrag: then the faults of other programs do not wait. Risks: "
             "programs that gain from huge pages become slower; pages that are huge already "
             "stay so until the program restarts; the values last until the next boot. To "
             "repair fragmented memory once, write 1 to /proc/sys/vm/compact_memory: that takes "
             "CPU time, and delays allocations meanwhile. vm.compaction_proactiveness lets the "
             "kernel do it in the background; high values cost CPU time."},
            {"What fragments memory?", "extfrag -a -P 5 1",
             "Rows with FRAGMENTING yes took part of a page block of another type. AMIGTYPE "
             "unmovable is what compaction cannot repair.",
             "The same with -K and -e shows the code. A higher vm.min_free_kbytes makes such "
             "fallbacks rarer, with the risk above."}}},
          {"Working set and premature reclaim",
           "The working set is the memory that programs use again and again. If it does not "
           "fit, the kernel removes pages and reads them again soon. This happens with free "
           "memory, too: in a cgroup at its limit, or in one NUMA node.",
           {{"Are files read again and again?",
             "cachestat 1 5",
             "MISSES that do not fall after the first minutes, on the same files, mean that the "
             "working set does not fit.",
             {}},
            {"Which process reads what is no longer in the cache?", "cachetop -s misses -C 5 1",
             "The process with most MISSES. A backup, or a scan of a large file, removes the "
             "pages of others.",
             "Limit such a program with memory.high of a separate cgroup. Risk: it becomes slower."},
            {"Do programs wait for their own code or mapped files?",
             "fmapfault -s major_faults 5 1",
             "Major faults on programs and libraries mean that memory is far too short: code is "
             "read from the disk again and again.",
             "Add memory, or move work away. This state is called thrashing."},
            {"Why does the kernel reclaim with free memory?", "drsnoop -M -e --duration 5",
             "FREE(KB) is the machine's free memory. If it is large, look at KIND (memcg: a "
             "cgroup at its limit), NODE (one node is full) and ORDER (fragmentation).",
             "Limit: raise memory.max. One node: check numactl, and leave vm.zone_reclaim_mode "
             "at 0. Do not write to /proc/sys/vm/drop_caches as a remedy: it makes all programs "
             "read their files again, and is of use only before measurements."}}},
          {"Leaks and growth",
           {},
           {{"Does the kernel leak?", "memleak 5 1",
             "The stacks at the end hold most of the memory that was allocated during the run and "
             "not freed. Compare several reports: a leak grows in each.",
             "For a program, add -p PID. Only memory that is never freed is a leak; caches grow "
             "to their size and stop."},
            {"Which code grows heaps?",
             "brkstack 5",
             "Bytes by stack and process. Growth that ends is start-up, growth that does not "
             "end is a leak or a cache without a limit.",
             {}},
            {"Which objects does the kernel allocate most?",
             "slabratetop -C 5 1",
             "Allocations per cache, not what is in use: see /proc/slabinfo for that.",
             {}}}}}};
}

GuidePage cpu() {
  return {
      .name = "cpu",
      .summary = "busy CPUs, waits for a CPU, system time, and processes that end soon",
      .about =
          "First distinguish programs that compute, programs that wait for a CPU, and the "
          "kernel's own work. They have different remedies.",
      .parts = {
          {"Busy CPUs",
           {},
           {why("If it names a limit or another program that has the CPU, follow its command. If it "
                "only says that the program computes, the next step finds the code."),
            {"Do programs compute, or the kernel, and on all CPUs?", "cputimes 1 5",
             "The time of each CPU: %usr in programs, %sys, %irq and %soft in the kernel, %steal "
             "taken by the hypervisor, %idle unused.",
             "%usr: the next step. %sys, %irq or %soft: system time, below. %steal: the host has "
             "too few CPUs. One busy CPU beside idle ones: one thread computes, or affinity."},
            {"Which code uses the CPUs?", "profile --functions 5",
             "Functions by their share of the CPU time: SELF in the function itself, TOTAL with "
             "what it calls. With --svg FILE it is a flame graph: wide frames have much time.",
             "Improve what is at the top. A thread at 100 % cannot gain from more CPUs."},
            {"Do tasks wait although CPUs are idle?", "runqlat --affinity 5 1",
             "Each wait is split: quota is a CPU limit (cpu.max), cpu_idle a CPU that was idle, "
             "cpus_busy a lack of CPUs.",
             "quota: raise cpu.max of the cgroup. cpus_busy: fewer threads, or more CPUs. "
             "cpu_idle: check the affinity (taskset, cpusets)."},
            {"Which task has the CPU while others wait?", "runqslower -P --duration 5 10000",
             "A line per wait of more than 10 ms, with the task that ran before.",
             "Give batch work a lower weight (cpu.weight, nice). Real-time priorities are a risk: "
             "such a task can keep all others from the CPU."},
            {"Is one CPU overloaded?",
             "runqlen -C 5 1",
             "The queue of each CPU. A long queue on one CPU, and none on others, comes from "
             "affinity or from interrupts.",
             {}}}},
          {"System time",
           "Much time in the kernel (sys in top) is time in system calls, page faults, "
           "interrupts, or in memory management.",
           {{"Which kernel code takes it?", "profile -K --tree 5",
             "The outer frames name the way in: do_syscall_64, page faults, interrupts. The "
             "innermost ones name the work: native_queued_spin_lock_slowpath is a contended lock, "
             "clear_page and compact_zone are memory.",
             "Locks: guide locks. Memory: guide memory."},
            {"Which system calls does it go to?", "syscount -L -P 5 1",
             "Processes by the time of their system calls, waits included. Without -P, by system "
             "call.",
             "Many short calls: fewer, larger ones."},
            {"Do interrupts take CPU time?", "softirqs 5 1",
             "net_rx is received packets, timer and rcu are housekeeping. hardirqs shows the "
             "handlers of devices.",
             "If one CPU has all of it (--per-cpu): spread the queues of the network card over CPUs. "
             "Moving interrupts by hand works against irqbalance."}}},
          {"Short-lived processes",
           "Processes that end within a sample of top never appear there, but use CPU time. The "
           "sum of what top shows is then less than the load of the machine.",
           {{"Does something create processes all the time?",
             "pidpersec 1 5",
             "More than some tens per second on a server come from scripts, health checks, "
             "builds, or from a service that fails and restarts.",
             {}},
            {"Which programs are they, and who starts them?", "execsnoop -M --duration 5",
             "One line per program, with its parent and arguments.",
             "Replace calls of small programs in loops. A name that comes each second with one "
             "parent is a health check or a supervisor."},
            {"How do they end, and after how long?",
             "exitsnoop --duration 5",
             "AGE is the time from start to end. An exit code other than 0, or a signal, means "
             "that the program fails and is started again.",
             {}},
            {"How much CPU time do they take?",
             "profile --by comm 5",
             "Samples by command name; those of processes that have ended count, too.",
             {}}}},
          {"Containers",
           {},
           {{"Does a container wait for its limit, or for others?", "neighbours 5 1",
             "For each cgroup: time with a CPU, without quota, and behind others, by name.",
             "Quota: raise cpu.max, or remove it and use cpu.weight. Others: give them a lower "
             "cpu.weight, or move one of them. Without quotas, a busy container takes what is "
             "idle."}}}}};
}

GuidePage disk() {
  return {
      .name = "disk",
      .summary = "slow disks, slow file systems, and who causes the I/O",
      .about =
          "Start where programs wait: at the file system. Then go down to the disk. Slow I/O "
          "that no program waits for, such as writeback, is often harmless.",
      .parts = {
          {"Who waits, and for what?",
           {},
           {why("If it names a disk, it also names the processes that keep the disk busy."),
            {"Which file operations are slow?", "fsslower --duration 5 10",
             "Operations of more than 10 ms, with the file. Fast disks and slow operations mean "
             "locks, or a full journal.",
             "Many fsyncs: write in groups. Turning off barriers or fsync loses data at a crash."},
            {"Does a program wait for fsync?",
             "syncsnoop --duration 5",
             "Each call that flushes, with its time and the program.",
             {}},
            {"Which tasks are blocked?",
             "loads -e 1 1",
             "Rows with D, with the kernel stack: names of file systems, blk_mq or io_schedule "
             "mean disks.",
             {}}}},
          {"The disk",
           {},
           {{"Is the disk slow?",
             "biolatency -D -F 5 1",
             "Time in the device, by disk and kind of I/O. Compare reads with writes: writes that "
             "are slow alone are a full cache of the device.",
             {}},
            {"Or do requests wait before?", "biolatency -Q -D 5 1",
             "With the queue of the I/O scheduler. If times are much longer than before, there is "
             "more I/O than the disk can do.",
             "Find who causes it. Other schedulers (/sys/block/DISK/queue/scheduler) help: none "
             "for fast flash, mq-deadline or bfq for slow disks. bfq costs CPU time."},
            {"How slow are the slowest requests?",
             "biosnoop -Q -m 20 --duration 5",
             "Requests of more than 20 ms, in order. Many small ones behind a large one: the "
             "large one is the cause.",
             {}},
            {"Is the I/O random, or in small pieces?",
             "biopattern 5 1",
             "Random I/O is slow on rotating disks. bitesize shows the sizes.",
             {}},
            {"Does the disk fail?", "bioerr --duration 5", "Each line is a failed request.",
             "Save the data, and replace the disk."}}},
          {"Who causes the I/O?",
           {},
           {{"Which process?",
             "biotop -C 5 1",
             "By process and disk. kworker is writeback: the data was written earlier, by another "
             "process.",
             {}},
            {"Who writes the data that is flushed later?",
             "cachetop -s dirtied -C 5 1",
             "DIRTIES by process.",
             {}},
            {"Are writers slowed down?", "writeback --throttle --duration 5",
             "Pauses that the kernel imposes on writers because too many pages are dirty.",
             "A lower vm.dirty_background_ratio (or _bytes) starts writing earlier, in smaller "
             "bursts. A higher vm.dirty_ratio delays the pauses, but more data is lost at a power "
             "cut, and fsync takes longer."},
            {"Which files?",
             "filetop -C 5 1",
             "Reads and writes by file, also those that the cache answers.",
             {}}}}}};
}

GuidePage network() {
  return {
      .name = "network",
      .summary = "slow or refused connections, losses, and name servers",
      .about =
          "Distinguish names that resolve slowly, connections that take long, data that is lost "
          "or late on the way, and programs that read late.",
      .parts = {
          {"Connections",
           {},
           {why("If it waits for the other end of a connection, the cause is the network or the other "
                "program: the steps below tell which."),
            {"Is it the name server?", "gethostlatency --duration 5",
             "Look-ups of more than some milliseconds are slow, multiples of 5 s are name servers "
             "that do not answer.",
             "Check /etc/resolv.conf. Long search lists multiply look-ups."},
            {"How long does connecting take?",
             "tcpconnlat --duration 5",
             "LAT(ms) is at least a round trip. 1, 3 and 7 seconds are lost SYNs.",
             {}},
            {"Are connections refused?",
             "tcpconnect -x --duration 5",
             "Connections that failed, with the error. ECONNREFUSED: no process listens there; "
             "ETIMEDOUT: no answer.",
             {}},
            {"Does this server accept fast enough?", "tcpsynbl --by-port 5 1",
             "The accept queue by port. Near the backlog, connections are dropped.",
             "The smaller one of the listen call's backlog and net.core.somaxconn is the limit. A "
             "longer queue hides bursts, not a server that is too slow."}}},
          {"Losses and delays",
           {},
           {{"Is data sent again?",
             "tcpretrans -c --duration 5",
             "Counts by connection. Losses to one address: the way there. To all: this machine's "
             "link.",
             {}},
            {"How long are round trips?",
             "tcprtt -B -e --duration 5",
             "A histogram by remote address. A long tail on one address is its way or a queue "
             "in it.",
             {}},
            {"Does this kernel drop packets?", "tcpdrop -c --duration 5",
             "By reason: netfilter_drop is the firewall, socket_rcvbuff a program that does not "
             "read.",
             "A larger net.ipv4.tcp_rmem helps against bursts; it takes memory for each "
             "connection."},
            {"Is it the program that reads late?", "tcppktlat --duration 5 10000",
             "Data that waited for more than 10 ms in the socket. The network is not the cause "
             "then.",
             "guide cpu, guide locks"}}},
          {"Load",
           {},
           {{"Which connections carry the data?",
             "tcptop -C 5 1",
             "Bytes by process and connection.",
             {}},
            {"Which processes connect to which addresses?",
             "tcplife --duration 5",
             "Connections that ended, with their time and bytes. Many short ones to one service: "
             "keep connections open.",
             {}},
            {"Does one CPU do all the work?", "softirqs --per-cpu 5 1", "net_rx of each CPU.",
             "Spread it by more queues of the card, or by rps_cpus. Packets of one connection "
             "then still stay on one CPU."}}}}};
}

GuidePage locks() {
  return {
      .name = "locks",
      .summary = "waits for locks of programs and of the kernel, and programs that hang",
      .about =
          "A wait for a lock and a wait for work look alike. A lock costs time only if a thread "
          "has work and another one holds what it needs.",
      .parts = {
          {"Who holds up whom?",
           {},
           {why("If a lock costs time, the cause names its holder, as far as it is known."),
            {"Is something stuck now?", "blockedby --now",
             "Tasks that are blocked, and the task that each waits for.",
             "If a program hangs and no holder is named, run it again under deadlock "
             "(deadlock -- COMMAND)."},
            {"Which task is at the end of the chains?",
             "blockedby -m 1000 5 1",
             "Waits of more than a millisecond, by the task that holds them up. What that task "
             "does meanwhile is the cause.",
             {}}}},
          {"Locks of programs",
           {},
           {{"Which locks do threads wait for?", "futexctn -s 5 1",
             "By process and address of the lock, with times. Idle workers wait here, too: many "
             "waits of exactly one time are timers.",
             "Without -s there are stacks. Hold the lock for a shorter time, or split it."},
            {"What do threads wait for, with stacks?",
             "offcputime -m 1000 5",
             "Waits of more than a millisecond by stack, the largest last. offwaketime adds the "
             "thread that ends the wait.",
             {}},
            {"Which threads have the time?",
             "walltime --by thread 5 1",
             "LOCK is time in waits for locks and conditions. Idle workers have much of it, "
             "too; blockedby tells who holds a lock.",
             {}}}},
          {"Locks of the kernel",
           {},
           {{"Which are contended?", "klockstat --duration 5",
             "Callers by the time that they waited.",
             "mmap_lock: many threads that map memory or fault at the same time; use fewer, "
             "larger mappings. Locks of one directory or file: use several."},
            {"Who holds them?",
             "klockstat --holds --duration 5",
             "Callers by the time that they held one.",
             {}}}}}};
}

GuidePage latency() {
  return {
      .name = "latency",
      .summary = "a request or program that takes too long, from the outside in",
      .about =
          "All time of a thread is either on a CPU, in the queue for one, or in a wait. First "
          "find which, then the code, then who ends the wait. Add -p PID to each command once "
          "the process is known.",
      .parts = {
          {"Where does the time go?",
           {},
           {why("Follow the command of the first cause."),
            {"Which state has the time?", "walltime -v 5 1",
             "A row per process and a line per state. cpu: the program computes. queue: it "
             "waits for a CPU. wait.disk, wait.lock and others: what it waits for.",
             "cpu and queue: guide cpu. disk: guide disk. lock: guide locks. memory: guide "
             "memory. peer: the last part of this page."},
            {"How long are single waits?",
             "walltime --latency 5 1",
             "Many short waits and few long ones have different causes.",
             {}}}},
          {"Which code?",
           {},
           {{"Where does it compute?",
             "profile --functions 5",
             "Functions by their share of the CPU time. --callers-of FUNCTION shows what calls one.",
             {}},
            {"Where does it wait?",
             "offcputime -m 1000 5",
             "Stacks by time in waits of more than a millisecond. [runnable] is time in the queue "
             "for a CPU.",
             {}},
            {"Which system calls are slow?",
             "syscount -L 5 1",
             "By total time. poll, epoll_wait and futex of idle threads come first: they are "
             "waits for work.",
             {}},
            {"How is the time of one call distributed?",
             "funclatency -u sys_fsync --duration 5",
             "Two groups of bars are two ways through the code, such as cache and disk. Any "
             "function can be named.",
             {}},
            {"Which single calls were slow?",
             "funcslower -m 100 sys_fsync --duration 5",
             "Calls of more than 100 ms, with arguments and process.",
             {}}}},
          {"Who ends the wait?",
           {},
           {{"Which task wakes it?",
             "offwaketime -m 1000 5",
             "The blocked stack, and above it the stack of the task that ended the wait.",
             {}},
            {"Where does the chain begin?", "chaintrace -m 1000 5",
             "Waker behind waker, back to an interrupt: a disk, the network or a timer.",
             "A timer at the end means that a program only polls or sleeps. The network: guide "
             "network."}}}}};
}

}  // namespace

const std::vector<GuidePage>& guide_pages() {
  static const std::vector<GuidePage> all = {checklist(), use(),     memory(), cpu(),
                                             disk(),      network(), locks(),  latency()};
  return all;
}

}  // namespace coretap
