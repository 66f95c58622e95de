#include "reports/table.hpp"

#include <algorithm>
#include <cstring>

namespace coretap {

void TableRows::order(const TableReport& report, std::string_view sort, std::uint64_t top,
                      bool largest_last) {
  report_ = &report;
  top_ = top;
  largest_last_ = largest_last;
  while (!sort.empty()) {
    auto key = sort.substr(0, sort.find(','));
    for (auto& f : report.fields)
      if (f.key == key) sort_.push_back(&f);
    sort.remove_prefix(std::min(sort.size(), key.size() + 1));
  }
}

std::vector<std::string> TableRows::since_last(Reading now) {
  std::vector<std::string> rows;
  for (auto& [key, delta] : growth_.since_last(std::move(now))) {
    events_ += delta[0];
    std::string row(report_->value_at + report_->value_size, '\0');
    memcpy(row.data(), key.data(), key.size());
    memcpy(row.data() + report_->value_at, delta.data(), report_->value_size);
    rows.push_back(std::move(row));
  }
  std::stable_sort(rows.begin(), rows.end(), [&](auto& a, auto& b) {
    for (auto* f : sort_) {
      auto of_a = f->read(a.data()), of_b = f->read(b.data());
      if (of_a != of_b) return of_a > of_b;
    }
    return false;
  });
  if (top_ && rows.size() > top_) rows.resize(top_);
  if (largest_last_) std::reverse(rows.begin(), rows.end());
  return rows;
}

}  // namespace coretap
