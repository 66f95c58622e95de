// The tools: which victim makes their events, how they are called, and what their lines stand for.
#include "cells.hpp"

namespace coretap::stress {

namespace {

using Thread = Rest::Thread;

std::string text(std::uint64_t number) { return std::to_string(number); }

std::uint64_t one(const Json&) { return 1; }
std::uint64_t counted(const Json& line) { return line["count"].u64(); }

template <const char* key>
std::uint64_t says(Load& load) {
  return load.truth(key);
}
constexpr char kBulk[] = "bulk", kCalls[] = "calls", kCount[] = "count",
               kBegins[] = "begins_expected", kRetransmits[] = "retransmits";

// A thread rests before and after: the first time that it comes back nobody saw it leave, the last
// time that it leaves it does not come back.
std::uint64_t but_one(std::uint64_t leaves) { return leaves ? leaves - 1 : 0; }
std::uint64_t all_waits(Load& load) {
  return load.grown([](const Thread& t) { return but_one(t.voluntary + t.preempted); });
}
std::uint64_t sleeps(Load& load) {
  return load.grown([](const Thread& t) { return but_one(t.voluntary); });
}
std::uint64_t slices(Load& load) {
  return load.grown([](const Thread& t) { return t.slices; });
}

// An emulated timer of nothing has often run out before its task sleeps.
Strings sleeper(std::uint64_t n) {
  return {"--sleeps", text(n), "--ms", tooltest::in_guest() ? "1" : "0"};
}
Strings busy(std::uint64_t n) { return {"--threads", "3", "--ms", text(n)}; }

Strings both_ends(Load& load) {
  return {load.victim().id(), text(load.victim().ready()["server_pid"].u64())};
}

constexpr std::uint64_t kPeriodNs = 5'000'000;

/// Blocks of a file system that are read to find the file's own.
constexpr std::uint64_t kFew = 64;

std::vector<Row> make_rows() {
  return {
      {.tool = "biolatency",
       .victim = "blockio",
       .arguments = [](std::uint64_t n) -> Strings {
         return {"--make", "loop", "--count", text(n), "--span", "4m"};
       },
       .events = 1500,
       .options = {"-D"},
       .shown = counted,
       .truth = says<kCount>,
       .tiny = {"--max-keys", "1"}},
      {.tool = "biosnoop",
       .victim = "blockio",
       .arguments = [](std::uint64_t n) -> Strings {
         return {"--make", "loop", "--count", text(n), "--span", "4m"};
       },
       .events = 1500,
       .shown = one,
       .truth = says<kCount>,
       .tiny = {"--ring-size", "4096"}},
      {.tool = "chaintrace",
       .victim = "sleeper",
       .arguments = sleeper,
       .events = 3000,
       .options = {"--state", "3"},
       .shown = counted,
       .truth = sleeps,
       .tiny = {"--stack-storage-size", "1"}},
      {.tool = "execsnoop",
       .victim = "runner",
       .arguments = [](std::uint64_t n) -> Strings {
         return {"--count", text(n)};
       },
       .events = 600,
       .shown = one,
       .truth = [](Load& load) { return load.truth("storm") + load.truth("execs"); },
       .tiny = {"--ring-size", "4096"},
       .by_cgroup = true},
      {.tool = "offcputime",
       .victim = "sleeper",
       .arguments = sleeper,
       .events = 3000,
       .shown = counted,
       .truth = all_waits,
       .tiny = {"--stack-storage-size", "1"}},
      {.tool = "offwaketime",
       .victim = "sleeper",
       .arguments = sleeper,
       .events = 3000,
       .options = {"--state", "3"},
       .shown = counted,
       .truth = sleeps,
       .tiny = {"--stack-storage-size", "1"}},
      {.tool = "profile",
       .victim = "sleeper",
       .arguments = [](std::uint64_t n) -> Strings {
         return {"--sleeps", "1", "--spin", text(n)};
       },
       .events = 1000,
       .options = {"--period", text(kPeriodNs)},
       .shown = counted,
       .truth =
           [](Load& load) {
             return load.grown([](const Thread& t) { return t.on_cpu_ns; }) / kPeriodNs;
           },
       .tiny = {"--stack-storage-size", "1"},
       .tolerance = 0.25},
      {.tool = "runqlat",
       .victim = "runqueue",
       .arguments = busy,
       .events = 600,
       .options = {"-L"},
       .shown = counted,
       .truth = slices,
       .tiny = {"--max-keys", "1"},
       // The kernel's own count leaves out who is preempted on its way to sleep
       // (sched_info_depart).
       .slack = 1},
      {.tool = "wakeuptime",
       .victim = "sleeper",
       .arguments = sleeper,
       .events = 3000,
       .options = {"--state", "3"},
       .shown = counted,
       .truth = sleeps,
       .tiny = {"--stack-storage-size", "1"}},
      {.tool = "cachestat",
       .victim = "pagecache",
       .arguments = [](std::uint64_t n) -> Strings {
         return {"--phase", "warm", "--rounds", text(n)};
       },
       .events = 10,
       .shown = [](const Json& line) { return line["accessed"].u64(); },
       .truth = [](Load& load) { return 2 * load.truth("page_accesses"); },
       .slack = kFew},
      {.tool = "readahead",
       .victim = "pagecache",
       .arguments = [](std::uint64_t n) -> Strings {
         return {"--phase", "cold", "--rounds", text(n)};
       },
       .events = 2,
       .shown = [](const Json& line) { return line["used_pages"].u64(); },
       .truth = [](Load& load) { return load.truth("page_accesses"); },
       .slack = kFew},
      {.tool = "compactsnoop",
       .victim = "compaction",
       .arguments = [](std::uint64_t n) -> Strings {
         return {"--manual", "--rounds", text(n)};
       },
       .events = 10,
       .shown = one,
       .truth = says<kBegins>,
       .tiny = {"--ring-size", "4096"},
       .victims = 1},
      {.tool = "drsnoop",
       .victim = "reclaim",
       .arguments = [](std::uint64_t n) -> Strings {
         return {"--memcg", "--events", text(n)};
       },
       .events = 50,
       .options = {"-M"},
       .shown = one,
       .truth =
           [](Load& load) {
             auto memcg = load.victim().truth()["memcg"];
             if (memcg["version"].u64() != 2) throw tooltest::Skip("cgroup-1");
             return memcg["max_events"].u64();
           },
       .tiny = {"--ring-size", "4096"},
       .pids = [](Load& load) -> Strings {
         return {text(load.victim().ready()["worker_pid"].u64())};
       }},
      {.tool = "extfrag",
       .victim = "compaction",
       .arguments = [](std::uint64_t n) -> Strings {
         return {"--unmovable", text(n), "--order", "8", "--whole"};
       },
       .events = 16,
       .options = {"-a", "-P"},
       .shown = counted,
       .truth = nullptr,
       .tiny = {"--max-keys", "1"},
       .victims = 1,
       .kernel_event = "kmem/mm_page_alloc_extfrag"},
      {.tool = "memleak",
       .victim = "leaker",
       .arguments = [](std::uint64_t n) -> Strings {
         return {"--rounds", "1", "--blocks", text(n), "--block-bytes", "777"};
       },
       .events = 2000,
       .options = {"-o", "0", "-i", "1000", "-z", "777", "-Z", "777"},
       .shown = counted,
       .truth =
           [](Load& load) {
             std::uint64_t blocks = 0;
             for (auto& place : load.victim().truth()["holds"].items())
               if (place["function"].str() == "leak_blocks") blocks = place["count"].u64();
             return blocks;
           },
       .tiny = {"--max-keys", "100"},
       .copies = 3},
      {.tool = "numamove",
       .victim = "numa",
       .arguments = [](std::uint64_t n) -> Strings {
         return {"--pages", text(n)};
       },
       .events = 400,
       .shown = [](const Json& line) { return line["moved_pages"].u64(); },
       .truth =
           [](Load& load) {
             if (load.truth("moved") != load.truth("pages")) throw tooltest::Skip("unbalanced");
             return load.truth("moved");
           },
       .victims = 1,
       .slack = 1024},  // the process's other pages
      {.tool = "tcplife",
       .victim = "tcp",
       .arguments = [](std::uint64_t n) -> Strings {
         return {"--sessions", text(n), "--client-bytes", "10", "--server-bytes", "10"};
       },
       .events = 200,
       .shown = one,
       .truth = [](Load& load) -> std::uint64_t {
         return 2 * load.victim().truth()["client_ports"].items().size();
       },
       .tiny = {"--ring-size", "4096"},
       .pids = both_ends},
      {.tool = "tcpretrans",
       .victim = "tcp",
       .arguments = [](std::uint64_t n) -> Strings {
         // Small, so that each is one segment: those are what the kernel counts.
         return {"--sessions",     text(n), "--lost",         "1",
                 "--client-bytes", "10",    "--server-bytes", "10"};
       },
       .events = 4,
       .options = {"-l"},
       .shown = [](const Json& line) -> std::uint64_t {
         return line["type"].str() == "row" ? line["retransmits"].u64() : 1;
       },
       .truth = says<kRetransmits>,
       .tiny = {"-c", "--max-keys", "1"},
       .pids = both_ends},
      {.tool = "opensnoop",
       .victim = "opener",
       .arguments = [](std::uint64_t n) -> Strings {
         return {"--count", text(n)};
       },
       .events = 20000,
       .shown = one,
       .truth = says<kBulk>,
       .tiny = {"--ring-size", "4096"},
       .copies = 8},
      {.tool = "syscount",
       .victim = "syscalls",
       .arguments = [](std::uint64_t n) -> Strings {
         return {"--calls", text(n), "--restarts", "0"};
       },
       .events = 500000,
       .options = {"-P", "--syscall", "getppid"},
       .shown = counted,
       .truth = says<kCalls>,
       .tiny = {"--max-keys", "1"}},
      {.tool = "traceloop",
       .victim = "syscalls",
       .arguments = [](std::uint64_t n) -> Strings {
         return {"--calls", text(n), "--restarts", "0"};
       },
       .events = 20000,
       .options = {"--dump-on-exit", "-e", "getppid"},
       .shown = [](const Json& line) -> std::uint64_t { return line["type"].str() == "call"; },
       .truth = says<kCalls>,
       .tiny = {"-s", "64"},
       .copies = 12},
      {.tool = "bashreadline",
       .victim = "typist",
       .arguments = [](std::uint64_t n) -> Strings {
         return {"--lines", text(n)};
       },
       .events = 100,
       .shown = one,
       .truth = [](Load& load) { return load.truth("lines") + 1; },
       .tiny = {"--ring-size", "4096"},
       .copies = 12,
       .by_cgroup = true},
      {.tool = "funccount",
       .victim = "probes",
       .arguments = [](std::uint64_t n) -> Strings {
         return {"--calls", text(n)};
       },
       .events = 500000,
       .options = {"t:syscalls:sys_enter_getppid"},
       .shown = counted,
       .truth = says<kCalls>},
      {.tool = "gethostlatency",
       .victim = "resolver",
       .arguments = [](std::uint64_t n) -> Strings {
         return {"--count", text(n)};
       },
       .events = 100,
       .shown = one,
       .truth =
           [](Load& load) {
             std::uint64_t calls = 0;
             for (auto* function : {"getaddrinfo", "gethostbyname", "gethostbyname2",
                                    "gethostbyname_r", "gethostbyname2_r"})
               calls += load.truth(function);
             return calls;
           },
       .tiny = {"--ring-size", "4096"},
       .copies = 6},
  };
}

}  // namespace

const std::vector<Row>& rows() {
  static const auto all = make_rows();
  return all;
}

}  // namespace coretap::stress
