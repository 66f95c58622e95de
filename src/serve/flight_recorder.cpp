#include "serve/flight_recorder.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include <fmt/format.h>

#include "coretap/json.hpp"
#include "run/record.hpp"

namespace coretap::serve {

FlightRecorder::FlightRecorder(Loop& loop, const Hindsight& config, Say say)
    : loop_(loop), config_(config), say_(std::move(say)) {}

Result<void> FlightRecorder::open(const std::vector<Entry>& entries, std::function<void()> dumped) {
  dumped_ = std::move(dumped);
  auto options = config_.store;
  if (options.directory.empty()) options.directory = usual_directory();
  options.say = say_;
  if (auto r = store_.open(std::move(options)); !r) return r;
  for (auto& entry : entries)
    if (entry.hindsight) add(entry);
  if (auto r = store_.check(); !r) return r;
  loop_.on_signal(SIGUSR1, [this] { dump({"signal", "", true}); });
  auto counted = [this](const std::string& tool) { return shown_by(tool); };
  auto fire = [this](const record::Trigger& why) { dump(why); };
  if (auto r = triggers_.begin(loop_, config_.triggers, counted, fire); !r) return r;
  loop_.watch(store_.wakes(), EPOLLIN, [this] {
    store_.settle();
    triggers_.look();
    look_at_alarms();
  });
  loop_.every(1, [this] { store_.settle(); });
  return {};
}

std::size_t FlightRecorder::add(const Entry& entry) {
  auto name = entry.name;
  const auto same = [&](auto& place) { return place.entry == entry.name; };
  // Of a tool whose entry has changed, the process before may not have ended yet.
  if (auto others = std::ranges::count_if(places_, same)) name += fmt::format("-{}", others + 1);
  places_.push_back({.entry = entry.name,
                     .tool = entry.arguments.front(),
                     .raised = std::vector<std::uint64_t>(config_.thresholds.size())});
  return store_.add(std::move(name), entry.run);
}

std::optional<std::size_t> FlightRecorder::begin(const Entry& entry) {
  auto found = std::ranges::find_if(
      places_, [&](auto& place) { return place.entry == entry.name && !place.used; });
  if (found == places_.end() && places_.size() >= record::kMostTools) {
    say_(fmt::format("{} is not recorded: there is place for {} tools until the next start",
                     entry.name, record::kMostTools));
    return {};
  }
  const auto place =
      found == places_.end() ? add(entry) : static_cast<std::size_t>(found - places_.begin());
  places_[place].used = true;
  places_[place].tool = entry.arguments.front();
  store_.began(place, entry.run);
  store_.state(place).wakes = std::ranges::any_of(
      config_.triggers, [&](auto& rule) { return rule.of == entry.arguments.front(); });
  return place;
}

void FlightRecorder::ended(std::size_t place, std::string why) {
  places_[place].used = false;
  store_.ended(place, std::move(why));
}

std::uint64_t FlightRecorder::shown_by(const std::string& tool) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < places_.size(); i++)
    if (places_[i].tool == tool) sum += store_.state(i).shown;
  return sum;
}

void FlightRecorder::judge_in(metrics::ExportOptions& options, record::Segments& segments) const {
  options.thresholds = config_.thresholds;
  options.over = [&segments](std::size_t number, double value) {
    auto& alarm = segments.state().alarms[number];
    alarm.value = value;
    alarm.raised++;
    segments.wake();
  };
}

void FlightRecorder::look_at_alarms() {
  for (std::size_t i = 0; i < places_.size(); i++)
    for (std::size_t at = 0; at < config_.thresholds.size(); at++) {
      auto& alarm = store_.state(i).alarms[at];
      const auto raised = alarm.raised.load();
      if (std::exchange(places_[i].raised[at], raised) == raised) continue;
      auto& threshold = config_.thresholds[at];
      dump({threshold.text, fmt::format("{}: {}", places_[i].entry, threshold.words(alarm.value))});
    }
}

void FlightRecorder::dump(const record::Trigger& why) {
  store_.dump(why);
  dumped_();
}

FlightRecorder::Answer FlightRecorder::dump_on_request(bool of_user, double last) {
  const auto before = store_.dumps_made();
  const auto path = store_.dump({"request", "", of_user, last});
  dumped_();
  if (path.empty())
    return {false, store_.refusal() + (of_user ? ""
                                               : "; a request with the token of token_file, or "
                                                 "SIGUSR1, makes one")};
  JsonLine line;
  line.text("dump", path).boolean("new", store_.dumps_made() != before);
  return {true, std::string(line.finish())};
}

void FlightRecorder::add_metrics(metrics::Page& page) {
  using metrics::Type;
  page.family("coretap_hindsight_dumps_total", Type::counter,
              "dumps of recordings that triggers or users asked for");
  const auto of = [](std::string_view result) {
    return metrics::labels_text({{"result", std::string(result)}});
  };
  page.sample("coretap_hindsight_dumps_total", of("made"), store_.dumps_made());
  page.sample("coretap_hindsight_dumps_total", of("refused"), store_.dumps_refused());
  page.one("coretap_hindsight_bytes", Type::gauge, "size of the recordings and their dumps", {},
           store_.bytes());
  std::uint64_t unrecorded = 0;
  for (std::size_t i = 0; i < places_.size(); i++) unrecorded += store_.state(i).unrecorded;
  page.one("coretap_hindsight_unrecorded_events_total", Type::counter,
           "events that were not recorded for lack of space", {}, unrecorded);
}

}  // namespace coretap::serve
