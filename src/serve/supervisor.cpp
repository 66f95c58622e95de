#include "serve/supervisor.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <initializer_list>
#include <list>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/loop.hpp"
#include "base/memory.hpp"
#include "base/new_file.hpp"
#include "coretap/clock.hpp"
#include "coretap/parse.hpp"
#include "coretap/tool.hpp"
#include "coretap/version.hpp"
#include "metrics/page.hpp"
#include "run/child.hpp"
#include "run/recording.hpp"
#include "run/run.hpp"
#include "serve/channel.hpp"
#include "serve/collector.hpp"
#include "serve/flight_recorder.hpp"
#include "serve/listener.hpp"
#include "text/errors.hpp"

namespace coretap::serve {

namespace {

constexpr double kFirstPause = 1, kLongestPause = 300;  // seconds until a tool is restarted
constexpr double kRatePause = 600;                      // after too many events
constexpr double kSteadySeconds = 60;                   // after which a tool counts as running well
constexpr double kRetrySeconds = 0.1;                   // while the listener is behind
constexpr int kEndSeconds = 3;                          // for tools to end
constexpr char kName[] = "coretap serve";

void say(std::string_view text) { fputs(fmt::format("{}: {}\n", kName, text).c_str(), stderr); }

/// Notifies the service manager, if there is one.
void notify(std::string_view state) {
  auto* path = getenv("NOTIFY_SOCKET");
  sockaddr_un to{};
  if (!path || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof to.sun_path) return;
  to.sun_family = AF_UNIX;
  memcpy(to.sun_path, path, strlen(path));
  if (to.sun_path[0] == '@') to.sun_path[0] = '\0';
  Fd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sendto(fd.get(), state.data(), state.size(), MSG_NOSIGNAL, reinterpret_cast<sockaddr*>(&to),
         static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + strlen(path)));
}

/// Two connected sockets; empty: failed, with errno.
std::pair<Fd, Fd> connected(int type) {
  int ends[2] = {-1, -1};
  if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) != 0) return {};
  return {Fd(ends[0]), Fd(ends[1])};
}

struct Running {
  Entry entry;
  pid_t pid = 0;  ///< 0: waiting to be started
  Fd process;
  Fd theirs;  ///< our copy of the requesting end, for a later listener
  Fd events;  ///< the same for the end that receives events
  std::uint64_t started_ns = 0, restarts = 0;
  time_t started = 0;  ///< the same, as time since 1970
  double pause = kFirstPause;
  std::string down;  ///< why it is not running
  bool wanted = true;
  std::string key = {};                      ///< of the running process: Collector::key
  std::optional<std::size_t> recorded = {};  ///< its place in the flight recorder, while it runs
};

class Supervisor {
 public:
  Supervisor(ServeConfig config, const ServeOptions& options,
             const std::function<Result<ServeConfig>()>& load)
      : config_(std::move(config)), options_(options), load_(load) {}

  int run() {
    block_signals();
    block_signal(SIGHUP);
    if (auto r = loop_.open(); !r) return fail(r.error());
    if (!in_this_process()) {
      auto socket = listening_socket(config_.listen);
      if (!socket) return fail(socket.error());
      socket_ = std::move(*socket);
    }
    if (auto r = begin_recording(); !r) return fail(r.error());
    for (auto& entry : config_.entries) {
      tools_.push_back({.entry = entry});
      begin(tools_.back());
    }
    if (!in_this_process()) begin_listener();
    config_time_ = static_cast<std::uint64_t>(time(nullptr));
    tell_state();
    if (load_) loop_.on_signal(SIGHUP, [this] { reload(); });
    if (options_.once)
      loop_.once(options_.every, [this] { print_once(); });
    else if (!options_.textfile.empty())
      loop_.every(options_.every, [this] { write_textfile(); });
    else
      say(fmt::format("metrics of {} {} at {}", tools_.size(),
                      tools_.size() == 1 ? "tool" : "tools", address()));
    give_memory_back();
    notify("READY=1");
    auto ran = loop_.run();
    notify("STOPPING=1");
    end_all();
    return ran ? status_ : fail(ran.error());
  }

