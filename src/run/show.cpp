// `coretap show`: prints a recording.
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/descriptors.hpp"
#include "base/new_file.hpp"
#include "base/recall.hpp"
#include "cli/parser.hpp"
#include "coretap/clock.hpp"
#include "coretap/fd.hpp"
#include "coretap/sanitize.hpp"
#include "coretap/small_files.hpp"
#include "kernel/capabilities.hpp"
#include "perfetto/trace_file.hpp"
#include "program/session.hpp"
#include "record/replay.hpp"
#include "record/store.hpp"
#include "reports/reporter.hpp"
#include "run/recording.hpp"
#include "run/run.hpp"
#include "run/run_words.hpp"
#include "run/steps.hpp"
#include "text/errors.hpp"

namespace coretap {

namespace {

/// A recorded run, whose data go through its report again.
class Showing {
 public:
  /// `every_ns`: reports are that far apart, where the recording has readings; 0: as they were.
  /// `whole`: the recorded run had the same limit of events, and its counts are to be the same.
  Showing(Session& s, record::Replay& from, std::uint64_t every_ns, bool whole)
      : s_(s),
        from_(from),
        reporter_(s.tool.report->reporter()),
        every_ns_(every_ns),
        whole_(whole) {}
  ~Showing() { s_.names.context.return_borrowed(); }
  Showing(const Showing&) = delete;
  Showing& operator=(const Showing&) = delete;

  Result<int> run(const record::Replay::Mark& begin) {
    // The first report of a state is of the start, others are of the time since then.
    shown_ns_ = reporter_->immediate() ? 0 : begin.monotonic_ns;
    learn_names(s_);
    s_.names.targets = unpacked(recalled(Ask::targets, "", [] { return std::string(); }));
    hold_clock(begin.monotonic_ns);
    s_.began_ns = begin.monotonic_ns;
    s_.source = from_.source();
    if (s_.tool.compile)
      if (auto r = s_.tool.compile(s_); !r) return r.error();
    reporter_->configure(s_);
    if (auto r = reporter_->open(s_); !r) return r.error();
    print_header(s_);
    auto took = s_.source->open_records(
        [this](const void* record, std::size_t bytes) { reporter_->record(s_, record, bytes); });
    if (!took) return took.error();
    reporter_->begin(s_);
    s_.out.keep_header();
    if (from_.has_base()) pass_over();
    auto last = begin;
    while (last.did != record::Did::finish && last.did != record::Did::split && !has_all()) {
      auto mark = from_.next();
      if (!mark) return mark.error();
      if (!*mark) {
        end_early(last);
        break;
      }
      if (from_.gaps() != gaps_) {
        gaps_ = from_.gaps();
        s_.say(fmt::format("a part of the recording is missing before {}",
                           wall_time((*mark)->monotonic_ns)));
      }
      do_again(last = **mark);
      s_.out.flush();
      if (s_.out.failed() || s_.out.closed()) break;
      if (every_ns_ && s_.config.schedule.count && reports_ >= s_.config.schedule.count) break;
    }
    return finish(s_, *reporter_, -1);
  }

 private:
  /// Data of the time before the recording count as reported.
  void pass_over() {
    const Fd nowhere(memfd_create("before", MFD_CLOEXEC));
    const auto ledger = s_.ledger;
    s_.out.flush();
    auto out = std::exchange(s_.out, Sink(nowhere.get()));
    reporter_->report(s_);
    s_.out = std::move(out);
    s_.ledger = ledger;
  }

  /// A report of what was found until the end is still to come.
  bool has_all() const { return reporter_->wants_end() && !reporter_->periodic() && !whole_; }

  void do_again(const record::Replay::Mark& mark) {
    hold_clock(mark.monotonic_ns);
    if (reporter_->wants_end() &&
        (mark.did == record::Did::sample || mark.did == record::Did::report))
      return;
    // Readings are late by less than half of the time between two.
    constexpr std::uint64_t kLate = 500'000'000;
    const bool reading = mark.did == record::Did::report || mark.did == record::Did::sample;
    const bool due = every_ns_ ? mark.monotonic_ns - shown_ns_ + kLate >= every_ns_
                               : mark.did == record::Did::report;
    if (mark.did == record::Did::last || (reading && due)) {
      shown_ns_ = mark.monotonic_ns;
      reports_++;
      reporter_->report(s_);
      s_.out.flush(true);
    } else if (reading) {
      from_.pass_over();
    }
    switch (mark.did) {
      case record::Did::sample:
        reporter_->sampled(s_);
        break;
      case record::Did::ends:
        reporter_->ends(s_);
        break;
      case record::Did::split:  // the last segment
        reporter_->ends(s_);
        if (!reporter_->immediate()) reporter_->report(s_);
        break;
      case record::Did::hurry:
        reporter_->hurry();
        break;
      case record::Did::finish:
        s_.ledger.count[LEDGER_MISSED] += mark.missed;
        break;
      case record::Did::begin:
      case record::Did::base:
      case record::Did::report:
      case record::Did::last:
        break;
    }
  }

