#include "kernel/pmu_events.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <optional>
#include <set>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "coretap/kernel.hpp"
#include "coretap/nearest.hpp"
#include "coretap/parse.hpp"
#include "coretap/sanitize.hpp"
#include "coretap/small_files.hpp"

namespace coretap {

namespace {

constexpr std::size_t kMostFiles = 4096, kMostText = 4096, kMostWord = 512, kMostName = 64;
constexpr std::string_view kConfigs[] = {"config", "config1", "config2", "config3"};
/// Files beside those of events.
constexpr std::string_view kSuffixes[] = {".scale", ".unit", ".per-pkg", ".snapshot"};
/// They have other means here, or their configuration is an address.
constexpr std::string_view kOthers[] = {"breakpoint", "kprobe", "software", "tracepoint", "uprobe"};

/// A name of a file; never a path.
bool is_file_name(std::string_view name) {
  return !name.empty() && name.size() <= kMostName && name.front() != '.' &&
         std::ranges::all_of(name, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  c == '_' || c == '-' || c == '.';
         });
}

bool is_alias(std::string_view file) {
  return std::ranges::none_of(kSuffixes, [&](auto suffix) { return file.ends_with(suffix); });
}

std::vector<std::string> names_of_files(const std::string& directory) {
  std::vector<std::string> all;
  std::error_code failed;
  for (std::filesystem::directory_iterator it(directory, failed), end;
       !failed && it != end && all.size() < kMostFiles; it.increment(failed))
    if (auto name = it->path().filename().string(); is_file_name(name)) all.push_back(name);
  std::ranges::sort(all);
  return all;
}

std::optional<std::string> line_of(const std::string& path) {
  auto text = read_file(path, kMostText);
  if (text) text->resize(std::min(text->find_last_not_of(" \t\n") + 1, text->size()));
  return text;
}

std::optional<std::uint64_t> number_of(std::string_view text) {
  return text.starts_with("0x") || text.starts_with("0X") ? parse_hexadecimal(text.substr(2))
                                                          : parse_unsigned(text);
}

/// Where a term's value is: "config1:0-7,32-35".
struct Place {
  std::size_t config = 0;
  std::uint64_t bits = 0;

  std::uint64_t most() const {
    const auto count = std::popcount(bits);
    return count == 64 ? UINT64_MAX : (std::uint64_t{1} << count) - 1;
  }
  /// The lowest bit of the value is at the lowest place.
  void put(std::uint64_t value, std::array<std::uint64_t, 4>& to) const {
    to[config] &= ~bits;
    for (auto left = bits; left; left &= left - 1, value >>= 1)
      if (value & 1) to[config] |= left & -left;
  }
};

std::optional<Place> place_of(std::string_view text) {
  const auto* config = std::ranges::find(kConfigs, take_until(text, ':'));
  if (config == std::end(kConfigs) || text.empty()) return {};
  Place place{static_cast<std::size_t>(config - std::begin(kConfigs))};
  while (!text.empty()) {
    auto range = take_until(text, ',');
    const auto first = parse_unsigned(take_until(range, '-'));
    const auto last = range.empty() ? first : parse_unsigned(range);
    if (!first || !last || *first > *last || *last > 63) return {};
    for (auto bit = *first; bit <= *last; bit++) place.bits |= std::uint64_t{1} << bit;
  }
  return place;
}

template <class Names>
std::string words_of(const Names& names) {
  constexpr std::size_t kShown = 24;
  const auto more = names.size() > kShown ? names.size() - kShown : 0;
  auto text = fmt::format("{}", fmt::join(names.begin(), names.end() - more, ", "));
  return more ? fmt::format("{} and {} more", text, more) : text;
}

/// Makes an event of terms.
class EventTerms {
 public:
  EventTerms(PmuEvent& event, const Pmus& pmus, std::string directory)
      : event_(event), pmus_(pmus), directory_(std::move(directory)) {}

  Result<void> take(std::string_view terms) {
    if (auto r = take_each(terms); !r) return r;
    if (open_.empty()) return {};
    return usage(fmt::format("the event needs {}=VALUE", *open_.begin()));
  }