 private:
  bool in_this_process() const { return options_.once || !options_.textfile.empty(); }

  std::string address() const {
    if (getenv("LISTEN_FDS")) return "the socket of the service manager";
    return config_.listen.starts_with("unix:") ? config_.listen
                                               : fmt::format("http://{}/metrics", config_.listen);
  }

  static int fail(const Error& error) { return print_error(kName, error); }

  // ---- recordings ----

  Result<void> begin_recording() {
    constexpr double kTellSeconds = 10;
    if (!config_.hindsight || options_.once) return {};
    block_signal(SIGUSR1);
    recorder_.emplace(loop_, *config_.hindsight, say);
    if (auto r = recorder_->open(config_.entries, [this] { tell_state(); }); !r) return r;
    loop_.every(kTellSeconds, [this] { tell_state(); });
    return {};
  }

  /// In the process of a tool. -> its exit status
  int run_in_child(const Running& tool, Exported& exported) {
    auto* registered = find_tool(tool.entry.arguments.front());
    const std::vector<std::string> arguments(tool.entry.arguments.begin() + 1,
                                             tool.entry.arguments.end());
    if (!tool.recorded) return run_tool(build(*registered), arguments, &exported);
    const auto segments = recorder_->segments(*tool.recorded);
    recorder_->judge_in(exported.options, *segments);
    const RecordTo to{.segments = segments.get(), .state = &recorder_->state(*tool.recorded)};
    return run_tool(build(*registered), arguments, &exported, &to);
  }

  /// Requests of the listener. The answer to News::last is not waited for here.
  void read_listener() {
    char text[64];
    const auto n = recv(news_.get(), text, sizeof text, MSG_DONTWAIT);
    if (n == 0) loop_.forget(news_.get());  // its process has ended, which is watched
    if (n > 0) take_request({text, static_cast<std::size_t>(n)});
  }

  void take_request(std::string_view request) {
    if (!request.starts_with(kWantsDump) || !recorder_) return;
    request.remove_prefix(1);
    const auto id = parse_unsigned(take_until(request, ' '));
    const bool of_user = take_until(request, ' ') == "1";
    const auto last_ms = parse_unsigned(request);
    if (!id || !last_ms) return;
    const auto answer = recorder_->dump_on_request(of_user, static_cast<double>(*last_ms) / 1e3);
    tell({News::dumped, fmt::format("{} {} {}", *id, answer.good ? 1 : 0, answer.text)});
  }

  void close_news() {
    if (news_) loop_.forget(news_.get());
    news_.reset();
  }

  // ---- tools ----

  void begin(Running& tool) {
    auto [ours, its] = connected(SOCK_STREAM);
    if (!ours) return fail_to_begin(tool, "cannot make a channel");
    Fd events, its_events;
    if (pushes_events(tool.entry)) {
      std::tie(events, its_events) = connected(SOCK_STREAM);
      if (!events) say_failed(tool, "its events are not pushed");
    }
    if (recorder_ && tool.entry.hindsight) tool.recorded = recorder_->begin(tool.entry);
    auto child = start_child([&, &its = its] {
      Fd nothing;
      auto kept = tool.recorded ? recorder_->descriptors() : std::pair(&nothing, &nothing);
      close_others({&its, &its_events, kept.first, kept.second});
      Exported exported{tool.entry.export_options(), std::move(its), std::move(its_events)};
      exported.options.starts_at_zero = !options_.once;
      // Not exit(): the supervisor's state must not be cleaned up here.
      _exit(run_in_child(tool, exported));
    });
    if (child.pid < 0) {
      end_recording(tool, "it could not be started");
      return fail_to_begin(tool, "cannot start it");
    }
    tool.pid = child.pid;
    tool.started_ns = monotonic_ns();
    tool.started = time(nullptr);
    tool.key = Collector::key(++last_key_, tool.entry.profiles, tool.entry.name);
    tool.down.clear();
    tool.theirs = std::move(ours);
    tool.events = std::move(events);
    tool.process = std::move(child.end);
    loop_.watch(tool.process.get(), EPOLLIN, [this, pid = tool.pid] { ended(pid); });
    announce(tool);
  }