  /// The recorded run was killed, or the file is not whole: what it has is shown.
  void end_early(const record::Replay::Mark& last) {
    s_.say(fmt::format("the recording ends at {}, without its end: what came later is missing",
                       wall_time(last.monotonic_ns)));
    if (last.did == record::Did::sample && !reporter_->immediate()) reporter_->report(s_);
  }

  Session& s_;
  record::Replay& from_;
  std::unique_ptr<Reporter> reporter_;
  const std::uint64_t every_ns_;
  const bool whole_;
  std::uint64_t shown_ns_ = 0, gaps_ = 0, reports_ = 0;
};

/// Stands for the file that a recorded run wrote.
constexpr std::string_view kMadeFile = "file.svg";

/// The option of a word such as "--sort=bytes"; empty: it is another word.
std::string_view option_of(std::string_view word) {
  if (!word.starts_with("--")) return {};
  return word.substr(2, word.substr(0, word.find('=')).size() - 2);
}

/// Which arguments a command line has, one after another.
class Arguments {
 public:
  explicit Arguments(const Tool& tool)
      : at_(tool.positionals.begin()), end_(tool.positionals.end()) {}

  /// Is the next word INTERVAL or COUNT?
  bool next_is_of_interval() {
    if (at_ == end_) return false;
    const bool is = at_->option == "interval" || at_->metavar == "COUNT";
    if (!at_->repeats()) ++at_;
    return is;
  }

