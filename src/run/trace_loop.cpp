#include "run/trace_loop.hpp"

#include <bpf/libbpf.h>
#include <linux/netlink.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/loop.hpp"
#include "coretap/clock.hpp"
#include "coretap/fd.hpp"
#include "coretap/parse.hpp"
#include "metrics/exporter.hpp"
#include "program/attach.hpp"
#include "program/section.hpp"
#include "program/target_attach.hpp"
#include "program/variables.hpp"
#include "record/recorder.hpp"
#include "reports/reporter.hpp"
#include "run/command.hpp"
#include "run/recording.hpp"

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
constexpr double kRecordSeconds = 1;    // what a recording lacks if the run is killed
constexpr double kJudgeSeconds = 1;     // thresholds on metrics
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
    auto links = attach_perf_events(s_, came);
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

/// How many intervals end before the duration does.
double intervals_within(const Config::Schedule& schedule) {
  constexpr double kSame = 1e-6;  // of an interval: rounding
  if (schedule.duration <= 0) return std::numeric_limits<double>::infinity();
  return std::ceil(schedule.duration / schedule.interval - kSame) - 1;
}

/// The time between attach and detach.
class Tracing {
 public:
  Tracing(Session& s, Reporter& reporter, Command& command)
      : s_(s), reporter_(reporter), command_(command), cpus_(s) {}
  ~Tracing() { s_.out.wait_no_longer_than(-1); }
  Tracing(const Tracing&) = delete;
  Tracing& operator=(const Tracing&) = delete;

  Result<void> run() {
    if (auto r = open(); !r) return r;
    watch_data();
    watch_ends();
    if (s_.exporter) answer_requests();
    if (s_.recorder) keep_recording();
    reporter_.begin(s_);
    recorded(record::Did::begin);
    s_.out.keep_header();
    for (int fd : reporter_.wakes()) loop_.watch(fd, EPOLLIN, [this] { drain(); });
    handle_signals();
    if (reporter_.immediate()) {
      next_report();
      if (s_.config.schedule.interval <= 0 && !s_.exporter) loop_.stop();
    }
    s_.out.flush();  // before a command's first output
    check_output();
    if (command_.pid() > 0 && wanted() && !s_.out.failed())
      if (auto r = command_.start(); !r) return r;
    auto ran = loop_.run();
    end();
    if (!ran) return ran;
    if (s_.exporter) finish_events();
    if (too_many_)
      return Error{"too many events", "more than max_events_per_second", {}, metrics::kTooMany};
    return {};
  }

 private:
  Result<void> open() {
    if (auto r = loop_.open(); !r) return r;
    s_.out.wait_no_longer_than(loop_.ends());
    return s_.source->open_records(
        [this](const void* record, std::size_t bytes) { reporter_.record(s_, record, bytes); });
  }

  bool wanted() const { return !s_.out.closed() || reporter_.keeps_file(); }

  void check_output() {
    if (!wanted() || s_.out.failed() || reporter_.wants_end()) loop_.stop();
  }

  /// -> whether records are left
  bool take(std::chrono::nanoseconds most, std::uint64_t least = 0) {
    bool more = s_.source->take_records(most, least);
    if (s_.recorder) keep_within_segment();
    reporter_.poll(s_);
    s_.out.flush();
    if (s_.exporter) s_.exporter->send_events();
    check_output();
    return more;
  }

  void drain() {
    if (!take(kStep) || again_) return;
    again_ = true;
    loop_.soon([this] {
      again_ = false;
      drain();
    });
  }

  /// The clock stands still until recorded().
  void moment() {
    if (s_.recorder) s_.recorder->moment();
  }
  void recorded(record::Did what) {
    if (s_.recorder) s_.recorder->did(what);
  }

  void keep_recording() {
    constexpr double kSamples = 3;  // in a segment
    if (auto* segments = s_.recorder->segments())
      segments->lengthen(static_cast<std::uint64_t>(reporter_.sample_seconds() * kSamples * 1e9));
    loop_.every(kRecordSeconds, [this, last = monotonic_ns()]() mutable {
      drain();
      const auto every = reporter_.sample_seconds();
      const auto now = monotonic_ns();
      if (s_.recorder->segment_due()) {
        last = now;
        next_segment();
      } else if (every > 0 &&
                 static_cast<double>(now - std::max(last, shown_ns_)) >= (every - 0.5) * 1e9) {
        last = now;
        sample(record::Did::sample);
      }
      s_.recorder->flush();
      s_.recorder->say_counts(whole_ledger(s_).seen(), s_.ledger.shown);
      tell_failure(s_);
    });
  }

  void sample(record::Did as) {
    moment();
    s_.recorder->sampling = true;
    reporter_.sample(s_);
    (void)whole_ledger(s_);
    s_.recorder->sampling = false;
    recorded(as);
  }

  /// Reports that are not sampled are made, so that the segment has its data.
  void next_segment() {
    if (reporter_.periodic() && !reporter_.immediate() && reporter_.sample_seconds() <= 0) show();
    sample(record::Did::split);
    s_.recorder->next_segment();
  }

  void keep_within_segment() {
    if (s_.recorder->segment_too_large()) next_segment();
    if (auto* of = s_.recorder->segments(); of && of->state().wakes)
      s_.recorder->say_counts(of->state().events, s_.ledger.shown);
  }

  void show(record::Did as = record::Did::report) {
    moment();
    reporter_.report(s_);
    recorded(as);
    if (s_.recorder) shown_ns_ = monotonic_ns();
    s_.out.flush(true);
    check_output();
  }

  void report() {
    take(kStepOfReport);
    show();
  }

