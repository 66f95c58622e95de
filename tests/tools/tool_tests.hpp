// Declared by a tool's test file for the tests that run for every tool: nothing else in the tests
// knows a tool.
//
//   TESTS_OF(mytool, .events = {{}, "workload --count 5"}, ...);
#pragma once
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "process.hpp"
#include "stress/row.hpp"

namespace coretap::tooltest {

using stress::count_row;
using stress::event_row;
using stress::stack_row;
using stress::total_row;

inline constexpr ReportKind kReportKinds[] = {ReportKind::events,   ReportKind::aggregate,
                                              ReportKind::stacks,   ReportKind::allocations,
                                              ReportKind::snapshot, ReportKind::recorder};
const char* name_of(ReportKind kind);
/// For GoogleTest.
void PrintTo(ReportKind kind, std::ostream* out);

struct ToolTests {
  struct Report {
    ReportKind kind;
    Strings options = {};  ///< options to print it
  };
  /// A workload that makes events for this tool, and options that show names.
  struct Events {
    Strings options, command;
    bool in_turns = false;  ///< the command uses up the machine's memory: one at a time
  };
  /// Beside all other tools, for hours (tests/stress/long-run). PID: a process that allocates and
  /// frees.
  struct LongRun {
    Strings arguments;           ///< none: for tables one every ten seconds
    std::string of = {};         ///< if a tool has several
    bool holds_results = false;  ///< its results accumulate until the end
  };

  std::string name;
  std::vector<Report> reports = {};  ///< default: that of the row
  Events events;
  Strings user_stacks = {};        ///< options that print them; its life has them, too
  bool alone = false;              ///< its tests measure the machine: none runs in parallel
  bool nothing_when_idle = false;  ///< histograms by key: no lines without events
  stress::Row stress;
  std::vector<LongRun> long_run = {{}};
};

struct DeclareTests {
  explicit DeclareTests(ToolTests tests);
};
#define TESTS_OF(tool, ...)            \
  const DeclareTests kTestsOf_##tool { \
    { .name = #tool, __VA_ARGS__ }     \
  }

/// All declarations, by name.
const std::map<std::string, ToolTests>& declared_tests();
/// The declaration of one tool; throws if there is none. The command is a path.
const ToolTests& tests_of(const std::string& tool);
ToolTests::Events events_for(const std::string& tool);

/// The first tool that has such a report, with the options that print it.
struct Representative {
  std::string tool;
  Strings options;
};
Representative representative(ReportKind kind);

/// Whether a class's tests run with each tool instead of one: CORETAP_ALL_TOOLS=1.
bool with_all_tools();

/// One line of JSON per tool, for other programs.
std::string declarations_as_json();

}  // namespace coretap::tooltest
