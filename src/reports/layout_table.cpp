// Rows: a block for each report, the largest first; a screen that is redrawn; bars; or lines with
// their time, below one line of titles.
#include <csignal>

#include <algorithm>
#include <cstring>

#include <unistd.h>

#include <fmt/format.h>

#include "coretap/clock.hpp"
#include "coretap/small_files.hpp"
#include "reports/aggregate_layout.hpp"
#include "reports/histogram.hpp"
#include "text/columns.hpp"
#include "text/screen.hpp"
#include "text/terminal.hpp"

namespace coretap {

namespace {

class TableLayout : public AggregateLayout {
 public:
  explicit TableLayout(const AggregateReport& report) : report_(report) {}

  void configure(Session& s) override {
    columns_.choose(s.config, report_.fields, report_.orders);
    top_ = s.config.rows.top ? s.config.rows.top : SIZE_MAX;
  }

  void begin(Session& s) override {
    if (s.config.format == OutputFormat::csv) s.out.line("time," + columns_.keys());
  }

  void show(Session& s, AggregateReading& r) override {
    auto total = total_line(r.rows);
    if (r.rows.size() > top_) r.rows.resize(top_);
    if (report_.largest_last && s.config.rows.sort.empty())
      std::reverse(r.rows.begin(), r.rows.end());
    if (s.config.format != OutputFormat::text) {
      data(s, "row", r);
    } else {
      auto limit = line_limit();
      auto lines = block(s, r.rows, r.rows.size());
      const std::size_t title = s.config.holds(report_.header_when) ? 1 : 0;
      for (std::size_t i = 0; i < lines.size(); i++)
        if (auto line = cut_to(lines[i], limit); i == title)
          s.out.title(line);
        else
          s.out.line(line);
      if (!total.empty()) s.out.line(total);
      s.out.write("\n");
    }
  }

 protected:
  void data(Session& s, std::string_view type, const AggregateReading& r) const {
    const bool csv = s.config.format == OutputFormat::csv;
    for (auto& row : r.rows)
      s.out.line(columns_.line({csv, type, s.tool.name, r.stamp}, row.data(), s.names));
  }

  /// A line about all rows, including those beyond --top.
  std::string total_line(const std::vector<std::string>& rows) const {
    if (!report_.total) return {};
    std::vector<std::uint64_t> sums(report_.value_size / 8);
    for (auto& row : rows)
      for (std::size_t i = 0; i < sums.size(); i++) {
        std::uint64_t counter = 0;
        memcpy(&counter, row.data() + report_.value_at + i * 8, sizeof counter);
        sums[i] += counter;
      }
    return report_.total(sums.data());
  }

  virtual std::string header(std::size_t) const { return wall_time(); }

  std::vector<std::string> block(const Session& s, const std::vector<std::string>& rows,
                                 std::size_t all) const {
    std::vector<std::string> lines;
    if (s.config.holds(report_.header_when)) lines.push_back(header(all));
    lines.push_back(columns_.titles());
    for (auto& row : rows) {
      lines.push_back(columns_.row(row.data(), s.names));
      for (auto& line : columns_.below(row.data(), s.names)) lines.push_back(line);
    }
    return lines;
  }

  const AggregateReport& report_;
  Columns columns_;
  std::size_t top_ = SIZE_MAX;
};

/// Counters without a key, which have one row for each interval, or rows by key.
class LinesLayout : public TableLayout {
 public:
  using TableLayout::TableLayout;

  void begin(Session& s) override {
    TableLayout::begin(s);
    timed_ = s.config.holds(report_.time_when);
    if (s.config.format == OutputFormat::text)
      s.out.title(
          cut_to((timed_ ? fmt::format("{:<8} ", "TIME") : "") + columns_.titles(), line_limit()));
  }

  void show(Session& s, AggregateReading& r) override {
    const bool keyed = report_.layout == AggregateReport::lines;
    if (!keyed) s.ledger.shown += r.rows.size();
    if (r.rows.size() > top_) r.rows.resize(top_);
    if (s.config.format != OutputFormat::text) {
      data(s, keyed ? "row" : "interval", r);
      return;
    }
    for (auto& row : r.rows)
      s.out.line(cut_to((timed_ ? wall_time() + ' ' : "") + columns_.row(row.data(), s.names),
                        line_limit()));
  }

 private:
  bool timed_ = false;
};

/// In text a linear histogram with one line for each row.
class BarsLayout : public TableLayout {
 public:
  using TableLayout::TableLayout;

