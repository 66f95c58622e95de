// A workload traced by tools, and expectations of their lines: the usual content of a tool's test.
//
//   auto seen = observe("filetop --json --strict -p {pid}", "fileio --count 50 --size 3000");
//   expect_sums(seen.report(), seen.truth, {"reads", "writes", {"read_bytes", "bytes"}});
#pragma once
#include <array>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <source_location>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "json.hpp"
#include "tracer.hpp"

namespace coretap::tooltest {

/// A value of JSON to compare with; nullptr: null.
struct Value : std::variant<std::nullptr_t, bool, std::uint64_t, std::int64_t, std::string> {
  Value(std::nullptr_t) {}
  Value(bool truth) : variant(truth) {}
  Value(std::string text) : variant(std::move(text)) {}
  Value(const char* text) : variant(std::string(text)) {}
  template <std::integral T>
  requires(!std::same_as<T, bool>) Value(T number) {
    if (number < 0)
      emplace<std::int64_t>(static_cast<std::int64_t>(number));
    else
      emplace<std::uint64_t>(static_cast<std::uint64_t>(number));
  }
  bool is(const Json& json) const;
  std::string text() const;
};

/// Expected value of a key; fails if there is no such key.
using Fields = std::initializer_list<std::pair<const char*, Value>>;
using Location = std::source_location;
void fail_at(Location where, const std::string& what);
void expect_fields(const Json& line, Fields wanted, Location where = Location::current());
/// The same in words, "comm tcp uid 0 error null".
void expect_fields(const Json& line, const Strings& words, Location where = Location::current());
/// Fields for expect_fields(): a value or null; an error as tools show it, 0 is null.
inline std::pair<const char*, Value> is(const char* key, Value value) { return {key, value}; }
inline Value or_null(bool known, Value value) { return known ? std::move(value) : nullptr; }
Value error_name(std::int64_t error);
/// The lines with all of these values.
std::vector<Json> lines_with(const std::vector<Json>& lines, Fields wanted);
/// The only line with these values; throws if there is none or several.
Json line_with(const std::vector<Json>& lines, Fields wanted);
inline Json only(const std::vector<Json>& lines) { return line_with(lines, {}); }
template <class Condition>
std::vector<Json> lines_where(const Report& report, Condition condition) {
  auto lines = report.body;
  std::erase_if(lines, [&](auto& line) { return !condition(line); });
  return lines;
}
std::uint64_t sum(const std::vector<Json>& lines, const char* key);
/// The sum for each value of a key; nullptr: the number of lines.
using Counts = std::map<std::string, std::uint64_t>;
Counts counts_by(const std::vector<Json>& lines, const char* key, const char* count);
inline Counts counts_by(const Report& report, const char* key, const char* count = "count") {
  return counts_by(report.body, key, count);
}

/// A key of the report and one of the workload's truth; one name if both are the same.
struct SameSum {
  SameSum(const char* both) : key(both), of(both) {}
  SameSum(const char* key, const char* of) : key(key), of(of) {}
  const char *key, *of;
};
/// The sum over these lines equals the workload's value.
void expect_sums(const std::vector<Json>& lines, const Json& truth,
                 std::initializer_list<SameSum> sums, Location where = Location::current());
inline void expect_sums(const Report& report, const Json& truth,
                        std::initializer_list<SameSum> sums, Location where = Location::current()) {
  expect_sums(report.body, truth, sums, where);
}

/// The values equal those of another line, under the same keys or under {key, key of that one}.
void expect_same(const Json& line, const Json& other, std::initializer_list<SameSum> keys,
                 Location where = Location::current());

/// The sum of a key over lines is within limits: from `least` to `most`.
struct Bounds {
  const char* key;
  std::uint64_t least = 0, most = UINT64_MAX;
};
inline Bounds between(const char* key, std::uint64_t least, std::uint64_t most) {
  return {key, least, most};
}
inline Bounds at_least(const char* key, std::uint64_t least) { return {key, least}; }
inline Bounds at_most(const char* key, std::uint64_t most) { return {key, 0, most}; }
inline Bounds exactly(const char* key, std::uint64_t n) { return {key, n, n}; }
void expect_within(const std::vector<Json>& lines, std::initializer_list<Bounds> sums,
                   Location where = Location::current());
inline void expect_within(const Report& report, std::initializer_list<Bounds> sums,
                          Location where = Location::current()) {
  expect_within(report.body, sums, where);
}
/// All of these switches are shown, except those that the kernel did not report.
void expect_switches(const Report& report, std::uint64_t shown, std::uint64_t truth,
                     Location where = Location::current());
void expect_between(double shown, double least, double most, Location where = Location::current());

/// A frame of the stack under this key contains the text.
bool has_frame(const Json& line, const char* stack, std::string_view part);
std::vector<Json> lines_with_frame(std::vector<Json> lines, const char* stack,
                                   std::string_view part);
/// Sum of a key over the lines with such a frame.
std::uint64_t sum_with_frame(const std::vector<Json>& lines, const char* stack,
                             std::string_view part, const char* key = "count");

/// The text contains each of these.
void expect_contains(const std::string& text, std::initializer_list<std::string> parts,
                     Location where = Location::current());
/// The words of a row of text; "*" is any word.
void expect_row(const std::string& row, const Strings& wanted,
                Location where = Location::current());
/// Runs a tool, the first word, until it ends: the result; its output on success; a report.
Result result_of(Strings tool, const std::function<void()>& in_child = {});
std::string output_of(const Strings& tool);
/// Whether its help contains these words.
bool has_option(const std::string& tool, const std::string& words);
/// Output of a command that succeeds and prints nothing on standard error; {"coretap", ...} too.
std::string said_by(const Strings& words, Location where = Location::current());
Report report_of(const Strings& tool);
/// A workload as the command of a tool.
Strings as_command(const Strings& workload);
/// A tool's --json report of such a command; skips if the workload cannot run.
Report follow(const Strings& tool, const Strings& workload);

/// A tool rejects these words (the first is its name), prints a safe reason, and nothing else.
void expect_refused(const Strings& words, std::initializer_list<std::string> parts = {},
                    int status = 2, Location where = Location::current());
/// Words that a tool rejects, and its message.
struct Refusal {
  Strings words;
  std::string says = {};
  int status = 2;
};
/// The error message of a tool: on stderr, with its name, printable, and nothing on stdout.
void expect_refusal(const std::string& tool, const Result& result, int status,
                    const std::string& word = {}, Location where = Location::current());
void expect_refusals(const std::string& tool, const std::vector<Refusal>& all,
                     Location where = Location::current());
inline const Workload::How kLinger{.linger = true};

/// Output of tools for one workload, in the order of the tools.
class Observed {
 public:
  Json ready, truth;
  std::uint64_t pid = 0, netns = 0;  ///< netns: its network namespace
  std::vector<std::string> out, err;
  std::vector<std::uint64_t> unreported;

