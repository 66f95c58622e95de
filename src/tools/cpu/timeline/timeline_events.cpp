#include "tools/cpu/timeline/timeline_events.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

#include <fmt/format.h>

#include "coretap/errors.hpp"
#include "coretap/fields.hpp"
#include "coretap/irq.hpp"
#include "coretap/net.hpp"

namespace coretap {

using perfetto::Argument;
using perfetto::Track;

namespace {

constexpr std::size_t kMostTasks = 1 << 18;
constexpr std::size_t kMostLanes = 1024;
constexpr std::size_t kMostConnections = 1 << 16;
constexpr std::uint32_t kSynSent = 2, kClose = 7, kListen = 10;  // states of TCP
// The task that a CPU runs in a gap: its id is above all real ones.
constexpr std::uint32_t kLostTid = (1 << 22) + 1;
constexpr char kLostName[] = "[events lost]";
constexpr std::uint32_t kDead = 0x10;

// Others are the library's (perfetto::thread_track).
enum TrackKind : std::uint64_t {
  kInterrupts = 2,
  kSoftirqs = 3,
  kDisk = 4,
  kCompletions = 6,
  kConnection = 8
};

std::uint64_t uuid(TrackKind kind, std::uint64_t number, std::uint64_t lane = 0) {
  return kind << 56 | lane << 44 | number;
}

timeline_task lost_task(std::uint32_t cpu) {
  timeline_task task{.tid = kLostTid + cpu, .tgid = kLostTid + cpu, .comm = {}};
  memcpy(task.comm, kLostName, sizeof kLostName);
  return task;
}

std::array<std::uint64_t, 2> words_of(const timeline_task& task) {
  std::array<std::uint64_t, 2> words;
  memcpy(words.data(), task.comm, sizeof words);
  return words;
}

/// The first lane that is free at the time; it is taken until the end.
std::size_t lane(std::vector<std::uint64_t>& lanes, std::uint64_t begin_ns, std::uint64_t end_ns) {
  auto free = std::find_if(lanes.begin(), lanes.end(), [&](auto end) { return end <= begin_ns; });
  if (free == lanes.end()) {
    if (lanes.size() >= kMostLanes) return kMostLanes;
    free = lanes.insert(lanes.end(), 0);
  }
  *free = std::max(begin_ns, end_ns);
  return static_cast<std::size_t>(free - lanes.begin());
}

}  // namespace

std::uint64_t TimelineEvents::Counts::shown() const {
  std::uint64_t all = 0;
  for (auto kind : {TIMELINE_SWITCH, TIMELINE_WAKING, TIMELINE_IRQ, TIMELINE_SOFTIRQ, TIMELINE_CALL,
                    TIMELINE_REQUEST, TIMELINE_FAULT, TIMELINE_NET})
    all += of[kind];
  return all;
}

void TimelineEvents::Counts::take_away(const Counts& others) {
  for (std::size_t kind = 0; kind < TIMELINE_KINDS; kind++) of[kind] -= others.of[kind];
  lost -= others.lost;
  repaired -= others.repaired;
}

TimelineEvents::Counts TimelineEvents::Counts::since(const Counts& earlier) const {
  auto grown = *this;
  grown.take_away(earlier);
  return grown;
}

TimelineEvents::Cpu& TimelineEvents::cpu(std::uint32_t number) {
  if (number >= cpus_.size()) cpus_.resize(number + 1);
  return cpus_[number];
}

perfetto::TraceWriter::Name TimelineEvents::name_of(const timeline_task& task) {
  return task.tid ? know(task).name : to_.name("swapper");
}

TimelineEvents::Task& TimelineEvents::know(const timeline_task& task, const std::uint32_t* parent) {
  const auto comm = words_of(task);
  auto found = tasks_.find(task.tid);
  if (found != tasks_.end() && found->second.comm == comm && found->second.tgid == task.tgid)
    return found->second;
  if (tasks_.size() >= kMostTasks || to_.names() >= kMostTasks) {
    to_.forget_names();
    tasks_.clear();
  }
  auto& known = tasks_[task.tid];
  const bool fresh = known.tgid != task.tgid;
  if (parent) known.parent = *parent;
  known.tgid = task.tgid;
  known.comm = comm;
  auto name = text_in(task.comm);
  known.name = to_.name(name);
  if (task.tid == task.tgid) to_.process(task.tgid, known.parent, name);
  if (fresh) to_.thread(task.tid, task.tgid, name);
  return known;
}

void TimelineEvents::write_tasks() {
  for (auto& [tid, task] : tasks_) {
    timeline_task t{.tid = tid, .tgid = task.tgid, .comm = {}};
    memcpy(t.comm, task.comm.data(), sizeof t.comm);
    auto name = text_in(t.comm);
    if (tid == task.tgid) to_.process(tid, task.parent, name);
    to_.thread(tid, task.tgid, name);
  }
}

void TimelineEvents::begin_part() {
  to_.begin_part();
  for (std::uint32_t number = 0; number < cpus_.size(); number++) {
    auto& c = cpus_[number];
    if (!c.begun) continue;
    end_gap(number, c);
    c.begun = false;
    // Records are ordered except for those of interrupts that came while one was made.
    constexpr std::uint64_t kDisorder = 1'000'000;
    const auto newest = newest_ns_ - std::min(newest_ns_, kDisorder);
    run(number, c, std::max(newest, c.sure_ns), 0, timeline_task(c.running), c.prio);
  }
}

void TimelineEvents::run(std::uint32_t number, Cpu& c, std::uint64_t time_ns, std::uint32_t state,
                         const timeline_task& next, std::int32_t prio) {
  auto name = name_of(next);
  // Importers ignore the first switch of a CPU, as they do not know what ran before.
  if (!c.begun) to_.switches(number, time_ns, 0, 0, 0, to_.name("swapper"));
  c.begun = true;
  to_.switches(number, time_ns, state, next.tid, prio, name);
  c.running = next;
  c.prio = prio;
  c.sure_ns = time_ns;
}

void TimelineEvents::lose(std::uint32_t number, Cpu& c, std::uint64_t from_ns) {
  run(number, c, std::max(from_ns, c.sure_ns), perfetto::kUnknownState, lost_task(number), 0);
}

void TimelineEvents::end_gap(std::uint32_t number, Cpu& c) {
  if (!c.gap_end) return;
  auto end = c.gap_end;
  c.gap_end = 0;
  auto task = c.running;
  auto prio = c.prio;
  run(number, c, end, 0, task, prio);
}

bool TimelineEvents::agrees(std::uint32_t number, Cpu& c, std::uint64_t time_ns,
                            std::uint32_t tid) {
  if (c.running.tid == tid) return true;
  // A thread that executes a program becomes its process's first thread.
  if (tid == c.running.tgid) {
    auto leader = c.running;
    leader.tid = tid;
    run(number, c, time_ns, kDead, leader, c.prio);
    return true;
  }
  counts_.repaired++;
  lose(number, c, c.sure_ns);
  return false;
}

void TimelineEvents::switched(const timeline_task_event& e, Cpu& c) {
  const std::uint64_t time = e.at.head.time_ns;
  if (!c.begun && time < began_ns_) return;
  counts_.of[TIMELINE_SWITCH]++;
  if (c.gap_end && c.gap_end < time) end_gap(e.at.cpu, c);
  auto state = perfetto::printed_state(e.what & ~TIMELINE_PREEMPTED, e.what & TIMELINE_PREEMPTED);
  if (!c.begun) {
    timeline_task leaves{.tid = e.at.tid, .tgid = 0, .comm = {}};
    if (auto known = tasks_.find(e.at.tid); known != tasks_.end()) {
      leaves.tgid = known->second.tgid;
      memcpy(leaves.comm, known->second.comm.data(), sizeof leaves.comm);
      run(e.at.cpu, c, time, 0, leaves, 0);
    }
  } else if (c.gap_end || !agrees(e.at.cpu, c, time, e.at.tid)) {
    state = 0;  // the gap ends with this switch
    c.gap_end = 0;
  }
  run(e.at.cpu, c, time, state, e.task, e.prio);
}

void TimelineEvents::wakes(const timeline_task_event& e, Cpu& c) {
  const std::uint64_t time = e.at.head.time_ns;
  if (!c.begun) return;
  counts_.of[TIMELINE_WAKING]++;
  end_gap(e.at.cpu, c);
  if (!agrees(e.at.cpu, c, time, e.at.tid)) {
    timeline_task now{.tid = e.at.tid, .tgid = e.at.tid, .comm = {}};
    if (auto known = tasks_.find(e.at.tid); known != tasks_.end()) {
      now.tgid = known->second.tgid;
      memcpy(now.comm, known->second.comm.data(), sizeof now.comm);
    }
    run(e.at.cpu, c, time, 0, now, 0);
  }
  c.sure_ns = std::max(c.sure_ns, time);
  auto waker = (e.what & TIMELINE_WAKER_HARDIRQ ? perfetto::kHardInterrupt : 0u) |
               (e.what & TIMELINE_WAKER_SOFTIRQ ? perfetto::kSoftInterrupt : 0u);
  to_.wakes(e.at.cpu, time, e.task.tid, e.what & 0xffff, e.prio, name_of(e.task), waker);
}

void TimelineEvents::task_event(const timeline_task_event& e) {
  if (e.at.kind == TIMELINE_TASK) {
    if (e.task.tid) know(e.task, &e.what);
    return;
  }
  auto& c = cpu(e.at.cpu);
  if (e.at.kind == TIMELINE_SWITCH) return switched(e, c);
  if (e.at.kind == TIMELINE_WAKING) return wakes(e, c);
  // Running.
  if (!with_switches_) return;
  if (!c.begun && e.at.head.time_ns < began_ns_ && e.at.tid != e.task.tid) return;
  end_gap(e.at.cpu, c);
  const auto time = std::max<std::uint64_t>(e.at.head.time_ns, c.sure_ns);
  if (!c.begun || !agrees(e.at.cpu, c, time, e.task.tid)) run(e.at.cpu, c, time, 0, e.task, e.prio);
  c.sure_ns = time;
}

void TimelineEvents::gap(const timeline_gap& g) {
  const std::uint32_t number = g.at.cpu;
  const std::uint64_t until = g.at.head.time_ns;
  counts_.of[TIMELINE_GAP]++;
  counts_.lost += g.lost;
  auto& c = cpu(number);
  if (g.scheduling && c.begun) {
    end_gap(number, c);
    lose(number, c, g.from);
    c.running = g.task;
    c.prio = g.prio;
    c.gap_end = std::max(until, c.sure_ns);
  }
  const Argument arguments[] = {{"cpu", std::uint64_t{number}}, {"events", std::uint64_t{g.lost}}};
  to_.slice(
      {.uuid = perfetto::lost_track(number), .name = perfetto::kLostTrack}, g.from, until,
      {.name = fmt::format("{} events lost on CPU {}", g.lost, number), .arguments = arguments});
}

void TimelineEvents::interrupt(const timeline_interrupt& i) {
  const bool soft = i.at.kind == TIMELINE_SOFTIRQ;
  auto& c = cpu(i.at.cpu);
  auto in = lane(soft ? c.softirqs : c.interrupts, i.start, i.at.head.time_ns);
  if (in == kMostLanes) return;
  counts_.of[i.at.kind]++;
  const auto track = fmt::format("CPU {} {}", i.at.cpu, soft ? "softirqs" : "interrupts");
  const auto handler = text_in(i.name);
  std::string_view name = handler;
  if (soft) name = i.number < std::size(kSoftirqNames) ? kSoftirqNames[i.number] : "softirq";
  const Argument arguments[] = {{"number", std::uint64_t{i.number}}};
  to_.slice({.uuid = uuid(soft ? kSoftirqs : kInterrupts, i.at.cpu, in), .name = track}, i.start,
            i.at.head.time_ns, {.name = name.empty() ? "interrupt" : name, .arguments = arguments});
}

Track TimelineEvents::thread(const timeline_task& task) {
  return perfetto::thread_track(task.tgid, task.tid);
}

void TimelineEvents::call(const timeline_call& c) {
  auto known = unfinished_.find(c.task.tid);
  if (c.unfinished) {
    unfinished_.insert_or_assign(c.task.tid, c);
    return;
  }
  // It has ended before tracing did.
  if (known != unfinished_.end() && known->second.start == c.start) unfinished_.erase(known);
  const bool failed = c.result < 0 && c.result >= -4095;
  const auto error = failed ? error_name(static_cast<int>(-c.result)) : std::string();
  const Argument arguments[] = {{"result", std::int64_t{c.result}},
                                {"error", std::string_view(error)}};
  show_call(c, c.at.head.time_ns, {arguments, failed ? 2u : 1u});
}

void TimelineEvents::show_call(const timeline_call& c, std::uint64_t end_ns,
                               std::span<const Argument> arguments) {
  know(c.task);
  counts_.of[TIMELINE_CALL]++;
  to_.slice(thread(c.task), c.start, end_ns,
            {.name = words_.call(c.index), .arguments = arguments});
}

void TimelineEvents::request(const timeline_request& r) {
  const auto done = r.at.head.time_ns;
  const auto issued = std::min<std::uint64_t>(r.issued, done);
  const auto created = r.created ? std::min<std::uint64_t>(r.created, issued) : issued;
  auto& lanes = disks_[r.disk];
  auto in = lane(lanes, issued, done);
  if (in == kMostLanes) return;
  counts_.of[TIMELINE_REQUEST]++;
  const auto disk = words_.disk(r.disk), operation = words_.operation(r.flags);
  const auto flow = next_flow_++;
  const Argument arguments[] = {{"sector", std::uint64_t{r.sector}},
                                {"bytes", std::uint64_t{r.bytes}},
                                {"queued_ns", issued - created},
                                {"status", std::int64_t{r.status}},
                                {"submitter", std::uint64_t{r.submitter.tid}}};
  if (r.submitter.tid) {
    know(r.submitter);
    const Argument to[] = {{"disk", std::string_view(disk)}, arguments[0], arguments[1]};
    to_.instant(thread(r.submitter), created,
                {.name = "submits " + operation, .arguments = to, .flow = flow});
  }
  to_.slice({.uuid = uuid(kDisk, r.disk, in), .name = disk}, issued, done,
            {.name = operation, .arguments = arguments, .flow = flow});
  const auto track = fmt::format("CPU {} completions", r.at.cpu);
  to_.instant({.uuid = uuid(kCompletions, r.at.cpu), .name = track}, done,
              {.name = "completes " + operation, .ending_flow = flow});
}

void TimelineEvents::fault(const timeline_fault& f) {
  know(f.task);
  counts_.of[TIMELINE_FAULT]++;
  const Argument arguments[] = {{"address", perfetto::Address{f.address}}};
  to_.slice(thread(f.task), f.start, f.at.head.time_ns,
            {.name = f.major ? "major page fault" : "page fault", .arguments = arguments});
}

TimelineEvents::Connection& TimelineEvents::connection(const timeline_net& n) {
  if (connections_.size() >= kMostConnections && !connections_.contains(n.socket))
    end_connections();
  auto& c = connections_[n.socket];
  const bool begins = n.what == TIMELINE_STATE && (n.oldstate == kClose || n.oldstate == kListen);
  if (begins) state_ends(c, n.at.head.time_ns, false);  // its end was not seen
  if (!c.number || begins) {
    c = {.number = ++connections_seen_, .since_ns = began_ns_, .state = n.oldstate};
    c.used = !filtered_;
  }
  c.flow = n.flow;
  c.used |= n.task.tid != 0;
  return c;
}

void TimelineEvents::state_ends(Connection& c, std::uint64_t time_ns, bool unfinished) {
  if (!c.used || !c.since_ns || !c.state || c.state == kClose || c.state == kListen) return;
  const auto local = ip_endpoint(c.flow.ip, c.flow.local, c.flow.lport),
             remote = ip_endpoint(c.flow.ip, c.flow.remote, c.flow.rport);
  const auto name = fmt::format("TCP {} - {}", local, remote);
  const Argument arguments[] = {{"local", std::string_view(local)},
                                {"remote", std::string_view(remote)},
                                {"unfinished", true}};
  to_.slice({.uuid = uuid(kConnection, c.number), .name = name}, c.since_ns, time_ns,
            {.name = tcp_state(c.state),
             .arguments = {arguments, unfinished ? 3u : 2u},
             .flow = std::exchange(c.to_task, 0),
             .ending_flow = std::exchange(c.from_task, 0)});
}

void TimelineEvents::end_connections() {
  for (auto& [socket, c] : connections_) state_ends(c, std::max(newest_ns_, c.since_ns), true);
  connections_.clear();
}

void TimelineEvents::net(const timeline_net& n) {
  const std::uint64_t time = n.at.head.time_ns;
  counts_.of[TIMELINE_NET]++;
  const auto local = ip_endpoint(n.flow.ip, n.flow.local, n.flow.lport),
             remote = ip_endpoint(n.flow.ip, n.flow.remote, n.flow.rport);
  const std::string_view cause =
      n.cause < std::size(kRetransmitCauses) ? kRetransmitCauses[n.cause] : "other";
  const Argument arguments[] = {{"local", std::string_view(local)},
                                {"remote", std::string_view(remote)},
                                {"bytes", std::uint64_t{n.bytes}},
                                {"cause", cause}};
  auto in_task = [&](std::string_view name, std::size_t count, std::uint64_t flow,
                     std::uint64_t ending_flow) {
    if (!n.task.tid) return;
    know(n.task);
    to_.instant(
        thread(n.task), time,
        {.name = name, .arguments = {arguments, count}, .flow = flow, .ending_flow = ending_flow});
  };
  if (!n.socket) {
    to_.instant({.uuid = uuid(kConnection, 0), .name = "TCP handshakes"}, time,
                {.name = "retransmit", .arguments = arguments});
    return;
  }
  auto& c = connection(n);
  switch (n.what) {
    case TIMELINE_SEND:
      return in_task("sends", 3, 0, 0);
    case TIMELINE_RECEIVE:
      return in_task("receives", 3, 0, 0);
    case TIMELINE_ACCEPT:
      // Its state is drawn when it ends.
      if (c.state && c.since_ns && c.since_ns <= time && !c.to_task) c.to_task = next_flow_++;
      return in_task("accepts", 2, 0, c.to_task);
    case TIMELINE_RETRANSMIT: {
      const auto name = fmt::format("TCP {} - {}", local, remote);
      to_.instant({.uuid = uuid(kConnection, c.number), .name = name}, time,
                  {.name = "retransmit", .arguments = arguments});
      return;
    }
    default:
      break;
  }
  if (!c.state) c.state = n.oldstate;
  if (c.state != n.oldstate) counts_.repaired++;
  state_ends(c, std::max(time, c.since_ns), false);
  c.state = n.newstate;
  c.since_ns = time;
  if (n.newstate == kSynSent && n.task.tid) {
    c.from_task = next_flow_++;
    in_task("connects", 2, c.from_task, 0);
  }
  if (n.newstate == kClose) connections_.erase(n.socket);
}

void TimelineEvents::take(const void* record, std::size_t size) {
  timeline_head at;
  if (size < sizeof at) return;
  memcpy(&at, record, sizeof at);
  newest_ns_ = std::max<std::uint64_t>(newest_ns_, at.head.time_ns);
  auto as = [&]<class Record>(void (TimelineEvents::*take)(const Record&)) {
    if (size >= sizeof(Record)) (this->*take)(*static_cast<const Record*>(record));
  };
  switch (at.kind) {
    case TIMELINE_SWITCH:
    case TIMELINE_WAKING:
    case TIMELINE_RUNNING:
    case TIMELINE_TASK:
      return as(&TimelineEvents::task_event);
    case TIMELINE_GAP:
      return as(&TimelineEvents::gap);
    case TIMELINE_IRQ:
    case TIMELINE_SOFTIRQ:
      return as(&TimelineEvents::interrupt);
    case TIMELINE_CALL:
      return as(&TimelineEvents::call);
    case TIMELINE_REQUEST:
      return as(&TimelineEvents::request);
    case TIMELINE_FAULT:
      return as(&TimelineEvents::fault);
    case TIMELINE_NET:
      return as(&TimelineEvents::net);
    default:
      return;
  }
}

void TimelineEvents::finish() {
  const Argument arguments[] = {{"unfinished", true}};
  for (auto& [tid, c] : unfinished_) show_call(c, newest_ns_, arguments);
  unfinished_.clear();
  for (std::uint32_t number = 0; number < cpus_.size(); number++) end_gap(number, cpus_[number]);
  to_.flush();
}

}  // namespace coretap
