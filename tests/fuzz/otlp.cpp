// OTLP: metrics and records that tools produce from untrusted names, and the responses of
// receivers.
#include "metrics/otlp.hpp"

#include <algorithm>

#include "coretap/sanitize.hpp"
#include "fuzz.hpp"
#include "serve/http_answer.hpp"
#include "wire.hpp"

using namespace coretap;

namespace {

constexpr std::uint64_t kNow = 1'800'000'000'000'000'000, kSince = 1'700'000'000'000'000'000;

/// The items of a request, metrics or records.
std::vector<test::Wire> items_of(const std::string& request) {
  const test::Wire outer(request);
  const auto of_resource = outer.in(1);
  const auto scope = of_resource.in(2);
  MUST(outer.members.size() == 1 && of_resource.has(1));
  auto items = scope.messages(2);
  MUST(items.size() == scope.members.size());
  return items;
}

void is_text(const std::string& text) { MUST(valid_utf8(text) == text); }

}  // namespace

FUZZ(otlp_page, bytes) {
  metrics::OtlpMetrics all({"1", "here"});
  all.add(bytes, kNow, kSince);
  const auto lines = static_cast<std::uint64_t>(std::ranges::count(bytes, '\n')) + 1;
  MUST(all.points() + all.malformed() <= 2 * lines);
  std::uint64_t points = 0;
  for (auto& metric : items_of(all.finish()))
    for (auto& member : metric.members)
      if (member.number <= 3)
        is_text(member.bytes);
      else
        points += test::Wire(member.bytes).all(1).size();
  MUST(points == all.points());
}

FUZZ(otlp_event, bytes) {
  metrics::OtlpLogs logs({"1", "here"});
  const bool taken = logs.add(bytes, "entry", kNow);
  MUST(logs.records() == (taken ? 1 : 0));
  MUST(taken == (logs.bytes() > 0));
  const auto records = items_of(logs.take());
  for (auto& record : records) is_text(record.text(12));
  MUST(records.size() == (taken ? 1 : 0));
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
