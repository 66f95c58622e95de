// memleak against programs that tell what they hold, and from which functions.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

using namespace std::chrono_literals;

struct Sum {
  std::uint64_t bytes = 0, count = 0;
  bool operator==(const Sum&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Sum& sum) {
  return out << sum.bytes << " bytes in " << sum.count;
}
using Sums = std::map<std::string, Sum>;

Sums truth_of(const Json& truth) {
  Sums sums;
  for (auto& place : truth["holds"].items())
    sums[place["function"].str()] = {place["bytes"].u64(), place["count"].u64()};
  return sums;
}

/// The workload's function that a stack leads to: leak_*, called by what is known.
std::string place_of(const Json& line) {
  auto frames = line["user_stack"].strings();
  for (std::size_t i = 0; i < frames.size() && i < 2; i++)
    if (frames[i].starts_with("leak_")) return frames[i];
  return {};
}

bool in_known_chain(const Json& line) {
  auto frames = line["user_stack"].strings();
  auto at = std::find(frames.begin(), frames.end(), "leaker_middle");
  return at != frames.end() && at + 1 != frames.end() && at[1] == "leaker_outer";
}

template <class Condition>
Sums sums_of(const Report& report, Condition condition) {
  Sums sums;
  for (auto& line : report.body) {
    auto place = place_of(line);
    if (place.empty() || !condition(line)) continue;
    sums[place].bytes += line["bytes"].u64();
    sums[place].count += line["count"].u64();
  }
  return sums;
}
Sums sums_of(const Report& report, pid_t pid) {
  return sums_of(report, [&](auto& line) { return line["pid"].i64() == pid; });
}

void expect_nothing_lost(const Report& report) {
  EXPECT_EQ(report.lost("lost") + report.lost("untracked") + report.lost("unmatched") +
                report.lost("missed") + report.lost("stacks_failed"),
            0u);
}

const Strings kAll{"--json", "-o", "0", "-i", "1000"};

Strings all_with(Strings more) {
  more.insert(more.begin(), kAll.begin(), kAll.end());
  return more;
}

TOOL_TEST(Memleak, OutstandingOfEachFunction) {
  require_tool("memleak");
  Workload workload("leaker", {"--rounds", "20"}, kLinger);
  Tracer tracer("memleak", all_with({"-p", workload.id()}));
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  EXPECT_EQ(sums_of(report, workload.pid()), truth_of(truth));
  expect_nothing_lost(report);
  for (auto& line : report.body) {
    EXPECT_EQ(line["pid"].i64(), workload.pid());
    EXPECT_EQ(line["comm"].str(), "leaker");
    EXPECT_FALSE(line["exited"].boolean());
    EXPECT_EQ(line["sample_rate"].u64(), 1u);
    EXPECT_TRUE(line["kernel_stack"].items().empty());
    EXPECT_GE(line["oldest_age_ns"].u64(), line["newest_age_ns"].u64());
    auto place = place_of(line);
    if (!place.empty() && place != "leak_handed_over") {
      EXPECT_TRUE(in_known_chain(line)) << place;
    }
  }
  // Ascending, as the text has it.
  for (std::size_t i = 1; i < report.body.size(); i++)
    EXPECT_LE(report.body[i - 1]["bytes"].u64(), report.body[i]["bytes"].u64());
}

TOOL_TEST(Memleak, ThreadsAndBlocksThatGo) {
  require_tool("memleak");
  Workload workload("leaker", {"--rounds", "30", "--threads", "8", "--churn", "2000"}, kLinger);
  Tracer tracer("memleak", all_with({"-p", workload.id()}));
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  EXPECT_EQ(sums_of(report, workload.pid()), truth_of(truth));
  expect_nothing_lost(report);
  for (auto& line : report.body)
    for (auto& frame : line["user_stack"].strings()) EXPECT_NE(frame, "churn_blocks");
}

TOOL_TEST(Memleak, SumsInTheKernelSayTheSame) {
  require_tool("memleak");
  Workload workload(
      "leaker", {"--rounds", "20", "--threads", "4", "--no-mappings", "--churn", "1000"}, kLinger);
  Tracer sums("memleak", {"--json", "-C", "-i", "1000", "-p", workload.id()});
  Tracer sized("memleak", all_with({"-z", "100", "-Z", "148", "-p", workload.id()}));
  workload.release();
  auto truth = workload.truth();
  auto report = sums.stop();
  EXPECT_EQ(sums_of(report, workload.pid()), truth_of(truth));
  for (auto& line : report.body) EXPECT_TRUE(line["oldest_age_ns"].is_null());
  // All others are of one size, larger or smaller.
  std::uint64_t blocks = 0;
  for (auto& line : sized.stop().body) {
    EXPECT_GE(line["bytes"].u64(), 100 * line["count"].u64());
    EXPECT_LE(line["bytes"].u64(), 148 * line["count"].u64());
    if (in_known_chain(line)) blocks += line["count"].u64();
  }
  EXPECT_EQ(blocks, 10u * 20 * 4);
}

// Ends of processes: shown once, and their children's own memory apart from theirs.
TOOL_TEST(Memleak, CommandsAndTheirChildren) {
  require_tool("memleak");
  for (auto* command : {"--command", "--"}) {
    auto words = all_with({"--ring-size"});
    words.pop_back();
    Strings workload{workload_path("leaker"), "--rounds", "10", "--children", "3"};
    if (std::string(command) == "--") {
      words.emplace_back("--");
      words.insert(words.end(), workload.begin(), workload.end());
    } else {
      std::string one;
      for (auto& w : workload) one += "  " + w;
      words.insert(words.end(), {"-c", one});
    }
    Tracer tracer("memleak", words, {.attached = false});
    auto report = tracer.finish();
    ASSERT_TRUE(report.truth);
    auto truth = truth_of(*report.truth);
    EXPECT_EQ(sums_of(report, static_cast<pid_t>((*report.truth)["pid"].i64())), truth);
    truth.erase("leak_handed_over");
    for (auto& child : (*report.truth)["children"].items())
      EXPECT_EQ(sums_of(report, static_cast<pid_t>(child.i64())), truth);
    for (auto& line : report.body) EXPECT_TRUE(line["exited"].boolean());
    expect_nothing_lost(report);
  }
}

TOOL_TEST(Memleak, EndsAreShownOnce) {
  require_tool("memleak");
  Workload workload("leaker", {"--rounds", "5"});
  Tracer tracer("memleak", {"--json", "-o", "0", "-i", "0.3", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();  // it has ended
  tracer.process().await([](auto& out, auto&) { return contains(out, "\"exited\":true"); });
  std::this_thread::sleep_for(700ms);
  auto report = tracer.stop();
  auto ended = sums_of(report, [](auto& line) { return line["exited"].boolean(); });
  EXPECT_EQ(ended, truth_of(truth));
  std::set<std::string> reports;
  for (auto& line : report.body)
    if (line["exited"].boolean()) reports.insert(line["time"].str());
  EXPECT_EQ(reports.size(), 1u);
  EXPECT_TRUE(report.body.back()["exited"].boolean());
}

// The chosen addresses are others in each run; six standard deviations are enough for ever.
TOOL_TEST(Memleak, EstimatesFromSomeAddresses) {
  require_tool("memleak");
  constexpr double kBlocks = 20000, kRate = 10;
  Workload workload("leaker", {"--rounds", "0", "--blocks", "20000"}, kLinger);
  Tracer every("memleak", all_with({"-p", workload.id()}));
  Tracer some("memleak", all_with({"-s", "10", "-a", "-p", workload.id()}));
  Tracer sums("memleak", {"--json", "-C", "-s", "10", "-i", "1000", "-p", workload.id()});
  workload.release();
  workload.truth();
  EXPECT_EQ(sums_of(every.stop(), workload.pid())["leak_blocks"], (Sum{64 * 20000, 20000}));
  auto report = some.stop();
  for (auto& all : {report, sums.stop()}) {
    auto sum = sums_of(all, workload.pid())["leak_blocks"];
    EXPECT_NEAR(static_cast<double>(sum.count), kBlocks, 6 * std::sqrt(kBlocks * (kRate - 1)));
    EXPECT_EQ(sum.bytes, 64 * sum.count);
    EXPECT_EQ(sum.count % 10, 0u);
  }
  for (auto& line : report.body) {
    EXPECT_EQ(line["sample_rate"].u64(), 10u);
    EXPECT_EQ(line["allocations"].items().size() * 10, line["count"].u64());
  }
}

TOOL_TEST(Memleak, OlderAndEachAllocation) {
  require_tool("memleak");
  Workload workload("leaker", {"--rounds", "3"}, kLinger);
  Tracer young("memleak", {"--json", "-o", "3600000", "-i", "1000", "-p", workload.id()});
  Tracer blocks("memleak", all_with({"-a", "-p", workload.id()}));
  workload.release();
  workload.truth();
  EXPECT_TRUE(young.stop().body.empty());
  auto report = blocks.stop();
  ASSERT_FALSE(report.body.empty());
  std::set<std::uint64_t> addresses;
  for (auto& line : report.body) {
    std::uint64_t bytes = 0, oldest = 0;
    auto all = line["allocations"].items();
    EXPECT_EQ(all.size(), line["count"].u64());
    for (auto& one : all) {
      bytes += one["bytes"].u64();
      oldest = std::max(oldest, one["age_ns"].u64());
      EXPECT_TRUE(addresses.insert(one["address"].u64()).second);
    }
    EXPECT_EQ(bytes, line["bytes"].u64());
    EXPECT_EQ(oldest, line["oldest_age_ns"].u64());
  }
}

TOOL_TEST(Memleak, TextAsItsUsersKnowIt) {
  require_tool("memleak");
  Workload workload("leaker", {"--rounds", "4"}, kLinger);
  Tracer tracer("memleak", {"-o", "0", "-a", "-T", "3", "-i", "1000", "-p", workload.id()});
  Tracer folded("memleak", {"-o", "0", "-f", "-i", "1000", "-p", workload.id()});
  workload.release();
  auto truth = truth_of(workload.truth());
  auto text = tracer.stop_text();
  std::istringstream in(text);
  Strings lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  ASSERT_GT(lines.size(), 3u);
  EXPECT_TRUE(std::regex_match(
      lines[0], std::regex(R"(\[\d\d:\d\d:\d\d\] Top 3 stacks with outstanding allocations:)")))
      << text;
  std::vector<std::uint64_t> sizes;
  std::size_t addresses = 0, count = 0;
  std::smatch found;
  for (auto& line : lines) {
    if (std::regex_match(line, found,
                         std::regex(R"(\t(\d+) bytes in (\d+) allocations from stack)"))) {
      sizes.push_back(std::stoull(found[1]));
      count += std::stoull(found[2]);
    }
    addresses += std::regex_match(line, std::regex(R"(\t\taddr = 0x[0-9a-f]+ size = \d+)"));
  }
  EXPECT_EQ(sizes.size(), 3u) << text;
  EXPECT_TRUE(std::is_sorted(sizes.begin(), sizes.end())) << text;
  EXPECT_EQ(addresses, count);
  EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [](auto& line) {
    return std::regex_match(line, std::regex(R"(\t\tleaker_middle\+0x[0-9a-f]+ \[leaker\])"));
  })) << text;

  auto stacks = folded.stop_text();
  auto wanted = ";main;leaker_outer;leaker_middle;leak_malloc " +
                std::to_string(truth["leak_malloc"].bytes) + "\n";
  EXPECT_TRUE(contains(stacks, wanted) ||
              contains(stacks, ";thread_main;leaker_outer;leaker_middle;leak_malloc " +
                                   std::to_string(truth["leak_malloc"].bytes) + "\n"))
      << stacks;
}

TOOL_TEST(Memleak, EachCall) {
  require_tool("memleak");
  Workload workload("leaker", {"--rounds", "2"}, kLinger);
  Tracer tracer("memleak", {"--json", "-t", "-p", workload.id()});
  workload.release();
  workload.truth();
  auto report = tracer.stop();
  expect_nothing_lost(report);
  std::map<std::string, int> calls;
  std::map<std::uint64_t, std::uint64_t> held;
  for (auto& event : report.body) {
    auto function = event["function"].str();
    auto address = event["address"].u64();
    calls[function] += 1;
    if (function == "free") {
      EXPECT_TRUE(event["bytes"].is_null());
      held.erase(address);
    } else if (function == "reallocarray" && !address) {
      EXPECT_EQ(event["bytes"].u64(), UINT64_MAX) << "its product overflowed: nothing was freed";
    } else if (address && function != "mmap" && function != "mremap" && function != "munmap") {
      held[address] = event["bytes"].u64();
    }
  }
  EXPECT_EQ(calls["posix_memalign"], 3 * 2);
  EXPECT_GE(calls["calloc"], 2 * 2);
  EXPECT_EQ(calls["reallocarray"], 2 * 2);
  EXPECT_EQ(calls["aligned_alloc"] + calls["memalign"], 2 * 2) << "may be one function";
  EXPECT_EQ(calls["valloc"], 2);
  EXPECT_EQ(calls["pvalloc"], 2);
  EXPECT_EQ(calls["mremap"], 2 * 2);
  EXPECT_GE(held.size(), 500u);
}

TOOL_TEST(Memleak, AnotherAllocator) {
  require_tool("memleak");
  Workload workload("leaker", {"--rounds", "6"}, kLinger);
  Tracer tracer("memleak",
                all_with({"-O", workload_path("leaker"), "-S", "toy_", "-p", workload.id()}));
  workload.release();
  auto truth = truth_of(workload.truth());
  EXPECT_EQ(sums_of(tracer.stop(), workload.pid()), (Sums{{"leak_toy", truth["leak_toy"]}}));
}

TOOL_TEST(Memleak, ProgramsWithoutASharedLibrary) {
  require_tool("memleak");
  if (!std::filesystem::exists(workload_path("leaker_static")))
    throw Skip("built without a static C library");
  Workload workload("leaker_static", {"--rounds", "6"}, kLinger);
  Tracer tracer("memleak", all_with({"-p", workload.id()}));
  workload.release();
  auto truth = truth_of(workload.truth());
  EXPECT_EQ(sums_of(tracer.stop(), workload.pid()), truth);
}

// ---- the kernel ----

/// Size of a slab cache's objects by the kernel's own table; 0: it hides the table or the cache.
std::uint64_t object_size(const std::string& cache) {
  std::istringstream in(slurp("/proc/slabinfo"));
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string name;
    std::uint64_t active = 0, all = 0, size = 0;
    if (words >> name >> active >> all >> size && name == cache) return size;
  }
  return 0;
}

