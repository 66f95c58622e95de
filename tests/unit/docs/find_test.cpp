// `coretap find`: phrases as users type them, and the tool that comes first.
#include <fmt/ranges.h>

#include "all_tools.hpp"
#include "coretap/parse.hpp"
#include "docs/search.hpp"

namespace coretap {
namespace {

/// The best tool, or the command of another suite.
std::string first_of(std::string_view phrase) {
  auto found = search({std::string(phrase)});
  if (!found.elsewhere.empty()) return fmt::format("not here: {}", found.elsewhere[0]->command);
  return found.questions.empty() ? "" : std::string(found.questions[0].name);
}

struct Phrase {
  std::string_view words;
  std::string_view tools;  ///< one, or several that answer it as well, separated by |
};

void expect_first(const Phrase& phrase) {
  auto first = first_of(phrase.words);
  auto rest = phrase.tools;
  while (!rest.empty())
    if (take_until(rest, '|') == first) return;
  ADD_FAILURE() << "'" << phrase.words << "' finds '" << first << "', not '" << phrase.tools << "'";
}

constexpr Phrase kPhrases[] = {
    {"minor page fault", "faults"},
    {"page faults", "faults"},
    {"THP", "hfaults"},
    {"transparent huge pages", "hfaults"},
    {"memory leak", "memleak"},
    {"oom", "oomkill"},
    {"out of memory", "oomkill"},
    {"page cache hit ratio", "cachestat"},
    {"swapping", "swapin"},
    {"working set", "workset"},
    {"memory fragmentation", "extfrag"},
    {"compaction", "compactsnoop"},
    {"direct reclaim", "drsnoop"},
    {"memory pressure", "vmscan"},
    {"slab", "slabratetop"},
    {"shared memory", "shmsnoop"},
    {"heap growth", "brkstack"},
    {"context switch", "cpudist"},
    {"run queue", "runqlat|runqlen"},
    {"cpu steal", "cputimes"},
    {"mpstat", "cputimes"},
    {"perf stat", "perfcount"},
    {"instructions per cycle", "perfcount"},
    {"throttling", "neighbours|walltime"},
    {"container noisy neighbour", "neighbours"},
    {"flame graph", "profile"},
    {"off-cpu", "offcputime"},
    {"wall clock", "walltime"},
    {"where does the time go", "walltime"},
    {"interrupts", "hardirqs"},
    {"softirq", "softirqs"},
    {"load average", "loads"},
    {"fork bomb", "pidpersec|forksnoop"},
    {"short-lived processes", "execsnoop"},
    {"false sharing", "not here: perf c2c record"},
    {"lock contention", "futexctn"},
    {"kernel lock contention", "klockstat"},
    {"deadlock", "deadlock"},
    {"hot function", "profile"},
    {"idle cpus", "cpuunclaimed"},
    {"cpu frequency", "cpufreq"},
    {"tlb shootdown", "smpcalls"},
    {"cpu cache misses", "llcstat"},
    {"new threads", "threadsnoop"},
    {"who kills my process", "sigsnoop"},
    {"uninterruptible sleep", "loads|offcputime"},
    {"disk latency", "biolatency"},
    {"slow fsync", "syncsnoop|fsslower"},
    {"iops", "biotop"},
    {"iotop", "biotop"},
    {"queue depth", "biolatency|iosched"},
    {"file deleted by whom", "filegone"},
    {"open files", "opensnoop"},
    {"dirty pages", "writeback"},
    {"random io", "biopattern"},
    {"disk errors", "bioerr"},
    {"slow file system", "fsslower"},
    {"inode cache", "icstat"},
    {"read ahead", "readahead"},
    {"dns latency", "gethostlatency"},
    {"retransmits", "tcpretrans"},
    {"netstat", "protostat"},
    {"nstat", "protostat"},
    {"port in use", "bindsnoop"},
    {"bind", "bindsnoop"},
    {"connection refused", "tcpconnect"},
    {"round trip time", "tcprtt"},
    {"packet drops", "tcpdrop"},
    {"bandwidth per process", "tcptop"},
    {"syn flood", "tcpsynbl"},
    {"time_wait", "tcpstates"},
    {"tls plaintext", "sslsniff"},
    {"slow queries", "dbslower"},
    {"gc pauses", "javagc"},
    {"strace", "traceloop"},
    {"system calls", "syscount"},
    {"permission denied", "capable"},
    {"commands typed in a shell", "bashreadline"},
    {"function latency", "funclatency"},
};
static_assert(std::size(kPhrases) >= 60);

TEST(Find, NamesTheRightToolFirst) {
  for (auto& phrase : kPhrases) expect_first(phrase);
}

// Written after the search and its tables were, so that they are not made for these.
constexpr Phrase kLater[] = {
    {"mmap failures", "mmapsnoop"},
    {"sighup", "sigsnoop"},
    {"numa migrations", "numamove|numasched"},
    {"affinity", "cpuunclaimed"},
    {"nfs is slow", "fsslower"},
    {"nvme", "nvmelatency"},
    {"tcp connect time", "tcpconnlat"},
    {"top talkers", "tcptop|tcplife"},
    {"which config files are read", "opensnoop"},
    {"small writes", "vfssize|bitesize|writesync"},
    {"zombie processes", "exitsnoop"},
    {"java pauses", "javagc"},
    {"unmounted file system", "mountsnoop"},
    {"heap profile", "memleak|brkstack"},
    {"requests stuck in the io scheduler", "iosched"},
    {"cpu clocked down", "cpufreq"},
    {"accept queue overflow", "tcpsynbl"},
    {"ssl handshake time", "sslsniff"},
    {"threads waiting for each other", "blockedby|deadlock"},
    {"which process uses the network", "tcptop"},
    {"vm exits", "kvmexit"},
    {"cgroup memory limit", "drsnoop|oomkill|vmscan|swapout"},
};
static_assert(std::size(kLater) >= 15);

TEST(Find, KnowsMoreThanItsTables) {
  for (auto& phrase : kLater) expect_first(phrase);
}

TEST(Find, IgnoresEndingsAndOrder) {
  EXPECT_EQ(stem("latencies"), stem("latency"));
  EXPECT_EQ(stem("caches"), stem("cache"));
  EXPECT_EQ(stem("throttling"), stem("throttled"));
  EXPECT_EQ(stem("bus"), "bus");
  EXPECT_EQ(plain_words("Slow I/O: time_wait"), (Words{"slow", "io", "time", "wait"}));
  EXPECT_EQ(first_of("Files OPEN"), "opensnoop");
}

TEST(Find, NothingForWordsThatNoTextHas) {
  EXPECT_TRUE(search({"qwzx"}).empty());
  EXPECT_TRUE(search({""}).empty());
  EXPECT_TRUE(search({"file qwzx wzxq"}).empty());
  auto most = search({"disk latency of qwzx"});
  EXPECT_FALSE(most.empty());
  EXPECT_EQ(most.unknown, Words{"qwzx"});
}

TEST(Find, FindsCommandsAndPages) {
  auto names = [](const std::vector<Match>& matches) {
    std::string all;
    for (auto& m : matches) all += fmt::format("{} ", m.name);
    return all;
  };
  EXPECT_TRUE(says(names(search({"prometheus"}).commands), "serve"));
  EXPECT_TRUE(search({"bpf programs"}).commands_first);
  EXPECT_FALSE(search({"disk latency"}).commands_first);
  EXPECT_TRUE(says(names(search({"transparent huge pages"}).pages), "memory"));
  EXPECT_TRUE(says(names(search({"USE method"}).pages), "use"));
}

// A row whose meaning no tool has would never be of use.
TEST(Find, SynonymsMeanWordsOfATool) {
  WordSet said;
  for (auto& row : synonyms()) {
    auto rest = row.said;
    while (!rest.empty()) {
      auto term = std::string(take_until(rest, ','));
      EXPECT_TRUE(said.insert(fmt::format("{}", fmt::join(plain_words(term), " "))).second)
          << term << " twice";
    }
    EXPECT_FALSE(search({std::string(row.meant)}).tools.empty()) << row.meant;
  }
}

}  // namespace
}  // namespace coretap
