#include "metrics/otlp.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <protozero/pbf_reader.hpp>
#include <utility>

#include "coretap/parse.hpp"
#include "metrics/otlp_parts.hpp"

namespace coretap::metrics {

namespace {

namespace metric {
enum : protozero::pbf_tag_type {
  name = 1,
  description = 2,
  unit = 3,
  gauge = 5,
  sum = 7,
  histogram = 9,
};
}
namespace data {  // Gauge, Sum and Histogram
enum : protozero::pbf_tag_type { points = 1, temporality = 2, is_monotonic = 3 };
}
namespace point {  // NumberDataPoint and HistogramDataPoint
enum : protozero::pbf_tag_type { start = 2, time = 3 };
}
namespace number {
enum : protozero::pbf_tag_type { as_double = 4, as_int = 6, attributes = 7 };
}
namespace histogram {
enum : protozero::pbf_tag_type { count = 4, sum = 5, counts = 6, bounds = 7, attributes = 9 };
}
constexpr std::int32_t kCumulative = 2;

constexpr std::size_t kMostBounds = 256;
constexpr std::string_view kStartTimes = "coretap_tool_start_time_seconds";
/// The serve process counts these; it continues when a tool exits.
constexpr std::string_view kRestarts = "coretap_tool_restarts_total";

template <class Number>
std::optional<Number> number_of(std::string_view text) {
  Number n{};
  auto* end = text.data() + text.size();
  auto [at, error] = std::from_chars(text.data(), end, n);
  return error == std::errc{} && at == end ? std::optional(n) : std::nullopt;
}

struct Sample {
  std::string_view name, labels, value;  ///< labels without their braces
};

std::optional<Sample> sample_of(std::string_view line) {
  Sample s;
  auto end = line.find_first_of("{ ");
  if (end == line.npos || end == 0) return std::nullopt;
  s.name = line.substr(0, end);
  line.remove_prefix(end);
  if (line[0] == '{') {
    bool quoted = false;
    std::size_t at = 1;
    while (at < line.size() && (quoted || line[at] != '}')) {
      if (quoted && line[at] == '\\')
        at++;
      else if (line[at] == '"')
        quoted = !quoted;
      at++;
    }
    if (at >= line.size()) return std::nullopt;
    s.labels = line.substr(1, at - 1);
    line.remove_prefix(at + 1);
  }
  if (!line.starts_with(' ')) return std::nullopt;
  s.value = line.substr(1);
  return s;
}

std::string unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); i++) {
    if (text[i] == '\\' && i + 1 < text.size())
      plain += text[++i] == 'n' ? '\n' : text[i];
    else
      plain += text[i];
  }
  return plain;
}

using Labels = std::vector<std::pair<std::string_view, std::string>>;

std::optional<Labels> labels_of(std::string_view text) {
  Labels all;
  while (!text.empty()) {
    auto equals = text.find("=\"");
    if (equals == text.npos || equals == 0) return std::nullopt;
    auto name = text.substr(0, equals);
    text.remove_prefix(equals + 2);
    std::size_t end = 0;
    while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
    if (end >= text.size()) return std::nullopt;
    all.emplace_back(name, unescaped(text.substr(0, end)));
    text.remove_prefix(end + 1);
    if (!text.empty() && (text[0] != ',' || text.size() == 1)) return std::nullopt;
    if (!text.empty()) text.remove_prefix(1);
  }
  return all;
}

std::string_view value_of(const Labels& labels, std::string_view name) {
  for (auto& [key, value] : labels)
    if (key == name) return value;
  return {};
}

/// Start times in ns since 1970, by the tools' names.
std::map<std::string, std::uint64_t, std::less<>> start_times(std::string_view page) {
  std::map<std::string, std::uint64_t, std::less<>> all;
  while (!page.empty()) {
    auto line = take_until(page, '\n');
    if (!line.starts_with(kStartTimes)) continue;
    auto sample = sample_of(line);
    if (!sample || sample->name != kStartTimes) continue;
    auto labels = labels_of(sample->labels);
    auto seconds = number_of<std::uint64_t>(sample->value);
    constexpr std::uint64_t kSecond = 1'000'000'000;
    if (labels && seconds && *seconds < UINT64_MAX / kSecond)
      all.emplace(value_of(*labels, "tool"), *seconds * kSecond);
  }
  return all;
}

/// The second part of "coretap_biolatency_seconds".
std::string_view tool_of(std::string_view family) {
  take_until(family, '_');
  return take_until(family, '_');
}

/// Converts the lines of one page to points.
class Converter {
 public:
  Converter(std::string_view page, std::uint64_t now_ns, std::uint64_t since_ns)
      : starts_(start_times(page)), now_(now_ns), since_(since_ns), page_(page) {}