 private:
  std::vector<Positional>::const_iterator at_, end_;
};

/// By its option, or as the argument that tools have for it.
bool gives_interval(const Tool& tool, const std::vector<std::string>& words) {
  if (std::ranges::any_of(words, [](std::string_view word) {
        return option_of(word) == "interval" || (word.starts_with("-i") && !word.starts_with("--"));
      }))
    return true;
  if (tool.positionals.empty() || tool.positionals[0].option != "interval") return false;
  Invocation unused;
  auto others = take_options(unused, "coretap show", all_options(tool), words);
  return others && !others->empty();
}

/// The words of the user, and those of the recorded run that they do not replace. `interval`: they
/// give one.
std::vector<std::string> words_to_show(const Tool& tool, const record::Head& head,
                                       const std::vector<std::string>& more, bool interval) {
  auto words = more;
  Arguments recorded(tool);
  for (auto& word : head.words) {
    const auto option = option_of(word);
    if (option.empty()) {
      if (recorded.next_is_of_interval() && interval) continue;
    } else if ((interval && option == "interval") ||
               std::ranges::any_of(more, [&](auto& w) { return option_of(w) == option; })) {
      continue;
    }
    words.push_back(word);
  }
  return words;
}

/// Constants of the kernel program that a report sets, by name; without those that are random.
std::map<std::string, std::string> settings_of(const Tool& tool, const Config& config) {
  std::map<std::string, std::string> once, again;
  for (auto* all : {&once, &again}) {
    Session s(tool, config);
    s.constants = all;
    tool.report->reporter()->configure(s);
  }
  std::erase_if(once, [&](auto& setting) { return again[setting.first] != setting.second; });
  return once;
}

/// Refuses what would have changed a constant of the kernel program, its code, hooks or filters.
Result<void> check_same_tracing(const Tool& tool, const Config& recorded, const Config& shown) {
  auto refused_word = [&](std::string_view word) {
    return Error{fmt::format("{}: was decided when the run was recorded", printable(word)),
                 {},
                 fmt::format("record again with it: coretap {} --record FILE ...", tool.name),
                 kUsage};
  };
  auto refused = [&](std::string_view option) { return refused_word(fmt::format("--{}", option)); };
  Arguments arguments(tool);
  for (auto& word : shown.words)
    if (!arguments.next_is_of_interval() &&
        std::ranges::find(recorded.words, word) == recorded.words.end())
      return refused_word(word);
  const auto options = all_options(tool);
  const auto settings = settings_of(tool, recorded);
  for (auto& [name, value] : shown.given_options()) {
    if (recorded.given(name) ? is_file_option(name) || recorded.text(name) == value
                             : name == "interval")
      continue;
    Config with = recorded;
    auto option =
        std::ranges::find_if(options, [&wanted = name](auto& o) { return o.name == wanted; });
    if (option == options.end()) continue;
    if (option->traces) return refused(name);
    if (auto r = option->apply(with, value); !r) return r.error();
    with.give(name, value);
    const bool same_constants = std::ranges::equal(
        with.edits(), recorded.edits(),
        [](auto& a, auto& b) { return a.target.offset == b.target.offset && a.value == b.value; });
    const bool hooks_differ = std::ranges::any_of(
        tool.hooks, [&](auto& hook) { return with.holds(hook.when) != recorded.holds(hook.when); });
    if (!same_constants || hooks_differ || settings_of(tool, with) != settings ||
        with.tasks != recorded.tasks || with.sampling != recorded.sampling ||
        &*chosen_report(tool, with) != &*chosen_report(tool, recorded))
      return refused(name);
  }
  return {};
}

/// Fields whose data are not in the recording are empty. -> a line for each of them. Reports that
/// are not made of fields need all.
Result<std::vector<std::string>> leave_out_lacking(Tool& tool, const record::Replay& replay,
                                                   const record::Replay::Mark& begin,
                                                   const std::string& path) {
  std::vector<std::string> lines;
  const auto lacks = replay.lacks();
  if (lacks.empty()) return lines;
  hold_clock(begin.monotonic_ns);
  const auto by = printable(replay.head().coretap);
  auto without = tool.report.without(lacks, lines);
  if (!without)
    return Error{fmt::format("{}: coretap {} has recorded it without {}", path, by,
                             printable(lacks.front().member)),
                 {},
                 "show it with that version",
                 kUnsupported};
  tool.report = std::move(*without);
  for (auto& line : lines) line += fmt::format(" (made by coretap {})", by);
  return lines;
}

/// Local times become those of the recorder.
void use_zone(const record::Head& head) {
  constexpr std::int64_t kMost = 26 * 3600;
  if (head.zone_seconds < -kMost || head.zone_seconds > kMost) return;
  // POSIX counts west of Greenwich.
  const auto west = -head.zone_seconds, minutes = (west < 0 ? -west : west) / 60;
  const auto zone = fmt::format("<{:+03}>{}{:02}:{:02}", head.zone_seconds / 3600,
                                west < 0 ? "-" : "+", minutes / 60, minutes % 60);
  setenv("TZ", zone.c_str(), 1);
  tzset();
}

/// Takes from this process the rights that showing a recording does not need. `opens_files`: files
/// are written later.
void confine(bool opens_files) {
  if (auto* filter = seccomp_init(SCMP_ACT_ALLOW)) {
    auto deny = [&](std::initializer_list<const char*> names) {
      for (auto* name : names)
        if (int number = seccomp_syscall_resolve_name(name); number != __NR_SCMP_ERROR)
          seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), number, 0);
    };
    deny({"execve",
          "execveat",
          "fork",
          "vfork",
          "clone",
          "clone3",
          "socket",
          "connect",
          "ptrace",
          "process_vm_readv",
          "process_vm_writev",
          "pidfd_open",
          "pidfd_getfd",
          "kill",
          "tkill",
          "bpf",
          "perf_event_open",
          "mount",
          "umount2",
          "init_module",
          "finit_module",
          "setns",
          "unshare",
          "chroot",
          "io_uring_setup",
          "keyctl"});
    if (!opens_files) deny({"open", "openat", "openat2", "creat", "unlink", "unlinkat", "rename"});
    seccomp_load(filter);
    seccomp_release(filter);
  }
  retain_capabilities(opens_files ? CapabilitySet{Capability::dac_override, Capability::fowner}
                                  : CapabilitySet{});
}