  /// True after the last of --count reports.
  bool counted() const { return s_.config.schedule.count && reports_ >= s_.config.schedule.count; }

  void next_report() {
    report();
    reports_++;
    if (counted()) loop_.stop();
  }

  void watch_data() {
    const int records = s_.source->records_fd();
    if (records >= 0) {
      loop_.watch(records, EPOLLIN, [this] { drain(); });
      for (auto seconds : kEarlySeconds) loop_.once(seconds, [this] { drain(); });
    }
    if (double poll = reporter_.poll_seconds(); records >= 0 || poll > 0)
      loop_.every(poll > 0      ? poll
                  : s_.exporter ? kServedDrainSeconds
                                : kDrainSeconds,
                  [this] { drain(); });
    // The report at the end replaces that of an interval that ends then.
    if (auto& schedule = s_.config.schedule;
        schedule.interval > 0 && reporter_.periodic() && !s_.exporter)
      loop_.every(schedule.interval, [this, left = intervals_within(schedule)]() mutable {
        if (left-- > 0) next_report();
      });
    if (CpuWatch::wanted(s_)) cpus_.begin(loop_);
  }

  void watch_ends() {
    if (s_.config.schedule.duration > 0) loop_.stop_after(s_.config.schedule.duration);
    // Detects that the reader has closed even if there is nothing to write.
    if (!reporter_.keeps_file() && !s_.file && !s_.exporter)
      loop_.watch(STDOUT_FILENO, 0, [this] {
        s_.out.reader_has_gone();
        loop_.stop();
      });
    if (command_.pid() <= 0) return;
    loop_.watch(command_.pidfd(), EPOLLIN, [this] {
      if (command_.status() >= 0) loop_.stop();
    });
    loop_.ends_with(command_.pidfd());
  }

  void handle_signals() {
    const auto own = reporter_.signals();
    for (int number : own) {
      block_signal(number);
      loop_.on_signal(number, [this, number] {
        drain();
        reporter_.signalled(s_, number);
        check_output();
      });
    }
    if (s_.file && std::ranges::find(own, kReopenSignal) == own.end())
      loop_.on_signal(kReopenSignal, [this] {
        drain();
        s_.out.reopen();
        check_output();
      });
  }

  /// Replies now, or when the time of the profile has passed.
  void answer_profile(const metrics::Request& request) {
    auto make = reporter_.profile(s_, request.ms != metrics::Request::kSinceStart);
    auto answer = [this, request, make] {
      s_.exporter->reply(request, make ? make(s_) : std::string());
    };
    if (make && request.ms != metrics::Request::kSinceStart)
      loop_.once(request.ms / 1e3, answer);
    else
      answer();
  }

  /// Answers requests of `coretap serve` for pages of metrics and profiles.
  void answer_requests() {
    loop_.watch(s_.exporter->channel(), EPOLLIN, [this] {
      metrics::Request request{};
      bool open = true;
      while (s_.exporter->read_request(request, open)) {
        if (request.what == metrics::Request::profile) {
          answer_profile(request);
          continue;
        }
        report();
        s_.exporter->reply(request, s_.exporter->page(s_, whole_ledger(s_)));
      }
      if (!open) loop_.stop();
    });
    if (!reporter_.immediate()) loop_.every(kCollectSeconds, [this] { report(); });
    if (s_.exporter->judges())
      loop_.every(kJudgeSeconds, [this] {
        report();
        s_.exporter->judge();
      });
    loop_.every(metrics::Exporter::kRateSeconds, [this] {
      too_many_ = s_.exporter->too_many(whole_ledger(s_));
      if (too_many_) loop_.stop();
    });
  }

  /// Detaches, and shows the remaining data.
  void end() {
    s_.out.ending(loop_.signals(), loop_.signal(),
                  [this](std::string_view words) { s_.say(words); });
    const bool complete = reporter_.immediate() || counted();
    if (command_.pid() > 0 && command_.status() < 0)
      s_.say(fmt::format("the command (process {}) goes on, untraced", command_.pid()));
    if (!complete && wanted()) {
      moment();
      reporter_.ends(s_);
      recorded(record::Did::ends);
    }
    // Events until now belong to the last report; later ones do not.
    const bool stopped = true;
    set_live(s_, "tracing_stopped", &stopped, sizeof stopped);
    s_.ledger.count[LEDGER_MISSED] += missed_at(s_.links);
    leave(s_.links);
    if (wanted() && take(kLastStep, kLastRecords)) {
      reporter_.hurry();
      recorded(record::Did::hurry);
      while (take(kLastStep)) {
      }
    }
    if (wanted() && !complete) show(record::Did::last);
  }

  /// Counts events that were not pushed as limited; they were counted as shown before.
  void finish_events() {
    auto left = s_.exporter->finish_events();
    if (!left) return;
    s_.ledger.shown -= std::min(left, s_.ledger.shown);
    s_.ledger.limited += left;
    s_.say(fmt::format("{} events were not pushed: they were not accepted in time", left));
  }

  Session& s_;
  Reporter& reporter_;
  Command& command_;
  Loop loop_;
  CpuWatch cpus_;
  std::uint64_t reports_ = 0;
  std::uint64_t shown_ns_ = 0;  ///< the last report, while a run is recorded
  bool again_ = false, too_many_ = false;
};

}  // namespace

Ledger whole_ledger(const Session& s) {
  auto all = s.ledger;
  s.source->add_ledger(all.count);
  return all;
}

Result<void> trace(Session& s, Reporter& reporter, Command& command) {
  return Tracing(s, reporter, command).run();
}

}  // namespace coretap