  std::string metrics;
  std::uint64_t points = 0, malformed = 0;

  void run() {
    constexpr std::string_view kHelp = "# HELP ", kType = "# TYPE ";
    while (!page_.empty()) {
      auto line = take_until(page_, '\n');
      if (line.starts_with(kHelp)) {
        end_family();
        line.remove_prefix(kHelp.size());
        help_of_ = take_until(line, ' ');
        help_ = line;
      } else if (line.starts_with(kType)) {
        end_family();
        line.remove_prefix(kType.size());
        begin_family(take_until(line, ' '), line);
      } else if (!line.empty() && line[0] != '#' && !take(line)) {
        malformed++;
      }
    }
    end_family();
  }

 private:
  struct Histogram {
    std::string attributes;
    std::uint64_t start = 0;
    std::vector<double> bounds;
    std::vector<std::uint64_t> below;  ///< cumulative counts up to each bound
    std::optional<std::uint64_t> all, count;
    std::optional<double> sum;
    bool broken = false;
  };

  void begin_family(std::string_view name, std::string_view type) {
    known_ = false;
    for (auto t : {Type::counter, Type::gauge, Type::histogram}) {
      if (type != name_of(t)) continue;
      known_ = true;
      type_ = t;
    }
    family_ = name;
    made_ = otlp_name(name, type_);
    is_real_ = made_.unit == "s" || made_.unit == "1";
  }

  void end_family() {
    end_histogram();
    if (!data_.empty()) {
      protozero::pbf_writer to(metrics);
      add_message(to, of_scope::items, [&](auto& m) {
        m.add_string(metric::name, valid_utf8(made_.name));
        if (help_of_ == family_) m.add_string(metric::description, valid_utf8(unescaped(help_)));
        if (!made_.unit.empty()) m.add_string(metric::unit, made_.unit.data(), made_.unit.size());
        protozero::pbf_writer data(data_);
        if (type_ != Type::gauge) data.add_enum(data::temporality, kCumulative);
        if (type_ == Type::counter) data.add_bool(data::is_monotonic, true);
        m.add_message(type_ == Type::counter ? metric::sum
                      : type_ == Type::gauge ? metric::gauge
                                             : metric::histogram,
                      data_);
      });
    }
    data_.clear();
    known_ = false;
  }

  bool take(std::string_view line) {
    auto sample = sample_of(line);
    if (!sample || !known_) return false;
    auto labels = labels_of(sample->labels);
    if (!labels) return false;
    return type_ == Type::histogram ? take_part(*sample, *labels) : take_number(*sample, *labels);
  }

  bool take_number(const Sample& sample, const Labels& labels) {
    auto real = number_of<double>(sample.value);
    if (sample.name != family_ || !real) return false;
    // All values of a metric have one type, whatever their current values.
    auto whole = is_real_ ? std::nullopt : number_of<std::int64_t>(sample.value);
    protozero::pbf_writer to(data_);
    add_message(to, data::points, [&](auto& p) {
      if (type_ != Type::gauge) p.add_fixed64(point::start, start_of(labels));
      p.add_fixed64(point::time, now_);
      if (whole)
        p.add_sfixed64(number::as_int, *whole);
      else
        p.add_double(number::as_double, *real);
      for (auto& [name, value] : labels) add_attribute(p, number::attributes, name, value);
    });
    points++;
    return true;
  }

  /// Parses a line of a histogram; lines of one histogram are consecutive.
  bool take_part(const Sample& sample, const Labels& labels) {
    if (!sample.name.starts_with(family_)) return false;
    auto part = sample.name.substr(family_.size());
    std::string attributes;
    protozero::pbf_writer to(attributes);
    for (auto& [name, value] : labels)
      if (name != "le" || part != "_bucket") add_attribute(to, histogram::attributes, name, value);
    if (is_open_ && attributes != open_.attributes) end_histogram();
    if (!is_open_) open_ = {.attributes = std::move(attributes), .start = start_of(labels)};
    is_open_ = true;
    bool good = put(part, sample.value, value_of(labels, "le"));
    open_.broken |= !good;
    return good;
  }

  bool put(std::string_view part, std::string_view value, std::string_view bound) {
    if (part == "_sum") return static_cast<bool>(open_.sum = number_of<double>(value));
    auto count = number_of<std::uint64_t>(value);
    if (!count) return false;
    if (part == "_count") {
      open_.count = count;
      return true;
    }
    if (part != "_bucket") return false;
    if (!open_.below.empty() && *count < open_.below.back()) return false;
    if (bound == "+Inf") {
      open_.all = count;
      return true;
    }
    auto upper = number_of<double>(bound);
    if (!upper || open_.all || open_.bounds.size() == kMostBounds ||
        (!open_.bounds.empty() && !(*upper > open_.bounds.back())))
      return false;
    open_.bounds.push_back(*upper);
    open_.below.push_back(*count);
    return true;
  }

