// What is pushed by OTLP: pages and lines as tools make them of names that others chose, and what
// receivers answer.
#include "metrics/otlp.hpp"

#include <algorithm>
#include <protozero/pbf_reader.hpp>

#include "fuzz.hpp"
#include "serve/http_answer.hpp"
#include "text/sanitize.hpp"

using namespace coretap;

namespace {

constexpr std::uint64_t kNow = 1'800'000'000'000'000'000, kSince = 1'700'000'000'000'000'000;

/// The items of a request, metrics or records.
template <class Visit>
std::uint64_t each_item(const std::string& request, Visit visit) {
  std::uint64_t items = 0;
  protozero::pbf_reader outer(request);
  MUST(outer.next(1));
  auto of_resource = outer.get_message();
  MUST(!outer.next());
  MUST(of_resource.next(1));
  of_resource.skip();
  MUST(of_resource.next(2));
  auto scope = of_resource.get_message();
  while (scope.next()) {
    MUST(scope.tag() == 2);
    visit(scope.get_message());
    items++;
  }
  return items;
}

void is_text(const protozero::data_view& text) {
  const std::string_view view(text.data(), text.size());
  MUST(valid_utf8(view) == view);
}

}  // namespace

FUZZ(otlp_page, bytes) {
  metrics::OtlpMetrics all({"1", "here"});
  all.add(bytes, kNow, kSince);
  const auto lines = static_cast<std::uint64_t>(std::ranges::count(bytes, '\n')) + 1;
  MUST(all.points() + all.malformed() <= 2 * lines);
  std::uint64_t points = 0;
  each_item(all.finish(), [&](protozero::pbf_reader metric) {
    while (metric.next()) {
      if (metric.tag() <= 3) {
        is_text(metric.get_view());
        continue;
      }
      auto data = metric.get_message();
      while (data.next()) {
        points += data.tag() == 1;
        data.skip();
      }
    }
  });
  MUST(points == all.points());
}

FUZZ(otlp_event, bytes) {
  metrics::OtlpLogs logs({"1", "here"});
  const bool taken = logs.add(bytes, "entry", kNow);
  MUST(logs.records() == (taken ? 1 : 0));
  MUST(taken == (logs.bytes() > 0));
  const auto records = each_item(logs.take(), [&](protozero::pbf_reader record) {
    while (record.next()) {
      if (record.tag() == 12)
        is_text(record.get_view());
      else
        record.skip();
    }
  });
  MUST(records == (taken ? 1 : 0));
  MUST(!taken || valid_utf8(bytes) == bytes);
}

FUZZ(http_answer, bytes) {
  const auto ended = serve::parse_answer(bytes, true);
  const auto open = serve::parse_answer(bytes, false);
  MUST(!open || (ended && open->status == ended->status && open->body == ended->body));
  if (!ended) return;
  MUST(ended->status >= 100 && ended->status <= 999);
  MUST(ended->body.size() < bytes.size());
  metrics::otlp_rejected(ended->body);
}
