// A tool, and a workload that makes a known number of events, with both outputs in JSON.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "json.hpp"
#include "machine.hpp"
#include "process.hpp"

namespace coretap::tooltest {

std::string bin_directory();
std::string tool_path(const std::string& name);
/// As run() does.
Result run_tool(const std::string& tool, const Strings& arguments,
                const std::function<void()>& in_child = {}, const std::string& stdout_path = {});
std::string workload_path(const std::string& name);
std::vector<std::string> tool_names();

/// False: without options the tool only reads what the kernel counts.
bool has_kernel_program(const std::string& tool);

/// The reason in the expectation file (CORETAP_EXPECT) why this tool may be missing here.
std::optional<std::string> expected_missing(const std::string& tool);

/// Skips or fails unless the tool runs on this kernel. Each tool is tried once; success is kept in
/// a file for other processes of the tests, until the machine boots or the tools are built.
void require_tool(const std::string& tool);
void note_that_it_runs(const std::string& tool);

/// Skips where a quota of CPU time holds for the tests: tasks then wait while CPUs are idle.
void require_whole_cpus();

/// A program that waits, ready, until the tracer is attached. Its setup has ended: it has left its
/// CPU.
class Workload {
 public:
  struct How {
    bool linger = false;
    std::function<void()> in_child = {};
    std::chrono::seconds patience = kPatience;  ///< it ends on its own afterwards
  };
  Workload(const std::string& name, Strings arguments, How how);
  Workload(const std::string& name, Strings arguments)
      : Workload(name, std::move(arguments), How{}) {}
  /// The first word is its name.
  static Workload of(const Strings& words, How how) {
    return {words.at(0), {words.begin() + 1, words.end()}, std::move(how)};
  }

  pid_t pid() const { return process_->pid(); }
  std::string id() const { return std::to_string(pid()); }
  const Json& ready() const { return *ready_; }
  void release() { process_->write_stdin("x"); }
  /// Its truth; waits for its end, or until it lingers off its CPU.
  Json truth();

 private:
  [[noreturn]] void gone();
  void await_rest();

  std::string name_;
  bool linger_;
  std::chrono::seconds patience_;
  std::unique_ptr<Process> process_;
  std::optional<Json> ready_, truth_;
};

/// A tool's output with --json.
struct Report {
  Json header, ledger;
  std::vector<Json> body;
  std::optional<Json> truth;  ///< last line of a workload that ran as the tool's command
  std::string err;
  std::uint64_t unreported = 0;  ///< switches meanwhile that the kernel may not have reported

  std::uint64_t sum(const char* key) const;
  std::vector<Json> of_process(std::uint64_t pid) const;
  std::uint64_t lost(const char* cause) const { return ledger[cause].u64(); }
};
Report parse_report(const std::string& out, const std::string& err);
/// The same for long reports, not kept in memory: calls back for each line but the header, returns
/// the last one, the ledger.
Json read_report(const std::string& out, const std::function<void(const Json&)>& visit);
/// It names the tool and its version, something is attached, and the ledger adds up.
void expect_complete(const std::string& tool, const Report& report);

/// A running tool. The constructor returns when it is attached; skips if it cannot run.
class Tracer {
 public:
  struct How {
    std::string stdout_path = {};
    bool attached = true;  ///< wait until it is attached
    std::function<void()> in_child = {};
  };
  Tracer(const std::string& tool, Strings arguments, How how);
  Tracer(const std::string& tool, Strings arguments) : Tracer(tool, std::move(arguments), How{}) {}

  Process& process() { return *process_; }
  /// Waits until it is attached; false if it exited first.
  bool attached();
  /// Ends it by a signal; throws unless the exit status is 0.
  std::string stop_text(int signal = 2);
  Report stop(int signal = 2);
  /// Waits until it exits on its own.
  Report finish(int expected_status = 0);
  /// Report::unreported, until its exit.
  std::uint64_t unreported() const { return unreported_until_end_; }

 private:
  [[noreturn]] void wrong(int status, const char* when);
  int wait();
  bool lost_by_kernel() const;

  std::string name_;
  Unreported unreported_;
  std::uint64_t unreported_until_end_ = 0;
  std::unique_ptr<Process> process_;
};

/// Runs a Python script with an independent parser on a file; the script prints one JSON value.
Json read_by_python(const std::string& script, const std::string& file);

}  // namespace coretap::tooltest
