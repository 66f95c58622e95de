#include "kernel/pmu_events.hpp"

#include <linux/perf_event.h>

#include "expect.hpp"
#include "kernel/perf_events.hpp"

namespace coretap {
namespace {

/// A machine with two kinds of cores, a PMU of the package, and one with a few odd files.
class PmuEvents : public testing::Test {
 protected:
  PmuEvents() {
    file("cpu_core/type", "4\n");
    file("cpu_core/cpus", "0-3\n");
    file("cpu_core/caps/max_precise", "3\n");
    file("cpu_core/format/event", "config:0-7\n");
    file("cpu_core/format/umask", "config:8-15\n");
    file("cpu_core/format/edge", "config:18\n");
    file("cpu_core/format/ldlat", "config1:0-15\n");
    file("cpu_core/format/amd_like", "config:0-7,32-35\n");
    file("cpu_core/format/whole", "config2:0-63\n");
    file("cpu_core/format/third", "config3:4-7\n");
    file("cpu_core/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3\n");
    file("cpu_core/events/mem-stores", "event=0xcd,umask=0x2\n");
    file("cpu_core/events/cache-misses", "event=0x2e,umask=0x41\n");
    file("cpu_atom/type", "10\n");
    file("cpu_atom/cpus", "4-7\n");
    file("cpu_atom/caps/max_precise", "1\n");
    file("cpu_atom/format/event", "config:0-7\n");
    file("cpu_atom/events/mem-loads", "event=0xd0\n");
    file("power/type", "22\n");
    file("power/cpumask", "0,8\n");
    file("power/format/event", "config:0-7\n");
    file("power/events/energy-pkg", "event=0x02\n");
    file("power/events/energy-pkg.scale", "2.3283064365386962890625e-10\n");
    file("power/events/energy-pkg.unit", "Joules\n");
    file("odd/type", "23\n");
    file("odd/format/beyond", "config:60-64\n");
    file("odd/format/backwards", "config:9-4\n");
    file("odd/format/elsewhere", "config9:0\n");
    file("odd/format/empty", "");
    file("odd/format/domain", "config:0-3");
    file("odd/format/core", "config:4-31");
    file("odd/events/degrees", "domain=1");
    file("odd/events/degrees.snapshot", "1\n");
    file("odd/events/degrees.scale", "inf\n");
    file("odd/events/degrees.unit", "C");
    file("odd/events/asks", "domain=2,core=?");
    file("odd/events/nested", "degrees");
    file("odd/events/wide", "domain=0x10");
    file("odd/events/no-value", "domain");
    file("odd/events/damaged", "domain=,,=");
    file("nothing/format/event", "config:0-7\n");
    file("tracepoint/type", "2\n");
  }
  void file(const std::string& name, std::string_view text) const { root_.write(name, text); }

  /// "TYPE CONFIG CONFIG1 CONFIG2 CONFIG3", or the error.
  std::string of(std::string_view word) const {
    auto event = perf_event(word, pmus_);
    if (!event) {
      auto& e = event.error();
      return fmt::format("{}: {} ({}) {}", e.what, e.why, e.hint, e.status);
    }
    auto& pmu = event->of_pmu;
    EXPECT_TRUE(pmu);
    if (!pmu) return "no event of a PMU";
    EXPECT_EQ(event->config, pmu->config[0]);
    return fmt::format("{} {:x} {:x} {:x} {:x}", event->type, pmu->config[0], pmu->config[1],
                       pmu->config[2], pmu->config[3]);
  }

