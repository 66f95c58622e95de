#include "why/rules.hpp"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "coretap/parse.hpp"

namespace coretap::why {

namespace {

// ---- CPUs ----

double idle_cpus(const Facts& f) {
  double idle = 0;
  for (auto& [name, value] : f.counters)
    if (name.starts_with("cpu") && name.ends_with(".idle_s")) idle += value;
  return idle / f.seconds;
}

/// The CPUs that the target may use are fewer than there are, and others were idle.
bool is_bound(const Facts& f) {
  return !f.text("allowed").empty() && f.text("allowed") != f.text("online") && idle_cpus(f) >= 0.2;
}

/// Most of the CPU time of user processes is the target's own.
bool competes_with_itself(const Facts& f) {
  std::uint64_t own = 0, others = 0;
  for (auto& part : f.parts)
    for (auto& a : part.accounts)
      if (!a.kernel && !a.own) (a.target ? own : others) += a.in("cpu");
  return own > others;
}

/// Processes other than the target, by their time on CPUs.
std::vector<Culprit> users_of_cpus(const Facts& f) {
  constexpr std::size_t kMost = 3;
  constexpr double kLeast = 10;  // ms in a second
  std::vector<Culprit> all;
  for (auto& [name, ns] : f.by_process(
           [&](auto& a) { return !a.own && (!a.target || f.target.empty()) ? a.in("cpu") : 0; })) {
    auto ms = static_cast<double>(ns) / 1e6 / f.seconds;
    if (ms < kLeast || all.size() == kMost) break;
    all.push_back({"process", fmt::format("{} {:.0f} ms/s", name, ms)});
  }
  return all;
}

std::uint64_t in_states(const Facts& f, std::initializer_list<std::string_view> states) {
  std::uint64_t ns = 0;
  for (auto& part : f.parts)
    for (auto& a : part.accounts)
      for (auto state : states) ns += a.target ? a.in(state) : 0;
  return ns;
}

/// The kernel does not report which waits were for the quota (see bpf/lib/sched/throttle.bpf.h),
/// and the cgroup was throttled for most of that time.
bool was_throttled(const Facts& f) {
  if (f.target.empty() || in_states(f, {"queue_limit"})) return false;
  auto throttled = f.counter("cgroup.cpu.throttled_usec") * 1e3 +
                   f.counter("cgroup.cpu.throttled_time");  // of version 1, in ns
  auto waited = static_cast<double>(in_states(f, {"queue_busy", "queue_idle"}));
  return throttled > 0 && throttled * 2 >= waited;
}

std::vector<Evidence> quota(const Facts& f) {
  std::vector<Evidence> all;
  auto limit = f.text("cpu.max");
  if (auto numbers = words_in(limit); numbers.size() > 1)
    if (auto period = strtod(std::string(numbers[1]).c_str(), nullptr); period > 0)
      all.push_back({"cpu.max",
                     fmt::format("{} ({:.2g} CPUs)", limit,
                                 strtod(std::string(numbers[0]).c_str(), nullptr) / period),
                     std::string(f.text("cgroup.cpu"))});
  if (auto periods = f.counter("cgroup.cpu.nr_periods"); periods > 0)
    all.push_back({"throttled periods",
                   fmt::format("{:.0f} of {:.0f}", f.counter("cgroup.cpu.nr_throttled"), periods),
                   "cpu.stat"});
  return all;
}

std::vector<Culprit> own_cgroup(const Facts& f) {
  if (auto where = f.text("cgroup.cpu"); !where.empty()) return {{"cgroup", std::string(where)}};
  return {};
}

std::vector<Evidence> cpus(const Facts& f) {
  std::vector<Evidence> all;
  if (is_bound(f))
    all.push_back({"CPUs that it may use",
                   fmt::format("{} of {}", f.text("allowed"), f.text("online")),
                   "/proc/PID/status"});
  all.push_back({"idle CPUs", fmt::format("{:.1f} of {}", idle_cpus(f), f.cpus), "/proc/stat"});
  return all;
}

// ---- disks ----

double of_disk(const Facts& f, std::string_view disk, std::string_view key) {
  return f.counter(fmt::format("disk.{}.{}", disk, key));
}

/// Requests that waited, on average over the run.
double queue_of(const Facts& f, std::string_view disk) {
  return of_disk(f, disk, "waiting_ms") / (f.seconds * 1e3);
}

bool has_queue(const Facts& f) {
  constexpr double kDeep = 16;  // what one process without asynchronous I/O cannot make alone
  return queue_of(f, busiest_disk(f)) >= kDeep;
}

std::string per_request(double ms, double requests) {
  return fmt::format("{:.0f}, {:.1f} ms each", requests, ms / requests);
}

std::vector<Evidence> disk(const Facts& f) {
  auto name = busiest_disk(f);
  if (name.empty()) return {};
  std::vector<Evidence> all = {{"disk", name, "/proc/diskstats"}};
  for (auto [what, requests, time] : {std::tuple{"reads", "reads", "read_ms"},
                                      {"writes", "writes", "write_ms"},
                                      {"flushes", "flushes", "flush_ms"},
                                      {"discards", "discards", "discard_ms"}})
    if (auto n = of_disk(f, name, requests); n > 0)
      all.push_back({what, per_request(of_disk(f, name, time), n), "/proc/diskstats"});
  all.push_back(
      {"queue", fmt::format("{:.1f} requests on average", queue_of(f, name)), "/proc/diskstats"});
  return all;
}

std::vector<Culprit> the_disk(const Facts& f) {
  if (auto name = busiest_disk(f); !name.empty()) return {{"disk", name}};
  return {};
}

std::vector<Evidence> io_limit(const Facts& f) {
  auto all = disk(f);
  if (auto limit = f.text("io.max"); !limit.empty())
    all.insert(all.begin(), {"io.max", std::string(limit), "cgroup"});
  return all;
}

// ---- memory ----

bool hits_memory_limit(const Facts& f) {
  return f.counter("cgroup.memory.max") > 0 || f.counter("cgroup.memory.high") > 0;
}

/// Most pages that were read had been in memory before.
bool refaults(const Facts& f) {
  constexpr double kMany = 10;  // per second
  auto again = f.counter("vmstat.workingset_refault_file") + f.counter("vmstat.workingset_refault");
  auto read = f.counter("vmstat.pgpgin") / 4;  // in KiB
  return again >= kMany * f.seconds && again * 2 >= read;
}

std::vector<Evidence> grown(const Facts& f,
                            std::initializer_list<std::pair<const char*, const char*>> counters) {
  std::vector<Evidence> all;
  for (auto& [name, words] : counters)
    if (auto n = f.counter(name); n > 0)
      all.push_back({words, fmt::format("{:.0f}", n), std::string(name)});
  return all;
}

std::vector<Evidence> memory(const Facts& f) {
  auto all = grown(f, {{"vmstat.allocstall_normal", "direct reclaims"},
                       {"vmstat.allocstall_movable", "direct reclaims, movable"},
                       {"vmstat.pgsteal_direct", "pages freed by allocations"},
                       {"vmstat.workingset_refault_file", "refaults"},
                       {"vmstat.pswpin", "pages from swap"},
                       {"vmstat.compact_stall", "direct compactions"},
                       {"cgroup.memory.max", "allocations above memory.max"},
                       {"cgroup.memory.high", "allocations above memory.high"},
                       {"cgroup.memory.oom_kill", "processes killed for memory"}});
  for (auto* name : {"memory.max", "memory.high"})
    if (auto limit = f.text(name); !limit.empty())
      all.push_back({name, std::string(limit), std::string(f.text("cgroup.memory"))});
  return all;
}

std::vector<Culprit> memory_cgroup(const Facts& f) {
  if (auto where = f.text("cgroup.memory"); !where.empty()) return {{"cgroup", std::string(where)}};
  return {};
}

// ---- locks ----

bool is_held(const Facts& f) { return f.counter("held.futex_us") > 0; }

/// The holder of this kind of locks, and its own wait.
std::vector<Culprit> holder(const Facts& f, std::string_view kind) {
  auto name = fmt::format("holder.{}", kind);
  if (f.text(name).empty()) return {};
  auto waits = f.text(name + ".waits");
  return {{"holder",
           fmt::format("{}{}{}", f.text(name), waits.empty() ? "" : ", which waits for ", waits)}};
}
std::vector<Culprit> futex_holder(const Facts& f) { return holder(f, "futex"); }
std::vector<Culprit> lock_holder(const Facts& f) { return holder(f, "lock"); }
std::vector<Culprit> mmap_holder(const Facts& f) { return holder(f, "mmap_lock"); }
std::vector<Culprit> file_holder(const Facts& f) { return holder(f, "file_lock"); }

// ---- network ----

/// Sent again, or arrived out of order: then the other end has sent one again.
bool loses_segments(const Facts& f) {
  constexpr double kShare = 0.01, kRate = 1;  // a loss may cost a fifth of a second
  auto lost = f.counter("tcp.RetransSegs") + f.counter("tcp.TCPOFOQueue");
  return lost >= kRate * f.seconds &&
         lost >= kShare * (f.counter("tcp.OutSegs") + f.counter("tcp.InSegs"));
}

/// And hardly anything else makes segments be sent again.
bool drops_connections(const Facts& f) {
  auto dropped = std::max(f.counter("tcp.ListenOverflows"), f.counter("tcp.ListenDrops"));
  return dropped > 0 && dropped * 2 >= f.counter("tcp.RetransSegs");
}

std::vector<Evidence> segments(const Facts& f) {
  return grown(f, {{"tcp.RetransSegs", "segments sent again"},
                   {"tcp.OutSegs", "segments sent"},
                   {"tcp.TCPOFOQueue", "segments out of order"},
                   {"tcp.TCPTimeouts", "timeouts"},
                   {"tcp.ListenOverflows", "connections that did not fit a backlog"},
                   {"udp.RcvbufErrors", "datagrams that did not fit a buffer"}});
}

bool asks_names(const Facts& f) { return f.counter("names.waited_us") > 0; }

std::vector<Culprit> name_server(const Facts& f) {
  if (auto server = f.text("names.server"); !server.empty())
    return {{"name server", std::string(server)}};
  return {};
}

// ---- what CPU time is for ----

/// Most of what is started ends at once.
bool starts_many(const Facts& f) {
  constexpr double kRate = 20, kShort = 50'000;  // a second; us of CPU time
  auto started = f.counter("processes"), us = f.counter("short_lived.cpu_us");
  return started >= kRate * f.seconds && us <= kShort * started;
}

std::vector<Evidence> starts(const Facts& f) {
  auto started = f.counter("processes");
  return {{"processes and threads started", fmt::format("{:.0f} a second", started / f.seconds),
           "/proc/stat"},
          {"CPU time of each",
           fmt::format("{:.1f} ms", f.counter("short_lived.cpu_us") / started / 1e3),
           f.target.empty() ? "walltime" : "/proc/PID/stat"}};
}

bool works_in_kernel(const Facts& f, double share) {
  return f.cpu_s() > 0 && f.counter("target.system_s") >= share * f.cpu_s();
}

bool is_mostly_kernel(const Facts& f) {
  constexpr double kMost = 0.5;
  return works_in_kernel(f, kMost);
}

/// Most of its calls fail, and they are frequent enough to take its time in the kernel.
bool calls_fail(const Facts& f) {
  constexpr double kLongest = 1e-4;  // s, of a call that fails at once
  auto failed = f.counter("calls.failed");
  return works_in_kernel(f, kLeastSystemShare) && failed * 2 >= f.counter("calls.all") &&
         failed * kLongest >= f.counter("target.system_s");
}

bool reads_by_bytes(const Facts& f) {
  constexpr double kFew = 64, kLongest = 1e-4;  // bytes; s, of such a call
  auto calls = f.counter("target.io_calls");
  return works_in_kernel(f, kLeastSystemShare) && f.counter("target.io_bytes") <= kFew * calls &&
         calls * kLongest >= f.counter("target.system_s");
}

std::vector<Evidence> kernel_time(const Facts& f) {
  std::vector<Evidence> all;
  if (f.cpu_s() > 0)
    all.push_back({"CPU time in the kernel",
                   fmt::format("{:.0f} %", 100 * f.counter("target.system_s") / f.cpu_s()),
                   "/proc/PID/stat"});
  if (auto calls = f.counter("target.io_calls"); calls > 0)
    all.push_back({"reads and writes",
                   fmt::format("{:.0f} a second, {:.0f} bytes each", calls / f.seconds,
                               f.counter("target.io_bytes") / calls),
                   "/proc/PID/io"});
  if (auto most = f.text("calls.most"); !most.empty())
    all.push_back({"most frequent call", std::string(most), "syscount"});
  if (auto all_calls = f.counter("calls.all"); f.counter("calls.failed") > 0 && all_calls > 0)
    all.push_back(
        {"calls that fail",
         fmt::format("{:.0f} %, most of them {}", 100 * f.counter("calls.failed") / all_calls,
                     f.text("calls.failed.most")),
         "syscount"});
  return all;
}

// ---- the table ----

const std::vector<Rule>& table() {
  static const std::vector<Rule> kRules = {
      {.id = "queue.limit",
       .states = {"queue_limit"},
       .says = "It has used up its CPU limit",
       .evidence = quota,
       .culprits = own_cgroup,
       .command = "walltime -v {target} 10 1"},
      {.id = "queue.throttled",
       .states = {"queue_busy", "queue_idle"},
       .says = "Its cgroup has used up its CPU limit",
       .when = was_throttled,
       .condition = "this kernel does not report which waits were for a limit, and cpu.stat of the "
                    "target's cgroup counts half of the waits or more as throttled",
       .evidence = quota,
       .culprits = own_cgroup,
       .command = "walltime -v {target} 10 1"},
      {.id = "queue.affinity",
       .states = {"queue_busy", "queue_idle"},
       .says = "It may use only CPUs that are busy, while others are idle",
       .when = is_bound,
       .condition = "the target may not use all CPUs, and a fifth of a CPU or more was idle",
       .evidence = cpus,
       .culprits = users_of_cpus,
       .command = "runqslower --affinity {target} 10000"},
      {.id = "queue.self",
       .states = {"queue_busy"},
       .says = "More of its threads want to run than there are CPUs",
       .when = competes_with_itself,
       .condition = "most of the CPU time is the target's own",
       .evidence = cpus,
       .culprits = users_of_cpus,
       .command = "walltime {target} 10 1"},
      {.id = "queue.neighbour",
       .states = {"queue_busy"},
       .says = "It waits for a CPU that others have",
       .evidence = cpus,
       .culprits = users_of_cpus,
       .command = "neighbours {target} 10 1",
       .foreign = true},
      {.id = "queue.idle",
       .states = {"queue_idle"},
       .says = "It waits for a CPU although one that it may use is idle",
       .evidence = cpus,
       .command = "runqslower --affinity {target} 10000"},
      {.id = "cpu.stolen",
       .states = {"cpu_stolen"},
       .says = "The hypervisor gives its CPU to other machines",
       .evidence = cpus,
       .command = "walltime -v {target} 10 1",
       .foreign = true},
      {.id = "cpu.irq",
       .states = {"cpu_irq"},
       .says = "Interrupts take its CPU",
       .command = "softirqs --per-cpu 10 1",
       .foreign = true},
      {.id = "mem.limit",
       .states = {"wait_reclaim", "wait_memory_high", "wait_oom", "wait_swap_in", "wait_fault_file",
                  "wait_disk_read"},
       .says = "Its cgroup is at its memory limit, so that it frees memory before it gets any",
       .when = hits_memory_limit,
       .condition = "memory.events of its cgroup, or of one above, counts max or high",
       .stall_us = "cgroup.memory.some_us",
       .evidence = memory,
       .culprits = memory_cgroup,
       .command = "drsnoop --memcg {target}"},
      {.id = "mem.swapin",
       .states = {"wait_swap_in"},
       .says = "It waits for pages from swap",
       .stall_us = "swap.stalled_us",
       .evidence = memory,
       .command = "swapin 1"},
      {.id = "mem.compaction",
       .states = {"wait_compaction"},
       .says = "It compacts memory for huge pages",
       .evidence = memory,
       .command = "compactsnoop {target}"},
      {.id = "mem.reclaim",
       .states = {"wait_reclaim", "wait_memory_high", "wait_oom"},
       .says = "It frees memory before it gets any",
       .evidence = memory,
       .command = "drsnoop {target}",
       .foreign = true,
       .causes = {"mem.refault"}},
      {.id = "mem.refault",
       .states = {"wait_fault_file", "wait_disk_read"},
       .says = "It reads again what memory had no room for",
       .when = refaults,
       .condition = "at least half of the pages read were in memory before",
       .evidence = memory,
       .culprits = the_disk,
       .command = "cachestat 1"},
      {.id = "mem.numa",
       .states = {"wait_fault_numa"},
       .says = "It waits for pages that move between nodes",
       .command = "numamove 1"},
      {.id = "disk.limit",
       .states = {"wait_io_throttle"},
       .says = "Its I/O is limited",
       .evidence = io_limit,
       .command = "biolatency -D 10 1"},
      {.id = "disk.dirty",
       .states = {"wait_dirty_throttle"},
       .says = "It writes faster than the disk, and is slowed down",
       .evidence = disk,
       .culprits = the_disk,
       .command = "writeback"},
      {.id = "disk.flush",
       .states = {"wait_sync"},
       .says = "It waits until data is on the disk (fsync, O_SYNC)",
       .evidence = disk,
       .culprits = the_disk,
       .command = "syncsnoop {target}",
       .causes = {"fs.journal", "lock.kernel"}},
      {.id = "fs.journal",
       .states = {"wait_journal"},
       .says = "It waits for the journal of a file system",
       .evidence = disk,
       .culprits = the_disk,
       .command = "biolatency -D -F 10 1"},
      {.id = "disk.discard",
       .states = {"wait_discard"},
       .says = "It waits for blocks to be discarded",
       .evidence = disk,
       .culprits = the_disk,
       .command = "biolatency -D -F 10 1"},
      {.id = "disk.queue",
       .states = {"wait_disk_read", "wait_disk_direct", "wait_disk_metadata", "wait_disk_other",
                  "wait_io_tag", "wait_fault_file"},
       .says = "The disk has more requests than it can serve",
       .when = has_queue,
       .condition = "16 requests or more waited for the busiest disk, on average",
       .evidence = disk,
       .culprits = the_disk,
       .command = "biotop 1",
       .foreign = true,
       .causes = {"fs.journal", "lock.kernel"}},
      {.id = "disk.slow",
       .states = {"wait_disk_read", "wait_disk_direct", "wait_disk_metadata", "wait_disk_other",
                  "wait_io_tag", "wait_fault_file"},
       .says = "It waits for a disk",
       .evidence = disk,
       .culprits = the_disk,
       .command = "biolatency -D -F 10 1",
       .causes = {"fs.journal", "lock.kernel"}},
      {.id = "fs.remote",
       .states = {"wait_remote_fs", "wait_fuse"},
       .says = "It waits for a file server",
       .command = "walltime -v {target} 10 1",
       .foreign = true},
      {.id = "calls.decided",
       .states = {"wait_supervisor"},
       .says = "Its system calls wait for a program that decides on them: fanotify (virus "
               "scanners), seccomp",
       .command = "offwaketime {target} 10",
       .foreign = true},
      {.id = "memory.userfault",
       .states = {"wait_userfault"},
       .says = "It waits for pages that a program fills in (userfaultfd)",
       .command = "offwaketime {target} 10",
       .foreign = true},
      {.id = "lock.mmap",
       .states = {"wait_mmap_lock"},
       .says = "Its threads wait for the lock of their address space (mmap, page faults)",
       .culprits = mmap_holder,
       .command = "blockedby {target} 10 1"},
      {.id = "lock.kernel",
       .states = {"wait_lock", "wait_dentry", "wait_inode"},
       .says = "It waits for a lock of the kernel",
       .culprits = lock_holder,
       .command = "blockedby {target} 10 1"},
      {.id = "lock.file",
       .states = {"wait_file_lock"},
       .says = "It waits for a lock of a file that another task holds",
       .culprits = file_holder,
       .command = "blockedby {target} 10 1"},
      {.id = "lock.user",
       .says = "Its threads wait for a lock of the program",
       .when = is_held,
       .condition = "threads hold the mutexes that others wait for: only that time counts, as a "
                    "wait for a lock looks like a wait for work",
       .stall_us = "held.futex_us",
       .culprits = futex_holder,
       .command = "blockedby {target} 10 1"},
      {.id = "net.names",
       .says = "It waits for the addresses of names (DNS)",
       .when = asks_names,
       .condition = "it has UDP sockets that are connected to port 53",
       .stall_us = "names.waited_us",
       .culprits = name_server,
       .command = "gethostlatency {target}",
       .foreign = true,
       .needs_target = true,
       .causes = {"net.peer"}},
      {.id = "net.accept",
       .states = {"wait_tcp_connect", "wait_tcp_read"},
       .says = "A server does not accept connections fast enough",
       .when = drops_connections,
       .condition = "connections did not fit the backlog of a listening socket, half as often as "
                    "segments are sent again or more",
       .evidence = segments,
       .command = "tcpsynbl 10 1",
       .needs_target = true},
      {.id = "net.retrans",
       .states = {"wait_tcp_read", "wait_tcp_write", "wait_tcp_connect"},
       .says = "Segments of its connections are lost",
       .when = loses_segments,
       .condition = "1 % of the segments, and one a second, are sent again or arrive out of order",
       .evidence = segments,
       .command = "tcpretrans",
       .foreign = true,
       .needs_target = true},
      {.id = "net.peer",
       .states = {"wait_tcp_read", "wait_tcp_write", "wait_tcp_connect", "wait_udp_read"},
       .says = "It waits for the other end of a connection",
       .evidence = segments,
       .command = "tcptop {target} 1",
       .foreign = true,
       .needs_target = true},
      {.id = "peer.process",
       .states = {"wait_pipe_read", "wait_pipe_write", "wait_terminal_write", "wait_unix",
                  "wait_eventfd", "wait_sysv"},
       .says = "It waits for another process (pipe, socket, semaphore, terminal)",
       .command = "chaintrace {target} 10",
       .foreign = true,
       .needs_target = true},
      {.id = "kernel.wait",
       .states = {"wait_rcu", "wait_workqueue", "wait_cpu_stop", "wait_exec", "wait_exit"},
       .says = "It waits for work of the kernel (RCU, work queues, the end of threads)",
       .command = "offcputime -K {target} 10"},
      {.id = "proc.storm",
       .says = "Processes that live for milliseconds take the CPU time",
       .when = starts_many,
       .condition =
           "20 processes or more are started a second, with 50 ms of CPU time each or less",
       .stall_us = "short_lived.cpu_us",
       .evidence = starts,
       .command = "execsnoop"},
      {.id = "call.errors",
       .states = {"cpu"},
       .says = "It calls the kernel again and again, and most calls fail",
       .when = calls_fail,
       .condition =
           "half of the calls or more fail, and 100 us for each make its time in the kernel",
       .evidence = kernel_time,
       .command = "syscount -x {target} 10",
       .needs_target = true},
      {.id = "io.tiny",
       .states = {"cpu"},
       .says = "It reads or writes a few bytes at a time",
       .when = reads_by_bytes,
       .condition = "64 bytes or less per call, and 100 us for each make its time in the kernel",
       .evidence = kernel_time,
       .command = "vfssize {target} 10 1",
       .needs_target = true},
      {.id = "cpu.kernel",
       .states = {"cpu"},
       .says = "The kernel computes for it",
       .when = is_mostly_kernel,
       .condition = "half of its CPU time or more is the kernel's",
       .evidence = kernel_time,
       .command = "syscount -L {target} 10",
       .computes = true,
       .needs_target = true},
      {.id = "cpu.computes",
       .states = {"cpu"},
       .says = "It computes",
       .evidence = cpus,
       .command = "profile {target} 10",
       .computes = true,
       .needs_target = true},
  };
  return kRules;
}

}  // namespace

std::span<const Rule> rules() { return table(); }

std::span<const Note> notes() {
  static const std::vector<Note> kNotes = {
      {.id = "mem.oom",
       .counters = {"vmstat.oom_kill"},
       .says = "The kernel killed processes for want of memory",
       .command = "oomkill"},
      {.id = "net.drop",
       .counters = {"udp.RcvbufErrors", "udp.SndbufErrors"},
       .says = "Datagrams did not fit a socket's buffer and were dropped",
       .command = "stackcount t:udp:udp_fail_queue_rcv_skb"},
      {.id = "net.backlog",
       .counters = {"tcp.ListenOverflows"},
       .says = "Connections did not fit the backlog of a listening socket",
       .command = "tcpsynbl 10 1"},
  };
  return kNotes;
}

bool is_idle(std::string_view state, bool has_target) {
  constexpr std::string_view kIdle[] = {
      "wait_epoll", "wait_poll", "wait_accept", "wait_sleep", "wait_timer", "wait_signal",
      "wait_io_uring", "wait_aio", "wait_terminal", "wait_notify", "wait_kthread_idle", "wait_vcpu",
      "stopped", "traced", "frozen", "unknown", "wait_other", "wait_read", "wait_write",
      // Threads of a pool wait for work on a condition, which is a futex like a lock; a shell
      // waits for its children.
      "wait_futex", "wait_children", "wait_vfork"};
  if (std::ranges::find(kIdle, state) != std::end(kIdle)) return true;
  if (has_target) return false;
  // Of a whole machine: most readers of pipes and connections have nothing to do.
  constexpr std::string_view kPeers[] = {
      "wait_pipe_read", "wait_pipe_write",    "wait_unix",     "wait_tcp_read",
      "wait_tcp_write", "wait_tcp_connect",   "wait_udp_read", "wait_eventfd",
      "wait_sysv",      "wait_terminal_write"};
  return std::ranges::find(kPeers, state) != std::end(kPeers);
}

std::string busiest_disk(const Facts& facts) {
  std::string busiest;
  double most = 0;
  for (auto& [name, value] : facts.counters) {
    constexpr std::string_view kBegin = "disk.", kEnd = ".waiting_ms";
    if (!name.starts_with(kBegin) || !name.ends_with(kEnd) || value <= most) continue;
    most = value;
    busiest = name.substr(kBegin.size(), name.size() - kBegin.size() - kEnd.size());
  }
  return busiest;
}

}  // namespace coretap::why
