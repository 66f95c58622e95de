// Child processes whose output is read as it arrives. Each process has a timeout and ends with the
// test.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "strings.hpp"

namespace coretap::tooltest {

/// Timeout of all actions; long because emulated guests are slow: it only catches hangs.
inline constexpr std::chrono::seconds kPatience{100};

/// Thrown if this machine cannot run a test; TOOL_TEST turns it into GTEST_SKIP.
struct Skip : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The working directory of programs that tests start: some tools write a file there if no other is
/// named. Empty: that of the tests.
inline std::string working_directory;

struct Spawn {
  Strings argv;
  bool stdin_pipe = false;              ///< otherwise /dev/null
  std::string stdout_path = {};         ///< a file instead of a pipe
  std::function<void()> in_child = {};  ///< before exec; async-signal-safe calls only
  int death_signal = 9;                 ///< if the test dies
};

// For Spawn::in_child: called in the child, before exec. Exits with 126 on failure.

/// Root, but with no capability except these (CAP_...).
std::function<void()> as_root(std::vector<int> capabilities);
/// An ordinary user with these capabilities.
std::function<void()> as_nobody(std::vector<int> capabilities);

/// A child process in a separate process group; a thread reads its output as it arrives.
class Process {
 public:
  explicit Process(const Spawn& spawn);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  void write_stdin(std::string_view text);
  void close_stdin();
  /// Closes the test's end of its stdout.
  void close_stdout();
  /// Whether its stdout is read; with `false` from the start, its output stays in the pipe.
  void read_stdout(bool wanted);

  std::string out() const;
  std::string err() const;
  Strings out_lines() const;  ///< complete ones only

  /// Waits until the condition holds for (stdout, stderr); false: the process has ended.
  bool await(const std::function<bool(const std::string&, const std::string&)>& condition,
             std::chrono::seconds patience = kPatience);
  /// Waits for its exit; after the limit kills it and throws. 128 + n: signal n.
  int wait(std::chrono::milliseconds limit = kPatience);
  bool ended() { return reap(false); }

 private:
  void read_pipes();
  void kill_group();
  bool reap(bool block);

  pid_t pid_ = -1;
  int stdin_ = -1, stdout_ = -1, stderr_ = -1, wake_[2] = {-1, -1};
  bool close_stdout_wanted_ = false, read_stdout_ = true, reading_ = true;
  std::optional<int> status_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string out_, err_;
  std::thread reader_;
};

/// Sleeps.
void nap(std::chrono::milliseconds time);
/// False: the condition did not hold in kPatience.
bool until(const std::function<bool()>& condition);
/// S: sleeps, Z: has ended, and so on.
char state_of(pid_t pid);
/// Waits until it sleeps steadily; false if it ends instead.
bool await_sleep(pid_t pid);
/// It is off its CPU in a read of its standard input; false also after its exit.
bool reads_stdin(pid_t pid);

struct Result {
  int status = 0;
  std::string out, err;
};
Result run(const Strings& argv, const std::function<void()>& in_child = {},
           const std::string& stdout_path = {});

}  // namespace coretap::tooltest
