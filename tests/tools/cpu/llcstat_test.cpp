// llcstat. Virtual machines have no hardware counters, so most machines cannot run it. The test
// attaches its kernel program to software events, of which a process can make a known number, and
// reads its maps by its report: page faults stand for references, context switches for misses. Only
// the event names are the test's.
#include <bpf/libbpf.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "cli/parser.hpp"
#include "coretap/tool.hpp"
#include "program/attach.hpp"
#include "program/filters.hpp"
#include "program/load.hpp"
#include "program/maps.hpp"
#include "program/variables.hpp"
#include "reports/reporter.hpp"
#include "shared.hpp"

namespace coretap::tooltest {
namespace {

constexpr char kName[] = "llc test";
constexpr std::size_t kPages = 1000;
constexpr int kNaps = 50;

/// Faults and switches of a process on CPU 0, between two waits for a command.
class Worker {
 public:
  struct Counts {
    std::uint64_t faults = 0, switches = 0;
  };

  Worker() { read_counts(); }  // afterwards it waits, and has run its code once
  std::string id() const { return std::to_string(process_.pid()); }
  Counts round() {
    process_.write_stdin("x");
    return read_counts();
  }

 private:
  Counts read_counts() {
    auto said = [this](auto& out, auto&) { return complete_lines(out).size() > rounds_; };
    if (!process_.await(said)) throw std::runtime_error("the worker says nothing");
    Counts counts;
    std::istringstream(process_.out_lines()[rounds_++]) >> counts.faults >> counts.switches;
    return counts;
  }

  static Counts now() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return {static_cast<std::uint64_t>(usage.ru_minflt + usage.ru_majflt),
            static_cast<std::uint64_t>(usage.ru_nvcsw + usage.ru_nivcsw)};
  }

  static void work() {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::prctl(PR_SET_NAME, kName);
    if (!stay_on(0)) ::_exit(1);
    auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    for (char word = 0; true;) {
      auto before = now();
      auto* memory = static_cast<char*>(::mmap(nullptr, kPages * page, PROT_READ | PROT_WRITE,
                                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
      ::madvise(memory, kPages * page, MADV_NOHUGEPAGE);
      for (std::size_t i = 0; i < kPages; i++) *static_cast<volatile char*>(memory + i * page) = 1;
      ::munmap(memory, kPages * page);
      for (int i = 0; i < kNaps; i++) ::usleep(100);
      auto after = now();
      ::dprintf(1, "%lu %lu\n", after.faults - before.faults, after.switches - before.switches);
      if (::read(0, &word, 1) != 1) ::_exit(1);
    }
  }

  Process process_{{.argv = {"/bin/true"}, .stdin_pipe = true, .in_child = work}};
  std::size_t rounds_ = 0;
};

void must(const coretap::Result<void>& result) {
  if (!result) throw std::runtime_error(result.error().what + ": " + result.error().why);
}

struct Seen {
  Worker::Counts truth;
  std::string out;
  std::uint64_t ledger_shown = 0;
};

/// llcstat with other events: the report of one round of a worker.
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
  must(configure_filters(s));
  size_maps(s);
  reporter->size_maps(s);
  constexpr std::pair<const char*, const char*> kPrograms[] = {{"on_reference", "page-faults"},
                                                               {"on_miss", "context-switches"}};
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, s.object.get()) bpf_program__set_autoload(program, false);
  for (auto& [name, event] : kPrograms)
    bpf_program__set_autoload(bpf_object__find_program_by_name(s.object.get(), name), true);
  must(load(s));
  must(fill_filters(s));
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

/// Before and after the counted part the worker waits: a switch or two, and no fault.
void expect_near(std::uint64_t seen, std::uint64_t truth) {
  EXPECT_GE(seen, truth);
  EXPECT_LE(seen, truth + 5);
}

TOOL_TEST(Llcstat, CountsOfItsOwnProgram) {
  auto seen = see("--json");
  EXPECT_GE(seen.truth.faults, kPages);
  EXPECT_GE(seen.truth.switches, static_cast<std::uint64_t>(kNaps));
  ASSERT_EQ(lines(seen.out).size(), 1u) << "one process, one CPU: " << seen.out;
  auto line = Json::parse(seen.out);
  expect_fields(line, {{"type", "row"}, {"comm", kName}, {"cpu", 0}});
  EXPECT_FALSE(line.has("tid"));
  auto references = line["references"].u64(), misses = line["misses"].u64();
  expect_near(references, seen.truth.faults);
  expect_near(misses, seen.truth.switches);
  EXPECT_EQ(seen.ledger_shown, references + misses);
  EXPECT_NEAR(line["hit_ratio"].real(), 1 - line["misses"].real() / line["references"].real(),
              1e-6);
}

TOOL_TEST(Llcstat, ThreadsAndTotal) {
  auto seen = see("-t");
  auto shown = lines(seen.out);
  ASSERT_GE(shown.size(), 4u) << seen.out;
  auto cells = words(shown[2]);  // the name has two words
  ASSERT_EQ(cells.size(), 8u) << shown[2];
  EXPECT_EQ(cells[0], cells[1]) << "its only thread";
  EXPECT_EQ(shown[3], "Total References: " + cells[5] + " Total Misses: " + cells[6] +
                          " Hit Rate: " + cells[7] + "%");
  expect_near(std::stoull(cells[5]), seen.truth.faults);
}

// A sample represents as many events as the period.
TOOL_TEST(Llcstat, PeriodIsWhatASampleStandsFor) {
  auto seen = see("--json", every(10));
  auto references = Json::parse(lines(seen.out).at(0))["references"].u64();
  EXPECT_EQ(references % 10, 0u);
  // Other processes on this CPU are sampled, too, in proportion.
  EXPECT_GT(references, seen.truth.faults / 2);
  EXPECT_LT(references, seen.truth.faults * 2);
}

TOOL_TEST(Llcstat, SaysThatThereAreNoCounters) {
  if (has_hardware_counters()) throw Skip("this machine has hardware counters");
  for (auto* words : {"llcstat --json 1", "llcstat --explain 1"})
    expect_refused(words, {"no hardware counter for cache-references", "virtual PMU"}, 3);
}

TESTS_OF(llcstat, .events = {{}, "sleeper --sleeps 1 --spin 500"},
         .stress = count_row("sleeper --sleeps 1 --spin {n}", 500, "references", {}).not_known(),
         .long_run = {{.arguments = "-c 100000"}});

}  // namespace
}  // namespace coretap::tooltest
