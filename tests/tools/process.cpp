#include "process.hpp"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "machine.hpp"
#include "text.hpp"

namespace coretap::tooltest {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

namespace {

/// If a test runner has closed its standard descriptors, files and pipes of the tests would take
/// their numbers and be closed when a child starts.
[[gnu::constructor]] void fill_standard_descriptors() {
  for (int fd = 0; fd <= 2; fd++)
    if (::fcntl(fd, F_GETFD) < 0) (void)!::open("/dev/null", O_RDWR);
}

}  // namespace

void nap(std::chrono::milliseconds time) { std::this_thread::sleep_for(time); }

Process::Process(const Spawn& spawn) {
  int in[2] = {-1, -1}, out[2] = {-1, -1}, err[2];
  ::signal(SIGPIPE, SIG_IGN);
  if ((spawn.stdin_pipe && ::pipe2(in, O_CLOEXEC)) || ::pipe2(err, O_CLOEXEC) ||
      ::pipe2(wake_, O_CLOEXEC))
    throw std::runtime_error("pipe");
  if (spawn.stdout_path.empty()) {
    if (::pipe2(out, O_CLOEXEC)) throw std::runtime_error("pipe");
  } else {
    out[1] = ::open(spawn.stdout_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (out[1] < 0) throw std::runtime_error(spawn.stdout_path);
  }
  int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  std::vector<char*> argv;
  for (auto& w : spawn.argv) argv.push_back(const_cast<char*>(w.c_str()));
  argv.push_back(nullptr);

  pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("fork");
  if (pid_ == 0) {
    ::setpgid(0, 0);
    ::dup2(in[0] >= 0 ? in[0] : null, 0);
    ::dup2(out[1], 1);
    ::dup2(err[1], 2);
    // Some signals may be ignored in the tests: by nohup, or in the background of a shell.
    for (int signal : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::signal(signal, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    if (!working_directory.empty() && ::chdir(working_directory.c_str())) ::_exit(127);
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
    // On SIGTERM workloads undo their changes.
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
    bool skip = false;
    {
      std::lock_guard lock(mutex_);
      if (!reading_) return;
      if (close_stdout_wanted_ && stdout_ >= 0) {
        ::close(stdout_);
        stdout_ = -1;
        changed_.notify_all();
      }
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
  if (pid_ > 0 && !status_) ::kill(pid_, number);
}

void Process::kill_group() {
  if (pid_ > 0) ::kill(-pid_, SIGKILL);
}

void Process::write_stdin(std::string_view text) {
  if (::write(stdin_, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    throw std::runtime_error("cannot write to the process");
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
Strings Process::out_lines() const { return complete_lines(out()); }

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
    if (Clock::now() > until) throw std::runtime_error("timed out; stderr: " + err_);
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
      throw std::runtime_error("did not end in time; stderr: " + text);
    }
    nap(2ms);
  }
  // Its output is complete when the pipes are empty; a remaining child may hold them open.
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, 2s, [this] { return stdout_ < 0 && stderr_ < 0; });
  return *status_;
}

bool until(const std::function<bool()>& condition) {
  auto end = Clock::now() + kPatience;
  while (!condition()) {
    if (Clock::now() > end) return false;
    nap(10ms);
  }
  return true;
}

char state_of(pid_t pid) {
  auto text = slurp("/proc/" + std::to_string(pid) + "/stat");
  auto name_end = text.rfind(')');
  return name_end != std::string::npos && name_end + 2 < text.size() ? text[name_end + 2] : '?';
}

namespace {

/// Its system call and its number of context switches: constant while it sleeps.
std::string place_of(pid_t pid) {
  auto own = "/proc/" + std::to_string(pid), status = slurp(own + "/status");
  auto at = status.find("\nvoluntary_ctxt_switches:");
  return slurp(own + "/syscall") + (at == std::string::npos ? "" : status.substr(at));
}

}  // namespace

bool await_sleep(pid_t pid) {
  int in_a_row = 0;
  char state = 0;
  std::string place;
  return until([&] {
           state = state_of(pid);
           auto now = place_of(pid);
           in_a_row = state == 'S' && now == place ? in_a_row + 1 : 0;
           place = std::move(now);
           return in_a_row >= 4 || state == 'Z' || state == '?';
         }) &&
         state == 'S';
}

// "0 0x0 ...": number and arguments; the kernel shows them once the task has left its CPU.
bool reads_stdin(pid_t pid) {
  return slurp("/proc/" + std::to_string(pid) + "/syscall")
      .starts_with(std::to_string(SYS_read) + " 0x0 ");
}

Result run(const Strings& argv, const std::function<void()>& in_child,
           const std::string& stdout_path) {
  Process p({.argv = argv, .stdout_path = stdout_path, .in_child = in_child});
  int status = p.wait();
  return {status, p.out(), p.err()};
}

namespace {

/// Sets the capabilities, and keeps them through exec.
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

}  // namespace coretap::tooltest
