#include "stacks/stack_tables.hpp"

#include <csignal>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/figures.hpp"
#include "coretap/clock.hpp"
#include "coretap/parse.hpp"
#include "coretap/sanitize.hpp"
#include "program/section.hpp"
#include "text/terminal.hpp"

namespace coretap {

namespace {

constexpr std::uint64_t kLeast = 1;  // per cent
constexpr std::size_t kName = 24;    // columns of a group, and of a file
constexpr int kAroundTable = 3;      // lines of a screen that are no rows

/// The end of JSON keys of sums.
std::string_view suffix_of(const StackReport& report) {
  switch (report.measure) {
    case StackReport::time:
      return "_ns";
    case StackReport::bytes:
      return "_bytes";
    default:
      return "";
  }
}

std::vector<std::pair<std::string, std::uint64_t>> largest_first(
    const std::map<std::string, std::uint64_t>& groups) {
  std::vector<std::pair<std::string, std::uint64_t>> all(groups.begin(), groups.end());
  std::ranges::stable_sort(all, [](auto& a, auto& b) { return a.second > b.second; });
  return all;
}

}  // namespace

Result<void> StackTables::check(Config& c) {
  if (auto r = StackGroup::check(c); !r) return r;
  auto one_of = [&](std::initializer_list<std::string_view> names) -> Result<void> {
    std::string_view first;
    for (auto name : names) {
      if (!c.given(name)) continue;
      if (!first.empty())
        return usage(fmt::format("--{} and --{} cannot be used together", first, name));
      first = name;
    }
    return {};
  };
  for (auto& names : {std::initializer_list<std::string_view>{"functions", "tree", "folded"},
                      {"functions", "callers-of", "callees-of"},
                      {"functions", "inverted"},
                      {"screen", "tree", "folded"},
                      {"screen", "inverted"}})
    if (auto r = one_of(names); !r) return r;
  for (auto* file : {"svg", "pprof", "dot"})
    if (c.given(file) && (c.schedule.interval > 0 || c.given("screen")))
      return usage(fmt::format("--{} is written at the end, of all stacks", file),
                   "leave out --interval and --screen");
  if (!c.given("screen")) return {};
  if (c.format != OutputFormat::text)
    return usage("--screen is for text", "without it reports come with --interval, too");
  if (!c.schedule.interval) c.schedule.interval = 1;
  return {};
}

std::vector<JsonKind> StackTables::json(const StackReport& report) {
  const std::string self = fmt::format("self{}", suffix_of(report)),
                    total = fmt::format("total{}", suffix_of(report)),
                    group = "with --by, the name of the group, or null";
  auto sums = [&](const char* of_self, const char* of_total) {
    return std::vector<OutputKey>{key(self, "integer", of_self), key(total, "integer", of_total)};
  };
  auto with = [](std::vector<OutputKey> keys, std::vector<OutputKey> more) {
    keys.insert(keys.end(), more.begin(), more.end());
    return keys;
  };
  std::vector<OutputKey> event, ratio;
  if (!report.event.empty())
    event = {key("event", "string or null", "of several events, that which was sampled")};
  if (!report.ratio_when.empty())
    ratio = {
        key("ratio", "number or null",
            "with --ratio or --cpi, of the first event to the second, in the function itself")};
  return {
      {"function", "with --functions, one per function, the largest first",
       with(with(with(with({type_key("function")}, event),
                      {key("group", "string or null", group),
                       key("function", "string", "its name, or [unknown]"),
                       key("object", "string", "its file, or [kernel] or the kernel's module"),
                       key("in_kernel", "boolean", "code of the kernel")}),
                 sums("in the function itself", "with what it calls")),
            ratio)},
      {"group", "with --by alone, one per group, the largest first",
       with(with({type_key("group")}, event), {key("by", "string", "the key of --by"),
                                               key("group", "string", "the name of the group"),
                                               key(total, "integer", "the group's sum")})},
      {"branch",
       "with --tree, --callers-of or --callees-of, one per frame of the tree, each before those within",
       with(with(with({type_key("branch")}, event),
                 {key("level", "integer", "the number of frames around it"),
                  key("kind", "string", "task, user, kernel, or mark"),
                  key("name", "string", "the function, the name of the task, or the mark")}),
            sums("of stacks that end here", "with all frames within"))}};
}

void StackTables::manual(Manual& m) {
  m.prose(
      "With --functions, --by, --tree, --callers-of or --callees-of a table or a call tree takes "
      "the place of the stacks: see FUNCTIONS, GROUPS AND CALL TREES in coretap-output(7).");
}

void StackTables::configure(Session& s) {
  auto& c = s.config;
  part_ = {.callers = std::string(c.text("callers-of")),
           .callees = std::string(c.text("callees-of")),
           .inverted = c.given("inverted")};
  group_.configure(s);
  least_ = static_cast<double>(c.number("least", kLeast));
  by_total_ = c.text("functions") == "total";
  dot_wanted_ = !c.files.dot.empty();
  ratio_ = !report_.ratio_when.empty() && c.holds(report_.ratio_when);
  if (c.given("cpi")) ratio_title_ = "CPI";
  if (c.given("functions") || (ratio_ && c.files.svg.empty()) ||
      (c.given("screen") && !group_.chosen()))
    shows_ = functions;
  else if (c.given("folded"))
    shows_ = stacks;
  else if (c.given("tree") || !part_.whole())
    shows_ = tree;
  else if (group_.chosen())
    shows_ = groups;
}

bool StackTables::need_places() const {
  return shows_ == functions || group_.word() == "object" || group_.word() == "caller" ||
         !part_.callers.empty() || !part_.callees.empty();
}

Result<void> StackTables::open(Session& s) {
  if (s.config.given("screen") && !s.file && Screen::possible()) screen_.open();
  return dot_wanted_ ? dot_.open(s, s.config.files.dot) : Result<void>();
}

void StackTables::begin(Session& s, bool events) {
  if (s.config.format != OutputFormat::csv) return;
  const auto* event = events && !ratio_ ? "event," : "";
  if (shows_ == functions)
    s.out.line(fmt::format("{1}group,self{0},total{0},{2}object,function", suffix_of(report_),
                           event, ratio_ ? "ratio," : ""));
  else if (shows_ == groups)
    s.out.line(fmt::format("{}{},total{}", event, group_.word(), suffix_of(report_)));
  else if (shows_ == tree)
    s.out.line(fmt::format("{1}level,kind,self{0},total{0},name", suffix_of(report_), event));
}

void StackTables::begin_report(const std::string& event) {
  event_ = event;
  functions_ = second_ = {};
  groups_.clear();
  if (shows_ == tree || dot_wanted_) tree_.emplace();
}

void StackTables::add(const std::vector<StackParty>& parties, const std::vector<StackWord>& path,
                      std::uint64_t value, bool second) {
  if (tree_) tree_->add(path, value);
  auto& task = parties.front();
  auto group = group_.chosen() ? task.name() : std::string();
  // Of a waker report only the waker has stacks.
  auto& walked = report_.layout == StackReport::waker ? parties.back() : task;
  if (shows_ == functions) (second ? second_ : functions_).add(walked, group, value);
  if (shows_ == groups) groups_[group] += value;
}

std::vector<std::string> StackTables::lines(const StackLayout& layout) const {
  if (shows_ == functions) return function_lines(layout);
  std::vector<std::string> out;
  if (shows_ == tree) {
    out = call_tree(*tree_, least_);
    out.insert(out.begin(), " TOTAL   SELF  % OF ALL");
    return out;
  }
  out.push_back(fmt::format("{:>10} {:>7}  {}", "TOTAL", "%", upper_case(group_.word())));
  std::uint64_t all = 0;
  for (auto& [name, total] : groups_) all += total;
  auto rows = largest_first(groups_);
  if (keys_.reversed) std::ranges::reverse(rows);
  for (auto& [name, total] : rows)
    out.push_back(fmt::format("{:>10} {:>6.2f}%  {}", layout.shown(total), percent(total, all),
                              printable(name)));
  return out;
}

std::optional<double> StackTables::ratio(const FunctionTable::Row& row) const {
  auto* other = second_.like(row);
  if (!other || !other->self) return std::nullopt;
  return static_cast<double>(row.self) / static_cast<double>(other->self);
}

std::vector<std::string> StackTables::function_lines(const StackLayout& layout) const {
  auto rows = functions_.rows(by_total_);
  const auto all = functions_.total();
  auto small = std::erase_if(rows, [&](auto& row) { return percent(row.total, all) < least_; });
  if (keys_.reversed) std::ranges::reverse(rows);
  std::size_t object = 8;
  for (auto& row : rows) object = std::max(object, std::min(kName, row.object.size()));
  auto group = [&](const std::string& name) {
    return group_.chosen() ? fmt::format("{:<{}} ", printable(name), kName) : std::string();
  };
  auto quotient = [&](const FunctionTable::Row& row) {
    if (!ratio_) return std::string();
    auto known = ratio(row);
    if (!known) return fmt::format("{:>10}  ", "-");
    return *known < 100 ? fmt::format("{:>10.3g}  ", *known) : fmt::format("{:>10.0f}  ", *known);
  };
  std::vector<std::string> out{
      fmt::format("{:>10} {:>7} {:>10} {:>7}  {}{}{:<{}} {}", "SELF", "%", "TOTAL", "%",
                  ratio_ ? fmt::format("{:>10}  ", ratio_title_) : std::string(),
                  group(upper_case(group_.word())), "OBJECT", object, "FUNCTION")};
  for (auto& row : rows)
    out.push_back(fmt::format(
        "{:>10} {:>6.2f}% {:>10} {:>6.2f}%  {}{}{:<{}} {}", layout.shown(row.self),
        percent(row.self, all), layout.shown(row.total), percent(row.total, all), quotient(row),
        group(row.group), printable(row.object), object, printable(row.function)));
  if (small)
    out.push_back(fmt::format("{:>38} {} {} below {} %: --least", "", small,
                              small == 1 ? "function" : "functions", least_));
  return out;
}

void StackTables::json_rows(Session& s) const {
  const std::string self = fmt::format("self{}", suffix_of(report_)),
                    total = fmt::format("total{}", suffix_of(report_));
  auto event = [&](JsonLine& line) {
    if (!report_.event.empty()) line.text_if(!event_.empty(), "event", event_);
  };
  if (shows_ == functions)
    for (auto& row : functions_.rows(by_total_)) {
      JsonLine line("function", s.tool.name);
      event(line);
      line.text_if(group_.chosen(), "group", row.group).text("function", row.function);
      line.text("object", row.object).boolean("in_kernel", row.kernel);
      line.number(self, row.self).number(total, row.total);
      if (!report_.ratio_when.empty()) {
        auto known = ratio_ ? ratio(row) : std::nullopt;
        line.key("ratio");
        known ? line.real(*known) : line.null();
      }
      s.out.line(line.finish());
    }
  if (shows_ == groups)
    for (auto& [name, sum] : largest_first(groups_)) {
      JsonLine line("group", s.tool.name);
      event(line);
      line.text("by", group_.word()).text("group", name).number(total, sum);
      s.out.line(line.finish());
    }
  if (shows_ == tree)
    for (auto& line : call_tree_json(*tree_, s.tool.name, suffix_of(report_), event))
      s.out.line(line);
}

void StackTables::csv_rows(Session& s) const {
  const auto event = event_.empty() ? std::string() : event_ + ',';
  auto quotient = [&](const FunctionTable::Row& row) {
    auto known = ratio(row);
    return !ratio_ ? std::string() : known ? fmt::format("{:.6g},", *known) : std::string(",");
  };
  if (shows_ == functions)
    for (auto& row : functions_.rows(by_total_))
      s.out.line(fmt::format("{}{},{},{},{}{},{}", event, csv_field(row.group), row.self, row.total,
                             quotient(row), csv_field(row.object), csv_field(row.function)));
  if (shows_ == groups)
    for (auto& [name, total] : largest_first(groups_))
      s.out.line(fmt::format("{}{},{}", event, csv_field(name), total));
  if (shows_ == tree)
    tree_->walk(true, [&](const FlameGraph::Branch& b) {
      s.out.line(fmt::format("{}{},{},{},{},{}", event, b.level, kind_of(b.kind), b.own, b.total,
                             csv_field(std::string(b.name))));
      return true;
    });
}

void StackTables::show(Session& s, const StackLayout& layout) {
  layout_ = &layout;
  if (s.config.format == OutputFormat::json) return json_rows(s);
  if (s.config.format == OutputFormat::csv) return csv_rows(s);
  if (screen_.is_open()) return keys_.paused ? void() : draw(s);
  if (s.config.schedule.interval > 0) s.out.line(wall_time());
  auto all = lines(layout);
  s.out.title(all.front());
  for (std::size_t i = 1; i < all.size(); i++) s.out.line(all[i]);
  s.out.line("");
}

void StackTables::draw(Session& s) {
  auto all = lines(*layout_);
  const auto room = static_cast<std::size_t>(std::max(1, terminal_size().rows - kAroundTable));
  std::vector<std::string> picture{fmt::format("{} {}: {}{}", wall_time(), s.tool.name,
                                               report_.value_title,
                                               keys_.paused ? " [paused]" : "")};
  for (std::size_t i = 0; i < all.size() && i < room; i++) picture.push_back(std::move(all[i]));
  s.out.write(screen_.picture(picture));
  s.out.flush();
}

void StackTables::poll(Session& s) {
  for (char key : screen_.take_keys()) {
    if (keys_.press(key)) continue;
    if (key == 's') by_total_ = !by_total_;
    if (layout_) draw(s);
  }
}

void StackTables::signalled(Session& s, int number) {
  if (number == SIGCONT) screen_.reopen();
  if (layout_) draw(s);
}

Result<void> StackTables::finish(Session& s) {
  screen_.close();
  if (!dot_wanted_ || !tree_) return {};
  auto title = picture_title(s, monotonic_ns() - s.began_ns, report_.value_title);
  for (auto& note : title.notes) title.title += fmt::format("\n{}", note);
  return dot_.write(s, call_graph(*tree_, title.title, least_));
}

}  // namespace coretap
