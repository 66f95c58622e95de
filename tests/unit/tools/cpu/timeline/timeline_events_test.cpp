// From records to a trace: what CPUs run, also where switches are missing.
#include "tools/cpu/timeline/timeline_events.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>

#include "coretap/syscalls.hpp"
#include "wire.hpp"

namespace coretap {
namespace {

using test::Wire;

/// "what CPU 0 runs from when", as the importer reads it.
struct Stint {
  std::uint64_t time, state, tid;
  bool operator==(const Stint&) const = default;
};
void PrintTo(const Stint& r, std::ostream* out) {
  *out << r.time << ": " << r.tid << ", left in state " << r.state;
}

struct Traced {
  std::string bytes;
  perfetto::TraceWriter writer{1, [this](std::string_view part) { bytes += part; }};
  TimelineEvents events{writer,
                        {[](auto) { return "vda"; }, [](auto) { return "R"; }, syscall_name}};

  static timeline_task task(std::uint32_t tid, std::uint32_t tgid, const char* comm) {
    timeline_task t{.tid = tid, .tgid = tgid, .comm = {}};
    strncpy(t.comm, comm, sizeof t.comm - 1);
    return t;
  }
  void take(timeline_kind kind, std::uint64_t time, std::uint32_t running, std::uint32_t what,
            const timeline_task& about) {
    timeline_task_event e{};
    e.at = {{time}, static_cast<__u16>(kind), 0, running};
    e.what = what;
    e.task = about;
    events.take(&e, sizeof e);
  }
  void gap(std::uint64_t from, std::uint64_t until, const timeline_task& now, unsigned lost,
           unsigned scheduling) {
    timeline_gap g{};
    g.at = {{until}, TIMELINE_GAP, 0, now.tid};
    g.lost = lost;
    g.scheduling = scheduling;
    g.task = now;
    g.from = from;
    events.take(&g, sizeof g);
  }
  std::vector<Wire> packets(unsigned member) {
    events.finish();
    std::vector<Wire> found;
    for (auto& p : Wire(bytes).messages(1))
      if (p.has(member)) found.push_back(p.in(member));
    return found;
  }
  std::vector<Stint> runs() {
    std::vector<Stint> all;
    for (auto& bundle : packets(1)) {
      auto sched = bundle.in(4);
      auto times = sched.packed(1), states = sched.packed(2), tids = sched.packed(3);
      for (std::size_t i = 0, time = 0; i < times.size(); i++)
        all.push_back({time += times[i], states[i], tids[i]});
    }
    return all;
  }
};

const timeline_task kA = Traced::task(10, 10, "a"), kB = Traced::task(11, 10, "b"),
                    kIdle = Traced::task(0, 0, "swapper/0");
constexpr std::uint32_t kLost = (1 << 22) + 1;

TEST(Timeline, TheFirstSwitchOfACpuIsOneThatImportersIgnore) {
  Traced t;
  t.take(TIMELINE_RUNNING, 100, 10, 0, kA);
  t.take(TIMELINE_SWITCH, 110, 10, 1, kB);
  t.take(TIMELINE_SWITCH, 120, 11, TIMELINE_PREEMPTED, kIdle);
  EXPECT_EQ(t.runs(),
            (std::vector<Stint>{{100, 0, 0}, {100, 0, 10}, {110, 1, 11}, {120, 0x100, 0}}));
  EXPECT_EQ(t.events.counts().shown(), 2u);
}

TEST(Timeline, EventsBeforeTheStartDoNotCount) {
  Traced t;
  t.events.begin(105, true);
  t.take(TIMELINE_SWITCH, 90, 10, 1, kB);
  t.take(TIMELINE_WAKING, 95, 11, 0, kA);
  t.take(TIMELINE_SWITCH, 110, 10, 1, kB);
  EXPECT_EQ(t.events.counts().shown(), 1u);
}

TEST(Timeline, AGapBeforeASwitch) {
  Traced t;
  t.take(TIMELINE_RUNNING, 100, 10, 0, kA);
  t.gap(110, 150, kB, 7, 7);
  t.take(TIMELINE_SWITCH, 150, 11, 1, kIdle);
  EXPECT_EQ(t.runs(),
            (std::vector<Stint>{{100, 0, 0}, {100, 0, 10}, {110, 0x200, kLost}, {150, 0, 0}}));
  EXPECT_EQ(t.events.counts().lost, 7u);
  EXPECT_EQ(t.events.counts().repaired, 0u);
}

TEST(Timeline, AGapBeforeAWakeup) {
  Traced t;
  t.take(TIMELINE_RUNNING, 100, 10, 0, kA);
  t.gap(110, 150, kB, 3, 1);
  t.take(TIMELINE_WAKING, 150, 11, 0, kA);
  EXPECT_EQ(t.runs(),
            (std::vector<Stint>{{100, 0, 0}, {100, 0, 10}, {110, 0x200, kLost}, {150, 0, 11}}));
}

TEST(Timeline, AGapAtTheEnd) {
  Traced t;
  t.take(TIMELINE_RUNNING, 100, 10, 0, kA);
  t.gap(110, 150, kB, 3, 1);
  EXPECT_EQ(t.runs().back(), (Stint{150, 0, 11}));
}

TEST(Timeline, LostInterruptsDoNotHideWhatRuns) {
  Traced t;
  t.take(TIMELINE_RUNNING, 100, 10, 0, kA);
  t.gap(110, 150, kA, 3, 0);
  t.take(TIMELINE_SWITCH, 160, 10, 1, kB);
  EXPECT_EQ(t.runs(), (std::vector<Stint>{{100, 0, 0}, {100, 0, 10}, {160, 1, 11}}));
  EXPECT_EQ(t.packets(60).size(), 1u) << "but the gap has its slice";
}

TEST(Timeline, ASwitchThatWasNotReported) {
  Traced t;
  t.take(TIMELINE_RUNNING, 100, 10, 0, kA);
  t.take(TIMELINE_WAKING, 105, 10, 0, kB);
  t.take(TIMELINE_SWITCH, 120, 0, 0, kB);
  EXPECT_EQ(t.runs(),
            (std::vector<Stint>{{100, 0, 0}, {100, 0, 10}, {105, 0x200, kLost}, {120, 0, 11}}));
  EXPECT_EQ(t.events.counts().repaired, 1u);
}

TEST(Timeline, ASwitchThatTheKernelAccountsFor) {
  Traced t;
  t.take(TIMELINE_RUNNING, 100, 10, 0, kA);
  t.take(TIMELINE_RUNNING, 115, 10, 0, kB);
  t.take(TIMELINE_SWITCH, 120, 11, 1, kIdle);
  EXPECT_EQ(t.runs(),
            (std::vector<Stint>{
                {100, 0, 0}, {100, 0, 10}, {100, 0x200, kLost}, {115, 0, 11}, {120, 1, 0}}));
}

TEST(Timeline, AThreadThatExecutesAProgram) {
  Traced t;
  t.take(TIMELINE_RUNNING, 100, 11, 0, kB);
  t.take(TIMELINE_SWITCH, 110, 10, 1, kIdle);
  EXPECT_EQ(t.runs(),
            (std::vector<Stint>{{100, 0, 0}, {100, 0, 11}, {110, 0x10, 10}, {110, 1, 0}}));
  EXPECT_EQ(t.events.counts().repaired, 0u);
}

TEST(Timeline, EachTaskIsToldOnceAndAgainWhenItChanges) {
  Traced t;
  t.take(TIMELINE_TASK, 1, 0, 1, kA);
  t.take(TIMELINE_RUNNING, 100, 10, 0, kA);
  for (int i = 0; i < 5; i++) {
    t.take(TIMELINE_SWITCH, 110 + i * 2, 10, 1, kB);
    t.take(TIMELINE_SWITCH, 111 + i * 2, 11, 1, kA);
  }
  EXPECT_EQ(t.packets(2).size(), 3u) << "a process and two threads";
  t.take(TIMELINE_SWITCH, 130, 10, 1, kB);
  t.take(TIMELINE_SWITCH, 131, 11, 1, Traced::task(10, 10, "renamed"));
  auto trees = t.packets(2);
  ASSERT_EQ(trees.size(), 4u);
  EXPECT_EQ(trees[3].in(1).text(3), "renamed");
  EXPECT_EQ(trees[3].in(1).number(2), 1u) << "its parent";
}

TEST(Timeline, OverlappingRequestsHaveTracksBesideEachOther) {
  Traced t;
  auto request = [&](std::uint64_t issued, std::uint64_t done) {
    timeline_request r{};
    r.at = {{done}, TIMELINE_REQUEST, 0, 0};
    r.issued = issued;
    r.submitter = kA;
    t.events.take(&r, sizeof r);
  };
  request(100, 200);
  request(150, 210);
  request(205, 220);
  std::set<std::uint64_t> disks;
  for (auto& track : t.packets(60))
    if (track.text(2) == "vda") disks.insert(track.number(1));
  EXPECT_EQ(disks.size(), 2u);
}

TEST(Timeline, CallsUnderWayEndWithTheTrace) {
  Traced t;
  auto call = [&](const timeline_task& task, std::uint64_t start, std::uint64_t time, bool ends) {
    timeline_call c{};
    c.at = {{time}, TIMELINE_CALL, 0, 0};
    c.start = start;
    c.task = task;
    c.unfinished = !ends;
    t.events.take(&c, sizeof c);
  };
  call(kA, 100, 200, false);
  call(kA, 80, 90, true);  // read later
  call(kB, 110, 201, false);
  call(kB, 110, 300, true);
  auto events = t.packets(11);
  ASSERT_EQ(events.size(), 6u);
  EXPECT_EQ(t.events.counts().shown(), 3u);
  std::vector<std::uint64_t> times;
  for (auto& p : Wire(t.bytes).messages(1))
    if (p.has(11)) times.push_back(p.number(8));
  EXPECT_EQ(times, (std::vector<std::uint64_t>{80, 90, 110, 300, 100, 300}));
}

struct Net {
  Traced t;
  void take(timeline_net_event what, std::uint64_t time, std::uint64_t socket, unsigned from,
            unsigned to, const timeline_task& by = {}) {
    timeline_net n{};
    n.at = {{time}, TIMELINE_NET, 0, 0};
    n.task = by;
    n.socket = socket;
    n.what = static_cast<__u16>(what);
    n.oldstate = from;
    n.newstate = to;
    n.flow.ip = 4;
    n.flow.rport = 80;
    t.events.take(&n, sizeof n);
  }
  /// "ESTABLISHED 20-50" and names of moments, in the order of the file.
  std::vector<std::string> drawn() {
    t.events.end_connections();
    t.events.finish();
    std::vector<std::string> all;
    std::map<std::uint64_t, std::string> names;
    for (auto& p : Wire(t.bytes).messages(1)) {
      if (p.has(12))
        for (auto& n : p.in(12).messages(2)) names[n.number(1)] = n.text(2);
      if (!p.has(11)) continue;
      auto e = p.in(11);
      if (e.number(9) == 2)
        all.back() += "-" + std::to_string(p.number(8));
      else
        all.push_back(names[e.number(10)] + " " + std::to_string(p.number(8)));
    }
    return all;
  }
};

TEST(Timeline, StatesOfAConnection) {
  Net net;
  net.take(TIMELINE_STATE, 10, 5, 7, 2, kA);  // CLOSE, SYN_SENT
  net.take(TIMELINE_STATE, 20, 5, 2, 1);
  net.take(TIMELINE_SEND, 25, 5, 0, 0, kA);
  net.take(TIMELINE_RETRANSMIT, 30, 5, 0, 0);
  net.take(TIMELINE_STATE, 50, 5, 1, 4, kA);
  net.take(TIMELINE_STATE, 60, 5, 4, 7);
  net.take(TIMELINE_STATE, 70, 5, 7, 2, kB);  // the same socket again
  net.take(TIMELINE_STATE, 80, 5, 2, 1);
  EXPECT_EQ(net.drawn(),
            (std::vector<std::string>{"connects 10", "SYN_SENT 10-20", "sends 25", "retransmit 30",
                                      "ESTABLISHED 20-50", "FIN_WAIT1 50-60", "connects 70",
                                      "SYN_SENT 70-80", "ESTABLISHED 80-80"}));
  EXPECT_EQ(net.t.events.counts().repaired, 0u);
  EXPECT_EQ(net.t.events.counts().shown(), 8u);
}

TEST(Timeline, ConnectionsOlderThanTheTrace) {
  Net net;
  net.t.events.begin(100, false);
  net.take(TIMELINE_RECEIVE, 110, 5, 0, 0, kA);
  net.take(TIMELINE_STATE, 120, 5, 1, 8);
  net.take(TIMELINE_STATE, 130, 5, 9, 7);  // a change was lost
  EXPECT_EQ(net.drawn(), (std::vector<std::string>{"receives 110", "ESTABLISHED 100-120",
                                                   "CLOSE_WAIT 120-130"}));
  EXPECT_EQ(net.t.events.counts().repaired, 1u);
}

TEST(Timeline, OfFilteredTasksOnlyTheirConnections) {
  Net net;
  net.t.events.begin(1, false, true);
  for (std::uint64_t socket : {5, 6}) {
    net.take(TIMELINE_STATE, 10, socket, 10, 3);
    net.take(TIMELINE_STATE, 20, socket, 3, 1);
  }
  net.take(TIMELINE_ACCEPT, 25, 6, 0, 0, kA);
  net.take(TIMELINE_STATE, 40, 6, 1, 7);
  EXPECT_EQ(net.drawn(), (std::vector<std::string>{"accepts 25", "ESTABLISHED 20-40"}));
}

TEST(Timeline, ShortAndUnknownRecordsAreIgnored) {
  Traced t;
  timeline_task_event e{};
  e.at.kind = TIMELINE_KINDS;
  t.events.take(&e, sizeof e);
  e.at.kind = TIMELINE_REQUEST;
  t.events.take(&e, sizeof e);
  t.events.take(&e, 3);
  t.events.finish();
  EXPECT_TRUE(t.bytes.empty());
}

}  // namespace
}  // namespace coretap
