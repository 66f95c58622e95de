#include "run/trace_loop.hpp"

#include <bpf/libbpf.h>
#include <linux/netlink.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/loop.hpp"
#include "coretap/fd.hpp"
#include "coretap/parse.hpp"
#include "metrics/exporter.hpp"
#include "program/attach.hpp"
#include "program/each_cpu.hpp"
#include "program/maps.hpp"
#include "program/section.hpp"
#include "program/target_attach.hpp"
#include "program/variables.hpp"
#include "reports/reporter.hpp"
#include "run/command.hpp"

namespace coretap {

namespace {

constexpr double kCpuSeconds = 1;                 // finds new CPUs of which there was no message
constexpr double kDrainSeconds = 0.1;             // maximum delay until an event is shown
constexpr double kServedDrainSeconds = 1;         // the same for `coretap serve`, which shows sums
constexpr double kEarlySeconds[] = {0.01, 0.03};  // the user waits for the first events
// Records are read in steps, between which signals, timers and requests are handled.
constexpr std::chrono::milliseconds kStep{20};
constexpr std::chrono::milliseconds kStepOfReport{50};  // a report needs all earlier records
// After the end: this long, but at least this many records; the rest is only counted.
constexpr std::chrono::milliseconds kLastStep{80};
constexpr std::uint64_t kLastRecords = 10'000;
constexpr double kCollectSeconds = 15;  // without requests: keeps maps of keys from filling up

/// Opens perf events on CPUs that come online during sampling. A CPU that goes offline loses its
/// events, and needs new ones even if it is back at once. Uevents report that, a list does not
/// (lib/kobject_uevent.c; sent to all network namespaces of the initial user namespace).
class CpuWatch {
 public:
  explicit CpuWatch(Session& s) : s_(s), online_(online_cpus()) {}

  static bool wanted(const Session& s) {
    return std::ranges::any_of(programs_of(s.object.get()), [](auto* program) {
      return bpf_program__autoload(program) && samples(program);
    });
  }

  void begin(Loop& loop) {
    messages_.reset(
        socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT));
    sockaddr_nl from{};
    from.nl_family = AF_NETLINK;
    from.nl_groups = 1;  // the kernel's own messages
    if (messages_ && bind(messages_.get(), reinterpret_cast<sockaddr*>(&from), sizeof from) == 0)
      loop.watch(messages_.get(), EPOLLIN, [this] { read(); });
    loop.every(kCpuSeconds, [this] { look(); });
  }

 private:
  /// "offline@/devices/system/cpu/cpu1", then a zero and more.
  void read() {
    constexpr std::string_view kGone = "offline@/devices/system/cpu/cpu";
    char text[4096];
    for (ssize_t n; (n = recv(messages_.get(), text, sizeof text - 1, 0)) > 0;) {
      text[n] = '\0';
      std::string_view words(text);
      if (!words.starts_with(kGone)) continue;
      if (auto cpu = parse_unsigned(words.substr(kGone.size())))
        std::erase(online_, static_cast<int>(*cpu));
    }
    look();
  }

  void look() {
    auto now = online_cpus();
    std::vector<int> came;
    std::ranges::set_difference(now, online_, std::back_inserter(came));
    online_ = std::move(now);
    if (came.empty()) return;
    AllPermitted with_reserve;
    auto links = attach_perf_events(s_.object.get(), s_.config, s_.plan, came);
    if (!links)
      s_.note(fmt::format("CPU {} came online and is not sampled", fmt::join(came, ", ")),
              links.error());
    else
      std::ranges::move(*links, std::back_inserter(s_.links));
  }

  Session& s_;
  std::vector<int> online_;
  Fd messages_;
};

/// Replies now, or when the time of the profile has passed.
void answer_profile(Session& s, Reporter& reporter, Loop& loop, const metrics::Request& request) {
  auto make = reporter.profile(s, request.ms != metrics::Request::kSinceStart);
  auto answer = [&s, request, make] { s.exporter->reply(request, make ? make(s) : std::string()); };
  if (make && request.ms != metrics::Request::kSinceStart)
    loop.once(request.ms / 1e3, answer);
  else
    answer();
}

/// Answers requests of `coretap serve` for pages of metrics and profiles.
void answer_requests(Session& s, Reporter& reporter, Loop& loop,
                     const std::function<void()>& collect, bool& too_many) {
  loop.watch(s.exporter->channel(), EPOLLIN, [&s, &reporter, &loop, collect] {
    metrics::Request request{};
    bool open = true;
    while (s.exporter->read_request(request, open)) {
      if (request.what == metrics::Request::profile) {
        answer_profile(s, reporter, loop, request);
        continue;
      }
      collect();
      s.exporter->reply(request, s.exporter->page(s, whole_ledger(s)));
    }
    if (!open) loop.stop();
  });
  if (!reporter.immediate()) loop.every(kCollectSeconds, collect);
  loop.every(metrics::Exporter::kRateSeconds, [&s, &loop, &too_many] {
    too_many = s.exporter->too_many(whole_ledger(s));
    if (too_many) loop.stop();
  });
}

/// Counts events that were not pushed as limited; they were counted as shown before.
void finish_events(Session& s) {
  auto left = s.exporter->finish_events();
  if (!left) return;
  s.ledger.shown -= std::min(left, s.ledger.shown);
  s.ledger.limited += left;
  s.say(fmt::format("{} events were not pushed: they were not accepted in time", left));
}

}  // namespace

