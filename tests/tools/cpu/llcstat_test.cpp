// llcstat. Virtual machines have no hardware counters, so that most machines cannot run it. What it
// does all the same is seen by attaching its own kernel program to software events, which a
// process can make a known number of, and reading its maps by its own report: page faults stand for
// references, context switches for misses. Only the names of the events are the test's.
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <sstream>

#include "../harness.hpp"
#include "cli/parser.hpp"
#include "coretap/tool.hpp"
#include "program/attach.hpp"
#include "program/filters.hpp"
#include "program/load.hpp"
#include "program/maps.hpp"
#include "program/variables.hpp"
#include "reports/reporter.hpp"

namespace coretap::tooltest {
namespace {

constexpr char kName[] = "llc test";
constexpr std::size_t kPages = 1000;
constexpr int kSleeps = 50;

/// Faults and switches of a process on CPU 0, between two waits for a word.
class Worker {
 public:
  struct Counts {
    std::uint64_t faults, switches;
  };

  Worker() {
    if (::pipe(in_) || ::pipe(out_)) throw std::runtime_error("pipe");
    pid_ = ::fork();
    if (pid_ == 0) work();
    ::close(in_[0]);
    ::close(out_[1]);
    read_counts();  // it is at rest, and has gone through its code once
  }
  ~Worker() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    ::close(in_[1]);
    ::close(out_[0]);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  std::string id() const { return std::to_string(pid_); }
  Counts round() {
    if (::write(in_[1], "x", 1) != 1) throw std::runtime_error("the worker is gone");
    return read_counts();
  }

 private:
  Counts read_counts() {
    Counts counts{};
    if (::read(out_[0], &counts, sizeof counts) != sizeof counts)
      throw std::runtime_error("the worker says nothing");
    return counts;
  }

  static Counts now() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return {static_cast<std::uint64_t>(usage.ru_minflt + usage.ru_majflt),
            static_cast<std::uint64_t>(usage.ru_nvcsw + usage.ru_nivcsw)};
  }

  [[noreturn]] void work() {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::prctl(PR_SET_NAME, kName);
    cpu_set_t first;
    CPU_ZERO(&first);
    CPU_SET(0, &first);
    if (::sched_setaffinity(0, sizeof first, &first)) ::_exit(1);
    auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    while (true) {
      auto before = now();
      auto* memory = static_cast<char*>(::mmap(nullptr, kPages * page, PROT_READ | PROT_WRITE,
                                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
      ::madvise(memory, kPages * page, MADV_NOHUGEPAGE);
      for (std::size_t i = 0; i < kPages; i++) *static_cast<volatile char*>(memory + i * page) = 1;
      ::munmap(memory, kPages * page);
      for (int i = 0; i < kSleeps; i++) ::usleep(100);
      auto after = now();
      Counts counts{after.faults - before.faults, after.switches - before.switches};
      char word = 0;
      if (::write(out_[1], &counts, sizeof counts) != sizeof counts) ::_exit(1);
      if (::read(in_[0], &word, 1) != 1) ::_exit(1);
    }
  }

  pid_t pid_ = -1;
  int in_[2], out_[2];
};

void must(const coretap::Result<void>& result) {
  if (!result) throw std::runtime_error(result.error().what + ": " + result.error().why);
}

struct Seen {
  Worker::Counts truth;
  std::string out;
  std::uint64_t ledger_shown = 0;
};

/// llcstat with other events: what its report says of one round of a worker.
Seen see(Strings options, Sampling references = every(1)) {
  Worker worker;
  options.insert(options.end(), {"--pid", worker.id()});
  auto tool = build(*find_tool("llcstat"));
  auto parsed = parse_command_line(tool, options);
  if (!parsed) throw std::runtime_error(parsed.error().what);
  TemporaryDirectory directory;
  auto path = directory.path() + "/out";
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));

  Session s(tool, parsed->config);
  s.out = Sink(file.get());
  auto reporter = tool.report->reporter();
  must(open_object(s));
  for (auto& edit : s.config.edits())
    edit_rodata(s, edit.target.offset, &edit.value, edit.target.size);
  reporter->configure(s);
  must(configure_filters(s, 0));
  size_maps(s);
  reporter->size_maps(s);
  constexpr std::pair<const char*, const char*> kPrograms[] = {{"on_reference", "page-faults"},
                                                               {"on_miss", "context-switches"}};
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, s.object.get()) bpf_program__set_autoload(program, false);
  for (auto& [name, event] : kPrograms)
    bpf_program__set_autoload(bpf_object__find_program_by_name(s.object.get(), name), true);
  must(load(s));
  must(fill_filters(s, 0));
  must(reporter->ready(s));
  must(reporter->open(s));
  for (auto& [name, event] : kPrograms) {
    auto sampling = std::string_view(name) == "on_reference" ? references : every(1);
    auto links = attach_perf_event(bpf_object__find_program_by_name(s.object.get(), name), event,
                                   sampling, online_cpus());
    if (!links) throw std::runtime_error(links.error().what + ": " + links.error().why);
    for (auto& link : *links) s.links.push_back(std::move(link));
  }
  Seen seen{worker.round()};
  detach(s.links);
  reporter->begin(s);
  reporter->report(s);
  s.out.flush();
  seen.out = slurp(path);
  seen.ledger_shown = s.ledger.shown;
  return seen;
}

