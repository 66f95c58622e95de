#include "run/recording.hpp"

#include <sys/utsname.h>

#include <algorithm>
#include <ctime>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cli/parser.hpp"
#include "coretap/clock.hpp"
#include "coretap/sanitize.hpp"
#include "coretap/version.hpp"
#include "program/session.hpp"

namespace coretap {

namespace {

/// `coretap show` takes others.
constexpr std::string_view kOutputOptions[] = {
    "anonymous", "append", "color",         "csv",    "debug",  "exit-status", "explain", "json",
    "lines",     "output", "output-format", "record", "rotate", "screen",      "strict"};

std::vector<std::string> words_to_record(const Config& config) {
  std::vector<std::string> words;
  for (auto& [name, value] : config.given_options())
    if (!is_file_option(name) && !is_output_option(name))
      words.push_back(value.empty() ? fmt::format("--{}", name)
                                    : fmt::format("--{}={}", name, value));
  words.insert(words.end(), config.words.begin(), config.words.end());
  return words;
}

std::vector<std::string> files_to_record(const Config& config) {
  std::vector<std::string> given;
  for (auto option : kFileOptions)
    if (config.given(option)) given.emplace_back(option);
  return given;
}

bool is_number(std::string_view word) {
  return !word.empty() && word.find_first_not_of("0123456789.,:-+%") == word.npos;
}

/// A number with a unit, as "10ms".
bool is_amount(std::string_view word) {
  constexpr std::size_t kLongestUnit = 3;
  const auto unit = word.find_first_not_of("0123456789.");
  return unit && (unit == word.npos || (word.size() - unit <= kLongestUnit &&
                                        word.find_first_of("0123456789./", unit) == word.npos));
}

/// The words that a value may be: of the kernel, or of the tool.
bool is_closed(Complete complete) {
  switch (complete) {
    case Complete::pid:
    case Complete::cpu:
    case Complete::syscall:
    case Complete::function:
    case Complete::tracepoint:
    case Complete::sort_key:
      return true;
    default:
      return false;
  }
}

/// The words of the command line with tokens instead of names.
Result<std::vector<std::string>> anonymous_words(const Session& s,
                                                 const record::Anonymous& anonymous) {
  const auto options = all_options(s.tool);
  constexpr std::string_view kKeys[] = {"by", "sort"};
  std::vector<std::string> words;
  for (auto& [name, value] : s.config.given_options()) {
    if (is_file_option(name) || is_output_option(name)) continue;
    auto option =
        std::ranges::find_if(options, [&wanted = name](auto& o) { return o.name == wanted; });
    const bool known = option != options.end();
    const bool stays = is_number(value) || is_amount(value) ||
                       (known && (option->words || is_closed(option->complete))) ||
                       std::ranges::find(kKeys, name) != std::end(kKeys);
    const bool is_disk = known && option->complete == Complete::disk;
    const auto shown = stays     ? value
                       : is_disk ? anonymous.answer(Ask::disk, "", value)
                                 : anonymous.text(value);
    words.push_back(value.empty() ? fmt::format("--{}", name)
                                  : fmt::format("--{}={}", name, shown));
  }
  auto positional = s.tool.positionals.begin();
  for (auto& word : s.config.words) {
    const bool known = positional != s.tool.positionals.end();
    const bool stays =
        is_number(word) || is_amount(word) || (known && is_closed(positional->complete));
    words.push_back(stays ? word : anonymous.target(word));
    if (known && !positional->repeats()) ++positional;
  }
  if (auto parsed = parse_command_line(s.tool, words); !parsed)
    return Error{"these options cannot be recorded anonymously", parsed.error().why, {}, kUsage};
  return words;
}

/// Are all data of the report such that a name in them is known as one?
Result<void> check_anonymous(const Session& s, const record::ObjectLayouts& layouts) {
  const auto& report = *s.tool.report;
  const auto kind = report.name();
  const bool has_records = kind == "event" || kind == "snapshot";
  // Values of expressions are in no layout.
  if (!s.tool.compile &&
      (kind == "aggregate" || kind == "stacks" ||
       (has_records && record::Anonymous::knows(layouts.of_struct(report.record_type())))))
    return {};
  return Error{fmt::format("{} cannot be recorded anonymously", s.tool.shown_name()),
               "the form of its records is its own",
               {},
               kUsage};
}

record::Head head_of(const Session& s, const record::ObjectLayouts& layouts) {
  utsname system{};
  uname(&system);
  const time_t now = time(nullptr);
  tm local{};
  localtime_r(&now, &local);
  return {.coretap = std::string(kVersion),
          .tool = std::string(s.tool.name),
          .called = std::string(s.tool.called.name),
          .words = words_to_record(s.config),
          .host = system.nodename,
          .kernel = system.release,
          .machine = system.machine,
          .zone_seconds = local.tm_gmtoff,
          .zone = local.tm_zone,
          .record_bytes = s.tool.report->record_size(),
          .files = files_to_record(s.config),
          .layout = layouts.of_struct(s.tool.report->record_type())};
}

}  // namespace

bool is_file_option(std::string_view name) {
  return std::ranges::find(kFileOptions, name) != std::end(kFileOptions);
}

bool is_output_option(std::string_view name) {
  return std::ranges::find(kOutputOptions, name) != std::end(kOutputOptions);
}

Recording::~Recording() {
  if (s_.recorder) recorder_.close();
}

Result<void> Recording::begin() {
  const auto& file = to_ ? to_->file : s_.config.files.record;
  const bool kept = to_ && to_->segments;
  const bool anonymous = s_.config.given("anonymous");
  if (file.empty() && !kept) {
    if (anonymous) return usage("--anonymous: nothing is recorded", "give --record FILE");
    return {};
  }
  if (auto r = kept ? recorder_.open(*to_->segments) : recorder_.open(file); !r) return r;
  if (to_) recorder_.report_to(*to_->state);
  layouts_.emplace(s_.tool.object.bytes());
  recorder_.use(*layouts_);
  auto head = head_of(s_, *layouts_);
  if (anonymous)
    if (auto r = hide_names(head); !r) return r;
  recorder_.head(head);
  s_.source = recorder_.over(std::move(s_.source));
  s_.recorder = &recorder_;
  recalling_.emplace(recorder_);
  return {};
}

Result<void> Recording::hide_names(record::Head& head) {
  if (auto r = check_anonymous(s_, *layouts_); !r) return r;
  constexpr std::string_view kCgroups[] = {"cgroup", "container", "pod", "unit"};
  const auto& tokens =
      recorder_.make_anonymous(std::ranges::any_of(s_.config.rows.by, [&](auto& key) {
        return std::ranges::find(kCgroups, key) != std::end(kCgroups);
      }));
  auto words = anonymous_words(s_, tokens);
  if (!words) return words.error();
  head.words = std::move(*words);
  head.host = tokens.word(head.host);
  head.anonymous = true;
  return {};
}

void tell_failure(Session& s) {
  auto& recorder = *s.recorder;
  if (!recorder.tells_failure()) return;
  if (recorder.segments())
    return s.note("a part of the recording is missing", recorder.file().error());
  s.incomplete = true;
  s.note("the recording has ended", recorder.file().error());
}

void end_recording(Session& s, std::uint64_t missed) {
  auto& recorder = *s.recorder;
  recorder.moment();
  recorder.did(record::Did::finish, missed);
  const auto seconds = static_cast<double>(recorder.now() - s.began_ns) / 1e9;
  recorder.close();
  hold_clock(recorder.now());  // what is still printed has this time
  if (recorder.segments()) return;
  if (recorder.file().failed()) return tell_failure(s);
  s.say(fmt::format("recorded {:.1f} s, {} events, {:.1f} KB: {}", seconds, s.ledger.seen(),
                    static_cast<double>(recorder.file().bytes()) / 1024,
                    printable(recorder.file().path())));
}

}  // namespace coretap
