// A workload under tools, and what is expected of their lines: what most tests of a tool consist
// of.
//
//   auto seen = observe("filetop --json --strict -p {pid}", "fileio --count 50 --size 3000");
//   expect_sums(seen.report(), seen.truth, {"reads", "writes", {"read_bytes", "bytes"}});
#pragma once
#include <concepts>
#include <cstdint>
#include <initializer_list>
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

/// A line's value for a key; fails where there is no such key.
using Fields = std::initializer_list<std::pair<const char*, Value>>;
using Location = std::source_location;
void expect_fields(const Json& line, Fields wanted, Location where = Location::current());
/// Those lines that have all of these values.
std::vector<Json> lines_with(const std::vector<Json>& lines, Fields wanted);
/// The only one that has them; throws where there is none, or another one.
Json line_with(const std::vector<Json>& lines, Fields wanted);
std::uint64_t sum(const std::vector<Json>& lines, const char* key);

/// A key of the report and one of the workload's truth: the same one where only one is given.
struct SameSum {
  SameSum(const char* both) : key(both), of(both) {}
  SameSum(const char* key, const char* of) : key(key), of(of) {}
  const char *key, *of;
};
/// Summed over these lines it is what the workload says.
void expect_sums(const std::vector<Json>& lines, const Json& truth,
                 std::initializer_list<SameSum> sums, Location where = Location::current());
inline void expect_sums(const Report& report, const Json& truth,
                        std::initializer_list<SameSum> sums, Location where = Location::current()) {
  expect_sums(report.body, truth, sums, where);
}

/// A frame of the stack under this key holds the text.
bool has_frame(const Json& line, const char* stack, std::string_view part);
/// Sum of a key over the lines that have such a frame.
std::uint64_t sum_with_frame(const std::vector<Json>& lines, const char* stack,
                             std::string_view part, const char* key = "count");

/// The text holds each of these.
void expect_contains(const std::string& text, std::initializer_list<std::string> parts,
                     Location where = Location::current());
/// A tool does not start with these words (the first is its name) and says why.
void expect_refused(const Strings& words, std::initializer_list<std::string> parts = {},
                    int status = 2, Location where = Location::current());

inline const Workload::How kLinger{.linger = true};

/// What tools printed of one workload, in the order in which they were given.
class Observed {
 public:
  Json ready, truth;
  std::uint64_t pid = 0;
  std::vector<std::string> out, err;

  /// Of a tool with --json.
  Report report(std::size_t tool = 0) const { return parse_report(out.at(tool), err.at(tool)); }
  const std::string& text(std::size_t tool = 0) const { return out.at(tool); }
};

/// A workload that is held until tools are attached.
class Scene {
 public:
  /// The first word is the workload's name.
  explicit Scene(const Strings& workload, Workload::How how = kLinger);

  Workload& workload() { return workload_; }
  Json ready() const { return workload_.ready(); }
  /// The words with {pid}, and with {KEY} for what the workload says of KEY when it is ready.
  Strings filled(Strings words) const;
  /// Starts a tool, the first word, and waits until it is attached; skips where it cannot run.
  Tracer& trace(const Strings& tool, Tracer::How how = {});
  /// Releases the workload, waits until it has said its truth, ends the tools by SIGINT.
  Observed finish();

 private:
  Workload workload_;
  std::vector<std::unique_ptr<Tracer>> tracers_;
};

Observed observe_all(const std::vector<Strings>& tools, const Strings& workload,
                     Workload::How how = kLinger);
inline Observed observe(const Strings& tool, const Strings& workload, Workload::How how = kLinger) {
  return observe_all(std::vector<Strings>(1, tool), workload, std::move(how));
}

}  // namespace coretap::tooltest