bool has(const Strings& frames, std::string_view part) {
  return std::any_of(frames.begin(), frames.end(), [&](auto& f) { return contains(f, part); });
}

template <class Condition>
Sum kernel_sum(const Report& report, Condition condition) {
  Sum sum;
  for (auto& line : report.body) {
    EXPECT_TRUE(line["user_stack"].items().empty());
    if (!condition(line["kernel_stack"].strings())) continue;
    sum.bytes += line["bytes"].u64();
    sum.count += line["count"].u64();
  }
  return sum;
}

/// Others on this machine open some files too.
void expect_some_more(const Sum& sum, std::uint64_t count) {
  EXPECT_GE(sum.count, count);
  EXPECT_LE(sum.count, count + 40);
}

TOOL_TEST(Memleak, KernelObjectsOfOpenFiles) {
  require_tool("memleak");
  Workload workload("leaker",
                    {"--rounds", "0", "--eventfds", "300", "--closed", "100", "--pipes", "70"},
                    kLinger);
  Tracer tracer("memleak", kAll);
  Tracer sums("memleak", {"--json", "-C", "-i", "1000"});
  workload.release();
  workload.truth();
  std::this_thread::sleep_for(300ms);  // files are freed after a grace period
  for (auto& report : {tracer.stop(), sums.stop()}) {
    // Each counter is one object of kmalloc, and a file.
    auto counters = kernel_sum(
        report, [](auto frames) { return frames.size() > 1 && contains(frames[1], "eventfd"); });
    expect_some_more(counters, 200);
    EXPECT_EQ(counters.bytes % std::max<std::uint64_t>(1, counters.count), 0u);
    auto files = kernel_sum(report, [](auto frames) {
      return frames.size() > 1 &&
             (contains(frames[1], "alloc_empty_file") || contains(frames[1], "__alloc_file")) &&
             has(frames, "eventfd");
    });
    expect_some_more(files, 200);
    if (auto size = object_size("filp")) {
      EXPECT_EQ(files.bytes, files.count * size);
    }
    auto pages = kernel_sum(report, [](auto frames) {
      return frames.size() > 1 && contains(frames[0], "alloc") && has(frames, "pipe_write") &&
             !has(frames, "bpf_mem_refill");
    });
    expect_some_more(pages, 70);
    EXPECT_EQ(pages.bytes, pages.count * static_cast<std::uint64_t>(::getpagesize()));
    EXPECT_EQ(report.lost("lost") + report.lost("untracked") + report.lost("stacks_failed"), 0u);
  }
}

