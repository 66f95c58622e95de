#include "run/record.hpp"

#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/descriptors.hpp"
#include "base/loop.hpp"
#include "cli/naming.hpp"
#include "cli/parser.hpp"
#include "cli/words.hpp"
#include "coretap/clock.hpp"
#include "coretap/option_parts.hpp"
#include "coretap/sanitize.hpp"
#include "run/child.hpp"
#include "run/recording.hpp"
#include "run/run.hpp"
#include "run/triggers.hpp"
#include "text/errors.hpp"

namespace coretap {

namespace {

constexpr int kEndSeconds = 20;  // for tools to end and to write the rest

/// The parsed command line.
struct Own {
  std::string file, directory, at_most;
  double duration = 0;
  record::StoreOptions store;
  std::vector<TriggerRule> triggers;
};

int fail(Error error) {
  error.what = fmt::format("record: {}", error.what);
  return print_error("coretap", error);
}

std::string several(std::size_t count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

std::string minutes(double seconds) {
  if (seconds >= 60 && std::fmod(seconds, 60) == 0) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:g} s", seconds);
}

/// The processes of the tools, until they or the user end.
class Recordings {
 public:
  Recordings(std::vector<ToRecord> tools, Own own)
      : tools_(std::move(tools)), own_(std::move(own)) {}
  ~Recordings() {
    if (states_) ::munmap(states_, bytes_of_states());
  }
  Recordings(const Recordings&) = delete;
  Recordings& operator=(const Recordings&) = delete;

  Result<int> run() {
    block_signals();
    if (auto r = loop_.open(); !r) return r.error();
    if (auto r = keeps() ? open_store() : make_states(); !r) return r.error();
    if (keeps()) {
      block_signal(SIGUSR1);
      loop_.on_signal(SIGUSR1, [this] { store_.dump({"signal", "", true}); });
      auto counted = [this](const std::string& tool) { return shown_by(tool); };
      auto fire = [this](const record::Trigger& why) { store_.dump(why); };
      if (auto r = triggers_.begin(loop_, own_.triggers, counted, fire); !r) return r.error();
    }
    for (std::size_t i = 0; i < tools_.size(); i++) begin(i);
    say(beginning());
    if (keeps()) {
      loop_.watch(store_.wakes(), EPOLLIN, [this] {
        store_.settle();
        triggers_.look();
      });
      loop_.every(1, [this] { store_.settle(); });
    }
    if (own_.duration > 0) loop_.stop_after(own_.duration);
    if (::isatty(STDERR_FILENO)) loop_.every(1, [this] { progress(); });
    auto ran = running_ ? loop_.run() : Result<void>();
    end_all();
    if (!ran) return ran.error();
    return status_;
  }

 private:
  struct Running {
    pid_t pid = 0;  ///< 0: it has ended
    Fd process = {};
  };

  bool keeps() const { return own_.store.last > 0; }
  std::size_t bytes_of_states() const { return tools_.size() * sizeof(record::ToolState); }

  static void say(std::string_view text) {
    const char* clear = ::isatty(STDERR_FILENO) ? "\r\033[K" : "";
    fputs(fmt::format("{}{}\n", clear, printable(text)).c_str(), stderr);
  }

