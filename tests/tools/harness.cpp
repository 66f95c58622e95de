#include "harness.hpp"

#include <bpf/bpf.h>
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest-spi.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <linux/securebits.h>
#include <poll.h>
#include <rapidjson/error/en.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

namespace coretap::tooltest {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

namespace {

/// Where a test runner has closed its standard descriptors, files and pipes of ours would take
/// their numbers and be closed on the way to a child's.
[[gnu::constructor]] void fill_standard_descriptors() {
  for (int fd = 0; fd <= 2; fd++)
    if (::fcntl(fd, F_GETFD) < 0) (void)!::open("/dev/null", O_RDWR);
}

std::runtime_error failed(const std::string& what) { return std::runtime_error(what); }

void nap(std::chrono::milliseconds time) { std::this_thread::sleep_for(time); }

std::string join(const Strings& words) {
  std::string text;
  for (auto& w : words) text += (text.empty() ? "" : " ") + w;
  return text;
}

Strings lines_of(const std::string& text) {
  Strings lines;
  std::size_t at = 0;
  for (auto end = text.find('\n'); end != std::string::npos; end = text.find('\n', at)) {
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::string environment(const char* name, const std::string& otherwise) {
  auto* value = ::getenv(name);
  return value && *value ? value : otherwise;
}

}  // namespace

// ---- JSON ----

namespace {
// One line's values, in hardly more room than they need: there may be a hundred thousand lines.
struct Parsed {
  explicit Parsed(const std::string& text) : pool(2 * text.size() + 256), document(&pool) {}
  rapidjson::MemoryPoolAllocator<> pool;
  rapidjson::Document document;
};
}  // namespace

Json Json::parse(const std::string& text) {
  Json json;
  auto parsed = std::make_shared<Parsed>(text);
  json.document_ = {parsed, &parsed->document};
  json.document_->Parse<rapidjson::kParseValidateEncodingFlag | rapidjson::kParseFullPrecisionFlag>(
      text.data(), text.size());
  if (json.document_->HasParseError())
    throw failed(std::string("not JSON: ") +
                 rapidjson::GetParseError_En(json.document_->GetParseError()) + ": " + text);
  json.value_ = json.document_.get();
  return json;
}

void Json::wrong(const std::string& what) const {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  value_->Accept(writer);
  throw failed(what + " in " + buffer.GetString());
}

bool Json::has(const char* key) const { return value_->IsObject() && value_->HasMember(key); }

Json Json::operator[](const char* key) const {
  if (!has(key)) wrong(std::string("no ") + key);
  Json member = *this;
  member.value_ = &(*value_)[key];
  return member;
}

std::vector<Json> Json::items() const {
  if (!value_->IsArray()) wrong("not an array");
  std::vector<Json> all;
  for (auto& item : value_->GetArray()) {
    Json one = *this;
    one.value_ = &item;
    all.push_back(one);
  }
  return all;
}

Strings Json::strings() const {
  Strings all;
  for (auto& item : items()) all.push_back(item.str());
  return all;
}

std::uint64_t Json::u64() const {
  if (!value_->IsUint64()) wrong("not an unsigned number");
  return value_->GetUint64();
}
std::int64_t Json::i64() const {
  if (!value_->IsInt64()) wrong("not a number");
  return value_->GetInt64();
}
double Json::real() const {
  if (!value_->IsNumber()) wrong("not a number");
  return value_->GetDouble();
}
bool Json::boolean() const {
  if (!value_->IsBool()) wrong("not a boolean");
  return value_->GetBool();
}
std::string Json::str() const {
  if (!value_->IsString()) wrong("not a string");
  return {value_->GetString(), value_->GetStringLength()};
}

// ---- processes ----

Process::Process(const Spawn& spawn) {
  int in[2] = {-1, -1}, out[2] = {-1, -1}, err[2];
  ::signal(SIGPIPE, SIG_IGN);
  if ((spawn.stdin_pipe && ::pipe2(in, O_CLOEXEC)) || ::pipe2(err, O_CLOEXEC) ||
      ::pipe2(wake_, O_CLOEXEC))
    throw failed("pipe");
  if (spawn.stdout_path.empty()) {
    if (::pipe2(out, O_CLOEXEC)) throw failed("pipe");
  } else {
    out[1] = ::open(spawn.stdout_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (out[1] < 0) throw failed(spawn.stdout_path);
  }
  int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  std::vector<char*> argv;
  for (auto& w : spawn.argv) argv.push_back(const_cast<char*>(w.c_str()));
  argv.push_back(nullptr);

  pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw failed("fork");
  if (pid_ == 0) {
    ::setpgid(0, 0);
    ::dup2(in[0] >= 0 ? in[0] : null, 0);
    ::dup2(out[1], 1);
    ::dup2(err[1], 2);
    ::signal(SIGPIPE, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    if (spawn.in_child) spawn.in_child();
    ::prctl(PR_SET_PDEATHSIG, spawn.death_signal);
    if (::getppid() != parent) ::_exit(127);
    ::execvp(argv[0], argv.data());
    ::dprintf(2, "exec %s: %s\n", argv[0], strerror(errno));
    ::_exit(127);
  }
  ::setpgid(pid_, pid_);
  for (int fd : {in[0], out[1], err[1], null})
    if (fd >= 0) ::close(fd);
  stdin_ = in[1];
  stdout_ = out[0];
  stderr_ = err[0];
  reader_ = std::thread([this] { read_pipes(); });
}

Process::~Process() {
  if (!ended()) {
    // Victims undo what they changed on SIGTERM.
    signal(SIGTERM);
    auto until = Clock::now() + 5s;
    while (!reap(false) && Clock::now() < until) nap(10ms);
  }
  kill_group();
  reap(true);
  {
    std::lock_guard lock(mutex_);
    reading_ = false;
  }
  (void)!::write(wake_[1], "x", 1);
  reader_.join();
  for (int fd : {stdin_, stdout_, stderr_, wake_[0], wake_[1]})
    if (fd >= 0) ::close(fd);
}

void Process::read_pipes() {
  while (true) {
    {
      std::lock_guard lock(mutex_);
      if (!reading_) return;
      if (close_stdout_wanted_ && stdout_ >= 0) {
        ::close(stdout_);
        stdout_ = -1;
        changed_.notify_all();
      }
    }
    bool skip = false;
    {
      std::lock_guard lock(mutex_);
      skip = !read_stdout_;
    }
    pollfd fds[] = {{skip ? -1 : stdout_, POLLIN, 0}, {stderr_, POLLIN, 0}, {wake_[0], POLLIN, 0}};
    ::poll(fds, 3, -1);
    char buffer[65536];
    if (fds[2].revents) (void)!::read(wake_[0], buffer, sizeof buffer);
    for (auto* stream : {&stdout_, &stderr_}) {
      if (!fds[stream == &stderr_].revents) continue;
      auto n = ::read(*stream, buffer, sizeof buffer);
      std::lock_guard lock(mutex_);
      if (n > 0) {
        (stream == &stdout_ ? out_ : err_).append(buffer, static_cast<std::size_t>(n));
      } else if (n == 0 || errno != EINTR) {
        ::close(*stream);
        *stream = -1;
      }
      changed_.notify_all();
    }
  }
}

void Process::signal(int number) const {
  if (pid_ > 0 && !ended()) ::kill(pid_, number);
}

void Process::kill_group() {
  if (pid_ > 0) ::kill(-pid_, SIGKILL);
}

void Process::write_stdin(std::string_view text) {
  if (::write(stdin_, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    throw failed("cannot write to the process");
}

void Process::close_stdin() {
  if (stdin_ >= 0) ::close(stdin_);
  stdin_ = -1;
}

void Process::close_stdout() {
  std::unique_lock lock(mutex_);
  close_stdout_wanted_ = true;
  (void)!::write(wake_[1], "x", 1);
  changed_.wait(lock, [this] { return stdout_ < 0; });
}

void Process::read_stdout(bool wanted) {
  std::lock_guard lock(mutex_);
  read_stdout_ = wanted;
  (void)!::write(wake_[1], "x", 1);
}

std::string Process::out() const {
  std::lock_guard lock(mutex_);
  return out_;
}
std::string Process::err() const {
  std::lock_guard lock(mutex_);
  return err_;
}
Strings Process::out_lines() const { return lines_of(out()); }

bool Process::ended() const { return status_.has_value(); }

bool Process::reap(bool block) {
  if (status_) return true;
  int status = 0;
  pid_t got;
  while ((got = ::waitpid(pid_, &status, block ? 0 : WNOHANG)) < 0 && errno == EINTR) {
  }
  if (got == 0) return false;
  status_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return true;
}

bool Process::await(const std::function<bool(const std::string&, const std::string&)>& condition,
                    std::chrono::seconds patience) {
  auto until = Clock::now() + patience;
  while (true) {
    bool gone = reap(false);
    std::unique_lock lock(mutex_);
    if (condition(out_, err_)) return true;
    if (gone && stdout_ < 0 && stderr_ < 0) return false;
    if (Clock::now() > until) throw failed("timed out; stderr: " + err_);
    changed_.wait_for(lock, 20ms);
  }
}

int Process::wait(std::chrono::milliseconds limit) {
  auto until = Clock::now() + limit;
  while (!reap(false)) {
    if (Clock::now() > until) {
      auto text = err();
      kill_group();
      reap(true);
      throw failed("did not end in time; stderr: " + text);
    }
    nap(2ms);
  }
  // What it wrote is complete when the pipes are empty; a child left behind may hold them open.
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, 2s, [this] { return stdout_ < 0 && stderr_ < 0; });
  return *status_;
}

Result run(const Strings& argv, const std::function<void()>& in_child,
           const std::string& stdout_path) {
  Process p({.argv = argv, .stdout_path = stdout_path, .in_child = in_child});
  Result result;
  result.status = p.wait();
  result.out = p.out();
  result.err = p.err();
  return result;
}

// ---- where things are ----

std::string bin_directory() {
  return environment("CORETAP_BIN",
                     std::filesystem::read_symlink("/proc/self/exe").parent_path().string());
}
std::string tool_path(const std::string& name) { return bin_directory() + "/" + name; }
std::string victim_path(const std::string& name) {
  return environment("CORETAP_VICTIMS", bin_directory() + "/victims") + "/" + name;
}

std::vector<std::string> tool_names() {
  static const auto names = [] {
    std::vector<std::string> all;
    auto listed = run({tool_path("coretap"), "list", "--json"});
    for (auto& line : lines_of(listed.out)) all.push_back(Json::parse(line)["tool"].str());
    return all;
  }();
  return names;
}

bool has_hardware_counters() {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_HARDWARE;
  attr.config = PERF_COUNT_HW_CPU_CYCLES;
  auto fd = static_cast<int>(::syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
  if (fd >= 0) ::close(fd);
  return fd >= 0;
}

std::optional<std::string> expected_missing(const std::string& tool) {
  std::ifstream file(environment("CORETAP_EXPECT", "/dev/null"));
  for (std::string line; std::getline(file, line);) {
    auto tab = line.find('\t');
    if (line.empty() || line[0] == '#' || tab == std::string::npos) continue;
    if (line.substr(0, tab) != tool) continue;
    auto why = line.substr(tab + 1);
    // The machine decides this, not the kernel.
    if (why == "where there are no hardware counters" && has_hardware_counters())
      return std::nullopt;
    return why;
  }
  return std::nullopt;
}

void require_tool(const std::string& tool) {
  static std::map<std::string, Result> tried;
  auto known = tried.find(tool);
  if (known == tried.end())
    known = tried
                .emplace(tool, run({tool_path(tool), "--json", "--duration", "0.2", "-p",
                                    std::to_string(::getpid())}))
                .first;
  auto& [status, out, err] = known->second;
  if (status == 0) return;
  if (auto why = expected_missing(tool); why && status == 3) throw Skip(tool + ": " + *why);
  throw failed(tool + " does not run here: exit status " + std::to_string(status) +
               ", stderr: " + err);
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

// ---- victims ----

Victim::Victim(const std::string& name, Strings arguments, How how)
    : name_(name), linger_(how.linger), patience_(how.patience) {
  Strings argv{victim_path(name), "--hold", "--timeout", std::to_string(how.patience.count())};
  if (how.linger) argv.push_back("--linger");
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  process_ = std::make_unique<Process>(
      Spawn{.argv = argv, .stdin_pipe = true, .in_child = how.in_child, .death_signal = SIGTERM});
  if (!process_->await([](auto& out, auto&) { return out.find('\n') != std::string::npos; }))
    gone();
  ready_ = Json::parse(process_->out_lines().at(0));
}

void Victim::gone() {
  int status = process_->wait();
  if (status == 77) throw Skip(process_->err());
  throw failed("victim " + name_ + " ended with " + std::to_string(status) + ": " +
               process_->err());
}

Json Victim::truth() {
  if (truth_) return *truth_;
  auto two = [](const std::string& out, auto&) {
    return std::count(out.begin(), out.end(), '\n') >= 2;
  };
  if (!process_->await(two, patience_)) gone();
  if (!linger_ && process_->wait() != 0) gone();
  truth_ = Json::parse(process_->out_lines().at(1));
  return *truth_;
}

void Victim::end_lingering() {
  process_->write_stdin("x");
  if (process_->wait() != 0) gone();
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
  if (!out.empty() && out.back() != '\n') throw failed("the last line is not complete: " + out);
  for (auto& line : lines_of(out)) {
    auto json = Json::parse(line);
    if (json.has("victim"))
      report.truth = json;
    else
      own.push_back(json);
  }
  if (own.size() < 2) throw failed("no header and ledger: " + out + err);
  if (own.front()["type"].str() != "header") throw failed("the first line is no header: " + out);
  if (own.back()["type"].str() != "ledger") throw failed("the last line is no ledger: " + out);
  report.header = own.front();
  report.ledger = own.back();
  report.body.assign(own.begin() + 1, own.end() - 1);
  for (auto& line : report.body)
    if (auto type = line["type"].str(); type == "header" || type == "ledger")
      throw failed("a second " + type + ": " + out);
  return report;
}

Json read_report(const std::string& out, const std::function<void(const Json&)>& visit) {
  auto last = out.rfind('\n', out.size() - 2);
  if (out.empty() || out.back() != '\n' || last == std::string::npos)
    throw failed("not complete: " + out.substr(0, 1000));
  auto ledger = Json::parse(out.substr(last + 1));
  if (ledger["type"].str() != "ledger") throw failed("the last line is no ledger");
  std::size_t at = out.find('\n') + 1;
  if (Json::parse(out.substr(0, at))["type"].str() != "header")
    throw failed("the first line is no header");
  while (at <= last) {
    auto end = out.find('\n', at);
    visit(Json::parse(out.substr(at, end - at)));
    at = end + 1;
  }
  return ledger;
}

namespace {

/// The sets, and what makes them last through exec.
void take_capabilities(const std::vector<int>& capabilities) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  for (int c : capabilities) {
    auto bit = 1u << (c % 32);
    data[c / 32].effective |= bit;
    data[c / 32].permitted |= bit;
    data[c / 32].inheritable |= bit;
  }
  if (::syscall(SYS_capset, &header, data)) ::_exit(126);
  for (int c : capabilities)
    if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, c, 0, 0)) ::_exit(126);
}

}  // namespace

std::function<void()> as_root(std::vector<int> capabilities) {
  return [capabilities = std::move(capabilities)] {
    if (::prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED, 0, 0, 0)) ::_exit(126);
    take_capabilities(capabilities);
  };
}

std::function<void()> as_nobody(std::vector<int> capabilities) {
  return [capabilities = std::move(capabilities)] {
    constexpr uid_t kNobody = 65534;
    if (::setgroups(0, nullptr) || ::setresgid(kNobody, kNobody, kNobody) ||
        ::prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) || ::setresuid(kNobody, kNobody, kNobody))
      ::_exit(126);
    take_capabilities(capabilities);
  };
}

Tracer::Tracer(const std::string& tool, Strings arguments, How how) : name_(tool) {
  Strings argv{tool_path(tool)};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  process_ = std::make_unique<Process>(
      Spawn{.argv = argv, .stdout_path = how.stdout_path, .in_child = std::move(how.in_child)});
  if (how.attached && !attached())
    throw failed(join(argv) + " ended with " + std::to_string(process_->wait()) + ": " +
                 process_->err());
}

bool Tracer::attached() {
  return process_->await([](const std::string& out, const std::string& err) {
    return contains(err, "Ctrl-C to end") || contains(out, "\"type\":\"header\"") ||
           out.starts_with("time,") || out.starts_with("comm,pid");
  });
}

std::string Tracer::stop_text(int signal) {
  process_->signal(signal);
  int status = process_->wait();
  // Where tracepoints can be preempted the kernel skips a program now and then; the tool says so.
  bool skipped = status == 4 && process_->err().find("missed: the kernel") != std::string::npos;
  if (status && !skipped)
    throw failed(name_ + " ended with " + std::to_string(status) +
                 " after a signal: " + process_->err());
  return process_->out();
}

Report Tracer::stop(int signal) {
  auto out = stop_text(signal);
  return parse_report(out, process_->err());
}

Report Tracer::finish(int expected_status) {
  int status = process_->wait();
  if (status != expected_status)
    throw failed(name_ + " ended with " + std::to_string(status) + ": " + process_->err());
  return parse_report(process_->out(), process_->err());
}

// ---- cgroups ----

Report follow(const std::string& tool, const std::string& victim, const Strings& arguments) {
  Strings options{"--json", "--", victim_path(victim)};
  options.insert(options.end(), arguments.begin(), arguments.end());
  auto report = Tracer(tool, options, {.attached = false}).finish();
  if (!report.truth) throw Skip(report.err);
  return report;
}

Events events_for(const std::string& tool) {
  static const std::map<std::string, Events> known{
      {"bashreadline", {{"-e"}, {"typist", "--lines", "3"}}},
      {"biolatency", {{"-D", "-F"}, {"blockio", "--count", "5"}}},
      {"biosnoop", {{"-Q", "-P"}, {"blockio", "--count", "5"}}},
      {"cachestat", {{}, {"pagecache", "--size", "262144"}}},
      {"compactsnoop", {{"-e", "-K"}, {"compaction", "--manual"}, true}},
      {"drsnoop",
       {{"-M", "-e", "-K", "-U"}, {"reclaim", "--memcg", "--events", "3", "--seconds", "8"}, true}},
      {"execsnoop", {{"-x", "-U", "-T"}, {"hostile", "--count", "2", "--action", "exec"}}},
      {"extfrag", {{"-a", "-P"}, {"compaction", "--unmovable", "16", "--order", "8", "--whole"}}},
      {"gethostlatency", {{"-e"}, {"resolver", "--count", "2"}}},
      {"memleak", {{"-o", "0"}, {"leaker", "--rounds", "2"}}},
      {"numamove", {{}, {"sleeper", "--sleeps", "3"}}},
      {"offcputime", {{}, {"sleeper", "--sleeps", "3"}}},
      {"opensnoop", {{"-e", "-F", "-U"}, {"opener", "--count", "3"}}},
      {"profile", {{"-F", "999"}, {"sleeper", "--sleeps", "1", "--spin", "200"}}},
      {"readahead", {{}, {"pagecache", "--size", "262144", "--phase", "cold"}}},
      {"runqlat", {{"-L"}, {"runqueue", "--threads", "2", "--ms", "60"}}},
      {"syscount", {{"-P", "-L"}, {"syscalls", "--signals", "0", "--restarts", "0"}}},
      {"tcplife", {{"-w"}, {"tcp"}}},
      {"tcpretrans", {{"-w", "-l"}, {"tcp", "--sessions", "1", "--lost", "1"}}},
  };
  auto found = known.find(tool);
  Events e = found == known.end() ? Events{{}, {"sleeper", "--sleeps", "3"}} : found->second;
  e.command[0] = victim_path(e.command[0]);
  return e;
}

Strings words(const std::string& text) {
  std::istringstream in(text.substr(0, text.find('\n')));
  Strings all;
  for (std::string word; in >> word;) all.push_back(word);
  return all;
}

Strings header_of(const std::string& tool, Strings options) {
  options.insert(options.begin(), {tool_path(tool), "--duration", "0.1"});
  auto result = run(options);
  EXPECT_EQ(result.status, 0) << result.err;
  return words(result.out);
}

std::string unhex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

TemporaryDirectory::TemporaryDirectory() {
  char name[] = "/tmp/coretap-test-XXXXXX";
  if (!::mkdtemp(name)) throw failed("mkdtemp");
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

Cgroup::Cgroup(const std::string& suffix) {
  std::ifstream mounts("/proc/self/mounts");
  std::string root;
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string source, where, type;
    words >> source >> where >> type;
    if (type == "cgroup2") root = where;
  }
  if (root.empty()) {
    char name[] = "/tmp/coretap-cgroup-XXXXXX";
    if (!::mkdtemp(name) || ::mount("none", name, "cgroup2", 0, nullptr))
      throw Skip(std::string("no cgroup version 2 here: ") + strerror(errno));
    root = mounted_ = name;
  }
  static int serial = 0;
  path_ = root + "/coretap-test-" + std::to_string(::getpid()) + "-" + std::to_string(serial++) +
          suffix;
  if (::mkdir(path_.c_str(), 0755))
    throw Skip("cannot make a cgroup: " + path_ + ": " + strerror(errno));
}

Cgroup::~Cgroup() {
  // Busy until its last process is gone; whatever is still there goes where it came from.
  for (auto& pid : lines_of(slurp(path_ + "/cgroup.procs"))) {
    std::ofstream parent(std::filesystem::path(path_).parent_path() / "cgroup.procs");
    parent << pid << std::flush;
  }
  for (int i = 0; i < 100 && ::rmdir(path_.c_str()) && errno == EBUSY; i++) nap(20ms);
  if (!mounted_.empty()) {
    ::umount2(mounted_.c_str(), MNT_DETACH);
    ::rmdir(mounted_.c_str());
  }
}

void Cgroup::add(pid_t pid) const {
  std::ofstream file(path_ + "/cgroup.procs");
  file << pid << std::flush;
  if (!file) throw Skip("cannot move a process to " + path_);
}

// ---- the kernel's own files ----

Mounted::Mounted(const char* type, const char* options) {
  char name[] = "/tmp/coretap-mount-XXXXXX";
  if (!::mkdtemp(name)) throw failed("mkdtemp");
  path_ = name;
  if (::mount(type, name, type, 0, options)) {
    ::rmdir(name);
    throw Skip(std::string("cannot mount ") + type);
  }
}

Mounted::~Mounted() {
  ::umount2(path_.c_str(), MNT_DETACH);
  ::rmdir(path_.c_str());
}

Trace::Trace(const std::string& event) : event_(event) {
  static int serial = 0;
  instance_ = tracefs_.path() + "/instances/coretap-" + std::to_string(::getpid()) + "-" +
              std::to_string(serial++);
  if (!std::filesystem::create_directory(instance_)) throw Skip("no trace instances here");
  turn("1");
}

Trace::~Trace() {
  turn("0");
  std::error_code ignored;
  std::filesystem::remove(instance_, ignored);
}

void Trace::turn(const char* value) const {
  std::ofstream(instance_ + "/events/" + event_ + "/enable") << value;
}

Strings Trace::lines(std::optional<pid_t> task) const {
  Strings all;
  auto name = event_.substr(event_.find('/') + 1) + ": ";
  std::istringstream text(slurp(instance_ + "/trace"));
  for (std::string line; std::getline(text, line);) {
    auto event = line.find(name), cpu = line.rfind(" [", event);
    if (event == std::string::npos || cpu == std::string::npos) continue;
    auto dash = line.rfind('-', cpu);
    if (!task || std::stoi(line.substr(dash + 1)) == *task) all.push_back(line.substr(event));
  }
  return all;
}

// ---- small things ----

std::optional<DiskNumbers> diskstats(const std::string& disk) {
  std::istringstream lines(slurp("/proc/diskstats"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string major, minor, name;
    words >> major >> minor >> name;
    if (name != disk) continue;
    DiskNumbers value{};
    for (auto& v : value)
      if (!(words >> v)) v = 0;
    return value;
  }
  return {};
}

std::uint64_t diskstats_requests(const std::string& disk) {
  auto value = diskstats(disk).value_or(DiskNumbers{});
  // A write with a flush before and behind it is three requests to the device.
  return value[0] + value[4] + value[11] + 2 * value[15];
}

bool in_guest() {
  auto* guest = ::getenv("CORETAP_GUEST");
  return guest && std::string_view(guest) == "1";
}

Setting::Setting(std::string path, const std::string& value)
    : path_(std::move(path)), was_(slurp(path_)) {
  if (!set(value)) throw Skip(path_ + " cannot be set to " + value);
}

bool Setting::set(const std::string& value) const {
  std::ofstream file(path_);
  file << value << std::flush;
  return file.good();
}

std::string slurp(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

Counters::Counters(std::string path) : path_(std::move(path)), before_(slurp(path_)) {}

std::uint64_t Counters::growth(std::string_view key) const {
  return sum(slurp(path_), key) - sum(before_, key);
}

std::uint64_t Counters::sum(const std::string& text, std::string_view key) const {
  bool any = key.ends_with('*');
  if (any) key.remove_suffix(1);
  std::uint64_t total = 0;
  std::istringstream lines(text);
  std::string name;
  for (std::uint64_t value; lines >> name >> value;)
    if (any ? name.starts_with(key) : name == key) total += value;
  return total;
}

bool contains(std::string_view text, std::string_view what) {
  return text.find(what) != std::string_view::npos;
}

::testing::AssertionResult safe_for_terminals(const std::string& text) {
  char before = '\n';
  for (char byte : text) {
    auto c = static_cast<unsigned char>(byte);
    bool indents = c == '\t' && (before == '\n' || before == '\t');
    if ((c < 0x20 && c != '\n' && !indents) || c == 0x7f)
      return ::testing::AssertionFailure() << "a raw byte " << int(c) << " in: " << text;
    before = byte;
  }
  // RapidJSON's decoder judges the encoding.
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer, rapidjson::UTF8<>, rapidjson::UTF8<>,
                    rapidjson::CrtAllocator, rapidjson::kWriteValidateEncodingFlag>
      writer(buffer);
  if (!writer.String(text.data(), static_cast<unsigned>(text.size())))
    return ::testing::AssertionFailure() << "not UTF-8: " << text;
  // C1 controls act like ESC [ on some terminals.
  for (std::size_t i = 0; i + 1 < text.size(); i++)
    if (text[i] == '\xc2' && static_cast<unsigned char>(text[i + 1]) < 0xa0)
      return ::testing::AssertionFailure() << "a C1 control in: " << text;
  return ::testing::AssertionSuccess();
}

Strings lines(const std::string& text) {
  Strings all;
  std::size_t at = 0;
  for (auto end = text.find('\n'); end != std::string::npos; end = text.find('\n', at)) {
    all.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  EXPECT_EQ(at, text.size()) << "the last line is not complete: " << text;
  return all;
}

Strings csv_fields(const std::string& line) {
  Strings fields{""};
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); i++) {
    if (quoted && line[i] == '"' && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += line[i++];
    } else if (line[i] == '"') {
      quoted = !quoted;
    } else if (line[i] == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += line[i];
    }
  }
  EXPECT_FALSE(quoted) << "a quote is open: " << line;
  return fields;
}

std::size_t check_csv(const std::string& text) {
  EXPECT_TRUE(safe_for_terminals(text));
  auto all = lines(text);
  if (all.empty()) {
    ADD_FAILURE() << "no header line";
    return 0;
  }
  auto header = csv_fields(all[0]);
  std::set<std::string> names(header.begin(), header.end());
  EXPECT_EQ(names.size(), header.size()) << all[0];
  EXPECT_FALSE(names.contains("")) << all[0];
  for (auto& row : all) EXPECT_EQ(csv_fields(row).size(), header.size()) << all[0] << '\n' << row;
  return all.size() - 1;
}

void check_histogram(const Json& histogram, std::uint64_t unit_ns) {
  std::uint64_t count = 0, least = 0, last = 0;
  double most = 0;
  for (auto& slot : histogram["histogram"].items()) {
    auto from = slot["from_ns"].u64(), below = slot["below_ns"].u64(), n = slot["count"].u64();
    EXPECT_LT(from, below);
    EXPECT_GE(from, last) << "slots overlap or are not in order";
    EXPECT_EQ(from % unit_ns, 0u);
    EXPECT_EQ(below % unit_ns, 0u);
    EXPECT_GT(n, 0u) << "empty slots are left out";
    last = below;
    count += n;
    least += n * from;
    most += static_cast<double>(n) * static_cast<double>(below);
  }
  EXPECT_EQ(histogram["count"].u64(), count);
  // The sum lies within what the slots allow.
  EXPECT_GE(histogram["total_ns"].u64(), least);
  EXPECT_LE(static_cast<double>(histogram["total_ns"].u64()), most);
}

// ---- BPF objects ----

BpfIds bpf_ids(pid_t pid) {
  BpfIds ids;
  std::error_code error;
  auto directory = "/proc/" + std::to_string(pid) + "/fdinfo";
  for (auto& entry : std::filesystem::directory_iterator(directory, error)) {
    std::istringstream lines(slurp(entry.path().string()));
    std::uint32_t program = 0, link = 0, map = 0;
    for (std::string line; std::getline(lines, line);) {
      auto number = [&](std::string_view key) {
        return line.starts_with(key)
                   ? static_cast<std::uint32_t>(std::stoul(line.substr(key.size())))
                   : 0;
      };
      program = std::max(program, number("prog_id:"));
      link = std::max(link, number("link_id:"));
      map = std::max(map, number("map_id:"));
    }
    if (link)
      ids.links.push_back(link);
    else if (map)
      ids.maps.push_back(map);
    else if (program)
      ids.programs.push_back(program);
  }
  return ids;
}

std::size_t bpf_left(const BpfIds& ids) {
  auto there = [](int fd) {
    if (fd < 0) return false;
    ::close(fd);
    return true;
  };
  // Freed after grace periods and by kernel workers, which a busy machine runs late.
  auto until = Clock::now() + std::chrono::seconds(static_cast<int>(5 * slowness()));
  while (true) {
    std::size_t left = 0;
    for (auto id : ids.programs) left += there(bpf_prog_get_fd_by_id(id));
    for (auto id : ids.links) left += there(bpf_link_get_fd_by_id(id));
    for (auto id : ids.maps) left += there(bpf_map_get_fd_by_id(id));
    if (!left || Clock::now() > until) return left;
    nap(20ms);
  }
}

// ---- tests ----

void in_three_attempts(void (*body)()) {
  for (int attempt = 1; attempt < 3; attempt++) {
    ::testing::TestPartResultArray results;
    std::string wrong;
    {
      ::testing::ScopedFakeTestPartResultReporter keep(&results);
      try {
        body();
      } catch (const Skip&) {
        throw;
      } catch (const std::exception& e) {
        wrong = e.what();
      }
    }
    for (int i = 0; i < results.size(); i++)
      if (results.GetTestPartResult(i).failed()) wrong += results.GetTestPartResult(i).message();
    if (wrong.empty()) return;
    std::printf("attempt %d failed:\n%s\n", attempt, wrong.c_str());
  }
  body();
}

}  // namespace coretap::tooltest