  void end_recording(Running& tool, std::string why) {
    if (tool.recorded) recorder_->ended(*std::exchange(tool.recorded, {}), std::move(why));
  }

  static void say_failed(const Running& tool, std::string_view what) {
    say(fmt::format("{}: {}: {}", tool.entry.name, what, strerror(errno)));
  }
  void fail_to_begin(Running& tool, std::string_view what) {
    say_failed(tool, what);
    later(tool, kLongestPause);
  }

  void announce(const Running& tool) {
    auto copy = [](const Fd& fd) { return Fd(fcntl(fd.get(), F_DUPFD_CLOEXEC, 0)); };
    auto channel = copy(tool.theirs);
    auto events = tool.events ? copy(tool.events) : Fd();
    if (!channel || (tool.events && !events)) {
      say_failed(tool, "cannot hand its channel on");
      kill(tool.pid, SIGTERM);  // it will be restarted
      return;
    }
    tell({News::came, tool.key, std::move(channel)});
    if (events) tell({News::events, tool.entry.named ? tool.entry.name : "", std::move(events)});
  }

  /// Does not wait for a listener that is busy with requests, or stopped.
  void tell(News news) {
    if (in_this_process()) return collector_.take(std::move(news));
    if (!news_) return;
    if (news.what == News::state)
      std::erase_if(untold_, [](auto& older) { return older.what == News::state; });
    untold_.push_back(std::move(news));
    send_untold();
  }

  void send_untold() {
    while (news_ && !untold_.empty()) {
      if (send_news(news_.get(), untold_.front()) == Sending::later) {
        if (!std::exchange(sends_later_, true))
          loop_.once(kRetrySeconds, [this] {
            sends_later_ = false;
            send_untold();
          });
        return;
      }
      untold_.pop_front();
    }
  }

  bool pushes_events(const Entry& entry) const {
    return config_.otlp && !in_this_process() && entry.events && entry.events->otlp;
  }

  void ended(pid_t pid) {
    auto at = std::find_if(tools_.begin(), tools_.end(), [&](auto& t) { return t.pid == pid; });
    int status = 0;
    waitpid(pid, &status, 0);
    if (at == tools_.end()) return;
    auto& tool = *at;
    loop_.forget(tool.process.get());
    tool.process.reset();
    tool.theirs.reset();
    int unread = 0;
    if (tool.events && listener_ <= 0 && ioctl(tool.events.get(), FIONREAD, &unread) == 0 && unread)
      say(fmt::format("{}: {} bytes of events are lost", tool.entry.name, unread));
    tool.events.reset();
    tool.pid = 0;
    tool.restarts++;
    tell({News::went, tool.key});
    const auto how = WIFEXITED(status) ? fmt::format("status {}", WEXITSTATUS(status))
                                       : fmt::format("signal {}", WTERMSIG(status));
    end_recording(tool, tool.wanted ? fmt::format("it ended with {}", how) : std::string());
    if (!tool.wanted) {
      tools_.erase(at);
      tell_state();
      return;
    }
    auto code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    tool.down = code < 0                    ? "signal"
                : code == kUnsupported      ? "unsupported"
                : code == kUsage            ? "usage"
                : code == metrics::kTooMany ? "rate"
                                            : "exit";
    double ran = static_cast<double>(monotonic_ns() - tool.started_ns) / 1e9;
    if (ran >= kSteadySeconds) tool.pause = kFirstPause;
    auto pause = code == metrics::kTooMany                ? kRatePause
                 : code == kUnsupported || code == kUsage ? kLongestPause
                                                          : tool.pause;
    tool.pause = std::min(2 * tool.pause, kLongestPause);
    say(fmt::format("{} ended ({}); it starts again in {:g} s", tool.entry.name, how, pause));
    later(tool, pause);
    tell_state();
  }