/// Around the counted part the worker waits: a switch or two, and no fault.
void expect_near(std::uint64_t seen, std::uint64_t truth) {
  EXPECT_GE(seen, truth);
  EXPECT_LE(seen, truth + 5);
}

TOOL_TEST(Llcstat, CountsOfItsOwnProgram) {
  auto seen = see({"--json"});
  EXPECT_GE(seen.truth.faults, kPages);
  EXPECT_GE(seen.truth.switches, static_cast<std::uint64_t>(kSleeps));
  auto line = Json::parse(seen.out.substr(0, seen.out.find('\n')));
  EXPECT_EQ(seen.out.find('\n') + 1, seen.out.size()) << "one process, one CPU: " << seen.out;
  EXPECT_EQ(line["type"].str(), "row");
  EXPECT_EQ(line["comm"].str(), kName);
  EXPECT_EQ(line["cpu"].u64(), 0u);
  EXPECT_FALSE(line.has("tid"));
  auto references = line["references"].u64(), misses = line["misses"].u64();
  expect_near(references, seen.truth.faults);
  expect_near(misses, seen.truth.switches);
  EXPECT_EQ(seen.ledger_shown, references + misses);
  EXPECT_NEAR(line["hit_ratio"].real(),
              1 - static_cast<double>(misses) / static_cast<double>(references), 1e-6);
}

TOOL_TEST(Llcstat, ThreadsAndTotal) {
  auto seen = see({"-t"});
  std::istringstream lines(seen.out);
  std::string time, titles, row, total;
  std::getline(lines, time);
  std::getline(lines, titles);
  std::getline(lines, row);
  std::getline(lines, total);
  EXPECT_EQ(words(titles), (Strings{"PID", "TID", "NAME", "CPU", "REFERENCE", "MISS", "HIT%"}));
  auto cells = words(row);  // the name has two words
  ASSERT_EQ(cells.size(), 8u) << row;
  EXPECT_EQ(cells[0], cells[1]) << "its only thread";
  EXPECT_EQ(total, "Total References: " + cells[5] + " Total Misses: " + cells[6] +
                       " Hit Rate: " + cells[7])
      << row;
  expect_near(std::stoull(cells[5]), seen.truth.faults);
}

// A sample stands for as many events as the period has.
TOOL_TEST(Llcstat, PeriodIsWhatASampleStandsFor) {
  auto seen = see({"--json"}, every(10));
  auto references = Json::parse(seen.out.substr(0, seen.out.find('\n')))["references"].u64();
  EXPECT_EQ(references % 10, 0u);
  // Other processes on this CPU have samples of theirs, in proportion.
  EXPECT_GT(references, seen.truth.faults / 2);
  EXPECT_LT(references, seen.truth.faults * 2);
}

TOOL_TEST(Llcstat, SaysThatThereAreNoCounters) {
  if (has_hardware_counters()) throw Skip("this machine has hardware counters");
  for (auto* option : {"--json", "--explain"}) {
    auto refused = run({tool_path("llcstat"), option, "1"});
    EXPECT_EQ(refused.status, 3) << refused.out;
    EXPECT_TRUE(contains(refused.err, "no hardware counter for cache-references")) << refused.err;
    EXPECT_TRUE(contains(refused.err, "virtual PMU")) << refused.err;
    EXPECT_EQ(refused.out, "");
  }
}

TOOL_TEST(Llcstat, BusyProcess) {
  require_tool("llcstat");  // needs counters
  Workload workload("sleeper", {"--sleeps", "1", "--spin", "500"}, kLinger);
  Tracer tracer("llcstat", {"--json", "--pid", workload.id()});
  workload.release();
  workload.truth();
  auto report = tracer.stop();
  EXPECT_GT(report.sum("references"), 0u);
  workload.end_lingering();
}

TOOL_TEST(Llcstat, PeriodsThatWouldHoldACpu) {
  for (auto* bad : {"0", "1", "99", "10000000001", "x", ""}) {
    auto refused = run({tool_path("llcstat"), "-c", bad, "1"});
    EXPECT_EQ(refused.status, 2) << bad;
    EXPECT_TRUE(contains(refused.err, "is not a number from 100 to 10000000000")) << refused.err;
  }
  // As bcc spells them.
  auto help = run({tool_path("llcstat"), "--sample_period", "100", "--tid", "--help"});
  EXPECT_EQ(help.status, 0) << help.err;
}

const DeclareTests kLlcstat{{
    .name = "llcstat",
    .reports = {{ReportKind::aggregate}},
    .events = {{}, "sleeper --sleeps 1 --spin 500"},
    .stress = {.workload = "sleeper --sleeps 1 --spin {n}",
               .events = 500,
               .shown = "references",
               .tiny = "--max-keys 1",
               .uncounted = true},
    .long_run = {{.arguments = "-c 100000"}},
}};

}  // namespace
}  // namespace coretap::tooltest