  void show(Session& s, AggregateReading& r) override {
    auto number = [&](auto& row) { return read(s, 0, row); };
    for (int n : report_.numbers()) {
      auto is_it = [&](auto& row) { return number(row) == static_cast<std::uint64_t>(n); };
      if (std::any_of(r.rows.begin(), r.rows.end(), is_it)) continue;
      std::string empty(report_.row_size(), '\0');
      memcpy(empty.data(), &n, sizeof n);
      r.rows.push_back(std::move(empty));
    }
    std::stable_sort(r.rows.begin(), r.rows.end(),
                     [&](auto& a, auto& b) { return number(a) < number(b); });
    if (s.config.format != OutputFormat::text) {
      TableLayout::show(s, r);
      return;
    }
    std::vector<Bar> bars;
    auto unit = report_.fields[1].format.kind == Format::milliseconds ? 1'000'000 : 1;
    for (auto& row : r.rows) bars.push_back({std::to_string(number(row)), read(s, 1, row) / unit});
    s.out.line(s.config.given("timestamp") ? "\n" + wall_time() : "");
    s.out.write(draw_bars(bars, report_.fields[0].title, report_.fields[1].title, text_columns()));
  }

 private:
  std::uint64_t read(const Session& s, std::size_t field, const std::string& row) const {
    const auto value = report_.fields[field].read(row.data(), s.names.context);
    auto* number = std::get_if<std::uint64_t>(&value);
    return number ? *number : 0;
  }
};

/// Redraws on a terminal in place, with keys: q quit, s next column to sort by, r reverse, p or
/// space pause.
class ScreenLayout : public TableLayout {
 public:
  using TableLayout::TableLayout;

  void configure(Session& s) override {
    TableLayout::configure(s);
    for (auto& f : report_.fields)
      if (s.config.holds(f.only_with) && s.config.holds(f.shown_with)) sorts_.push_back(f.key);
    auto first = s.config.rows.sort.empty() ? report_.sort.substr(0, report_.sort.find(','))
                                            : std::string_view(s.config.rows.sort);
    sort_ =
        static_cast<std::size_t>(std::find(sorts_.begin(), sorts_.end(), first) - sorts_.begin());
  }

  void begin(Session& s) override {
    if (s.config.format == OutputFormat::text && !s.config.given("noclear") && !s.file &&
        Screen::possible())
      screen_.open();
    TableLayout::begin(s);
  }

  void show(Session& s, AggregateReading& r) override {
    if (!screen_.is_open()) {
      TableLayout::show(s, r);
      return;
    }
    if (keys_.paused) return;  // counts added meanwhile are not shown, but in the ledger
    rows_ = std::move(r.rows);
    draw(s);
  }

  void poll(Session& s, AggregateRows& order) override {
    for (char key : screen_.take_keys()) pressed(s, order, key);
  }

  std::vector<int> wakes() const override { return screen_.wakes(); }
  std::vector<int> signals() const override { return screen_.signals(); }
  void signalled(Session& s, int number) override {
    if (number == SIGCONT) screen_.reopen();
    draw(s);
  }
  bool wants_end() const override { return keys_.quit; }
  Result<void> finish(Session&) override {
    screen_.close();
    return {};
  }

 private:
  std::string header(std::size_t rows) const override {
    auto line = fmt::format("{} loadavg: {}", wall_time(), machine_loads());
    if (screen_.is_open())
      line += fmt::format(" rows: {}{}", rows, keys_.paused ? " [paused]" : "");
    return line;
  }

  void draw(const Session& s) {
    auto rows = rows_;
    auto room = static_cast<std::size_t>(std::max(1, terminal_size().rows - 3));
    auto shown = std::min({rows.size(), top_, room});
    rows.resize(shown);
    auto text = screen_.picture(block(s, rows, rows_.size()));
    const_cast<Session&>(s).out.write(text);
    const_cast<Session&>(s).out.flush();
  }

  void pressed(Session& s, AggregateRows& order, char key) {
    if (keys_.press(key)) return;
    if (key == 's' && !sorts_.empty()) sort_ = (sort_ + 1) % sorts_.size();
    if (key == 's') order.order(sorts_[sort_]);
    order.reverse(keys_.reversed);
    order.sort(rows_, s.names.context);
    draw(s);
  }

  Screen screen_;
  std::vector<std::string> rows_;
  std::vector<std::string_view> sorts_;
  std::size_t sort_ = 0;
  ScreenKeys keys_;
};

}  // namespace

std::string machine_loads() {
  auto load = read_file("/proc/loadavg", 64).value_or("");
  while (!load.empty() && load.back() == '\n') load.pop_back();
  return load;
}

std::unique_ptr<AggregateLayout> make_table_layout(const AggregateReport& report) {
  if (report.layout == AggregateReport::interval || report.layout == AggregateReport::lines)
    return std::make_unique<LinesLayout>(report);
  if (report.layout == AggregateReport::screen) return std::make_unique<ScreenLayout>(report);
  if (report.layout == AggregateReport::bars) return std::make_unique<BarsLayout>(report);
  return std::make_unique<TableLayout>(report);
}

}  // namespace coretap
