// cpufreq against clocks simulated by the test: files in place of the driver's, and changes passed
// to the program as its tracepoint would.
#include <bpf/bpf.h>
#include <sys/mount.h>

#include "shared.hpp"

namespace coretap::tooltest {
namespace {

constexpr char kCpus[] = "/sys/devices/system/cpu";

/// The files at kCpus for processes that called mount(): CPU n runs at 1.0 + n/2 GHz.
class MadeUpClocks {
 public:
  MadeUpClocks() {
    for (auto* list : {"online", "possible", "present"})
      std::ofstream(directory_.path() + "/" + list) << slurp(std::string(kCpus) + "/" + list);
    for (long cpu = 0; cpu < ::sysconf(_SC_NPROCESSORS_CONF); cpu++) {
      auto place = directory_.path() + "/cpu" + std::to_string(cpu) + "/cpufreq";
      std::filesystem::create_directories(place);
      std::ofstream(place + "/scaling_cur_freq") << mhz(static_cast<std::uint64_t>(cpu)) << "000\n";
    }
  }
  static std::uint64_t mhz(std::uint64_t cpu) { return 1000 + 500 * cpu; }
  /// For Tracer::How::in_child.
  std::function<void()> mount() const {
    return [path = directory_.path()] {
      if (::unshare(CLONE_NEWNS) || ::mount("", "/", "", MS_REC | MS_PRIVATE, "") ||
          ::mount(path.c_str(), kCpus, "", MS_BIND, ""))
        ::_exit(77);
    };
  }

 private:
  TemporaryDirectory directory_;
};

/// Calls the program of this name, of a running tool, as a raw tracepoint does.
void call(Tracer& tracer, const std::string& name, std::vector<std::uint64_t> arguments) {
  for (auto id : bpf_ids(tracer.process().pid()).programs) {
    int fd = bpf_prog_get_fd_by_id(id);
    bpf_prog_info info = {};
    __u32 size = sizeof info;
    if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &size) || info.name != name) {
      if (fd >= 0) ::close(fd);
      continue;
    }
    LIBBPF_OPTS(bpf_test_run_opts, options);
    options.ctx_in = arguments.data();
    options.ctx_size_in = static_cast<__u32>(arguments.size() * sizeof arguments[0]);
    int error = bpf_prog_test_run_opts(fd, &options);
    ::close(fd);
    if (error) throw std::runtime_error(name + " cannot be called: " + std::to_string(error));
    return;
  }
  throw std::runtime_error("no program " + name);
}

/// Samples of the slot that has this clock; all others must be empty.
std::uint64_t samples_at(const Json& line, std::uint64_t mhz) {
  std::uint64_t samples = 0;
  for (auto& slot : line["histogram"].items()) {
    EXPECT_EQ(slot["from_mhz"].u64(), mhz / 200 * 200);
    EXPECT_EQ(slot["below_mhz"].u64(), mhz / 200 * 200 + 200);
    samples += slot["count"].u64();
  }
  return samples;
}

/// Runs a workload on one CPU; `meanwhile` is called while the tool runs, before the workload.
void clocks_of_workload(const std::function<std::uint64_t(Tracer&, std::uint64_t cpu)>& meanwhile) {
  MadeUpClocks clocks;
  Workload workload("runqueue", "--threads 1 --ms 1000", kLinger);
  auto tid = workload.ready()["tids"].items().at(0).text();
  Tracer tracer("cpufreq", "--json --strict -f 500 -t " + tid, {.in_child = clocks.mount()});
  auto mhz = meanwhile(tracer, workload.ready()["cpu"].u64());
  workload.release();
  auto due = workload.truth()["on_cpu_ns"].real() / 1e9 * 500;
  auto report = tracer.stop();
  ASSERT_EQ(report.body.size(), 2u);
  auto &all = report.body[0], &one = report.body[1];
  auto samples = samples_at(one, mhz);
  EXPECT_EQ(samples_at(all, mhz), samples);
  expect_fields(all, {{"syswide", true}});
  expect_fields(
      one,
      {{"syswide", false}, {"comm", "runqueue"}, {"count", samples}, {"total_mhz", samples * mhz}});
  // Ticks of a busy guest are late.
  expect_between(samples, 0.5 * due, 1.3 * due + 10);
}

TOOL_TEST(Cpufreq, TheClockThatWasSetBefore) {
  clocks_of_workload([](Tracer&, std::uint64_t cpu) { return MadeUpClocks::mhz(cpu); });
}

TOOL_TEST(Cpufreq, AClockThatChanges) {
  clocks_of_workload([](Tracer& tracer, std::uint64_t cpu) {
    call(tracer, "on_change", {5'300'000, cpu});
    call(tracer, "on_change", {900'000, cpu + 1});
    return std::uint64_t{5300};
  });
}

TOOL_TEST(Cpufreq, MeasuredClocks) {
  // Each CPU reads its own clock: here the test's.
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  clocks_of_workload([](Tracer& tracer, std::uint64_t cpu) {
    EXPECT_TRUE(stay_on(static_cast<int>(cpu)));
    call(tracer, "on_pstate", {0, 0, 0, 0, 0, 0, 0, 3'712'000, 0});
    return std::uint64_t{3712};
  });
  ::sched_setaffinity(0, sizeof before, &before);
}

TOOL_TEST(Cpufreq, TextIsTheKnownHistogram) {
  MadeUpClocks clocks;
  Workload workload("runqueue", "--threads 1 --ms 300", kLinger);
  Tracer tracer("cpufreq", "-p " + workload.id(), {.in_child = clocks.mount()});
  workload.release();
  workload.truth();
  expect_contains(tracer.stop_text(), {"syswide\n       mhz : count    distribution\n",
                                       "runqueue\n       mhz : count    distribution\n"});
}

TOOL_TEST(Cpufreq, SaysThatTheClocksAreNotKnown) {
  if (std::filesystem::exists(std::string(kCpus) + "/cpu0/cpufreq"))
    throw Skip("this machine has a cpufreq driver");
  for (auto* words : {"cpufreq --json -d 1", "cpufreq --explain -d 1"})
    expect_refused(words, {"does not know the clocks", "perf stat -e cycles"}, 3);
}

TESTS_OF(cpufreq, .events = {{}, "runqueue --threads 2 --ms 60"}, .nothing_when_idle = true,
         .stress = count_row(
                       "runqueue --threads 1 --ms {n}", 600,
                       [](auto& line) {
                         return line["syswide"].boolean() ? line["count"].u64() : 0;
                       },
                       samples_each(2'000'000), "-f 500")
                       .sampled(0.5));

}  // namespace
}  // namespace coretap::tooltest
