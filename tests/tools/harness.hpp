// Runs the real executables: a tool and a victim that makes a known number of events, and reads
// the JSON of both. Whatever is started here is bounded in time and ends with the test.
#pragma once
#include <gtest/gtest.h>
#include <rapidjson/document.h>
#include <sys/types.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace coretap::tooltest {

using Strings = std::vector<std::string>;

/// The longest that anything may take; emulated guests are slow, so it only catches what hangs.
inline constexpr std::chrono::seconds kPatience{100};

/// Thrown where this machine cannot run a test; TOOL_TEST turns it into GTEST_SKIP.
struct Skip : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A value of a JSON document, which it keeps alive. Asking for what is not there throws.
class Json {
 public:
  static Json parse(const std::string& text);

  bool has(const char* key) const;
  bool is_null() const { return value_->IsNull(); }
  Json operator[](const char* key) const;
  bool null() const { return value_->IsNull(); }
  std::vector<Json> items() const;
  Strings strings() const;
  std::uint64_t u64() const;
  std::int64_t i64() const;
  double real() const;
  bool boolean() const;
  std::string str() const;
  const rapidjson::Value& value() const { return *value_; }

 private:
  [[noreturn]] void wrong(const std::string& what) const;

  std::shared_ptr<rapidjson::Document> document_;
  const rapidjson::Value* value_ = nullptr;
};

struct Spawn {
  Strings argv;
  bool stdin_pipe = false;              ///< else /dev/null
  std::string stdout_path = {};         ///< a file instead of a pipe
  std::function<void()> in_child = {};  ///< before exec; async-signal-safe calls only
  int death_signal = 9;                 ///< when the test itself dies
};

// For Spawn::in_child: in the child, before exec. Ends it with 126 where that cannot be.

/// Root, but with no capability except these (CAP_...).
std::function<void()> as_root(std::vector<int> capabilities);
/// An ordinary user with these.
std::function<void()> as_nobody(std::vector<int> capabilities);

/// A child process in a group of its own; its output is read by a thread as it comes.
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
  /// Closes our end of its stdout.
  void close_stdout();
  /// Whether its stdout is read; not to begin with `false` leaves what it writes in the pipe.
  void read_stdout(bool wanted);

  std::string out() const;
  std::string err() const;
  Strings out_lines() const;  ///< complete ones only

  /// Until the condition holds for (stdout, stderr), or the process is gone: false.
  bool await(const std::function<bool(const std::string&, const std::string&)>& condition,
             std::chrono::seconds patience = kPatience);
  /// Waits for the end, kills it if that does not come in time (and throws). 128 + n: signal n.
  int wait(std::chrono::milliseconds limit = kPatience);
  bool ended() const;

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

struct Result {
  int status = 0;
  std::string out, err;
};
Result run(const Strings& argv, const std::function<void()>& in_child = {},
           const std::string& stdout_path = {});

std::string bin_directory();
std::string tool_path(const std::string& name);
std::string victim_path(const std::string& name);
std::vector<std::string> tool_names();  ///< by `coretap list --json`

/// Why the expectation file (CORETAP_EXPECT) says that this tool may be missing here.
std::optional<std::string> expected_missing(const std::string& tool);

/// Asked of the kernel without our code.
bool has_hardware_counters();

/// Skips or fails unless the tool runs on this kernel; each tool is tried once.
void require_tool(const std::string& tool);

/// How much slower than a usual machine this one is; at least 1.
double slowness();

/// A program that waits, ready, until the tracer is attached.
class Victim {
 public:
  struct How {
    bool linger = false;
    std::function<void()> in_child = {};
    std::chrono::seconds patience = kPatience;  ///< it ends by itself then
  };
  Victim(const std::string& name, Strings arguments, How how);
  Victim(const std::string& name, Strings arguments) : Victim(name, std::move(arguments), How{}) {}

  pid_t pid() const { return process_->pid(); }
  std::string id() const { return std::to_string(pid()); }
  const Json& ready() const { return *ready_; }
  void release() { process_->write_stdin("x"); }
  /// What it says it did; waits for its end unless it lingers.
  Json truth();
  void end_lingering();

 private:
  [[noreturn]] void gone();

  std::string name_;
  bool linger_;
  std::chrono::seconds patience_;
  std::unique_ptr<Process> process_;
  std::optional<Json> ready_, truth_;
};

/// What a tool printed with --json.
struct Report {
  Json header, ledger;
  std::vector<Json> body;
  std::optional<Json> truth;  ///< last line of a victim that ran as the tool's command
  std::string err;

  std::uint64_t sum(const char* key) const;
  std::vector<Json> of_process(std::uint64_t pid) const;
  std::uint64_t lost(const char* cause) const { return ledger[cause].u64(); }
};
Report parse_report(const std::string& out, const std::string& err);
/// The same for reports too long to be kept: calls back for each line but the header, returns the
/// last one, the ledger.
Json read_report(const std::string& out, const std::function<void(const Json&)>& visit);

/// A running tool. The constructor returns when it is attached.
class Tracer {
 public:
  struct How {
    std::string stdout_path = {};
    bool attached = true;  ///< wait for that
    std::function<void()> in_child = {};
  };
  Tracer(const std::string& tool, Strings arguments, How how);
  Tracer(const std::string& tool, Strings arguments) : Tracer(tool, std::move(arguments), How{}) {}