 private:
  Result<void> take_each(std::string_view terms) {
    while (!terms.empty()) {
      const auto term = take_until(terms, ',');
      const auto sign = std::min(term.find('='), term.size());
      const bool has_value = sign < term.size();
      if (auto r = take_one(term.substr(0, sign), term.substr(sign + has_value), has_value); !r)
        return r;
    }
    return {};
  }

  Result<void> take_one(std::string_view name, std::string_view value, bool has_value) {
    if (name == "name") {
      if (value.empty() || value.size() > kMostName || printable(value) != value)
        return usage("name= needs a text of at most 64 characters");
      event_.name = value;
      return {};
    }
    if (!is_file_name(name)) return wrong(name);
    if (const auto* config = std::ranges::find(kConfigs, name); config != std::end(kConfigs)) {
      const Place all{static_cast<std::size_t>(config - std::begin(kConfigs)), UINT64_MAX};
      return put(name, all, value, has_value);
    }
    if (!has_value && is_alias(name))
      if (auto text = line_of(fmt::format("{}/events/{}", directory_, name)))
        return take_alias(name, *text);
    auto format = line_of(fmt::format("{}/format/{}", directory_, name));
    if (!format) return wrong(name);
    auto place = place_of(*format);
    if (!place)
      return Error{fmt::format("the kernel's format of {} is unknown", name),
                   printable(*format),
                   {},
                   kUnsupported};
    return put(name, *place, value, has_value);
  }

  Result<void> put(std::string_view name, const Place& place, std::string_view value,
                   bool has_value) {
    open_.erase(std::string(name));
    if (in_alias_ && value == "?") {
      open_.emplace(name);
      return {};
    }
    if (!has_value && place.most() != 1)
      return usage(fmt::format("{0} needs a value: {0}=0", name));
    const auto number = has_value ? number_of(value) : 1;
    if (!number)
      return usage(fmt::format("{}: '{}' is not a number", name, value), "decimal, or 0x1f");
    if (*number > place.most())
      return usage(fmt::format("{}: {} does not fit: at most {:#x}", name, value, place.most()));
    place.put(*number, event_.config);
    return {};
  }

  /// The terms of an event that the kernel lists.
  Result<void> take_alias(std::string_view name, std::string_view terms) {
    if (in_alias_) return wrong(name);
    in_alias_ = true;
    if (auto r = take_each(terms); !r) {
      auto error = r.error();
      error.what = fmt::format("the kernel's event {}: {}", name, error.what);
      error.status = kUnsupported;
      return error;
    }
    in_alias_ = false;
    auto about = [&](std::string_view suffix) {
      return line_of(fmt::format("{}/events/{}{}", directory_, name, suffix));
    };
    if (auto text = about(".scale"))
      if (const auto scale = strtod(text->c_str(), nullptr); std::isfinite(scale) && scale > 0)
        event_.scale = scale;
    if (auto text = about(".unit"); text && text->size() <= kMostName)
      event_.unit = printable(*text);
    event_.snapshot = about(".snapshot") == "1";
    return {};
  }

  Error wrong(std::string_view name) const {
    auto formats = names_of_files(directory_ + "/format");
    const auto aliases = pmus_.aliases(event_.pmu);
    for (auto config : kConfigs) formats.emplace_back(config);
    formats.emplace_back("name");
    std::vector<std::string_view> known(formats.begin(), formats.end());
    known.insert(known.end(), aliases.begin(), aliases.end());
    auto why = fmt::format("it has the terms {}", words_of(formats));
    if (!aliases.empty()) why += fmt::format("; the events {}", words_of(aliases));
    return {fmt::format("the PMU {} has no term or event '{}'", event_.pmu, printable(name)), why,
            did_you_mean(name, known), kUsage};
  }

  PmuEvent& event_;
  const Pmus& pmus_;
  const std::string directory_;
  std::set<std::string, std::less<>> open_;  ///< values that an alias leaves to the user
  bool in_alias_ = false;
};

}  // namespace

bool PmuEvent::counts_on(int cpu) const {
  return cpus.empty() || std::ranges::find(cpus, cpu) != cpus.end();
}

