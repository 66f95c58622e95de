#include "tracer.hpp"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <stdexcept>

#include "coretap/tool.hpp"
#include "machine.hpp"
#include "text.hpp"

namespace coretap::tooltest {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

namespace {

std::string environment(const char* name, const std::string& otherwise) {
  auto* value = ::getenv(name);
  return value && *value ? value : otherwise;
}

}  // namespace

// ---- paths ----

std::string bin_directory() {
  return environment("CORETAP_BIN",
                     std::filesystem::read_symlink("/proc/self/exe").parent_path().string());
}
std::string tool_path(const std::string& name) { return bin_directory() + "/" + name; }
Result run_tool(const std::string& tool, const Strings& arguments,
                const std::function<void()>& in_child, const std::string& stdout_path) {
  return run(Strings{tool_path(tool)} + arguments, in_child, stdout_path);
}
std::string workload_path(const std::string& name) {
  return environment("CORETAP_WORKLOADS", bin_directory() + "/workloads") + "/" + name;
}

std::vector<std::string> tool_names() {
  std::vector<std::string> names;
  for (auto& entry : registry()) names.emplace_back(entry.name);
  return names;
}

std::optional<std::string> expected_missing(const std::string& tool) {
  std::ifstream file(environment("CORETAP_EXPECT", "/dev/null"));
  for (std::string line; std::getline(file, line);) {
    auto tab = line.find('\t');
    if (line.empty() || line[0] == '#' || tab == std::string::npos) continue;
    if (line.substr(0, tab) != tool) continue;
    auto why = line.substr(tab + 1);
    // This depends on the machine, not the kernel.
    if (why == "where there are no hardware counters" && has_hardware_counters())
      return std::nullopt;
    return why;
  }
  return std::nullopt;
}

// ---- which tools run here ----

namespace {

/// Tools that are known to run here, in a file that all processes of the tests share: a line for
/// each, starting with the boot id of the kernel and the build of the tools.
class KnownToRun {
 public:
  static KnownToRun& all() {
    static KnownToRun known;
    return known;
  }

  bool has(const std::string& tool) const { return tools_.contains(tool); }
  void add(const std::string& tool) {
    read();
    if (!tools_.insert(tool).second) return;
    // Other processes write it, too: tools whose lines are overwritten are tried once more.
    std::string text, temporary = path_ + ".XXXXXX";
    for (auto& known : tools_) text += begin_ + known + "\n";
    int fd = ::mkstemp(temporary.data());
    if (fd < 0) return;
    bool written = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    ::close(fd);
    if (!written || ::rename(temporary.c_str(), path_.c_str())) ::unlink(temporary.c_str());
  }

 private:
  KnownToRun() : path_(std::filesystem::temp_directory_path() / "coretap-tests.run-here") {
    struct stat build {};
    ::stat(tool_path("coretap").c_str(), &build);
    auto boot = slurp("/proc/sys/kernel/random/boot_id");
    begin_ = boot.substr(0, boot.find('\n'));
    for (auto number :
         {static_cast<long>(build.st_ino), build.st_mtim.tv_sec, build.st_mtim.tv_nsec})
      begin_ += " " + std::to_string(number);
    begin_ += " ";
    read();
  }
  void read() {
    for (auto& line : complete_lines(slurp(path_)))
      if (line.starts_with(begin_)) tools_.insert(line.substr(begin_.size()));
  }