  Process& process() { return *process_; }
  /// Waits until it is attached; false if it ended before.
  bool attached();
  /// Ends it by a signal; anything but exit status 0 throws.
  std::string stop_text(int signal = 2);
  Report stop(int signal = 2);
  /// Waits for its own end.
  Report finish(int expected_status = 0);

 private:
  std::string name_;
  std::unique_ptr<Process> process_;
};

/// What a tool says with --json of a victim that is its command; skips where the victim cannot.
Report follow(const std::string& tool, const std::string& victim, const Strings& arguments);

/// A victim that makes events for this tool, and options that show names.
struct Events {
  Strings options, command;
  bool in_turns = false;  ///< the command presses for the machine's memory: one at a time
};
Events events_for(const std::string& tool);

/// The words of the first line.
Strings words(const std::string& text);
/// The words of the header that a tool prints when nothing happens.
Strings header_of(const std::string& tool, Strings options);

/// Bytes as victims write them where they may be no UTF-8.
std::string unhex(const std::string& hex);

/// Gone with this object, and all that is in it.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// A cgroup (version 2) of our own, gone with this object.
class Cgroup {
 public:
  /// `suffix`: what its name ends in.
  explicit Cgroup(const std::string& suffix = {});
  ~Cgroup();
  const std::string& path() const { return path_; }
  void add(pid_t pid) const;

 private:
  std::string path_, mounted_;
};

/// A file system of the kernel at a place of our own.
class Mounted {
 public:
  explicit Mounted(const char* type, const char* options = nullptr);
  ~Mounted();
  Mounted(const Mounted&) = delete;
  Mounted& operator=(const Mounted&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// What the kernel's own trace says of one event ("kmem/mm_page_alloc_extfrag"), in an instance
/// that others do not see.
class Trace {
 public:
  explicit Trace(const std::string& event);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  void stop() const { turn("0"); }
  /// Lines of the event, from its name on; of one task, or of all.
  Strings lines(std::optional<pid_t> task = {}) const;

 private:
  void turn(const char* value) const;

  Mounted tracefs_{"tracefs"};
  std::string event_, instance_;
};

/// Growth of the counters in a file of "KEY VALUE" lines, such as /proc/vmstat.
class Counters {
 public:
  explicit Counters(std::string path = "/proc/vmstat");
  /// Since construction; a key that ends in '*' sums.
  std::uint64_t growth(std::string_view key) const;

 private:
  std::uint64_t sum(const std::string& text, std::string_view key) const;
  std::string path_, before_;
};

/// Of /proc/diskstats: what stands behind a disk's name; 0 where this kernel has less. None: no
/// such disk.
using DiskNumbers = std::array<std::uint64_t, 17>;
std::optional<DiskNumbers> diskstats(const std::string& disk);
/// Requests of one disk by the kernel's own count, since it is there.
std::uint64_t diskstats_requests(const std::string& disk);

std::string slurp(const std::string& path);

/// Is this machine a guest of scripts/vm, ours to change?
bool in_guest();
/// A file of /proc or /sys with another content, until the end. For guests.
class Setting {
 public:
  Setting(std::string path, const std::string& value);
  ~Setting() { set(was_); }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;
  bool set(const std::string& value) const;

 private:
  std::string path_, was_;
};

bool contains(std::string_view text, std::string_view what);
/// Nothing that moves a cursor: below 0x20 only newlines and tabs that indent a line, no DEL, valid
/// UTF-8.
::testing::AssertionResult safe_for_terminals(const std::string& text);

/// Lines of a text of complete ones.
Strings lines(const std::string& text);
/// The fields of one CSV line (RFC 4180; no newlines within).
Strings csv_fields(const std::string& line);
/// All rows have the fields of the header, and nothing raw is in them. Returns the number of rows.
std::size_t check_csv(const std::string& text);

/// The counts and bounds of one histogram are consistent.
void check_histogram(const Json& histogram, std::uint64_t unit_ns);

/// Ids of the BPF programs, links and maps that a process holds.
struct BpfIds {
  std::vector<std::uint32_t> programs, links, maps;
  std::size_t size() const { return programs.size() + links.size() + maps.size(); }
};
BpfIds bpf_ids(pid_t pid);
/// How many of them are still there, after at most the time that the kernel needs to free them.
std::size_t bpf_left(const BpfIds& ids);

/// The third's failures are the test's.
void in_three_attempts(void (*body)());

}  // namespace coretap::tooltest

/// A test that may throw Skip anywhere.
#define TOOL_TEST_BODY(function)                    \
  try {                                             \
    function;                                       \
  } catch (const ::coretap::tooltest::Skip& skip) { \
    GTEST_SKIP() << skip.what();                    \
  }
/// Events of a known number are what such a test counts. Some kernels leave out all tracepoints
/// of a CPU for a millisecond now and then (seen on 6.18: one task's next is not the next one's
/// previous, for every program alike), so it may fail twice, and says why when it does.
#define SWITCH_TEST(suite, name)                                                               \
  static void suite##_##name();                                                                \
  TEST(suite, name) { TOOL_TEST_BODY(::coretap::tooltest::in_three_attempts(suite##_##name)) } \
  static void suite##_##name()
#define TOOL_TEST(suite, name)                           \
  static void suite##_##name();                          \
  TEST(suite, name) { TOOL_TEST_BODY(suite##_##name()) } \
  static void suite##_##name()