/// `to`: a file instead of standard output; then no message is printed, and reports are those of
/// each second unless the run had intervals.
Result<int> show(record::Replay& replay, const std::vector<std::string>& paths,
                 std::vector<std::string> arguments, std::optional<int> to,
                 perfetto::TracePart* trace = nullptr) {
  if (auto r = replay.open(paths); !r) return r.error();
  auto& path = paths.front();
  auto* registered = find_tool(replay.head().tool);
  if (!registered)
    return Error{fmt::format("{}: is of a tool that is not in this coretap: '{}'", path,
                             printable(replay.head().tool)),
                 {},
                 {},
                 kUnsupported};
  const auto declared = build(*registered);
  auto recorded_words = replay.head().words;
  for (auto& option : replay.head().files)
    if (is_file_option(option))
      recorded_words.insert(recorded_words.begin(), fmt::format("--{}={}", option, kMadeFile));
  auto recorded = parse_command_line(declared, recorded_words);
  if (!recorded) return recorded.error();
  // It may be anyone's: its words name no file to write, and nothing to look for.
  if (declared.list && recorded->config.given("list"))
    return Error{fmt::format("cannot read {}", path), "it is damaged", {}, kFailed};
  for (auto& [option, value] : recorded->config.given_options())
    if (is_output_option(option) || (is_file_option(option) && value != kMadeFile))
      return Error{fmt::format("cannot read {}", path), "it is damaged", {}, kFailed};
  if (to && !recorded->config.schedule.interval &&
      std::ranges::any_of(all_options(declared), [](auto& o) { return o.name == "interval"; }))
    arguments.emplace_back("--interval=1");
  const bool other_interval = gives_interval(declared, arguments);
  auto parsed = parse_command_line(
      declared, words_to_show(declared, replay.head(), arguments, other_interval));
  if (!parsed) return parsed.error();
  auto tool = declared;
  tool.report = chosen_report(declared, parsed->config);
  const record::ObjectLayouts layouts(tool.object.bytes());
  replay.use(layouts, tool.report->record_type());
  use_zone(replay.head());
  auto begin = replay.begin();
  const bool other_size = tool.report->record_size() != replay.head().record_bytes;
  if ((other_size && !replay.moves()) || !tool.report->can_be_recorded())
    return Error{fmt::format("{}: coretap {} has recorded it with other data", path,
                             printable(replay.head().coretap)),
                 {},
                 "show it with that version",
                 kUnsupported};
  if (!begin) return begin.error();
  const auto empty = leave_out_lacking(tool, replay, *begin, path);
  if (!empty) return empty.error();
  if (auto r = check_same_tracing(tool, recorded->config, parsed->config); !r) return r.error();
  if (parsed->config.given("lines"))
    return usage("--lines: a recording has no source lines",
                 "coretap symbolize prints those of addresses");
  if (other_interval && parsed->config.schedule.interval < 1)
    return usage("--interval: a recording has readings of each second, not of shorter times");
  Session s(tool, parsed->config);
  s.trace_part = trace;
  if (auto text = text_instead(*parsed, tool)) {
    s.out.write(*text);
    return end_of_output(s);
  }
  if (to) {
    s.out = Sink(*to);
    s.quiet = s.fine_slots = true;
  } else {
    if (auto r = redirect(s); !r) return r.error();
    confine(s.file || tool.report->reporter()->keeps_file() ||
            std::ranges::any_of(kFileOptions, [&](auto option) { return s.config.given(option); }));
  }
  for (auto& line : *empty) s.say(line);
  const auto every = other_interval ? parsed->config.schedule.interval * 1e9 : 0;
  const bool whole = recorded->config.events.most == parsed->config.events.most;
  return Showing(s, replay, static_cast<std::uint64_t>(every), whole).run(*begin);
}

int show_failed(const Error& error) { return print_error("coretap show", error); }

/// A recording, or the segments of one run in their order.
struct Recorded {
  std::string tool;  ///< as its files are named
  std::uint64_t run = 0;
  std::map<std::uint64_t, std::string> files = {};  ///< by number of the segment
};

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::vector<std::string> recordings_in(const std::string& directory) {
  std::vector<std::string> paths;
  std::error_code failed;
  for (auto& entry : std::filesystem::directory_iterator(directory, failed))
    if (entry.path().extension() == ".ctr") paths.push_back(entry.path().native());
  std::ranges::sort(paths);
  return paths;
}

Error nothing_in(const std::string& directory) {
  std::string dump;
  std::error_code failed;
  for (auto& entry : std::filesystem::directory_iterator(directory, failed))
    if (entry.path().filename() != record::kRingDirectory && entry.is_directory(failed))
      dump = std::max(dump, entry.path().native());
  return {fmt::format("there is no recording in {}", directory),
          {},
          dump.empty() ? std::string() : fmt::format("the last dump there is {}", dump),
          kUsage};
}

