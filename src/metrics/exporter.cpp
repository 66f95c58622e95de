#include "metrics/exporter.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/uninterrupted.hpp"
#include "coretap/clock.hpp"
#include "coretap/small_files.hpp"
#include "program/section.hpp"
#include "program/session.hpp"

namespace coretap::metrics {

namespace {

constexpr int kPatienceMs = 3000;      // maximum wait for the reader of a reply
constexpr int kLastMs = 1000;          // maximum wait for the reader of events, at exit
constexpr std::uint64_t kStrikes = 3;  // consecutive periods (kRateSeconds) with too many events

std::vector<bool> capped(const Plan& plan) {
  std::vector<bool> all;
  for (auto& l : plan.labels) all.push_back(l.capped);
  return all;
}

std::size_t series_of(const Plan& plan, std::size_t lines) {
  auto each = std::max<std::size_t>(plan.lines_per_series(), 1);
  return std::max<std::size_t>(lines / each, 1);
}

std::string text_of(const Session& s, const Field& f, const Value& value) {
  if (auto* text = std::get_if<std::string>(&value)) return *text;
  if (auto* yes = std::get_if<bool>(&value)) return *yes ? "true" : "false";
  auto* n = std::get_if<std::uint64_t>(&value);
  auto* i = std::get_if<std::int64_t>(&value);
  if (!n && !i) return {};
  if (names_things(f.format))
    return s.names.name(f.format, n ? *n : static_cast<std::uint64_t>(*i));
  return n ? std::to_string(*n) : std::to_string(*i);
}

std::uint64_t number_of(const BaseUnit& unit, const Value& value) {
  auto* n = std::get_if<std::uint64_t>(&value);
  auto* i = std::get_if<std::int64_t>(&value);
  auto* d = std::get_if<double>(&value);
  if (unit.thousandths) return static_cast<std::uint64_t>(d ? std::llround(*d * 1e3) : i ? *i : 0);
  if (n) return *n;
  if (i) return *i > 0 ? static_cast<std::uint64_t>(*i) : 0;
  return d && *d > 0 ? static_cast<std::uint64_t>(*d) : 0;
}

/// Sends and removes what the reader takes without blocking; false: it takes no more.
bool send_some(const Fd& to, std::string_view& rest) {
  while (!rest.empty()) {
    auto n = uninterrupted(
        [&] { return send(to.get(), rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT); });
    if (n < 0) return errno == EAGAIN;
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

/// Waits until the reader takes more.
bool has_space(const Fd& to, int ms) {
  pollfd wait{to.get(), POLLOUT, 0};
  return ::poll(&wait, 1, ms) > 0;
}

}  // namespace

Exporter::Exporter(std::shared_ptr<const Plan> plan, ExportOptions options, Fd channel, Fd events)
    : plan_(std::move(plan)),
      options_(std::move(options)),
      channel_(std::move(channel)),
      events_(std::move(events)),
      series_(capped(*plan_), plan_->values(), series_of(*plan_, options_.max_series)),
      values_(plan_->values()),
      totals_(plan_->totals.size()),
      judge_(options_.thresholds, *plan_, options_.name, options_.over) {
  // Series without labels exist from the first page on.
  if (plan_->labels.empty() && !plan_->families.empty()) series_.add({}, values_, 0);
}

std::uint64_t Exporter::read_values(const Session& s, const void* record) {
  std::fill(values_.begin(), values_.end(), 0);
  std::uint64_t events = 1;
  for (auto& family : plan_->families) {
    auto* value = values_.data() + family.at;
    if (!family.field && family.type == Type::histogram) {
      hist h;
      memcpy(&h, static_cast<const char*>(record) + plan_->shape.value_at, sizeof h);
      auto buckets = family.buckets.bounds.size();
      events = 0;
      for (int slot = 0; slot < HIST_SLOTS; slot++) {
        auto bucket = slot < family.buckets.first ? 0 : slot - family.buckets.first;
        value[std::min<std::size_t>(static_cast<std::size_t>(bucket), buckets)] += h.slots[slot];
        events += h.slots[slot];
      }
      value[buckets + 1] = h.total;
    } else if (!family.field) {
      value[0] = 1;
    } else {
      auto read = family.field->read(record, s.names.context);
      if (family.type != Type::histogram) {
        value[0] = number_of(family.unit, read);
        continue;
      }
      if (std::holds_alternative<std::monostate>(read)) continue;  // not measured
      auto number = number_of(family.unit, read);
      auto& bounds = family.buckets.bounds;
      auto at = std::upper_bound(bounds.begin(), bounds.end(), number) - bounds.begin();
      value[at]++;
      value[bounds.size() + 1] = number;
    }
  }
  return plan_->shape.kind == MetricShape::rows ? values_[0] : events;
}

void Exporter::read_labels(const Session& s, const void* record) {
  labels_.clear();
  for (auto& l : plan_->labels)
    if (l.field)
      labels_.push_back(label_value(text_of(s, *l.field, l.field->read(record, s.names.context))));
}

void Exporter::add(const Session& s, const void* record) {
  if (plan_->families.empty()) return;
  auto events = read_values(s, record);
  read_labels(s, record);
  // A gauge's new value replaces the old one.
  for (auto& family : plan_->families)
    if (family.type == Type::gauge)
      if (auto found = series_.all().find(labels_); found != series_.all().end())
        values_[family.at] -= found->second.values[family.at];
  series_.add(labels_, values_, events);
}

void Exporter::set_reading(const Session& s, const std::vector<const void*>& rows) {
  series_.clear();
  auto& elements = plan_->shape.elements;
  for (auto* row : rows) {
    if (plan_->families.empty()) break;
    read_labels(s, row);
    if (!elements.read) {
      read_values(s, row);
      series_.add(labels_, values_, 1);
      continue;
    }
    auto all = elements.read(row);
    for (std::size_t i = 0; i < all.size(); i++) {
      labels_.push_back(std::to_string(i));
      values_[0] = number_of(plan_->families[0].unit, all[i]);
      series_.add(labels_, values_, 1);
      labels_.pop_back();
    }
  }
}

void Exporter::set_totals(const Session& s, const void* counters) {
  for (std::size_t i = 0; i < totals_.size(); i++)
    totals_[i] =
        number_of(plan_->totals[i].unit, plan_->totals[i].field->read(counters, s.names.context));
}

bool Exporter::read_request(Request& request, bool& open) {
  char buffer[256];
  auto n = recv(channel_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
  open = n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
  if (n > 0) partial_.append(buffer, static_cast<std::size_t>(n));
  if (partial_.size() < sizeof request) return false;
  memcpy(&request, partial_.data(), sizeof request);
  partial_.erase(0, sizeof request);
  return true;
}

void Exporter::reply(const Request& request, std::string_view text) {
  ReplyHead head{request.id, static_cast<std::uint32_t>(text.size())};
  std::string all(reinterpret_cast<const char*>(&head), sizeof head);
  all += text;
  std::string_view rest = all;
  while (send_some(channel_, rest) && !rest.empty())
    if (!has_space(channel_, kPatienceMs)) break;
  // The peer sends no request before it has the reply, and would treat later data as the rest of
  // a partial reply: close, so that the tool is restarted.
  if (!rest.empty()) shutdown(channel_.get(), SHUT_RDWR);
}

bool Exporter::has_room() {
  if (waiting_.size() >= kMostWaiting) send_events();
  return waiting_.size() < kMostWaiting;
}

void Exporter::add_event(std::string_view line) {
  if (!events_) return;
  waiting_ += line;
  waiting_ += '\n';
}

void Exporter::send_events() {
  std::string_view rest = waiting_;
  send_some(events_, rest);
  waiting_.erase(0, waiting_.size() - rest.size());
}

std::uint64_t Exporter::finish_events() {
  auto end = monotonic_ns() + kLastMs * 1'000'000ULL;
  std::string_view rest = waiting_;
  while (send_some(events_, rest) && !rest.empty() && monotonic_ns() < end)
    has_space(events_, kLastMs);
  return static_cast<std::uint64_t>(std::ranges::count(rest, '\n'));
}

void Exporter::series_page(Page& page) {
  std::vector<std::pair<std::string, const SeriesTable::Series*>> rows;
  for (auto& [labels, series] : series_.all()) {
    std::vector<std::pair<std::string_view, std::string>> pairs;
    if (options_.named) pairs.emplace_back("entry", options_.name);
    for (std::size_t i = 0; i < labels.size(); i++)
      pairs.emplace_back(plan_->labels[i].name, labels[i]);
    rows.emplace_back(labels_text(pairs), &series);
  }
  const std::vector<std::uint64_t> zeros(plan_->values());
  for (auto& family : plan_->families) {
    page.family(family.name, family.type, family.help);
    for (auto& [labels, series] : rows) {
      bool zero = options_.starts_at_zero && !series->shown && family.type != Type::gauge;
      page.samples(family, labels, (zero ? zeros : series->values).data() + family.at);
    }
  }
  auto own = options_.named ? labels_text({{"entry", options_.name}}) : std::string();
  for (std::size_t i = 0; i < totals_.size(); i++) {
    auto& family = plan_->totals[i];
    page.family(family.name, family.type, family.help);
    page.samples(family, own, &totals_[i]);
  }
}

void Exporter::ledger_page(Page& page, const Ledger& ledger) const {
  const Ledger::Outcome reasons[] = {{"truncated", ledger.count[LEDGER_TRUNCATED]},
                                     {"stack_failed", ledger.count[LEDGER_STACK_FAILED]},
                                     {"stack_cut", ledger.count[LEDGER_STACK_CUT]},
                                     {"stack_guessed", ledger.count[LEDGER_STACK_GUESSED]}};
  auto labels = [&](std::string_view key, std::string_view value) {
    return labels_text({{"tool", options_.name}, {key, std::string(value)}});
  };
  page.family("coretap_events_total", Type::counter,
              "events that hooks saw, by what became of them; their sum is all that were seen");
  for (auto& o : ledger.outcomes())
    if (!o.at_end) page.sample("coretap_events_total", labels("outcome", o.name), o.count);
  page.family("coretap_events_degraded_total", Type::counter,
              "events that are shown with less than all of their data");
  for (auto& o : reasons)
    page.sample("coretap_events_degraded_total", labels("reason", o.name), o.count);
}

void Exporter::cost_page(Page& page, const Session& s) const {
  auto own = labels_text({{"tool", options_.name}});
  std::uint64_t map_bytes = 0, run_ns = 0;
  auto add_map = [&](const bpf_map* map) {
    auto bytes = read_keyed(fmt::format("/proc/self/fdinfo/{}", bpf_map__fd(map)), "memlock");
    map_bytes += static_cast<std::uint64_t>(bytes.value_or(0));
  };
  bool runs_counted = read_number("/proc/sys/kernel/bpf_stats_enabled").value_or(0) > 0;
  if (s.object) {
    for (auto* map : maps_of(s.object.get())) {
      if (bpf_map__fd(map) >= 0) add_map(map);
    }
    for (auto* program : programs_of(s.object.get())) {
      bpf_prog_info info{};
      __u32 size = sizeof info;
      if (bpf_program__fd(program) >= 0 &&
          bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size) == 0)
        run_ns += info.run_time_ns;
    }
  }
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  auto us = [](const timeval& t) {
    return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(t.tv_usec);
  };
  auto resident_kb = read_keyed("/proc/self/status", "VmRSS").value_or(0);
  const BaseUnit micro{"seconds", 1, 1'000}, nano{"seconds", 1, 1};
  page.one("coretap_tool_cpu_seconds_total", Type::counter, "CPU time of the tool's process", own,
           in_base_unit(micro, us(used.ru_utime) + us(used.ru_stime)));
  page.one("coretap_tool_resident_memory_bytes", Type::gauge,
           "resident memory of the tool's process", own,
           static_cast<std::uint64_t>(resident_kb) << 10);
  page.one("coretap_tool_map_memory_bytes", Type::gauge, "memory of the tool's maps in the kernel",
           own, map_bytes);
  page.one("coretap_tool_kernel_stats_enabled", Type::gauge,
           "1: the kernel counts the run time of BPF programs (kernel.bpf_stats_enabled)", own,
           std::uint64_t{runs_counted});
  if (runs_counted)
    page.one("coretap_tool_kernel_seconds_total", Type::counter,
             "run time of the tool's programs in the kernel, while it is counted", own,
             in_base_unit(nano, run_ns));
  page.one("coretap_tool_series", Type::gauge, "lines of the tool's own metrics", own,
           series_.all().size() * plan_->lines_per_series());
  page.one("coretap_tool_series_limit", Type::gauge, "how many lines of them there can be", own,
           series_.most() * plan_->lines_per_series());
  page.one("coretap_series_folded_total", Type::counter,
           "events counted in the series \"other\", as the limit allowed no series of their own",
           own, series_.folded());
  std::vector<std::string> options, hooks;
  for (auto& [name, value] : s.config.given_options())
    options.push_back(value.empty() ? fmt::format("--{}", name)
                                    : fmt::format("--{}={}", name, value));
  for (auto& h : s.plan.hooks)
    if (h.wanted && h.chosen >= 0)
      for (auto& target : h.candidates[static_cast<std::size_t>(h.chosen)].targets)
        hooks.push_back(target);
  page.one("coretap_tool_info", Type::gauge, "the tool's options and attach points",
           labels_text({{"tool", options_.name},
                        {"name", std::string(s.tool.name)},
                        {"options", label_value(fmt::format("{}", fmt::join(options, " ")))},
                        {"hooks", label_value(fmt::format("{}", fmt::join(hooks, " ")))}}),
           std::uint64_t{1});
}

std::string Exporter::page(const Session& s, const Ledger& ledger) {
  // Each reading has exactly the series of its rows.
  if (plan_->shape.kind != MetricShape::readings) series_.turn(monotonic_ns() / 1'000'000'000);
  Page page;
  series_page(page);
  ledger_page(page, ledger);
  cost_page(page, s);
  series_.shown();
  return page.take();
}

void Exporter::judge() { judge_.look(series_, totals_, monotonic_ns()); }

bool Exporter::too_many(const Ledger& ledger) {
  auto seen = ledger.seen();
  auto lately = seen - std::min(seen, std::exchange(seen_, seen));
  bool much = options_.max_rate &&
              static_cast<double>(lately) > static_cast<double>(options_.max_rate) * kRateSeconds;
  too_many_ = much ? too_many_ + 1 : 0;
  return too_many_ >= kStrikes;
}

}  // namespace coretap::metrics