Ledger whole_ledger(const Session& s) {
  auto all = s.ledger;
  s.source->add_ledger(all.count);
  return all;
}

Result<void> trace(Session& s, Reporter& reporter, Command& command) {
  Loop loop;
  if (auto r = loop.open(); !r) return r;
  struct Waits {
    Sink& out;
    ~Waits() { out.wait_no_longer_than(-1); }
  } waits{s.out};
  s.out.wait_no_longer_than(loop.ends());

  auto opened = s.source->open_records([&s, &reporter](const void* record, std::size_t bytes) {
    reporter.record(s, record, bytes);
  });
  if (!opened) return opened;
  const int records = s.source->records_fd();
  auto wanted = [&] { return !s.out.closed() || reporter.keeps_file(); };
  auto check_output = [&] {
    if (!wanted() || s.out.failed() || reporter.wants_end()) loop.stop();
  };
  auto take = [&](std::chrono::nanoseconds most, std::uint64_t least = 0) {
    bool more = s.source->take_records(most, least);
    reporter.poll(s);
    s.out.flush();
    if (s.exporter) s.exporter->send_events();
    check_output();
    return more;
  };
  bool again = false;
  std::function<void()> drain = [&] {
    if (!take(kStep) || again) return;
    again = true;
    loop.soon([&] {
      again = false;
      drain();
    });
  };
  auto show = [&] {
    reporter.report(s);
    s.out.flush(true);
    check_output();
  };
  auto report = [&] {
    take(kStepOfReport);
    show();
  };

  auto& schedule = s.config.schedule;
  std::uint64_t reports = 0;
  auto next_report = [&] {
    report();
    if (schedule.count && ++reports >= schedule.count) loop.stop();
  };
  if (records >= 0) {
    loop.watch(records, EPOLLIN, drain);
    for (auto seconds : kEarlySeconds) loop.once(seconds, drain);
  }
  if (double poll = reporter.poll_seconds(); records >= 0 || poll > 0)
    loop.every(poll > 0 ? poll : s.exporter ? kServedDrainSeconds : kDrainSeconds, drain);
  if (schedule.interval > 0 && reporter.periodic()) loop.every(schedule.interval, next_report);
  CpuWatch cpus(s);
  if (CpuWatch::wanted(s)) cpus.begin(loop);
  if (schedule.duration > 0) loop.stop_after(schedule.duration);
  bool too_many = false;
  if (s.exporter) answer_requests(s, reporter, loop, report, too_many);
  // Detects that the reader has closed even if there is nothing to write.
  if (!reporter.keeps_file() && !s.file && !s.exporter)
    loop.watch(STDOUT_FILENO, 0, [&] {
      s.out.reader_has_gone();
      loop.stop();
    });
  if (command.pid() > 0) {
    loop.watch(command.pidfd(), EPOLLIN, [&] {
      if (command.status() >= 0) loop.stop();
    });
    loop.ends_with(command.pidfd());
  }

  reporter.begin(s);
  s.out.keep_header();
  for (int fd : reporter.wakes()) loop.watch(fd, EPOLLIN, drain);
  for (int number : reporter.signals()) {
    block_signal(number);
    loop.on_signal(number, [&, number] {
      drain();
      reporter.signalled(s, number);
      check_output();
    });
  }
  auto own_signals = reporter.signals();
  if (s.file && std::ranges::find(own_signals, kReopenSignal) == own_signals.end())
    loop.on_signal(kReopenSignal, [&] {
      drain();
      s.out.reopen();
      check_output();
    });
  if (reporter.immediate()) {
    next_report();
    if (schedule.interval <= 0 && !s.exporter) loop.stop();
  }
  s.out.flush();  // before a command's first output
  check_output();
  if (command.pid() > 0 && wanted() && !s.out.failed())
    if (auto r = command.start(); !r) return r;
  auto ran = loop.run();

  s.out.ending(loop.signals(), loop.signal(), [&s](std::string_view words) { s.say(words); });
  bool complete = reporter.immediate() || (schedule.count && reports >= schedule.count);
  if (command.pid() > 0 && command.status() < 0)
    s.say(fmt::format("the command (process {}) goes on, untraced", command.pid()));
  if (!complete && wanted()) reporter.ends(s);
  // Events until now belong to the last report; later ones do not.
  const bool stopped = true;
  set_live(s, "tracing_stopped", &stopped, sizeof stopped);
  s.ledger.count[LEDGER_MISSED] += missed_at(s.links);
  leave(s.links);
  if (wanted() && take(kLastStep, kLastRecords)) {
    reporter.hurry();
    while (take(kLastStep)) {
    }
  }
  if (wanted() && !complete) show();
  if (!ran) return ran;
  if (s.exporter) finish_events(s);
  if (too_many)
    return Error{"too many events", "more than max_events_per_second", {}, metrics::kTooMany};
  return {};
}

}  // namespace coretap
