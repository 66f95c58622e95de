// `coretap why`: from facts to findings.
#include "why/rank.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "cli/naming.hpp"
#include "cli/parser.hpp"
#include "coretap/tool.hpp"
#include "stacks/wait_rules.hpp"
#include "tools/cpu/walltime/states.hpp"
#include "why/calls.hpp"
#include "why/holders.hpp"
#include "why/processes.hpp"
#include "why/words.hpp"

namespace coretap::why {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

Account account(std::uint32_t pid, std::string comm, bool target,
                std::map<std::string, std::uint64_t, std::less<>> ns) {
  std::uint64_t time = 0;
  for (auto& [state, part] : ns) time += part;
  return {.pid = pid,
          .comm = std::move(comm),
          .cgroup = "/app",
          .threads = 1,
          .time_ns = time,
          .target = target,
          .ns = std::move(ns)};
}

/// Three parts of a second with these accounts.
Facts facts_of(std::vector<Account> accounts, std::string target = "-p 1") {
  Facts facts{.target = std::move(target), .subject = "a test", .seconds = 3, .cpus = 2};
  for (int i = 0; i < 3; i++) facts.parts.push_back({.seconds = 1, .accounts = accounts});
  facts.texts["online"] = facts.texts["allowed"] = "0-1";
  return facts;
}

std::vector<std::string_view> ids(const Answer& answer) {
  std::vector<std::string_view> all;
  for (auto& f : answer.findings) all.push_back(f.rule->id);
  return all;
}

using Ids = std::vector<std::string_view>;

Ids found(const Facts& facts) { return ids(rank(facts, {})); }

TEST(Why, OneCause) {
  auto of = [](const char* state) {
    return facts_of({account(1, "app", true, {{state, 400'000'000}, {"wait_epoll", 600'000'000}})});
  };
  EXPECT_EQ(found(of("queue_limit")), Ids{"queue.limit"});
  EXPECT_EQ(found(of("queue_idle")), Ids{"queue.idle"});
  EXPECT_EQ(found(of("wait_sync")), Ids{"disk.flush"});
  EXPECT_EQ(found(of("wait_journal")), Ids{"fs.journal"});
  EXPECT_EQ(found(of("wait_discard")), Ids{"disk.discard"});
  EXPECT_EQ(found(of("wait_disk_read")), Ids{"disk.slow"});
  EXPECT_EQ(found(of("wait_io_throttle")), Ids{"disk.limit"});
  EXPECT_EQ(found(of("wait_dirty_throttle")), Ids{"disk.dirty"});
  EXPECT_EQ(found(of("wait_swap_in")), Ids{"mem.swapin"});
  EXPECT_EQ(found(of("wait_compaction")), Ids{"mem.compaction"});
  EXPECT_EQ(found(of("wait_lock")), Ids{"lock.kernel"});
  EXPECT_EQ(found(of("wait_mmap_lock")), Ids{"lock.mmap"});
  EXPECT_EQ(found(of("wait_file_lock")), Ids{"lock.file"});
  EXPECT_EQ(found(of("wait_tcp_connect")), Ids{"net.peer"});
  EXPECT_EQ(found(of("wait_pipe_read")), Ids{"peer.process"});
}

TEST(Why, CountersTellCausesOfOneStateApart) {
  auto reads = facts_of({account(1, "app", true, {{"wait_disk_read", kSecond}})});
  reads.counters["disk.vda.waiting_ms"] = 100;
  EXPECT_EQ(found(reads), Ids{"disk.slow"});
  reads.counters["disk.vdb.waiting_ms"] = 60'000;  // 20 requests for three seconds
  EXPECT_EQ(found(reads), Ids{"disk.queue"});
  EXPECT_EQ(rank(reads, {}).findings[0].culprits[0].name, "vdb");
  reads.counters["vmstat.workingset_refault_file"] = 1000;
  reads.counters["vmstat.pgpgin"] = 5000;
  EXPECT_EQ(found(reads), Ids{"mem.refault"});
  reads.counters["cgroup.memory.max"] = 10;
  EXPECT_EQ(found(reads), Ids{"mem.limit"});

  auto connects = facts_of({account(1, "app", true, {{"wait_tcp_connect", kSecond}})});
  connects.counters["tcp.ListenOverflows"] = 3;
  EXPECT_EQ(found(connects), Ids{"net.accept"});
  connects.counters["tcp.OutSegs"] = 1000;
  connects.counters["tcp.RetransSegs"] = 20;
  EXPECT_EQ(found(connects), Ids{"net.retrans"});
  connects.counters["tcp.ListenOverflows"] = connects.counters["tcp.RetransSegs"];
  EXPECT_EQ(found(connects), Ids{"net.accept"});
}

TEST(Why, CountersTellWhatCpuTimeIsFor) {
  auto facts = facts_of({account(1, "app", true, {{"cpu", kSecond}})});
  facts.counters["target.user_s"] = 1;
  EXPECT_EQ(found(facts), Ids{"cpu.computes"});
  facts.counters["target.system_s"] = 2;
  EXPECT_EQ(found(facts), Ids{"cpu.kernel"});
  facts.counters["target.io_calls"] = 300'000;
  facts.counters["target.io_bytes"] = 300'000 * 4096.0;
  EXPECT_EQ(found(facts), Ids{"cpu.kernel"}) << "whole pages";
  facts.counters["target.io_bytes"] = 300'000;
  EXPECT_EQ(found(facts), Ids{"io.tiny"});
  facts.counters["target.io_calls"] = facts.counters["target.io_bytes"] = 1000;
  EXPECT_EQ(found(facts), Ids{"cpu.kernel"}) << "too few for two seconds";
  facts.counters["calls.all"] = 1'000'000;
  facts.counters["calls.failed"] = 400'000;
  EXPECT_EQ(found(facts), Ids{"cpu.kernel"}) << "most succeed";
  facts.counters["calls.failed"] = 900'000;
  EXPECT_EQ(found(facts), Ids{"call.errors"});
}

TEST(Why, ProcessesThatEndAtOnce) {
  auto shell = facts_of({account(1, "sh", true, {{"cpu", 50'000'000}})});
  shell.counters["short_lived.cpu_us"] = 2'000'000;
  shell.counters["processes"] = 30;
  EXPECT_EQ(found(shell), Ids{}) << "few, and long";
  shell.counters["processes"] = 2000;
  EXPECT_EQ(found(shell), Ids{"proc.storm"});
  shell.target.clear();
  EXPECT_EQ(found(shell), Ids{"proc.storm"});
}

TEST(Why, NamesThatNobodyAnswers) {
  auto facts = facts_of({account(1, "app", true, {{"wait_poll", kSecond}})});
  EXPECT_EQ(found(facts), Ids{});
  facts.counters["names.waited_us"] = 2'900'000;
  facts.texts["names.server"] = "10.0.0.1";
  auto answer = rank(facts, {});
  ASSERT_EQ(ids(answer), Ids{"net.names"});
  EXPECT_EQ(answer.findings[0].culprits[0].name, "10.0.0.1");
  // In recvfrom(2) it is also a wait for a datagram: the same time.
  for (auto& part : facts.parts) part.accounts[0].ns = {{"wait_udp_read", kSecond}};
  EXPECT_EQ(found(facts)[0], "net.names");
}

TEST(Why, NotesAreNoFindings) {
  auto facts = facts_of({account(1, "app", true, {{"wait_epoll", kSecond}})});
  EXPECT_TRUE(rank(facts, {}).notes.empty());
  facts.counters["vmstat.oom_kill"] = 2;
  facts.counters["udp.RcvbufErrors"] = -5;
  auto answer = rank(facts, {});
  EXPECT_TRUE(answer.findings.empty());
  EXPECT_FALSE(answer.silent.empty());
  ASSERT_EQ(answer.notes.size(), 1u);
  EXPECT_EQ(answer.notes[0].note->id, "mem.oom");
  EXPECT_NE(in_words(facts, answer, 3).find("want of memory: 2. See: coretap oomkill"),
            std::string::npos);
}

TEST(Why, CountersOfProcessesAreAddedUp) {
  Counters before = {{"process.1.user_s", 5}, {"process.2.user_s", 1}, {"tcp.x", 3}};
  Counters after = {{"process.1.user_s", 6}, {"process.3.user_s", 9}, {"tcp.x", 4}};
  auto grown = growth(before, after);
  add_up_processes(grown);
  EXPECT_EQ(grown, (Counters{{"target.user_s", 1}, {"tcp.x", 1}}))
      << "of those that were there throughout";
}

TEST(Why, CallsAreReadFromLinesOfTheTool) {
  Calls calls;
  calls.take(R"({"type":"row","syscall":"read","count":300})", false);
  calls.take(R"({"type":"row","syscall":"open","count":100})", false);
  calls.take(R"({"type":"row","syscall":"open","count":90})", true);
  calls.take(R"({"type":"ledger","count":90})", true);
  calls.take("no JSON", true);
  auto facts = facts_of({});
  calls.add_to(facts, 1);
  EXPECT_EQ(facts.counter("calls.all"), 1200);
  EXPECT_EQ(facts.counter("calls.failed"), 270);
  EXPECT_EQ(facts.text("calls.most"), "read (300 a second)");
  EXPECT_EQ(facts.text("calls.failed.most"), "open (90 a second)");
}

TEST(Why, WaitsForCpus) {
  std::vector<Account> accounts = {
      account(1, "app", true, {{"queue_busy", 300'000'000}, {"cpu", 200'000'000}}),
      account(2, "loop", false, {{"cpu", kSecond}})};
  auto neighbour = facts_of(accounts);
  EXPECT_EQ(found(neighbour), Ids{"queue.neighbour"});
  EXPECT_EQ(rank(neighbour, {}).findings[0].culprits[0].name, "loop (pid 2) 1000 ms/s");
  auto bound = neighbour;
  bound.texts["allowed"] = "0";
  bound.counters["cpu1.idle_s"] = 2.9;
  EXPECT_EQ(found(bound), Ids{"queue.affinity"});
  accounts[1].target = true;
  EXPECT_EQ(found(facts_of(accounts)), Ids{"queue.self"});
  // A process that is meant to wait for CPUs.
  accounts[0].background = true;
  EXPECT_EQ(found(facts_of({accounts[0]})), Ids{});
}

TEST(Why, ThrottledWhereTheKernelDoesNotReportEachWait) {
  auto facts =
      facts_of({account(1, "app", true, {{"queue_busy", 700'000'000}, {"cpu", 100'000'000}})});
  facts.counters["cgroup.cpu.throttled_usec"] = 1'000'000;
  EXPECT_EQ(found(facts), Ids{"queue.self"}) << "of 2.1 s in the queue";
  facts.counters["cgroup.cpu.throttled_usec"] = 2'000'000;
  EXPECT_EQ(found(facts), Ids{"queue.throttled"});
  for (auto& part : facts.parts) part.accounts[0].ns["queue_limit"] = 1;
  EXPECT_EQ(found(facts), Ids{"queue.self"}) << "this kernel reports them";
}

TEST(Why, ComputesIfItIsBusy) {
  // A player that computes for 20 ms of each 100 ms has no problem.
  EXPECT_EQ(found(facts_of(
                {account(1, "app", true, {{"cpu", 200'000'000}, {"wait_sleep", 800'000'000}})})),
            Ids{});
}

TEST(Why, OwnCausesComeFirst) {
  auto facts = facts_of(
      {account(1, "app", true, {{"queue_limit", 300'000'000}, {"queue_busy", 400'000'000}}),
       account(2, "loop", false, {{"cpu", kSecond}})});
  EXPECT_EQ(found(facts), (Ids{"queue.limit", "queue.neighbour"}));
  for (auto& part : facts.parts) part.accounts[0].ns["queue_busy"] = 700'000'000;
  EXPECT_EQ(found(facts), (Ids{"queue.neighbour", "queue.limit"}));
}

TEST(Why, EffectsStandBelowTheirCause) {
  auto facts = facts_of(
      {account(1, "app", true, {{"wait_journal", 600'000'000}, {"wait_sync", 300'000'000}})});
  auto answer = rank(facts, {});
  EXPECT_EQ(ids(answer), (Ids{"disk.flush", "fs.journal"}));
  EXPECT_EQ(answer.findings[0].through, Ids{"fs.journal"});
}

TEST(Why, ReclaimIsAlsoTimeOnCpus) {
  auto facts = facts_of({account(1, "app", true, {{"cpu", kSecond}})});
  facts.counters["cgroup.memory.some_us"] = 900'000;
  EXPECT_EQ(found(facts), Ids{"cpu.computes"}) << "a stall alone is no cause";
  facts.counters["cgroup.memory.max"] = 100;
  EXPECT_EQ(found(facts), (Ids{"mem.limit", "cpu.computes"}));
}

TEST(Why, SwappingIsAlsoTimeOnCpus) {
  auto facts = facts_of({account(1, "app", true, {{"cpu", kSecond}})});
  facts.counters["swap.stalled_us"] = 2'000'000;
  EXPECT_EQ(found(facts), (Ids{"mem.swapin", "cpu.computes"}));
}

TEST(Why, OwnTimeIsNoFinding) {
  std::vector<Account> accounts = {
      account(1, "app", true, {{"cpu", 800'000'000}, {"queue_busy", 200'000'000}}),
      account(2, "coretap", false, {{"cpu", 200'000'000}}),
      account(3, "loop", false, {{"cpu", kSecond}})};
  auto machine = [&](std::size_t count) {
    return facts_of({accounts.begin(), accounts.begin() + static_cast<std::ptrdiff_t>(count)}, "");
  };
  EXPECT_EQ(found(machine(2)), Ids{"queue.self"});
  accounts[1].own = true;
  EXPECT_EQ(found(machine(2)), Ids{});
  // Of a target, others may be the cause of the same waits.
  EXPECT_EQ(found(facts_of(accounts)), (Ids{"queue.neighbour"}));
}

TEST(Why, LocksOfProgramsNeedAHolder) {
  auto facts = facts_of({account(1, "app", true, {{"wait_futex", kSecond}})});
  EXPECT_EQ(found(facts), Ids{}) << "it may wait for work";
  facts.counters["held.futex_us"] = 2'000'000;
  facts.texts["holder.futex"] = "app (pid 1)";
  facts.texts["holder.futex.waits"] = "sleep";
  auto answer = rank(facts, {});
  EXPECT_EQ(ids(answer), Ids{"lock.user"});
  EXPECT_EQ(answer.findings[0].culprits[0].name, "app (pid 1), which waits for sleep");
  EXPECT_LE(answer.findings[0].share, 1);
}

TEST(Why, HoldersAreReadFromLinesOfTheTool) {
  const Target target{.pids = {1}};
  Holders holders(target);
  auto line = [&](int pid, const char* object, const char* by, const char* reason) {
    holders.take(
        fmt::format(R"({{"type":"wait","pid":{},"comm":"a","object":"{}","total_ns":1000000000,)"
                    R"("owners":[{{"by":"{}","comm":"b","pid":7,"reason":null}},)"
                    R"({{"by":"owner","comm":"c","pid":8,"reason":{}}}]}})",
                    pid, object, by, reason));
  };
  line(1, "futex-mutex", "owner", R"("sync")");
  line(1, "rwsem:W", "owner", "null");
  line(1, "futex", "waker", "null");  // it ended the wait, and held nothing
  line(2, "flock", "owner", "null");  // of another process
  for (auto wrong : {"", "[]", R"({"type":"wait"})", R"({"type":"wait","owners":[1]})"})
    holders.take(wrong);
  auto facts = facts_of({});
  holders.add_to(facts, 1.5);
  EXPECT_EQ(facts.counter("held.futex_us"), 2'000'000);
  EXPECT_EQ(facts.text("holder.futex"), "b (pid 7)");
  EXPECT_EQ(facts.text("holder.futex.waits"), "sync");
  EXPECT_EQ(facts.counter("held.lock_us"), 2'000'000);
  EXPECT_EQ(facts.text("holder.lock.waits"), "");
  EXPECT_EQ(facts.counter("held.file_lock_us"), 0);
}

TEST(Why, SilentIfHealthy) {
  auto silent = [](const Facts& facts) {
    auto answer = rank(facts, {});
    EXPECT_FALSE(answer.silent.empty());
    return answer.findings.empty();
  };
  EXPECT_TRUE(silent(facts_of({account(1, "idle", true, {{"wait_epoll", kSecond}})})));
  EXPECT_TRUE(silent(facts_of({}))) << "there is no such thread";
  // A wait of 3 % of the time, though hardly anything else is busy.
  EXPECT_TRUE(silent(facts_of(
      {account(1, "rare", true, {{"queue_limit", 30'000'000}, {"wait_epoll", 970'000'000}})})));
  // A pool of threads that wait for work, and a shell that waits for its children.
  EXPECT_TRUE(silent(facts_of({account(1, "pool", true, {{"wait_futex", kSecond}, {"cpu", 1000}}),
                               account(1, "sh", true, {{"wait_children", kSecond}})})));
  // The machine: CPUs that compute, readers of pipes, and threads of the kernel.
  auto machine = facts_of({account(1, "make", true, {{"cpu", kSecond}}),
                           account(2, "cat", true, {{"wait_pipe_read", kSecond}}),
                           account(3, "kworker", true, {{"wait_lock", kSecond}})},
                          "");
  for (auto& part : machine.parts) part.accounts[2].kernel = true;
  EXPECT_TRUE(silent(machine));
  // A job that runs in one of three parts.
  auto job = facts_of({account(1, "app", true, {{"wait_epoll", kSecond}})});
  job.parts[1].accounts[0].ns = {{"wait_sync", kSecond}};
  EXPECT_TRUE(silent(job));
}

TEST(Why, ThresholdsAreOptions) {
  auto facts =
      facts_of({account(1, "app", true, {{"cpu", 850'000'000}, {"wait_sync", 80'000'000}})});
  EXPECT_EQ(found(facts), Ids{"cpu.computes"});
  EXPECT_EQ(ids(rank(facts, {.share = 0.05})), (Ids{"disk.flush", "cpu.computes"}));
  EXPECT_EQ(ids(rank(facts, {}, true)), (Ids{"cpu.computes", "disk.flush"}));
  EXPECT_TRUE(rank(facts, {}, true).findings[1].below);
}

TEST(Why, SaysThatItIsNotCertain) {
  auto facts = facts_of({account(1, "app", true, {{"cpu", 980'000'000}, {"unknown", 20'000'000}})});
  EXPECT_FALSE(rank(facts, {}).certain);
  EXPECT_NE(in_words(facts, rank(facts, {}), 3).find("Not certain"), std::string::npos);
}

TEST(Why, StatesOfRulesExist) {
  std::set<std::string> keys;
  for (auto& state : wall::states()) keys.insert(state.key);
  std::set<std::string_view> known;
  for (auto& rule : rules()) {
    EXPECT_TRUE(known.insert(rule.id).second) << rule.id;
    for (auto state : rule.states) EXPECT_TRUE(keys.contains(std::string(state))) << state;
    EXPECT_EQ(rule.condition.empty(), !rule.when) << rule.id;
  }
  for (auto& rule : rules())
    for (auto effect : rule.causes) EXPECT_TRUE(known.contains(effect)) << effect;
  for (auto& key : keys) {
    bool ruled = std::ranges::any_of(rules(), [&](auto& rule) {
      return std::ranges::find(rule.states, key) != rule.states.end();
    });
    EXPECT_NE(ruled && is_idle(key, true), true) << key << " is idle, and lost";
    EXPECT_TRUE(ruled || is_idle(key, true)) << key << " is busy time that no rule explains";
  }
}

TEST(Why, CommandsOfRulesAreValid) {
  std::vector<std::string_view> commands;
  for (auto& rule : rules()) commands.push_back(rule.command);
  for (auto& note : notes()) commands.push_back(note.command);
  for (auto command : commands)
    for (auto* target : {"", "-p 1"}) {
      std::string words(command);
      if (auto at = words.find("{target}"); at != words.npos) words.replace(at, 8, target);
      std::istringstream all(words);
      std::vector<std::string> arguments;
      for (std::string word; all >> word;) arguments.push_back(word);
      auto call = called(arguments[0]);
      ASSERT_TRUE(call.tool) << words;
      auto tool = build(call);
      auto parsed = parse_command_line(tool, {arguments.begin() + 1, arguments.end()});
      EXPECT_TRUE(parsed) << words << ": " << parsed.error().what;
    }
}

TEST(Why, FactsAreReadAsWritten) {
  auto facts = facts_of({account(1, "a \"b\"\n", true, {{"cpu", 5}, {"queue_busy", kSecond}})});
  facts.counters["tcp.OutSegs"] = 17;
  facts.texts["cpu.max"] = "20000 100000";
  auto again = from_lines(to_lines(facts), "a file");
  ASSERT_TRUE(again);
  EXPECT_EQ(to_lines(*again), to_lines(facts));
  for (auto bad : {"", "{}", "x", "{\"type\":\"facts\"}\n", "[1]"})
    EXPECT_FALSE(from_lines(bad, "a file")) << bad;
}

TEST(Why, NamesAreSafeForTerminals) {
  auto facts = facts_of({account(1, "\x1b]0;x\a", true, {{"wait_sync", kSecond}})});
  auto words = in_words(facts, rank(facts, {}), 3);
  EXPECT_EQ(words.find('\x1b'), std::string::npos) << words;
}

}  // namespace
}  // namespace coretap::why