  Result<void> make_states() {
    auto* memory = ::mmap(nullptr, bytes_of_states(), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return system_error("cannot share memory", errno);
    states_ = static_cast<record::ToolState*>(memory);
    std::uninitialized_value_construct_n(states_, tools_.size());
    return {};
  }

  Result<void> open_store() {
    own_.store.say = [](std::string_view text) { say(text); };
    if (auto r = store_.open(own_.store); !r) return r;
    for (auto& tool : tools_) store_.add(tool.name, tool.command);
    return store_.check();
  }

  record::ToolState& state(std::size_t i) { return keeps() ? store_.state(i) : states_[i]; }

  std::uint64_t shown_by(const std::string& tool) {
    for (std::size_t i = 0; i < tools_.size(); i++)
      if (tools_[i].arguments.front() == tool) return state(i).shown;
    return 0;
  }

  std::string file_of(std::size_t i) const {
    return own_.directory.empty() ? own_.file
                                  : fmt::format("{}/{}.ctr", own_.directory, tools_[i].name);
  }

  std::string beginning() const {
    constexpr std::string_view kEnd = "Hit Ctrl-C to end.";
    if (keeps())
      return fmt::format("Keeping the last {} of {} in {} ({} MB at most). SIGUSR1 saves them. {}",
                         minutes(own_.store.last), several(tools_.size(), "tool"),
                         own_.store.directory, own_.store.most >> 20, kEnd);
    std::vector<std::string_view> names;
    for (auto& tool : tools_) names.push_back(tool.name);
    return fmt::format("Recording {} into {}... {}", fmt::join(names, ", "),
                       own_.directory.empty() ? own_.file : own_.directory, kEnd);
  }

  void begin(std::size_t i) {
    auto& tool = tools_[i];
    for (auto& rule : own_.triggers)
      if (rule.of == tool.arguments.front()) state(i).wakes = true;
    // A command after -- is in the foreground, and then so is its tool.
    const bool own_group = std::ranges::find(tool.arguments, "--") == tool.arguments.end();
    auto child = start_child(
        [&] {
          if (own_group) ::setpgid(0, 0);
          std::unique_ptr<record::Segments> segments;
          RecordTo to{.state = &state(i)};
          if (keeps()) {
            store_.leave_to_child();
            segments = store_.segments(i);
            to.segments = segments.get();
          } else {
            to.file = file_of(i);
          }
          auto* registered = find_tool(tool.arguments.front());
          const std::vector<std::string> arguments(tool.arguments.begin() + 1,
                                                   tool.arguments.end());
          const int status = run_tool(build(*registered), arguments, nullptr, &to);
          fflush(nullptr);
          _exit(status);  // the parent's state must not be cleaned up here
        },
        true);
    running_tools_.emplace_back();
    if (child.pid < 0) {
      say(system_error(fmt::format("cannot start {}", tool.name), errno).why);
      status_ = kFailed;
      return;
    }
    running_tools_[i] = {child.pid, std::move(child.end)};
    running_++;
    loop_.watch(running_tools_[i].process.get(), EPOLLIN, [this, i] { ended(i); });
  }

  /// -> its exit status, as in a shell
  int reap(std::size_t i) {
    auto& one = running_tools_[i];
    int status = 0;
    ::waitpid(one.pid, &status, 0);
    one.pid = 0;
    running_--;
    status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (status && !status_) status_ = status;
    return status;
  }

  void ended(std::size_t i) {
    loop_.forget(running_tools_[i].process.get());
    const int status = reap(i);
    if (keeps()) {
      const auto why = fmt::format("it ended with status {}", status);
      store_.ended(i, why);
      say(fmt::format("{}: {}, and is recorded no more", tools_[i].name, why));
    }
    if (!running_) loop_.stop();
  }

  void progress() {
    std::uint64_t events = 0, bytes = 0;
    for (std::size_t i = 0; i < tools_.size(); i++) {
      events += state(i).events;
      bytes += state(i).bytes;
    }
    auto text = fmt::format("\r\033[K{:.0f} s, {} events, {:.1f} MB written",
                            static_cast<double>(monotonic_ns() - began_ns_) / 1e9, events,
                            static_cast<double>(bytes) / 1e6);
    if (keeps()) text += fmt::format(", {}", several(store_.dumps_made(), "dump"));
    fputs(text.c_str(), stderr);
  }

  void end_all() {
    if (::isatty(STDERR_FILENO)) fputs("\r\033[K", stderr);
    for (auto& one : running_tools_)
      if (one.pid) ::kill(one.pid, loop_.signal() == SIGINT && in_our_group(one.pid) ? 0 : SIGINT);
    constexpr int kPatience = 100;  // the terminal's signal may have come to this process alone
    for (int i = 0; running_ && i < kEndSeconds * 100; i++) {
      for (auto& one : running_tools_)
        if (i == kPatience && one.pid && in_our_group(one.pid)) ::kill(one.pid, SIGINT);
      for (std::size_t tool = 0; tool < running_tools_.size(); tool++) {
        siginfo_t info{};
        auto& one = running_tools_[tool];
        if (one.pid &&
            ::waitid(P_PID, static_cast<id_t>(one.pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
            info.si_pid)
          reap(tool);
      }
      if (running_) ::usleep(10'000);
    }
    for (auto& one : running_tools_)
      if (one.pid) {
        ::kill(one.pid, SIGKILL);
        status_ = kFailed;
      }
    if (!keeps()) return;
    const auto made = store_.dumps_made(), refused = store_.dumps_refused();
    std::uint64_t unrecorded = 0;
    for (std::size_t i = 0; i < tools_.size(); i++) unrecorded += state(i).unrecorded;
    store_.end();
    auto text = fmt::format("{} in {}", several(made, "dump"), own_.store.directory);
    if (refused) text += fmt::format(", {} refused", refused);
    if (unrecorded)
      text += fmt::format("; {} events were not recorded for lack of space", unrecorded);
    say(text);
    if (unrecorded && !status_) status_ = kFailed;
  }

  static bool in_our_group(pid_t pid) { return ::getpgid(pid) == ::getpgrp(); }

  std::vector<ToRecord> tools_;
  Own own_;
  Loop loop_;
  record::Store store_;
  Triggers triggers_;
  record::ToolState* states_ = nullptr;
  std::vector<Running> running_tools_;
  std::size_t running_ = 0;
  const std::uint64_t began_ns_ = monotonic_ns();
  int status_ = kOk;
};

Option seconds_option(char letter, std::string_view name, std::string_view metavar,
                      std::string_view doc, double& (*place)(Own&)) {
  return value(letter, name, metavar, doc, [name, place](Config& c, std::string_view given) {
    return store(take_seconds(fmt::format("--{}", name), given), place(c.own<Own>()));
  });
}

Option size_option(std::string_view name, std::string_view doc, std::uint64_t& (*place)(Own&)) {
  return value(0, name, "SIZE", doc, [name, place](Config& c, std::string_view given) {
    return store(take_number(fmt::format("--{}", name), given, 64 << 10, 1ULL << 50, parse_size),
                 place(c.own<Own>()));
  });
}

/// One tool with its options as separate words, or several command lines.
Result<std::vector<ToRecord>> tools_of(const Own& own, const std::vector<std::string>& words) {
  std::vector<ToRecord> tools;
  const bool one = own.directory.empty() && own.store.last <= 0;
  const auto add = [&](std::vector<std::string> line) -> Result<void> {
    if (own.store.anonymous && !line.empty())
      line.insert(line.begin() + (line[0] == "coretap" && line.size() > 1 ? 2 : 1), "--anonymous");
    auto tool = to_record(std::move(line));
    if (!tool) return tool.error();
    tools.push_back(std::move(*tool));
    return {};
  };
  if (one) {
    auto line = command_words(words[0]);
    if (!line) return line.error();
    line->insert(line->end(), words.begin() + 1, words.end());
    if (auto r = add(std::move(*line)); !r) return r.error();
    return tools;
  }
  for (auto& word : words) {
    if (word.starts_with('-'))
      return usage(
          fmt::format("'{}' does not belong to a tool", word),
          "several tools can be recorded: quote each with its options, as 'biolatency -D'");
    auto line = command_words(word);
    if (!line) return line.error();
    if (auto r = add(std::move(*line)); !r) return r.error();
  }
  for (auto& rule : own.triggers) {
    const bool of_tool = rule.kind == TriggerRule::event || rule.kind == TriggerRule::rate;
    if (of_tool && std::ranges::none_of(tools, [&](auto& t) { return t.arguments[0] == rule.of; }))
      if (auto r = add({rule.of}); !r) return r.error();
  }
  make_names_differ(tools);
  return tools;
}

}  // namespace

Result<ToRecord> to_record(std::vector<std::string> words) {
  auto command = fmt::to_string(fmt::join(words, " "));
  if (!words.empty() && words[0] == "coretap") words.erase(words.begin());
  if (words.empty()) return usage("the command line of a tool is empty");
  const auto call = called(words[0]);
  if (!call.tool) return no_such_tool(words[0]);
  words[0] = std::string(call.tool->name);
  if (!call.option.empty()) words.insert(words.begin() + 1, std::string(call.option));
  const auto tool = build(call);
  auto parsed = parse_command_line(tool, {words.begin() + 1, words.end()});
  if (!parsed) return parsed.error();
  if (parsed->what != Invocation::run || parsed->config.given("explain") ||
      (tool.list && parsed->config.given("list")))
    return usage(fmt::format("'{}' is no run that could be recorded", command));
  for (auto* option : {"record", "output"})
    if (parsed->config.given(option))
      return usage(fmt::format("--{} is not for tools that are only recorded", option));
  if (!chosen_report(tool, parsed->config)->can_be_recorded())
    return Error{fmt::format("'{}' cannot be recorded", command), {}, {}, kUsage};
  return ToRecord{words[0], std::move(command), std::move(words)};
}

void make_names_differ(std::vector<ToRecord>& tools) {
  std::set<std::string> names;
  for (auto& tool : tools) {
    const auto own = tool.name;
    for (int i = 2; !names.insert(tool.name).second; i++) tool.name = fmt::format("{}-{}", own, i);
  }
}

std::string usual_directory() {
  ::mkdir("/run/coretap", 0755);
  return "/run/coretap/hindsight";
}

Result<void> take_times(record::StoreOptions& options, std::string_view at_most) {
  constexpr std::uint64_t kMostDumps = 1000;
  auto rest = at_most;
  const auto dumps = parse_unsigned(take_until(rest, '/'));
  const auto per = parse_seconds(rest);
  if (!dumps || !*dumps || *dumps > kMostDumps || !per || *per <= 0)
    return usage(fmt::format("'{}' is not a number of dumps and a time", at_most),
                 "as 1/10m: one in ten minutes");
  options.dumps = *dumps;
  options.per = *per;
  return {};
}

std::vector<Option> record_options() {
  return {
      text(
          'o', "output", "FILE", "record one tool into FILE", "a file",
          [](Config& c) -> std::string& { return c.own<Own>().file; }, Complete::file),
      text(
          0, "dir", "DIRECTORY",
          "record into DIRECTORY: TOOL.ctr for each tool, or with --last a ring and dumps (default: "
          "/run/coretap/hindsight)",
          "a directory", [](Config& c) -> std::string& { return c.own<Own>().directory; },
          Complete::directory),
      flag(0, "anonymous", "record tokens instead of names: --anonymous of each tool"),
      seconds_option('d', "duration", "SECONDS", "end after SECONDS",
                     [](Own& o) -> double& { return o.duration; }),
      seconds_option(
          0, "last", "TIME",
          "keep only the last TIME, as 5m, until a trigger or SIGUSR1 saves it in a dump",
          [](Own& o) -> double& { return o.store.last; }),
      value(0, "on", "TRIGGER,...",
            "save on TRIGGER: 'psi memory some 150ms/1s', 'load > 4/cpu', a tool such as oomkill "
            "(each of its events), or 'TOOL > 500/s'",
            [](Config& c, std::string_view given) {
              return add_triggers(c.own<Own>().triggers, given);
            })
          .adding_up(),
      value(0, "after", "TIME", "go on saving for TIME after a trigger (default: 30s; 0: do not)",
            [](Config& c, std::string_view given) -> Result<void> {
              auto& after = c.own<Own>().store.after;
              if (given != "0") return store(take_seconds("--after", given), after);
              after = 0;
              return {};
            }),
      size_option("most",
                  "limit of ring and dumps together (default: 256M); the oldest dump goes first",
                  [](Own& o) -> std::uint64_t& { return o.store.most; }),
      value(0, "keep", "NUMBER", "dumps that stay (default: 20)",
            [](Config& c, std::string_view given) {
              return store(take_number("--keep", given, 1, kMostKeep), c.own<Own>().store.keep);
            }),
      value(
          0, "at-most", "NUMBER/TIME",
          "dumps that triggers may make in TIME (default: 1/10m); SIGUSR1 always makes one",
          [](Config& c, std::string_view given) { return take_times(c.own<Own>().store, given); }),
      size_option("free",
                  "space that stays free in the file system (default: 64M, or a twentieth of it)",
                  [](Own& o) -> std::uint64_t& { return o.store.free; }),
  };
}

int run_record(const Config& config, const std::vector<std::string>& words) {
  auto own = config.own<Own>();
  const bool keeps = config.given("last");
  if (!keeps) own.store.last = 0;
  for (auto* option : {"on", "after", "most", "keep", "at-most", "free"})
    if (!keeps && config.given(option))
      return fail(usage(fmt::format("--{} needs --last", option), "as --last 5m"));
  if (keeps && own.store.last < kLeastLast) return fail(usage("--last needs at least 2 seconds"));
  if (!own.file.empty() && (keeps || !own.directory.empty()))
    return fail(usage("--output is for one tool, without --dir and --last"));
  if (own.file.empty() && own.directory.empty() && !keeps)
    return fail(usage("there is no file to record into",
                      "--output FILE for one tool, --dir DIRECTORY for several, or --last TIME"));
  own.store.anonymous = config.given("anonymous");
  auto tools = tools_of(own, words);
  if (!tools) return fail(tools.error());
  if (keeps && own.directory.empty()) own.directory = usual_directory();
  own.store.directory = own.directory;
  if (!keeps && !own.directory.empty() && ::mkdir(own.directory.c_str(), 0700) != 0 &&
      errno != EEXIST)
    return fail(system_error(fmt::format("cannot make {}", own.directory), errno, kUsage));
  auto status = Recordings(std::move(*tools), std::move(own)).run();
  return status ? *status : fail(status.error());
}

}  // namespace coretap
