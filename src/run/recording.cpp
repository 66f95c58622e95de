#include "run/recording.hpp"

#include <sys/utsname.h>

#include <algorithm>
#include <ctime>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "coretap/clock.hpp"
#include "coretap/sanitize.hpp"
#include "coretap/version.hpp"
#include "program/session.hpp"

namespace coretap {

namespace {

/// `coretap show` takes others.
constexpr std::string_view kOutputOptions[] = {
    "append", "color",  "csv",           "debug",  "exit-status", "explain", "json",
    "lines",  "output", "output-format", "record", "rotate",      "screen",  "strict"};

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
  if (file.empty() && !kept) return {};
  if (auto r = kept ? recorder_.open(*to_->segments) : recorder_.open(file); !r) return r;
  if (to_) recorder_.report_to(*to_->state);
  layouts_.emplace(s_.tool.object.bytes());
  recorder_.use(*layouts_);
  recorder_.head(head_of(s_, *layouts_));
  s_.source = recorder_.over(std::move(s_.source));
  s_.recorder = &recorder_;
  recalling_.emplace(recorder_);
  return {};
}

void end_recording(Session& s, std::uint64_t missed) {
  auto& recorder = *s.recorder;
  recorder.moment();
  recorder.did(record::Did::finish, missed);
  const auto seconds = static_cast<double>(recorder.now() - s.began_ns) / 1e9;
  recorder.close();
  hold_clock(recorder.now());  // what is still printed has this time
  if (recorder.segments()) return;
  if (recorder.file().failed()) {
    s.incomplete = true;
    return;
  }
  s.say(fmt::format("recorded {:.1f} s, {} events, {:.1f} KB: {}", seconds, s.ledger.seen(),
                    static_cast<double>(recorder.file().bytes()) / 1024,
                    printable(recorder.file().path())));
}

}  // namespace coretap
