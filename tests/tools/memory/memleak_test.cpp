// memleak against programs that report the memory they hold, by function.
#include "shared.hpp"

namespace coretap::tooltest {
namespace {

using namespace std::chrono_literals;

/// Bytes, and number of allocations.
using Held = std::pair<std::uint64_t, std::uint64_t>;
using HeldBy = std::map<std::string, Held>;

HeldBy truth_of(const Json& truth) {
  HeldBy held;
  for (auto& place : truth["holds"].items())
    held[place["function"].str()] = {place["bytes"].u64(), place["count"].u64()};
  return held;
}

/// The workload's function in a stack: leak_*, called from a known function.
std::string place_of(const Json& line) {
  auto frames = line["user_stack"].strings();
  for (std::size_t i = 0; i < frames.size() && i < 2; i++)
    if (frames[i].starts_with("leak_")) return frames[i];
  return {};
}

bool in_known_chain(const Json& line) {
  auto frames = line["user_stack"].strings();
  auto at = std::ranges::find(frames, "leaker_middle");
  return at != frames.end() && at + 1 != frames.end() && at[1] == "leaker_outer";
}

Held sum_of(const std::vector<Json>& lines) { return {sum(lines, "bytes"), sum(lines, "count")}; }

HeldBy held_by(const std::vector<Json>& lines) {
  std::map<std::string, std::vector<Json>> by_place;
  for (auto& line : lines) by_place[place_of(line)].push_back(line);
  by_place.erase("");
  HeldBy held;
  for (auto& [place, own] : by_place) held[place] = sum_of(own);
  return held;
}

void expect_nothing_lost(const Report& report) {
  for (auto* cause : {"lost", "untracked", "unmatched", "missed", "stacks_failed"})
    EXPECT_EQ(report.lost(cause), 0u) << cause;
}

const std::string kAll = "memleak --json -o 0 -i 1000 ", kOfProcess = kAll + "-p {pid} ";

TOOL_TEST(Memleak, OutstandingOfEachFunction) {
  auto seen = observe(kOfProcess, "leaker --rounds 20");
  auto report = seen.report();
  EXPECT_EQ(held_by(report.body), truth_of(seen.truth));
  expect_nothing_lost(report);
  for (auto& line : report.body) {
    expect_fields(line,
                  {{"pid", seen.pid}, {"comm", "leaker"}, {"exited", false}, {"sample_rate", 1}});
    EXPECT_TRUE(line["kernel_stack"].items().empty());
    EXPECT_GE(line["oldest_age_ns"].u64(), line["newest_age_ns"].u64());
    auto place = place_of(line);
    EXPECT_TRUE(place.empty() || place == "leak_handed_over" || in_known_chain(line)) << place;
  }
  // Ascending, as in the text.
  EXPECT_TRUE(std::ranges::is_sorted(report.body, {}, [](auto& l) { return l["bytes"].u64(); }));
}

TOOL_TEST(Memleak, ThreadsAndBlocksThatGo) {
  auto seen = observe(kOfProcess, "leaker --rounds 30 --threads 8 --churn 2000");
  auto report = seen.report();
  EXPECT_EQ(held_by(report.of_process(seen.pid)), truth_of(seen.truth));
  expect_nothing_lost(report);
  for (auto& line : report.body)
    EXPECT_FALSE(std::ranges::count(line["user_stack"].strings(), "churn_blocks"));
}

TOOL_TEST(Memleak, SumsInTheKernelSayTheSame) {
  auto seen = observe_all({"memleak --json -C -i 1000 -p {pid}", kOfProcess + "-z 100 -Z 148"},
                          "leaker --rounds 20 --threads 4 --no-mappings --churn 1000");
  auto sums = seen.report(0), sized = seen.report(1);
  EXPECT_EQ(held_by(sums.of_process(seen.pid)), truth_of(seen.truth));
  for (auto& line : sums.body) expect_fields(line, {{"oldest_age_ns", nullptr}});
  // All others have one size, larger or smaller.
  for (auto& line : sized.body) {
    EXPECT_GE(line["bytes"].u64(), 100 * line["count"].u64());
    EXPECT_LE(line["bytes"].u64(), 148 * line["count"].u64());
  }
  std::erase_if(sized.body, [](auto& line) { return !in_known_chain(line); });
  EXPECT_EQ(sized.sum("count"), 10u * 20 * 4);
}

// Exits of processes: shown once, and their children's own memory separately.
TOOL_TEST(Memleak, CommandsAndTheirChildren) {
  auto command = "  " + workload_path("leaker") + "  --rounds 10  --children 3";
  for (auto& words : {Strings{"-c", command}, Strings("--") + Strings(command)}) {
    auto report = Tracer("memleak", "--json -o 0 -i 1000" + words, {.attached = false}).finish();
    auto& said = report.truth.value();
    auto truth = truth_of(said);
    EXPECT_EQ(held_by(report.of_process(said["pid"].u64())), truth);
    truth.erase("leak_handed_over");
    for (auto& child : said["children"].items())
      EXPECT_EQ(held_by(report.of_process(child.u64())), truth);
    for (auto& line : report.body) expect_fields(line, {{"exited", true}});
    expect_nothing_lost(report);
  }
}

// The sampled addresses differ in each run; six standard deviations are a safe bound.
TOOL_TEST(Memleak, EstimatesFromSomeAddresses) {
  constexpr double kBlocks = 20000, kRate = 10;
  auto seen =
      observe_all({kOfProcess, kOfProcess + "-s 10 -a", "memleak --json -C -s 10 -i 1000 -p {pid}"},
                  "leaker --rounds 0 --blocks 20000");
  EXPECT_EQ(held_by(seen.report(0).body)["leak_blocks"], Held(64 * 20000, 20000));
  for (std::size_t i : {1, 2}) {
    auto [bytes, count] = held_by(seen.report(i).body)["leak_blocks"];
    EXPECT_NEAR(static_cast<double>(count), kBlocks, 6 * std::sqrt(kBlocks * (kRate - 1)));
    EXPECT_EQ(bytes, 64 * count);
    EXPECT_EQ(count % 10, 0u);
  }
  for (auto& line : seen.report(1).body)
    expect_fields(line, {{"sample_rate", 10}, {"count", line["allocations"].items().size() * 10}});
}

TOOL_TEST(Memleak, TextAsItsUsersKnowIt) {
  auto seen =
      observe_all({"memleak -o 0 -a -T 3 -i 1000 -p {pid}", "memleak -o 0 -f -i 1000 -p {pid}"},
                  "leaker --rounds 4");
  SCOPED_TRACE(seen.text());
  auto all = lines(seen.text());
  EXPECT_TRUE(std::regex_match(
      all.at(0), std::regex(R"(\[\d\d:\d\d:\d\d\] Top 3 stacks with outstanding allocations:)")));
  const std::regex stack(R"(\t(\d+) bytes in (\d+) allocations from stack)"),
      block(R"(\t\taddr = 0x[0-9a-f]+ size = \d+)"),
      frame(R"(\t\tleaker_middle\+0x[0-9a-f]+ \[leaker\])");
  std::vector<std::uint64_t> sizes;
  std::size_t addresses = 0, count = 0, frames = 0;
  std::smatch found;
  for (auto& line : all) {
    if (std::regex_match(line, found, stack)) {
      sizes.push_back(std::stoull(found[1]));
      count += std::stoull(found[2]);
    }
    addresses += std::regex_match(line, block);
    frames += std::regex_match(line, frame);
  }
  EXPECT_EQ(sizes.size(), 3u);
  EXPECT_TRUE(std::ranges::is_sorted(sizes));
  EXPECT_EQ(addresses, count);
  EXPECT_GT(frames, 0u);
  const std::regex folded(";(thread_)?main;leaker_outer;leaker_middle;leak_malloc " +
                          std::to_string(truth_of(seen.truth)["leak_malloc"].first) + "\n");
  EXPECT_TRUE(std::regex_search(seen.text(1), folded)) << seen.text(1);
}

TOOL_TEST(Memleak, EachCall) {
  auto report = observe("memleak --json -t -p {pid}", "leaker --rounds 2").report();
  expect_nothing_lost(report);
  std::map<std::string, int> calls;
  for (auto& event : report.body) {
    auto function = event["function"].str();
    calls[function] += 1;
    if (function == "free") expect_fields(event, {{"bytes", nullptr}});
    // The product overflowed: nothing was freed.
    if (function == "reallocarray" && !event["address"].u64())
      expect_fields(event, {{"bytes", UINT64_MAX}});
  }
  calls["aligned_alloc"] += calls["memalign"];  // may be one function
  for (auto& [function, count] : std::map<std::string, int>{{"posix_memalign", 6},
                                                            {"reallocarray", 4},
                                                            {"aligned_alloc", 4},
                                                            {"valloc", 2},
                                                            {"pvalloc", 2},
                                                            {"mremap", 4}})
    EXPECT_EQ(calls[function], count) << function;
  EXPECT_GE(calls["calloc"], 2 * 2);
}

TOOL_TEST(Memleak, AnotherAllocator) {
  auto seen = observe(kOfProcess + "-S toy_ -O " + workload_path("leaker"), "leaker --rounds 6");
  EXPECT_EQ(held_by(seen.report().body),
            (HeldBy{{"leak_toy", truth_of(seen.truth).at("leak_toy")}}));
}

TOOL_TEST(Memleak, ProgramsWithoutASharedLibrary) {
  if (!std::filesystem::exists(workload_path("leaker_static")))
    throw Skip("built without a static C library");
  auto seen = observe(kOfProcess, "leaker_static --rounds 6");
  EXPECT_EQ(held_by(seen.report().body), truth_of(seen.truth));
}

// ---- the kernel ----

bool has(const Strings& frames, std::string_view part) {
  return std::ranges::any_of(frames, [&](auto& f) { return contains(f, part); });
}

/// By stacks whose second frame contains one of these, and that match the condition.
template <class Condition>
Held held_by_kernel(std::vector<Json> lines, const Strings& second, Condition condition) {
  for (auto& line : lines) EXPECT_TRUE(line["user_stack"].items().empty());
  std::erase_if(lines, [&](auto& line) {
    auto frames = line["kernel_stack"].strings();
    return frames.size() < 2 || !condition(frames) ||
           std::ranges::none_of(second, [&](auto& part) { return contains(frames[1], part); });
  });
  return sum_of(lines);
}

/// Other processes on this machine open files, too.
void expect_some_more(const Held& held, std::uint64_t count) {
  EXPECT_GE(held.second, count);
  EXPECT_LE(held.second, count + 40);
}

TOOL_TEST(Memleak, KernelObjectsOfOpenFiles) {
  Workload workload("leaker", "--rounds 0 --eventfds 300 --closed 100 --pipes 70", kLinger);
  Tracer tracer("memleak", "--json -o 0 -i 1000");
  Tracer sums("memleak", "--json -C -i 1000");
  workload.release();
  workload.truth();
  std::this_thread::sleep_for(300ms);  // files are freed after a grace period
  for (auto& report : {tracer.stop(), sums.stop()}) {
    // Each counter is one object of kmalloc, and a file.
    auto of_eventfd = [](const Strings& frames) { return has(frames, "eventfd"); };
    auto counters = held_by_kernel(report.body, Strings("eventfd"), of_eventfd);
    expect_some_more(counters, 200);
    EXPECT_EQ(counters.first % std::max<std::uint64_t>(1, counters.second), 0u);
    auto files = held_by_kernel(report.body, {"alloc_empty_file", "__alloc_file"}, of_eventfd);
    expect_some_more(files, 200);
    if (auto size = slab_object_bytes()["filp"]) {
      EXPECT_EQ(files.first, files.second * size);
    }
    auto pages = held_by_kernel(report.body, Strings{""}, [](const Strings& frames) {
      return contains(frames[0], "alloc") && has(frames, "pipe_write") &&
             !has(frames, "bpf_mem_refill");
    });
    expect_some_more(pages, 70);
    EXPECT_EQ(pages.first, pages.second * static_cast<std::uint64_t>(::getpagesize()));
    EXPECT_EQ(report.lost("lost") + report.lost("untracked") + report.lost("stacks_failed"), 0u);
  }
}

TOOL_TEST(Memleak, KernelMemoryOfEachCpu) {
  auto report = observe(kAll + "-P", "leaker --rounds 0 --percpu-maps 50").report();
  auto maps = held_by_kernel(report.body, Strings{""},
                             [](const Strings& frames) { return has(frames, "array_map_alloc"); });
  EXPECT_EQ(maps, Held(50 * 8, 50));
}

// ---- rejected options ----

TOOL_TEST(Memleak, AllocatorsThatTheProcessHasNot) {
  require_tool("memleak");
  expect_refused("memleak -S no_such_ -p " + std::to_string(::getpid()), {"no_such_malloc"}, 3);
}

TESTS_OF(memleak, .reports = {{ReportKind::allocations}, {ReportKind::events, {"-a"}}},
         .events = {"-o 0", "leaker --rounds 2"},
         .stress = {.workload = "leaker --rounds 1 --blocks {n} --block-bytes 777",
                    .events = 2000,
                    .options = "-o 0 -i 1000 -z 777 -Z 777",
                    .shown = "count",
                    .truth =
                        [](stress::Load& load) {
                          std::uint64_t blocks = 0;
                          for (auto& place : load.workload().truth()["holds"].items())
                            if (place["function"].str() == "leak_blocks")
                              blocks = place["count"].u64();
                          return blocks;
                        },
                    .tiny = "--max-keys 100",
                    .copies = 3},
         .long_run = {{.arguments = "-p PID 10"},
                      {.arguments = "-s 64 10", .of = "of the kernel", .holds_results = true}});

}  // namespace
}  // namespace coretap::tooltest
