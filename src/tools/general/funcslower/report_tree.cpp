#include "tools/general/funcslower/report_tree.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/rate_limit.hpp"
#include "coretap/clock.hpp"
#include "coretap/report_kind.hpp"
#include "funcslower.skel.h"
#include "metrics/exporter.hpp"
#include "program/session.hpp"
#include "reports/own_activity.hpp"
#include "reports/reporter.hpp"
#include "text/columns.hpp"
#include "tools/general/funcslower/call_trees.hpp"

namespace coretap {

namespace {

constexpr std::size_t kCallsOfTree = 10'000;
constexpr ProgramName kOpenCalls = progs::on_open_calls;  // the iterator program

std::string_view end_words(std::uint8_t end) {
  switch (end) {
    case FUNCSLOWER_UNSEEN:
      return "no return seen";
    case FUNCSLOWER_EXEC:
      return "ended by exec";
    case FUNCSLOWER_EXITED:
      return "its thread ended";
    case FUNCSLOWER_OPEN:
      return "not finished";
    default:
      return "";
  }
}

class TreeReporter : public Reporter {
 public:
  explicit TreeReporter(const TreeReport& report) : report_(report) {}

  void configure(Session& s) override {
    columns_.choose(s.config, report_.fields);
    own_.configure(s, report_.fields);
    trees_.emplace(s.config.number("tree-size", kCallsOfTree));
    if (s.config.events.per_second) rate_.emplace(s.config.events.per_second);
    column_ = time_title(s).size() + columns_.titles().size() + 1;
  }

  Result<void> open(Session& s) override {
    reads_open_calls_ = s.plan.has(kOpenCalls);
    return reads_open_calls_ ? s.source->open_iterator(kOpenCalls) : Result<void>();
  }

  bool periodic() const override { return false; }
  void hurry() override { hurried_ = true; }

  void begin(Session& s) override {
    if (!s.prints()) return;
    if (s.config.format == OutputFormat::csv)
      s.out.line("time,monotonic_ns," + columns_.keys());
    else if (s.config.format == OutputFormat::text)
      s.out.title(time_title(s) + columns_.titles() + " CALL");
  }

  void record(Session& s, const void* data, std::size_t size) override {
    if (size < sizeof(funcslower_node)) return;
    funcslower_node node;
    memcpy(&node, data, sizeof node);
    if (hurried_) {
      s.ledger.unread++;
      return;
    }
    add(s, node);
  }

  /// At the end.
  void report(Session& s) override {
    if (reads_open_calls_) {
      if (auto read = s.source->pass(kOpenCalls, sizeof(funcslower_node)); !read)
        s.note("calls that have not ended are not shown", read.error());
      else
        for (std::size_t at = 0; at + sizeof(funcslower_node) <= read->size();) {
          funcslower_node node;
          memcpy(&node, read->data() + at, sizeof node);
          at += sizeof node;
          add(s, node);
        }
    }
    for (auto& tree : trees_->rest()) show(s, tree);
  }

 private:
  static std::string time_title(const Session& s) {
    std::string line;
    if (s.config.given("time")) line += fmt::format("{:<12} ", "TIME");
    if (s.config.given("timestamp")) line += fmt::format("{:<14} ", "TIME(s)");
    return line;
  }

  static std::string time(const Session& s, std::uint64_t at) {
    std::string line;
    if (s.config.given("time")) line += fmt::format("{:<12} ", wall_time(at));
    if (s.config.given("timestamp"))
      line += fmt::format("{:<14.6f} ", static_cast<double>(at - std::min(at, s.began_ns)) / 1e9);
    return line;
  }

  void add(Session& s, const funcslower_node& node) {
    if (own_.is(&node, s.names.context)) {
      s.ledger.count[LEDGER_FILTERED]++;
      return;
    }
    for (auto& tree : trees_->add(node)) show(s, tree);
  }

  /// Above the limit all of a tree is left out.
  bool has_room(Session& s, const CallTree& tree) {
    bool room = true;
    for (auto& call : tree)
      if (rate_ && !rate_->take(call.start()) && &call == &tree.front()) room = false;
    if (room && s.exporter && !s.exporter->has_room()) room = false;
    if (!room) s.ledger.limited += tree.size();
    return room;
  }

  void show(Session& s, CallTree& tree) {
    for (auto& call : tree) s.ledger.count[LEDGER_FILTERED] += call.omitted;
    if (tree.empty() || !has_room(s, tree)) return;
    auto first = std::exchange(next_id_, next_id_ + tree.size());
    for (std::size_t i = 0; i < tree.size(); i++) {
      tree[i].id = first + i;
      if (tree[i].caller) tree[i].caller += first - 1;
    }
    s.ledger.shown += tree.size();
    const bool text = s.config.format == OutputFormat::text && s.prints();
    if (text && tree.front().node.depth)
      s.out.line(indented(tree.front().node.depth - 1U) + "/* calls around these are missing */");
    std::vector<const TreeCall*> open;
    for (auto& call : tree) {
      if (text) {
        for (; !open.empty() && open.back()->node.depth >= call.node.depth; open.pop_back())
          closes(s, *open.back());
        begins(s, call);
        if (call.has_calls) open.push_back(&call);
      } else if (s.prints() && s.config.format == OutputFormat::csv) {
        s.out.line(fmt::format("{},{},{}", iso_time(call.start()), call.start(),
                               columns_.csv(&call, s.names)));
      } else {
        json(s, call);
      }
      if (s.exporter) s.exporter->add(s, &call);
    }
    for (; !open.empty(); open.pop_back()) closes(s, *open.back());
  }