/// Takes the files and directories that `words` begin with.
Result<std::vector<Recorded>> take_recordings(std::vector<std::string>& words) {
  std::vector<std::string> paths;
  std::size_t taken = 0;
  for (; taken < words.size(); taken++) {
    auto& word = words[taken];
    std::error_code failed;
    if (std::filesystem::is_directory(word, failed)) {
      auto inside = recordings_in(word);
      if (inside.empty()) return nothing_in(word);
      paths.insert(paths.end(), inside.begin(), inside.end());
    } else if (!taken || (!word.starts_with('-') && is_recording(word))) {
      paths.push_back(word);
    } else {
      break;
    }
  }
  words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(taken));
  std::vector<Recorded> all;
  for (auto& path : paths) {
    record::Replay replay;
    if (auto r = replay.open(path); !r) {
      if (paths.size() == 1) return r.error();
      print_error("coretap show", r.error());  // begun when its run was killed
      continue;
    }
    auto& head = replay.head();
    const auto name = file_name(path);
    const auto tool = name.substr(0, name.find('.'));
    auto known = std::ranges::find_if(all, [&](auto& one) {
      return head.run && one.run == head.run && one.tool == tool &&
             !one.files.contains(head.segment);
    });
    if (known == all.end()) known = all.insert(all.end(), Recorded{tool, head.run});
    known->files.emplace(head.segment, path);
  }
  if (!words.empty() && all.size() > 1) {
    const auto only = words[0];
    const auto other = [&](auto& one) { return one.tool != only; };
    if (!std::ranges::all_of(all, other)) {
      std::erase_if(all, other);
      words.erase(words.begin());
    }
  }
  if (all.empty()) return Error{"there is no recording that can be read", {}, {}, kFailed};
  return all;
}

std::vector<std::string> files_of(const Recorded& one) {
  std::vector<std::string> paths;
  for (auto& [number, path] : one.files) paths.push_back(path);
  return paths;
}

int show_one(const Recorded& one, const std::vector<std::string>& arguments,
             perfetto::TracePart* trace = nullptr) {
  record::Replay replay;
  const Recalling recalling(replay);
  auto status = show(replay, files_of(one), arguments, {}, trace);
  return status ? *status : show_failed(status.error());
}

/// The file of --perfetto, which is taken off the words; empty: not given.
std::string take_trace(std::vector<std::string>& words) {
  constexpr std::string_view kOption = "--perfetto";
  auto at = std::ranges::find_if(
      words, [&](auto& w) { return w == kOption || w.starts_with("--perfetto="); });
  if (at == words.end()) return {};
  auto value = *at == kOption ? at + 1 : at;
  if (value == words.end()) return {};
  auto path = value == at ? at->substr(kOption.size() + 1) : *value;
  if (path.empty() || path == "-") return {};
  words.erase(at, value + 1);
  return path;
}

/// One file with the events of several tools; a tool that failed is not in it.
class SharedTrace {
 public:
  Result<void> open(const std::string& path) {
    auto file = NewFile::create(path, NewFile::For::owner);
    if (!file) return file.error();
    file_ = std::move(*file);
    return {};
  }
  /// For the next tool.
  perfetto::TracePart* part() {
    part_.emplace(perfetto::TracePart{*file_, number_++});
    return &*part_;
  }
  /// The tool has ended. -> whether the file has events of it
  Result<bool> ended(bool good) {
    if (!good && (ftruncate(file_->fd(), at_) != 0 || lseek(file_->fd(), at_, SEEK_SET) != at_))
      return system_error("cannot take an incomplete part from the trace", errno);
    const auto now = lseek(file_->fd(), 0, SEEK_CUR);
    return std::exchange(at_, now) != now || now < 0;  // a pipe has no places
  }
  Result<void> finish() { return file_->finish(); }
  explicit operator bool() const { return file_.has_value(); }

 private:
  std::optional<NewFile> file_;
  std::optional<perfetto::TracePart> part_;
  std::uint32_t number_ = 0;
  off_t at_ = 0;
};