Result<PmuWord> pmu_word(std::string_view word) {
  const auto first = word.find('/'), last = word.find('/', first + 1);
  if (word.size() > kMostWord || first == word.npos || last == word.npos ||
      word.find('/', last + 1) != word.npos || !is_file_name(word.substr(0, first)))
    return usage(fmt::format("'{}' is not an event of a PMU", printable(word)),
                 "PMU/EVENT/ or PMU/TERM=VALUE,.../: msr/tsc/, cpu/event=0x3c,umask=1/");
  return PmuWord{word.substr(0, first), word.substr(first + 1, last - first - 1),
                 word.substr(last + 1)};
}

std::string_view take_event_word(std::string_view& list, bool* comma) {
  std::size_t at = 0;
  for (bool within = false; at < list.size() && (within || list[at] != ','); at++)
    if (list[at] == '/') within = !within;
  const auto word = list.substr(0, at);
  if (comma) *comma = at < list.size();
  list.remove_prefix(std::min(at + 1, list.size()));
  return word;
}

std::string event_title(std::string_view word) {
  std::string title(word);
  if (auto parts = pmu_word(word))
    for (auto rest = parts->terms; !rest.empty();)
      if (const auto term = take_until(rest, ','); term.starts_with("name="))
        title = term.substr(term.find('=') + 1);
  return title;
}

std::string Pmus::path(std::string_view pmu, std::string_view file) const {
  return fmt::format("{}/{}/{}", root_, pmu, file);
}

Result<PmuEvent> Pmus::event(std::string_view pmu, std::string_view terms) const {
  PmuEvent event{.pmu = std::string(pmu)};
  if (std::ranges::count(kOthers, pmu))
    return usage(fmt::format("'{}' is not a PMU with events", pmu),
                 "software events and tracepoints have names: page-faults, sched:sched_switch");
  const auto type = number_of(line_of(path(pmu, "type")).value_or(""));
  if (!type || *type > UINT32_MAX) {
    const auto all = names();
    return Error{fmt::format("this machine has no PMU '{}'", pmu),
                 fmt::format("PMUs here: {}", list()), did_you_mean(pmu, {all.begin(), all.end()}),
                 kUnsupported};
  }
  event.type = static_cast<std::uint32_t>(*type);
  // Of a PMU of some cores, and of one whose CPUs count for others.
  auto cpus = line_of(path(pmu, "cpus"));
  if (!cpus) {
    cpus = line_of(path(pmu, "cpumask"));
    event.for_others = cpus.has_value();
  }
  if (cpus) event.cpus = parse_cpus(*cpus);
  if (auto r = EventTerms(event, *this, path(pmu, "")).take(terms); !r) return r.error();
  return event;
}

Result<PmuEvent> Pmus::alias(std::string_view name) const {
  std::vector<std::string> having;
  for (auto& pmu : names())
    if (std::ranges::count(aliases(pmu), name)) having.push_back(pmu);
  if (having.size() == 1) return event(having.front(), name);
  if (having.empty()) return usage(fmt::format("no PMU of this machine has the event '{}'", name));
  return usage(fmt::format("several PMUs have the event '{}': {}", name, words_of(having)),
               fmt::format("name one: {}/{}/", having.front(), name));
}

std::vector<std::string> Pmus::names() const {
  auto all = names_of_files(root_);
  std::erase_if(all, [&](auto& pmu) {
    return std::ranges::count(kOthers, pmu) || !line_of(path(pmu, "type"));
  });
  return all;
}

std::vector<std::string> Pmus::aliases(std::string_view pmu) const {
  auto all = names_of_files(path(pmu, "events"));
  std::erase_if(all, [](auto& file) { return !is_alias(file); });
  return all;
}

std::vector<std::string> Pmus::all_aliases() const {
  std::vector<std::string> all;
  for (auto& pmu : names())
    for (auto& alias : aliases(pmu)) {
      all.push_back(alias);
      all.push_back(fmt::format("{}/{}/", pmu, alias));
    }
  return all;
}

int Pmus::most_precise(std::string_view pmu) const {
  constexpr std::uint64_t kMost = 3;
  const auto most = number_of(line_of(path(pmu, "caps/max_precise")).value_or(""));
  return static_cast<int>(std::min(most.value_or(kMost), kMost));
}

std::string Pmus::list() const {
  const auto all = names();
  return all.empty() ? "none with events" : words_of(all);
}

}  // namespace coretap