  void end_histogram() {
    if (!std::exchange(is_open_, false)) return;
    auto h = std::exchange(open_, {});
    if (h.broken || !h.count || h.all != h.count) {
      malformed++;
      return;
    }
    auto counts = h.below;
    counts.push_back(*h.count);
    for (std::size_t i = counts.size() - 1; i > 0; i--) counts[i] -= counts[i - 1];
    auto bytes = std::move(h.attributes);
    protozero::pbf_writer p(bytes), to(data_);
    p.add_fixed64(point::start, h.start);
    p.add_fixed64(point::time, now_);
    p.add_fixed64(histogram::count, *h.count);
    if (h.sum) p.add_double(histogram::sum, *h.sum);
    p.add_packed_fixed64(histogram::counts, counts.begin(), counts.end());
    p.add_packed_double(histogram::bounds, h.bounds.begin(), h.bounds.end());
    to.add_message(data::points, bytes);
    points++;
  }

  std::uint64_t start_of(const Labels& labels) const {
    if (family_ == kRestarts) return since_;
    auto name = value_of(labels, "entry");
    if (name.empty()) name = value_of(labels, "tool");
    if (name.empty()) name = tool_of(family_);
    auto found = starts_.find(name);
    return found == starts_.end() ? since_ : found->second;
  }

  std::map<std::string, std::uint64_t, std::less<>> starts_;
  std::uint64_t now_, since_;
  std::string_view page_, family_, help_of_, help_;
  bool known_ = false, is_real_ = false, is_open_ = false;
  Type type_ = Type::gauge;
  OtlpName made_;
  std::string data_;  ///< the family's points
  Histogram open_;
};

}  // namespace

OtlpName otlp_name(std::string_view family, Type type) {
  struct Unit {
    std::string_view suffix, name;
    bool gauges_only = false;
  };
  // Engines add "_ratio" only to gauges.
  constexpr Unit kUnits[] = {{"_seconds", "s"}, {"_bytes", "By"}, {"_ratio", "1", true}};
  constexpr std::string_view kTotal = "_total", kEvents = "_events";
  if (type == Type::counter && family.ends_with(kTotal)) family.remove_suffix(kTotal.size());
  OtlpName made;
  for (auto& unit : kUnits) {
    if (!family.ends_with(unit.suffix) || (unit.gauges_only && type != Type::gauge)) continue;
    family.remove_suffix(unit.suffix.size());
    made.unit = unit.name;
    break;
  }
  if (type == Type::counter && family.ends_with(kEvents)) made.unit = "{event}";
  // Suite and tool become separate parts; the rest stays one word.
  made.name = family;
  for (std::size_t at = 0, part = 0;
       part < 2 && (at = made.name.find('_', at)) != std::string::npos; part++)
    made.name[at] = '.';
  return made;
}

void OtlpMetrics::add(std::string_view page, std::uint64_t now_ns, std::uint64_t since_ns) {
  Converter made(page, now_ns, since_ns);
  made.run();
  metrics_ += made.metrics;
  points_ += made.points;
  malformed_ += made.malformed;
}

std::string OtlpMetrics::finish() const { return otlp_request(resource_, metrics_); }

std::string otlp_request(const OtlpResource& from, std::string_view items) {
  std::string bytes;
  protozero::pbf_writer to(bytes);
  add_message(to, request::of_resource, [&](auto& one) {
    add_message(one, of_resource::resource, [&](auto& r) {
      add_attribute(r, resource::attributes, "service.name", "coretap");
      add_attribute(r, resource::attributes, "service.version", from.version);
      add_attribute(r, resource::attributes, "host.name", from.host);
      // Prometheus uses only this for the label "instance".
      add_attribute(r, resource::attributes, "service.instance.id", from.host);
    });
    one.add_message(of_resource::of_scope, items.data(), items.size());
  });
  return bytes;
}

std::uint64_t otlp_rejected(std::string_view bytes) {
  try {
    protozero::pbf_reader answer(bytes.data(), bytes.size());
    while (answer.next(response::partial_success, protozero::pbf_wire_type::length_delimited)) {
      auto part = answer.get_message();
      while (part.next(partial_success::rejected, protozero::pbf_wire_type::varint))
        if (auto n = part.get_int64(); n > 0) return static_cast<std::uint64_t>(n);
    }
  } catch (const protozero::exception&) {
    // The engine's answer may be plain text.
  }
  return 0;
}

}  // namespace coretap::metrics