  /// Stops a tool and adds its output.
  void add(Tracer& tracer);
  /// For a tool with --json.
  Report report(std::size_t tool = 0) const;
  const std::string& text(std::size_t tool = 0) const { return out.at(tool); }
  std::vector<Json> body(std::size_t tool = 0) const { return report(tool).body; }
  std::size_t shown(std::size_t tool) const { return body(tool).size(); }
  /// The workload's value of a key, in its ready line or its truth.
  Json of(const char* key) const { return (ready.has(key) ? ready : truth)[key]; }
  std::uint64_t number(const char* key) const { return of(key).u64(); }
  /// Replaces {pid}, {netns} and {KEY} by the workload's values; of a list, by the first.
  std::string filled(std::string words) const;
};

/// A workload that is held until tools are attached.
class Scene {
 public:
  /// The first word is the workload's name.
  explicit Scene(const Strings& workload, Workload::How how = kLinger);

  Workload& workload() { return workload_; }
  Json ready() const { return workload_.ready(); }
  /// Replaces {pid}, {netns}, and {KEY} by the values of the workload's ready line.
  Strings filled(Strings words) const;
  /// Starts a tool, the first word, and waits until it is attached; skips if it cannot run.
  Tracer& trace(const Strings& tool, Tracer::How how = {});
  /// Releases the workload, waits for its truth, ends the tools by SIGINT.
  Observed finish();
  /// The same after the release.
  Observed collect();

 private:
  Workload workload_;
  Observed seen_;  ///< so far
  std::vector<std::unique_ptr<Tracer>> tracers_;
};

Observed observe_all(const std::vector<Strings>& tools, const Strings& workload,
                     Workload::How how = kLinger);
inline Observed observe(const Strings& tool, const Strings& workload, Workload::How how = kLinger) {
  return observe_all(std::vector<Strings>(1, tool), workload, std::move(how));
}

/// A workload, and tools with {pid} and {KEY} for its values, {0} for the first of several PIDs.
struct Watched {
  Strings workload;
  std::vector<Strings> tools = {};
};
std::vector<Observed> watch_all(const std::vector<Watched>& all,
                                const Workload::How& how = kLinger);
template <std::size_t N>
std::array<Observed, N> watch_each(const Watched (&all)[N], const Workload::How& how = kLinger) {
  auto seen = watch_all({std::begin(all), std::end(all)}, how);
  std::array<Observed, N> each;
  std::move(seen.begin(), seen.end(), each.begin());
  return each;
}

}  // namespace coretap::tooltest