  std::string path_, begin_;
  std::set<std::string> tools_;
};

}  // namespace

void note_that_it_runs(const std::string& tool) { KnownToRun::all().add(tool); }

void require_tool(const std::string& tool) {
  static std::map<std::string, Result> tried;
  if (KnownToRun::all().has(tool)) return;
  auto known = tried.find(tool);
  if (known == tried.end()) {
    const Strings words{tool_path(tool), "--json", "--duration", "0.2"};
    auto result = run(words + Strings{"--pid", std::to_string(::getpid())});
    if (result.status == 2) result = run(words);  // a report of the whole machine has no filter
    known = tried.emplace(tool, std::move(result)).first;
  }
  auto& [status, out, err] = known->second;
  if (status == 0) return note_that_it_runs(tool);
  if (auto why = expected_missing(tool); why && status == 3) throw Skip(tool + ": " + *why);
  throw std::runtime_error(tool + " does not run here: exit status " + std::to_string(status) +
                           ", stderr: " + err);
}

void require_whole_cpus() {
  for (auto& line : lines(slurp("/proc/self/cgroup"))) {
    bool first = line.find(":cpu") != line.npos;  // of the first version; else "0::PATH"
    if (!first && !line.starts_with("0::")) continue;
    auto root = std::string("/sys/fs/cgroup") + (first ? "/cpu" : "");
    for (auto path = line.substr(line.rfind(':') + 1); path.size() > 1;
         path.erase(path.rfind('/'))) {
      auto quota = words(slurp(root + path + (first ? "/cpu.cfs_quota_us" : "/cpu.max")));
      if (!quota.empty() && quota[0] != "max" && quota[0] != "-1")
        throw Skip("where no quota of CPU time is set: " + path + " has one");
    }
  }
}

double slowness() {
  static const double factor = [] {
    auto start = Clock::now();
    for (int i = 0; i < 4; i++) run({tool_path("coretap"), "--version"});
    // Measured with this loop: 3 ms each on an ordinary machine.
    return std::max(1.0, std::chrono::duration<double>(Clock::now() - start).count() / 4 / 0.01);
  }();
  return factor;
}

std::chrono::milliseconds soon() {
  return std::min(20'000ms, std::chrono::milliseconds(static_cast<int>(5000 * slowness())));
}

std::chrono::milliseconds ends_within() {
  return std::min(15'000ms, std::chrono::milliseconds(static_cast<int>(4000 * slowness())));
}

// ---- workloads ----

Workload::Workload(const std::string& name, Strings arguments, How how)
    : name_(name), linger_(how.linger), patience_(how.patience) {
  Strings argv{workload_path(name), "--hold", "--timeout", std::to_string(how.patience.count())};
  if (how.linger) argv.push_back("--linger");
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  process_ = std::make_unique<Process>(
      Spawn{.argv = argv, .stdin_pipe = true, .in_child = how.in_child, .death_signal = SIGTERM});
  if (!process_->await([](auto& out, auto&) { return out.find('\n') != std::string::npos; }))
    gone();
  await_rest();
  ready_ = Json::parse(process_->out_lines().at(0));
}

void Workload::await_rest() {
  if (!until([&] { return reads_stdin(pid()) || process_->ended(); }))
    throw std::runtime_error("workload " + name_ + " does not rest");
}

void Workload::gone() {
  int status = process_->wait();
  if (status == 77) throw Skip(process_->err());
  throw std::runtime_error("workload " + name_ + " ended with " + std::to_string(status) + ": " +
                           process_->err());
}

Json Workload::truth() {
  if (truth_) return *truth_;
  auto two = [](const std::string& out, auto&) {
    return std::count(out.begin(), out.end(), '\n') >= 2;
  };
  if (!process_->await(two, patience_)) gone();
  if (linger_)
    await_rest();
  else if (process_->wait() != 0)
    gone();
  truth_ = Json::parse(process_->out_lines().at(1));
  return *truth_;
}

// ---- tools ----

std::uint64_t Report::sum(const char* key) const {
  std::uint64_t total = 0;
  for (auto& line : body) total += line[key].u64();
  return total;
}

std::vector<Json> Report::of_process(std::uint64_t pid) const {
  std::vector<Json> own;
  for (auto& event : body)
    if (event["pid"].u64() == pid) own.push_back(event);
  return own;
}

Report parse_report(const std::string& out, const std::string& err) {
  std::vector<Json> own;
  Report report;
  report.err = err;
  if (!out.empty() && out.back() != '\n')
    throw std::runtime_error("the last line is not complete: " + out);
  for (auto& line : complete_lines(out)) {
    auto json = Json::parse(line);
    if (json.has("workload"))
      report.truth = json;
    else
      own.push_back(json);
  }
  if (own.size() < 2) throw std::runtime_error("no header and ledger: " + out + err);
  if (own.front()["type"].str() != "header")
    throw std::runtime_error("the first line is no header: " + out);
  if (own.back()["type"].str() != "ledger")
    throw std::runtime_error("the last line is no ledger: " + out);
  // Lines of several tools can be in one file.
  auto tool = own.front()["tool"].str();
  for (auto& line : own)
    if (line["tool"].str() != tool) throw std::runtime_error("a line without the tool: " + out);
  report.header = own.front();
  report.ledger = own.back();
  report.body.assign(own.begin() + 1, own.end() - 1);
  for (auto& line : report.body)
    if (auto type = line["type"].str(); type == "header" || type == "ledger")
      throw std::runtime_error("a second " + type + ": " + out);
  return report;
}

Json read_report(const std::string& out, const std::function<void(const Json&)>& visit) {
  auto last = out.rfind('\n', out.size() - 2);
  if (out.empty() || out.back() != '\n' || last == std::string::npos)
    throw std::runtime_error("not complete: " + out.substr(0, 1000));
  auto ledger = Json::parse(out.substr(last + 1));
  if (ledger["type"].str() != "ledger") throw std::runtime_error("the last line is no ledger");
  std::size_t at = out.find('\n') + 1;
  if (Json::parse(out.substr(0, at))["type"].str() != "header")
    throw std::runtime_error("the first line is no header");
  while (at <= last) {
    auto end = out.find('\n', at);
    visit(Json::parse(out.substr(at, end - at)));
    at = end + 1;
  }
  return ledger;
}

bool has_kernel_program(const std::string& tool) {
  return build(*find_tool(tool)).report->has_program();
}

void expect_complete(const std::string& tool, const Report& report) {
  EXPECT_EQ(report.header["tool"].str(), tool);
  EXPECT_FALSE(report.header["version"].str().empty());
  auto hooks = report.header["hooks"].items();
  EXPECT_TRUE(!has_kernel_program(tool) || std::any_of(hooks.begin(), hooks.end(), [](auto& hook) {
    return !hook["attached"].strings().empty();
  }));
  std::uint64_t sum = 0;
  for (auto* outcome : {"shown", "filtered", "lost", "untracked", "unmatched", "overwritten",
                        "missed", "unjudged", "limited", "unread"})
    sum += report.ledger[outcome].u64();
  EXPECT_EQ(report.ledger["seen"].u64(), sum);
}

Tracer::Tracer(const std::string& tool, Strings arguments, How how) : name_(tool) {
  Strings argv{tool_path(tool)};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  process_ = std::make_unique<Process>(
      Spawn{.argv = argv, .stdout_path = how.stdout_path, .in_child = std::move(how.in_child)});
  if (how.attached && !attached()) wrong(process_->wait(), "");
}

void Tracer::wrong(int status, const char* when) {
  if (auto why = expected_missing(name_); why && status == 3) throw Skip(name_ + ": " + *why);
  throw std::runtime_error(name_ + " ended with " + std::to_string(status) + when + ": " +
                           process_->err());
}

bool Tracer::attached() {
  return process_->await([](const std::string& out, const std::string& err) {
    return contains(err, "Ctrl-C to end") || contains(out, "\"type\":\"header\"") ||
           out.starts_with("time,") || out.starts_with("comm,pid");
  });
}

/// With --strict, when the kernel did not report the missing events.
bool Tracer::lost_by_kernel() const {
  static const std::regex cause(" +([0-9]+)  (.+)");
  auto err = process_->err();
  // Where tracepoints can be preempted, the kernel sometimes skips a program; the tool reports it.
  if (contains(err, "missed: BPF program")) return true;
  std::uint64_t unmatched = 0;
  for (auto& line : complete_lines(err)) {
    std::smatch parts;
    if (!std::regex_match(line, parts, cause) || contains(line, "excluded by filters")) continue;
    if (!parts[2].str().starts_with("unmatched")) return false;
    unmatched += std::stoull(parts[1]);
  }
  return unmatched && unmatched <= unreported_until_end_;
}

/// Its exit status; also 0 in that case, or if it reports a finding by it.
int Tracer::wait() {
  int status = process_->wait();
  unreported_until_end_ = unreported_.switches();
  if (status == 1 && name_ == "deadlock" && contains(process_->out(), "eadlock")) return 0;
  return status == 4 && lost_by_kernel() ? 0 : status;
}

std::string Tracer::stop_text(int signal) {
  process_->signal(signal);
  if (int status = wait()) wrong(status, " after a signal");
  return process_->out();
}

Report Tracer::stop(int signal) {
  auto out = stop_text(signal);
  auto report = parse_report(out, process_->err());
  report.unreported = unreported_until_end_;
  return report;
}

Report Tracer::finish(int expected_status) {
  int status = expected_status ? process_->wait() : wait();
  if (status != expected_status) wrong(status, "");
  auto report = parse_report(process_->out(), process_->err());
  report.unreported = unreported_until_end_;
  return report;
}

Json read_by_python(const std::string& script, const std::string& file) {
  static const bool python = run({"/bin/sh", "-c", "command -v python3"}).status == 0;
  if (!python) throw Skip("no python3 to read " + file);
  auto result = run({"/usr/bin/env", "python3", "-c", script, file});
  if (result.status) throw std::runtime_error(result.err);
  return Json::parse(result.out);
}

}  // namespace coretap::tooltest
