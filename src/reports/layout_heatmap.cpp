// --heatmap: a line for each histogram, or a picture of all of them.
#include <bit>
#include <optional>

#include <fmt/format.h>

#include "coretap/clock.hpp"
#include "program/last_file.hpp"
#include "program/picture.hpp"
#include "reports/aggregate_layout.hpp"
#include "reports/heatmap.hpp"
#include "reports/histogram.hpp"
#include "text/terminal.hpp"

namespace coretap {

namespace {

constexpr int kSlots = 28;        // powers of two, in a line: 2^27 microseconds are two minutes
constexpr int kHeaderEvery = 20;  // lines

class HeatMapLayout : public AggregateLayout {
 public:
  HeatMapLayout(const AggregateReport& report, std::unique_ptr<AggregateLayout> data)
      : report_(report), scale_(report.scale), data_(std::move(data)) {}

  void configure(Session& s) override {
    scale_.step = step_of(scale_, s.config);
    data_->configure(s);
    if (s.config.files.heatmap.empty()) return;
    map_.emplace(scale_);
  }
  Result<void> open(Session& s) override {
    if (!map_) return {};
    return file_.open(s, s.config.files.heatmap);
  }
  bool keeps_file() const override { return file_.keeps_file(); }

  void begin(Session& s) override {
    if (s.config.format != OutputFormat::text) data_->begin(s);
  }

  void show(Session& s, AggregateReading& r) override {
    ended_ns_ = monotonic_ns();
    if (map_) {
      map_->begin_column(wall_time(ended_ns_));
      for (auto& row : r.rows)
        map_->add(histogram_title(report_, s, row), hist_of(report_, row, scale_.step));
    }
    if (s.config.format != OutputFormat::text) {
      data_->show(s, r);
    } else if (!map_) {
      for (auto& row : r.rows)
        line(s, histogram_title(report_, s, row), hist_of(report_, row, scale_.step));
      if (r.rows.empty()) line(s, {}, hist{});
    }
  }

  Result<void> finish(Session& s) override {
    if (!map_) return {};
    return file_.write(s, map_->svg(picture_title(s, ended_ns_ - s.began_ns, "values")));
  }

 private:
  void line(Session& s, const std::string& title, const hist& h) {
    int slots = scale_.linear ? HIST_SLOTS : kSlots;
    int width = !scale_.linear && text_columns() >= 80 ? 2 : 1;
    auto most = most_;
    heat_line(h, slots, width, most);
    const bool grown = most > most_;
    // In large steps, so that the legend seldom changes.
    if (grown) most_ = most > UINT64_MAX / 2 ? UINT64_MAX : std::bit_ceil(most);
    const bool header = lines_++ % kHeaderEvery == 0;
    if (header)
      s.out.line(fmt::format("{:<8} {} {:>8}", "TIME", heat_header(scale_, slots, width), "COUNT"));
    if (header || grown) s.out.line(fmt::format("{:<8} {}", "FROM", heat_legend(most_)));
    s.out.line(fmt::format("{} {} {:>8}{}{}", wall_time(), heat_line(h, slots, width, most_),
                           histogram_count(h), title.empty() ? "" : "  ", title));
  }

  const AggregateReport& report_;
  HistogramScale scale_;
  std::unique_ptr<AggregateLayout> data_;  ///< for JSON and CSV
  std::optional<HeatMap> map_;
  LastFile file_;
  std::uint64_t ended_ns_ = 0, most_ = 1;
  int lines_ = 0;
};

}  // namespace

std::unique_ptr<AggregateLayout> make_heatmap_layout(const AggregateReport& report) {
  return std::make_unique<HeatMapLayout>(report, make_histogram_layout(report));
}

}  // namespace coretap