  void json(Session& s, const TreeCall& call) {
    if (!s.prints() && !s.exporter->pushes_events()) return;
    JsonLine line("call", s.tool.name);
    line.text("time", iso_time(call.start())).number("monotonic_ns", call.start());
    columns_.json(line, &call, s.names);
    auto text = line.finish();
    if (s.prints()) s.out.line(text);
    if (s.exporter) s.exporter->add_event(text);
  }

  std::string indented(std::size_t depth) const { return std::string(column_ + 2 * depth, ' '); }

  /// The result, and in a comment these words and the reason if there is no result.
  std::string end_of(const TreeCall& call, std::string words = {}) const {
    auto result = call.node.end == FUNCSLOWER_RETURNED ? " = " + report_.result(call.node.call)
                                                       : std::string();
    auto reason = end_words(call.node.end);
    if (!reason.empty()) words += fmt::format("{}{}", words.empty() ? "" : ": ", reason);
    return fmt::format("{};{}", result, words.empty() ? "" : fmt::format(" /* {} */", words));
  }

  void begins(Session& s, const TreeCall& call) const {
    auto line = time(s, call.start()) + columns_.row(&call, s.names);
    line.resize(std::max(line.size() + 1, column_ + 2 * std::size_t{call.node.depth}), ' ');
    auto arguments = report_.arguments(call.node.call, s.names.context);
    line += fmt::format("{}({}){}", name(s, call), arguments, call.has_calls ? " {" : end_of(call));
    if (call.node.hidden)
      line += fmt::format(" /* {} shorter calls: {:.3f} us */", call.node.hidden,
                          static_cast<double>(call.node.hidden_ns) / 1e3);
    if (call.omitted) line += fmt::format(" /* {} calls left out */", call.omitted);
    s.out.line(line);
  }

  void closes(Session& s, const TreeCall& call) const {
    s.out.line(indented(call.node.depth) + '}' + end_of(call, name(s, call)));
  }

  static std::string name(const Session& s, const TreeCall& call) {
    return coretap::show(as::wide(as::target, 0), std::uint64_t{call.node.call.target}, s.names);
  }

  const TreeReport& report_;
  OwnActivity own_;
  Columns columns_;
  std::optional<CallTrees> trees_;
  std::optional<RateLimit> rate_;
  std::size_t column_ = 0;  ///< where calls begin
  std::uint64_t next_id_ = 1;
  bool reads_open_calls_ = false, hurried_ = false;
};

// Calls of a user function take less time than a line.
constexpr std::uint64_t kRing = 8 << 20;

class TreeKind : public ReportKind {
 public:
  explicit TreeKind(TreeReport report) : report_(std::move(report)) {}

  std::string_view name() const override { return "tree"; }
  bool can_be_recorded() const override { return true; }
  std::unique_ptr<Reporter> reporter() const override {
    return std::make_unique<TreeReporter>(report_);
  }
  std::vector<Field> fields() const override { return report_.fields; }
  std::size_t record_size() const override { return sizeof(TreeCall); }
  MetricShape metrics(const Config&) const override {
    return {.kind = MetricShape::events, .fields = report_.fields};
  }
  std::uint64_t ring_bytes(const Config&) const override { return kRing; }

  std::vector<JsonKind> json() const override {
    JsonKind kind{"call",
                  "one per call: those of a tree follow one another in the order in which they "
                  "began, when the outermost has ended",
                  {type_key("call"), time_key(), monotonic_key()}};
    for (auto& f : report_.fields)
      if (!f.table_only) kind.keys.push_back(key(f, sizeof(TreeCall), f.only_with));
    return {kind};
  }

  std::vector<OutputKey> csv() const override {
    std::vector<OutputKey> all = {time_key(), monotonic_key()};
    for (auto& f : report_.fields)
      if (!f.table_only) all.push_back(csv_key(f, sizeof(TreeCall), f.only_with));
    return all;
  }

  void manual(Manual& m) const override {
    m.prose(
        "One tree for each outermost call, printed when that has ended: a line for each call with "
        "its time and the part of it outside of other calls in the tree (SELF), indented by depth. "
        "A call with others within it ends at a line with a brace, its result and its name. "
        "The columns' keys in JSON and CSV are in parentheses.");
    m.fields(report_.fields);
  }

 private:
  TreeReport report_;
};

}  // namespace

std::shared_ptr<const ReportKind> make_kind(TreeReport report) {
  return std::make_shared<TreeKind>(std::move(report));
}

}  // namespace coretap