  ScratchDirectory root_;
  Pmus pmus_{root_.path()};
};

TEST_F(PmuEvents, Terms) {
  expect_each(
      [&](const std::string& word) { return of(word); },
      {"cpu_core/event=0x3c/ => 4 3c 0 0 0", "cpu_core/event=60,umask=0xff/u => 4 ff3c 0 0 0",
       "cpu_core/event=1,edge/ => 4 40001 0 0 0", "cpu_core/event=1,edge=0/ => 4 1 0 0 0",
       // The low eight bits, then four from bit 32.
       "cpu_core/amd_like=0xfff/ => 4 f000000ff 0 0 0",
       "cpu_core/amd_like=0x5a3/ => 4 5000000a3 0 0 0",
       "cpu_core/whole=0xffffffffffffffff/ => 4 0 0 ffffffffffffffff 0",
       "cpu_core/third=9/ => 4 0 0 0 90",
       "cpu_core/config=0x1ff,config1=2,config2=3,config3=4/ => 4 1ff 2 3 4",
       "cpu_core/event=1,event=2/ => 4 2 0 0 0", "cpu_core// => 4 0 0 0 0",
       "cpu_atom/event=0x3c/ => 10 3c 0 0 0"});
}

TEST_F(PmuEvents, Aliases) {
  expect_each(
      [&](const std::string& word) { return of(word); },
      {"cpu_core/mem-loads/ => 4 1cd 3 0 0", "cpu_core/mem-loads,ldlat=30/P => 4 1cd 1e 0 0",
       "mem-stores => 4 2cd 0 0 0", "mem-stores:u => 4 2cd 0 0 0", "energy-pkg => 22 2 0 0 0",
       "odd/asks,core=5/ => 23 52 0 0 0"});
  // In the table of names of the kernel's own events, which are those of all machines.
  EXPECT_EQ(perf_event("cache-misses", pmus_)->type, unsigned{PERF_TYPE_HARDWARE});
  expect_says(
      [&](const std::string& word) { return of(word); },
      {"mem-loads => several PMUs have the event 'mem-loads': cpu_atom, cpu_core:  (name "
       "one: cpu_atom/mem-loads/) 2",
       "mem-store => did you mean 'mem-stores'?", "odd/asks/ => the event needs core=VALUE"});
}

TEST_F(PmuEvents, WrongWords) {
  expect_says([&](const std::string& word) { return of(word); },
              {"gpu/event=1/ => gpu/event=1/: this machine has no PMU 'gpu': PMUs here: cpu_atom, "
               "cpu_core, odd, power (perf list shows events) 3",
               "cpu_cor/event=1/ => (did you mean 'cpu_core'?) 3",
               "nothing/event=1/ => no PMU 'nothing'",
               "tracepoint/config=1/ => 'tracepoint' is not a PMU with events",
               "cpu_atom/evnt=1/ => the PMU cpu_atom has no term or event 'evnt': it has the terms "
               "event, config, config1, config2, config3, name; the events mem-loads (did you mean "
               "'event'?) 2",
               "cpu_core/mem-load/ => did you mean 'mem-loads'?",
               "cpu_core/event=0x100/ => event: 0x100 does not fit: at most 0xff",
               "cpu_core/edge=2/ => edge: 2 does not fit: at most 0x1",
               "cpu_core/amd_like=0x1000/ => does not fit: at most 0xfff",
               "cpu_core/config=0x10000000000000000/ => is not a number",
               "cpu_core/event=/ => event: '' is not a number",
               "cpu_core/event=-1/ => '-1' is not a number",
               "cpu_core/event=0x/ => '0x' is not a number",
               "cpu_core/event=1=2/ => '1=2' is not a number",
               "cpu_core/event=?/ => '?' is not a number",
               "cpu_core/event/ => event needs a value: event=0",
               "cpu_core/event=1,,umask=1/ => no term or event ''",
               "cpu_core/mem-loads=1/ => no term or event 'mem-loads'",
               "cpu_core/name=/ => name= needs a text",
               "cpu_core/name=a\nb/ => name= needs a text",
               "cpu_core/../type/ => not an event of a PMU",
               "../event=1/ => not an event of a PMU",
               "cpu_core/event=1 => not an event of a PMU",
               "/event=1/ => not an event of a PMU",
               "cpu_core/event=1/x => the modifiers are wrong",
               "cpu_core/event=1/pppp => the modifiers are wrong",
               "cpu_core/event=1/Pp => the modifiers are wrong",
               "cpu_core/energy-pkg.unit/ => no term or event",
               "odd/beyond=1/ => the kernel's format of beyond is unknown: config:60-64 (perf list "
               "shows events) 3",
               "odd/backwards=1/ => format of backwards is unknown",
               "odd/elsewhere=1/ => format of elsewhere is unknown",
               "odd/empty=1/ => format of empty is unknown",
               "odd/nested/ => the kernel's event nested: the PMU odd has no term",
               "odd/wide/ => the kernel's event wide: domain: 0x10 does not fit",
               "odd/no-value/ => the kernel's event no-value: domain needs a value",
               "odd/damaged/ => the kernel's event damaged: "});
  EXPECT_TRUE(says(of("cpu_core/" + std::string(600, '1') + "/"), "not an event of a PMU"));
  EXPECT_TRUE(says(of(std::string(65, 'p') + "/event=1/"), "not an event of a PMU"));
}

TEST_F(PmuEvents, WhereAndHowMuch) {
  auto core = *pmus_.event("cpu_core", "event=1,name=first");
  EXPECT_EQ(core.name, "first");
  EXPECT_TRUE(core.counts_on(3));
  EXPECT_FALSE(core.counts_on(4));
  EXPECT_FALSE(core.for_others);
  EXPECT_EQ(core.scale, 1);
  auto power = *pmus_.event("power", "energy-pkg");
  EXPECT_EQ(power.cpus, (std::vector<int>{0, 8}));
  EXPECT_TRUE(power.for_others);
  EXPECT_DOUBLE_EQ(power.scale, 0x1p-32);
  EXPECT_EQ(power.unit, "Joules");
  EXPECT_FALSE(power.snapshot);
  auto odd = *pmus_.event("odd", "degrees");
  EXPECT_TRUE(odd.snapshot);
  EXPECT_EQ(odd.scale, 1) << "infinite";
  EXPECT_EQ(odd.unit, "C");
  EXPECT_TRUE(odd.counts_on(100)) << "it has no list of CPUs";
  EXPECT_EQ(pmus_.aliases("power"), Words{"energy-pkg"});
  EXPECT_EQ(Pmus(root_.in("none")).list(), "none with events");
}

TEST_F(PmuEvents, Modifiers) {
  auto how = [&](std::string_view word) {
    auto event = perf_event(word, pmus_);
    if (!event) return event.error().what;
    return fmt::format("{}{}{}", event->not_user ? "" : "u", event->not_kernel ? "" : "k",
                       event->precise);
  };
  expect_each(
      how, {"cpu_core/event=1/ => uk0", "cpu_core/event=1/u => u0", "cpu_core/event=1/:kpp => k2",
            "cpu_core/event=1/uk => uk0", "cpu_core/event=1/ppp => uk3",
            "cpu_core/event=1/P => uk3", "cpu_atom/event=1/Pu => u1", "cycles:up => u1",
            "cycles:P => uk3", "r1c2:pk => k1", "page-faults:u => u0",
            "cpu-clock:p => 'cpu-clock:p': only hardware events can be sampled precisely",
            "cycles:uu => 'cycles:uu': the modifiers are wrong"});
}

TEST(PmuWords, Lists) {
  auto words = [](std::string_view list) {
    Words all;
    for (bool more = true; more;) all.emplace_back(take_event_word(list, &more));
    return all;
  };
  EXPECT_EQ(words("a,cpu/b=1,c/,d"), (Words{"a", "cpu/b=1,c/", "d"}));
  EXPECT_EQ(words("cpu/a,b/u,msr/tsc/"), (Words{"cpu/a,b/u", "msr/tsc/"}));
  EXPECT_EQ(words("cpu/a,b"), Words{"cpu/a,b"});
  EXPECT_EQ(words("a,"), (Words{"a", ""}));
  EXPECT_EQ(words(""), Words{""});
  EXPECT_EQ(event_title("cpu/a=1,name=mine,b/u"), "mine");
  EXPECT_EQ(event_title("cpu/a=1/u"), "cpu/a=1/u");
  EXPECT_EQ(event_title("cycles"), "cycles");
}

// Of machines that this one cannot know: recordings are shown, and words are checked, by form.
TEST(PmuWords, AreNotLookedUp) {
  EXPECT_TRUE(perf_event_word("cpu_x/some,ldlat=30/pp"));
  EXPECT_EQ(perf_event_word("cpu_x/some,ldlat=30/pp")->precise, 2);
  EXPECT_TRUE(perf_event_word("cpu_x/some,ldlat=30/pp")->is_hardware());
  EXPECT_FALSE(perf_event_word("cpu_x/some,ldlat=30/q"));
  EXPECT_FALSE(perf_event_word("cpu_x/some"));
}

}  // namespace
}  // namespace coretap