/// Each in a separate process, which gives up its rights.
int show_each(const std::vector<Recorded>& all, std::vector<std::string> arguments) {
  int status = kOk;
  SharedTrace trace;
  if (auto path = take_trace(arguments); !path.empty())
    if (auto r = trace.open(path); !r) return show_failed(r.error());
  const bool titles = std::ranges::none_of(
      arguments, [](auto& word) { return word == "--json" || word == "--csv"; });
  for (auto& one : all) {
    if (titles && print_text(fmt::format("{}==> {} <==\n", &one == &all[0] ? "" : "\n",
                                         printable(one.tool))) != kOk)
      return kFailed;
    auto* part = trace ? trace.part() : nullptr;
    const auto child = ::fork();
    if (child == 0) _exit(show_one(one, arguments, part));
    int ended = 0;
    if (child < 0 || ::waitpid(child, &ended, 0) != child)
      return show_failed(system_error("cannot start a process", errno));
    const int its = WIFEXITED(ended) ? WEXITSTATUS(ended) : kFailed;
    if (!status) status = its;
    if (!trace) continue;
    auto written = trace.ended(its == kOk || its == kDataLost);
    if (!written) return show_failed(written.error());
    if (!*written)
      fmt::print(stderr, "coretap show: note: the trace has no events of {}\n",
                 printable(one.tool));
  }
  if (trace)
    if (auto r = trace.finish(); !r) return show_failed(r.error());
  return status;
}

int show_info(const Recorded& one);

}  // namespace

int show_recordings(std::vector<std::string> words, bool info) {
  raise_descriptor_limit();
  auto all = take_recordings(words);
  if (!all) return show_failed(all.error());
  if (!info) return all->size() == 1 ? show_one(all->front(), words) : show_each(*all, words);
  int status = kOk;
  for (auto& one : *all) status = std::max(status, show_info(one));
  return status;
}

bool is_recording(const std::string& path) {
  return static_cast<bool>(record::Reader().open(path));
}

Result<std::string> recording_as_json(const std::string& path) {
  record::Replay replay;
  const Recalling recalling(replay);
  const Fd file(memfd_create("shown", MFD_CLOEXEC));
  if (!file) return system_error("cannot make a file in memory", errno);
  if (auto status = show(replay, {path}, {"--json"}, file.get()); !status) return status.error();
  std::string text(static_cast<std::size_t>(lseek(file.get(), 0, SEEK_END)), '\0');
  text.resize(read_bytes(file.get(), 0, text.data(), text.size()));
  return text;
}

namespace {

int show_info(const Recorded& one) {
  record::Replay replay;
  const Recalling recalling(replay);
  if (auto r = replay.open(files_of(one)); !r) return show_failed(r.error());
  use_zone(replay.head());
  std::uint64_t from = 0, until = 0, reports = 0;
  bool finished = false;
  for (;;) {
    auto mark = replay.next();
    if (!mark) return show_failed(mark.error());
    if (!*mark) break;
    if (!from) from = (*mark)->monotonic_ns;
    until = std::max(until, (*mark)->monotonic_ns);
    reports += (*mark)->did == record::Did::report || (*mark)->did == record::Did::last;
    finished = (*mark)->did == record::Did::finish || (*mark)->did == record::Did::split;
  }
  auto& head = replay.head();
  std::vector<std::string> words{head.tool};
  words.insert(words.end(), head.words.begin(), head.words.end());
  auto text = fmt::format("{}, coretap {}, recorded on {} ({}, {})\n", fmt::join(words, " "),
                          head.coretap, head.host, head.kernel, head.machine);
  text = printable(text.substr(0, text.size() - 1)) + "\n";
  text += from ? fmt::format("  {} to {}, {:.1f} s\n", iso_time(from), iso_time(until),
                             static_cast<double>(until - from) / 1e9)
               : "  it ends before tracing began\n";
  text += fmt::format("  {} records, {} reports; {} bytes, {} unpacked; {}\n", replay.records(),
                      reports, replay.file_bytes(), replay.unpacked_bytes(),
                      finished ? "whole" : "its end is missing");
  if (head.anonymous) text += "  anonymous: it has tokens instead of names\n";
  if (replay.fine()) text += "  histograms have 8 slots in each power of two\n";
  if (one.files.size() > 1)
    text += fmt::format(
        "  {} segments{}\n", one.files.size(),
        replay.gaps() ? fmt::format("; {} times a part is missing", replay.gaps()) : std::string());
  return print_text(text);
}

}  // namespace

}  // namespace coretap
