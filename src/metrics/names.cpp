#include "metrics/names.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/naming.hpp"
#include "coretap/nearest.hpp"
#include "coretap/option_parts.hpp"

namespace coretap::metrics {

namespace {

/// Removes the unit from the key; "bytes" alone is a unit.
BaseUnit take_unit(std::string_view& key) {
  if (auto* unit = unit_of_key(key)) {
    key.remove_suffix(unit->suffix.size());
    return unit->base;
  }
  auto* unit = unit_of_key(fmt::format("_{}", key));
  if (!unit || unit->suffix.size() != key.size() + 1) return {};
  key = {};
  return unit->base;
}

std::string slug(std::string_view words) {
  std::string name;
  for (unsigned char c : words) {
    if (isalnum(c))
      name += static_cast<char>(tolower(c));
    else if (!name.empty() && name.back() != '_')
      name += '_';
  }
  while (name.ends_with('_')) name.pop_back();
  return name;
}

std::string metric_name(const Tool& tool, std::string_view word, std::string_view unit, Type type) {
  auto name = fmt::format("coretap_{}", slug(tool.name));
  // The count and the total of a tool need no additional word.
  if (word != "count" && word != "total" && !word.empty()) name += fmt::format("_{}", word);
  if (!unit.empty()) name += fmt::format("_{}", unit);
  if (type == Type::counter) name += "_total";
  return name;
}

/// Powers of two of the step between these bounds; for a linear scale all bounds except the last,
/// which is unlimited.
Buckets buckets_of(const HistogramScale& scale, const BaseUnit& unit) {
  // 1 us to 67 s, 512 bytes to 1 GiB; plain numbers to 2^20.
  bool bytes = unit.suffix == "bytes";
  std::uint64_t least = unit.nanoseconds ? 1'000 : bytes ? 512 / unit.multiply : 1;
  std::uint64_t most = unit.nanoseconds ? 68'800'000'000
                       : bytes          ? (1 << 30) / unit.multiply
                                        : 1 << 20;
  Buckets b;
  b.first = scale.linear ? 0 : -1;
  for (int slot = 0; slot < HIST_SLOTS - 1; slot++) {
    auto below = scale.below(slot);
    if (!scale.linear) {
      if (b.first < 0 && below < least) continue;
      if (below > most) break;
    }
    if (b.first < 0) b.first = slot;
    // Values are integers: the largest one of a slot is one less than the start of the next slot.
    // For times this difference is irrelevant.
    b.bounds.push_back(unit.nanoseconds ? below : below - 1);
  }
  return b;
}

/// For events: times, in slots of a microsecond.
constexpr HistogramScale kTimes{unit::ns, 1'000};

bool shown(const Field& f, const Config& config, bool needs_option) {
  // JSON includes fields that tables show only with --json.
  if (!config.holds(f.only_with) || f.table_only) return false;
  return !needs_option || f.shown_with == "json" || config.holds(f.shown_with);
}

class Maker {
 public:
  Maker(const Tool& tool, const Config& config, Plan& plan)
      : tool_(tool), config_(config), plan_(plan) {}

  void families() {
    switch (plan_.shape.kind) {
      case MetricShape::histograms:
        histogram_of_rows();
        break;
      case MetricShape::events:
        add({.name = metric_name(tool_, "events", {}, Type::counter),
             .help = fmt::format("events of {}: {}", tool_.name, tool_.summary)});
        [[fallthrough]];
      default:
        for (auto& f : plan_.shape.fields)
          if (shown(f, config_, false)) family_of(f);
    }
    if (auto& elements = plan_.shape.elements; elements.read)
      add({.name = metric_name(tool_, elements.name, {}, Type::gauge),
           .type = Type::gauge,
           .help = std::string(elements.doc),
           .unit = {.thousandths = true}});
    for (auto& f : plan_.shape.totals) {
      if (f.role == Role::derived) continue;
      plan_.totals.push_back(made_of(f, f.role == Role::gauge ? Type::gauge : Type::counter));
    }
  }

 private:
  void add(Family family) {
    // A number has one name: of fields that show it twice the first one is used.
    if (std::ranges::any_of(plan_.families, [&](auto& f) { return f.name == family.name; })) return;
    family.at = plan_.values();
    plan_.families.push_back(std::move(family));
  }

  void histogram_of_rows() {
    auto& scale = plan_.shape.scale;
    std::string_view key = scale.unit.suffix;
    auto base = take_unit(key);
    auto word = base.suffix.empty() ? slug(plan_.shape.what) : std::string();
    add({.name = metric_name(tool_, word, base.suffix, Type::histogram),
         .type = Type::histogram,
         .help = fmt::format("{}, {}: {}", tool_.name, plan_.shape.what, tool_.summary),
         .unit = base,
         .buckets = buckets_of(scale, base)});
  }

  Family made_of(const Field& f, Type type) const {
    std::string_view word = f.key;
    auto base = take_unit(word);
    base.thousandths = f.format.kind == Format::thousandths;
    return {.name = metric_name(tool_, word, base.suffix, type),
            .type = type,
            .help = std::string(f.doc),
            .unit = base,
            .field = &f,
            .buckets = type == Type::histogram ? buckets_of(kTimes, base) : Buckets{}};
  }

  void family_of(const Field& f) {
    std::string_view word = f.key;
    auto base = take_unit(word);
    if (f.role == Role::gauge)
      add(made_of(f, Type::gauge));
    else if (f.role == Role::counter || (f.role == Role::plain && measures(f, base)))
      add(made_of(f, plan_.shape.kind == MetricShape::events && base.nanoseconds ? Type::histogram
                                                                                 : Type::counter));
  }

  /// True if this field is a number that can be summed.
  bool measures(const Field& f, const BaseUnit& base) const {
    if (f.format.kind != Format::number && f.format.kind != Format::milliseconds &&
        f.format.kind != Format::microseconds && f.format.kind != Format::kilobytes)
      return false;
    if (plan_.shape.kind == MetricShape::one_row) return true;
    if (plan_.shape.kind != MetricShape::events || base.suffix.empty()) return false;
    return !f.key.starts_with("offset");  // an offset is not an amount
  }

  const Tool& tool_;
  const Config& config_;
  Plan& plan_;
};

Error no_label(const Tool& tool, const MetricShape& shape, std::string_view name) {
  std::vector<std::string_view> possible;
  for (auto& f : shape.fields)
    if (can_be_label(f)) possible.push_back(f.key);
  for (auto& f : shape.fields)
    if (f.key == name && f.only_with == kNamedByOnly)
      return usage(
          fmt::format("rows of {} have no {} unless they are asked for it", tool.name, name),
          fmt::format("give it --by {}", name));
  if (std::ranges::find(shape.fields, name, &Field::key) != shape.fields.end())
    return usage(fmt::format("'{}' of {} cannot be a label: it may have any number of values", name,
                             tool.name),
                 "events can be written to a file instead, with all their fields");
  auto hint = did_you_mean(name, possible);
  if (hint.empty())
    hint = possible.empty() ? "it has none" : fmt::format("it has {}", fmt::join(possible, ", "));
  return usage(fmt::format("{} has no label '{}'", tool.name, name), std::move(hint));
}

}  // namespace

std::string_view name_of(Type type) {
  constexpr std::string_view kNames[] = {"counter", "gauge", "histogram"};
  return kNames[static_cast<int>(type)];
}

std::size_t Plan::values() const {
  std::size_t sum = 0;
  for (auto& f : families) sum += f.values();
  return sum;
}

std::size_t Plan::lines_per_series() const {
  std::size_t sum = 0;
  for (auto& f : families) sum += f.lines();
  return sum;
}

bool can_be_label(const Field& f) {
  return values_of(f) != Values::unbounded && f.role != Role::counter && f.role != Role::gauge;
}

Result<std::shared_ptr<const Plan>> make_plan(const Tool& tool, const Config& config,
                                              const std::vector<std::string>& labels) {
  auto plan = std::make_shared<Plan>();
  plan->shape = tool.report->metrics(config);
  auto& shape = plan->shape;
  auto none = [&] {
    return usage(fmt::format("{} has no metrics", command_of(tool.name)),
                 "its numbers do not add up; run it by itself");
  };
  if (shape.kind == MetricShape::none) return none();
  Maker(tool, config, *plan).families();
  if (shape.kind == MetricShape::stacks) {
    if (!labels.empty()) return no_label(tool, shape, labels[0]);
    return std::shared_ptr<const Plan>(plan);
  }
  auto wanted = labels;
  auto& by = config.rows.by;
  wanted.insert(wanted.end(), by.begin(), by.end());
  for (auto& f : shape.fields) {
    // Keys of a histogram exist only with their options; those of tables and events always do.
    if (!can_be_label(f) || !shown(f, config, shape.kind == MetricShape::histograms)) continue;
    bool capped = values_of(f) == Values::capped;
    // --by sums rows that differ in the other keys.
    if (!by.empty() && std::ranges::find(by, f.key) == by.end()) continue;
    if (std::ranges::any_of(plan->labels, [&](auto& l) { return l.name == f.key; })) continue;
    bool asked = std::ranges::find(wanted, f.key) != wanted.end();
    // A key with a separate option is requested by that option.
    bool by_option = shape.kind == MetricShape::histograms && !f.shown_with.empty() &&
                     f.shown_with.find_first_of("|!") == std::string_view::npos;
    if (capped && !asked && !(by_option && config.given(f.shown_with))) continue;
    std::erase(wanted, f.key);
    plan->labels.push_back({std::string(f.key), &f, capped});
  }
  if (shape.elements.read) plan->labels.push_back({std::string(shape.elements.label)});
  if (!wanted.empty()) return no_label(tool, shape, wanted[0]);
  if (plan->families.empty() && plan->totals.empty()) return none();
  return std::shared_ptr<const Plan>(plan);
}

}  // namespace coretap::metrics