TOOL_TEST(Memleak, KernelMemoryOfEachCpu) {
  require_tool("memleak");
  Workload workload("leaker", {"--rounds", "0", "--percpu-maps", "50"}, kLinger);
  Tracer tracer("memleak", all_with({"-P"}));
  workload.release();
  workload.truth();
  auto sum = kernel_sum(tracer.stop(), [](auto frames) { return has(frames, "array_map_alloc"); });
  EXPECT_EQ(sum, (Sum{50 * 8, 50}));
}

// ---- what is refused ----

TOOL_TEST(Memleak, RefusesWhatMakesNoSense) {
  require_tool("memleak");
  auto pid = std::to_string(::getpid());
  for (auto& wrong : std::vector<Strings>{{"-P", "-p", pid},
                                          {"-C", "-a"},
                                          {"-C", "-o", "1"},
                                          {"-t", "-C"},
                                          {"-f", "-j"},
                                          {"-s", "0"},
                                          {"--sort", "age"},
                                          {"-z", "10", "-Z", "9"},
                                          {"-c", " "},
                                          {"-c", "true", "--", "true"},
                                          {"-o", "x"}}) {
    SCOPED_TRACE(::testing::PrintToString(wrong));
    auto words = wrong;
    words.insert(words.begin(), tool_path("memleak"));
    auto result = run(words);
    EXPECT_EQ(result.status, 2) << result.err;
    EXPECT_EQ(result.out, "");
  }
  auto nowhere = run({tool_path("memleak"), "-S", "no_such_", "-p", pid});
  EXPECT_EQ(nowhere.status, 3) << nowhere.err;
  EXPECT_TRUE(contains(nowhere.err, "no_such_malloc")) << nowhere.err;
}

const DeclareTests kMemleak{{
    .name = "memleak",
    .reports = {{ReportKind::allocations}, {ReportKind::events, {"-a"}}},
    .events = {"-o 0", "leaker --rounds 2"},
    .stress = {.workload = "leaker --rounds 1 --blocks {n} --block-bytes 777",
               .events = 2000,
               .options = "-o 0 -i 1000 -z 777 -Z 777",
               .shown = "count",
               .truth =
                   [](stress::Load& load) {
                     std::uint64_t blocks = 0;
                     for (auto& place : load.workload().truth()["holds"].items())
                       if (place["function"].str() == "leak_blocks") blocks = place["count"].u64();
                     return blocks;
                   },
               .tiny = "--max-keys 100",
               .copies = 3},
    .long_run = {{.arguments = "-p PID 10"},
                 {.arguments = "-s 64 10", .of = "of the kernel", .holds_results = true}},
}};

}  // namespace
}  // namespace coretap::tooltest