  void later(Running& tool, double seconds) {
    loop_.once(seconds, [this, name = tool.entry.name] {
      for (auto& t : tools_)
        if (t.entry.name == name && t.wanted && !t.pid) {
          begin(t);
          tell_state();
          return;
        }
    });
  }

  // ---- requests ----

  void begin_listener() {
    auto [ours, its] = connected(SOCK_SEQPACKET);
    auto child = !ours ? Child() : start_child([&, &its = its] {
      close_others({&socket_, &its});
      DumpAccess dumps;
      if (config_.hindsight) dumps = {true, config_.hindsight->token};
      run_listener(std::move(socket_), std::move(its), config_.otlp, dumps, since_ns_);
    });
    if (child.pid < 0) {
      say(fmt::format("cannot start the process that answers requests: {}", strerror(errno)));
      loop_.once(kFirstPause, [this] { begin_listener(); });
      return;
    }
    news_ = std::move(ours);
    loop_.watch(news_.get(), EPOLLIN, [this] { read_listener(); });
    untold_.clear();
    listener_ = child.pid;
    listener_process_ = std::move(child.end);
    loop_.watch(listener_process_.get(), EPOLLIN, [this] {
      loop_.forget(listener_process_.get());
      listener_process_.reset();
      int status = 0;
      waitpid(listener_, &status, 0);
      listener_ = 0;
      close_news();
      if (std::exchange(renews_listener_, false)) return begin_listener();
      say(fmt::format("the process that answers requests ended; it starts again{}",
                      config_.otlp ? ", without what it had to push" : ""));
      loop_.once(kFirstPause, [this] { begin_listener(); });
    });
    for (auto& tool : tools_)
      if (tool.pid) announce(tool);
    tell_state();
  }

  /// Metrics that the tools cannot provide themselves.
  std::string state() {
    using metrics::Type;
    metrics::Page page;
    auto of = [](const Running& tool) { return metrics::labels_text({{"tool", tool.entry.name}}); };
    page.family("coretap_tool_up", Type::gauge, "1: the tool runs and answered this request");
    for (auto& t : tools_)
      if (!t.pid) page.sample("coretap_tool_up", of(t), std::uint64_t{0});
    page.family(
        "coretap_tool_down", Type::gauge,
        "1: the tool does not run: unsupported by this kernel or these privileges, rate (too "
        "many events), usage, signal or exit");
    for (auto& t : tools_)
      if (!t.pid)
        page.sample("coretap_tool_down",
                    metrics::labels_text({{"tool", t.entry.name}, {"reason", t.down}}),
                    std::uint64_t{1});
    page.family("coretap_tool_restarts_total", Type::counter, "how often the tool ended by itself");
    for (auto& t : tools_)
      if (t.wanted) page.sample("coretap_tool_restarts_total", of(t), t.restarts);
    page.family("coretap_tool_start_time_seconds", Type::gauge,
                "when the tool was started, since 1970");
    for (auto& t : tools_)
      if (t.pid && t.wanted)
        page.sample("coretap_tool_start_time_seconds", of(t),
                    static_cast<std::uint64_t>(t.started));
    page.one("coretap_config_last_reload_successful", Type::gauge,
             "0: the file was refused, and the configuration before it stays", {},
             std::uint64_t{reloaded_});
    page.one("coretap_config_last_reload_success_time_seconds", Type::gauge,
             "when a configuration was taken, since 1970", {}, config_time_);
    if (recorder_) recorder_->add_metrics(page);
    page.one("coretap_build_info", Type::gauge, "version of coretap",
             metrics::labels_text({{"version", kVersion}, {"commit", kCommit}}), std::uint64_t{1});
    return page.take();
  }

  void tell_state() { tell({News::state, state()}); }

  void print_once() {
    constexpr int kPatienceMs = 10'000;  // for tools that load slowly
    auto page = collector_.page(kPatienceMs);
    Sink out;
    out.write(page);
    status_ = end_of(out);
    loop_.stop();
  }

  void write_textfile() {
    auto file = NewFile::create(options_.textfile);
    auto written = file ? file->write(collector_.page()) : Result<void>(file.error());
    if (!written && !told_textfile_) print_error(kName, written.error());
    told_textfile_ = !written;
  }

  // ---- the configuration ----

  void reload() {
    auto fresh = load_();
    reloaded_ = static_cast<bool>(fresh);
    if (!fresh) {
      print_error(kName, fresh.error());
      say("the configuration stays as it was");
      tell_state();
      return;
    }
    config_time_ = static_cast<std::uint64_t>(time(nullptr));
    if (fresh->listen != config_.listen)
      say("another address to listen at needs a new start; this one stays");
    if (fresh->hindsight != config_.hindsight)
      say("another [hindsight] needs a new start; the one before stays");
    // The listener pushes its data and ends; the next one gets the channels of all tools.
    if (fresh->otlp != config_.otlp && news_) {
      renews_listener_ = true;
      close_news();
    }
    config_.otlp = fresh->otlp;
    std::size_t kept = 0;
    for (auto& tool : tools_) {
      auto same = std::find(fresh->entries.begin(), fresh->entries.end(), tool.entry);
      if (same != fresh->entries.end()) {
        fresh->entries.erase(same);
        kept++;
      } else {
        tool.wanted = false;
        if (!tool.pid) continue;
        kill(tool.pid, SIGTERM);
        tell({News::went, tool.key});
      }
    }
    auto gone = std::erase_if(tools_, [](auto& t) { return !t.wanted && !t.pid; });
    auto ending = std::ranges::count_if(tools_, [](auto& t) { return !t.wanted; });
    say(fmt::format("configuration read: {} tools stay, {} end, {} start", kept,
                    gone + static_cast<std::size_t>(ending), fresh->entries.size()));
    for (auto& entry : fresh->entries) {
      tools_.push_back({.entry = entry});
      begin(tools_.back());
    }
    tell_state();
  }

  /// Pushes last values while the tools can still provide them.
  void push_last() {
    constexpr int kPatienceMs = 1500;
    if (!config_.otlp || !news_ || send_news(news_.get(), {News::last, {}}) != Sending::done)
      return;
    const auto end = monotonic_ns() + kPatienceMs * 1'000'000ULL;
    for (auto now = monotonic_ns(); now < end; now = monotonic_ns()) {
      pollfd answer{news_.get(), POLLIN, 0};
      char first = kDone;
      if (poll(&answer, 1, static_cast<int>((end - now) / 1'000'000 + 1)) <= 0 ||
          recv(news_.get(), &first, sizeof first, MSG_DONTWAIT) <= 0 || first == kDone)
        return;
    }
  }

  void end_all() {
    push_last();
    for (auto& tool : tools_)
      if (tool.pid) kill(tool.pid, SIGTERM);
    close_news();
    if (listener_ > 0) kill(listener_, SIGTERM);
    await_ends();
    if (recorder_) recorder_->end();
  }

  void await_ends() {
    for (int i = 0; i < kEndSeconds * 100; i++) {
      int status = 0;
      pid_t pid = 0;
      while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
      }
      if (pid < 0) return;
      usleep(10'000);
    }
    for (auto& tool : tools_)
      if (tool.pid) kill(tool.pid, SIGKILL);
    usleep(10'000);
  }

  ServeConfig config_;
  const ServeOptions& options_;
  const std::function<Result<ServeConfig>()>& load_;
  Loop loop_;
  std::list<Running> tools_;
  Fd socket_, news_, listener_process_;
  std::deque<News> untold_;
  bool sends_later_ = false;
  pid_t listener_ = 0;
  std::optional<FlightRecorder> recorder_;
  Collector collector_;
  bool reloaded_ = true, told_textfile_ = false;
  bool renews_listener_ = false;  ///< it ends on request
  const std::uint64_t since_ns_ = static_cast<std::uint64_t>(since_1970_ns(monotonic_ns()));
  std::uint64_t config_time_ = 0, last_key_ = 0;
  int status_ = kOk;
};

}  // namespace

int supervise(ServeConfig config, const ServeOptions& options,
              const std::function<Result<ServeConfig>()>& load) {
  return Supervisor(std::move(config), options, load).run();
}

}  // namespace coretap::serve
