#include "lists/debuginfod.hpp"

#include <fcntl.h>
#include <grp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include <fmt/format.h>

#include "base/descriptors.hpp"
#include "base/own_process.hpp"
#include "coretap/sanitize.hpp"
#include "coretap/small_files.hpp"
#include "symbols/elf_symbols.hpp"
#include "symbols/process_files.hpp"

namespace coretap {

namespace {

constexpr char kProgram[] = "debuginfod-find", kServers[] = "DEBUGINFOD_URLS";
constexpr uid_t kNobodyId = 65534;  // the user without rights
constexpr int kNotStarted = 127;    // exit status of the child, as of shells

std::string setting(const char* name) {
  const char* value = ::getenv(name);
  return value ? value : "";
}

/// A directory for the download, which the unprivileged user owns. It is removed with this.
class DownloadDirectory {
 public:
  DownloadDirectory() = default;
  ~DownloadDirectory() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  DownloadDirectory(const DownloadDirectory&) = delete;
  DownloadDirectory& operator=(const DownloadDirectory&) = delete;

  Result<void> make() {
    std::error_code none;
    auto path = (std::filesystem::temp_directory_path(none) / "coretap-debug-XXXXXX").string();
    if (none || !::mkdtemp(path.data())) return system_error("cannot make a directory", errno);
    path_ = std::move(path);
    if (::chown(path_.c_str(), kNobodyId, kNobodyId))
      return system_error(fmt::format("cannot give {} to user {}", printable(path_), kNobodyId),
                          errno);
    return {};
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// SIGINT and SIGTERM wait until this ends; then they do what they usually do.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigemptyset(&set_);
    for (int signal : {SIGINT, SIGTERM, SIGCHLD}) sigaddset(&set_, signal);
    ::signal(SIGCHLD, SIG_DFL);  // if it was ignored at start, none would come
    ::sigprocmask(SIG_BLOCK, &set_, &before_);
  }
  ~SignalsHeld() {
    if (ended_by_) ::raise(ended_by_);
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

  const sigset_t& before() const { return before_; }
  /// Until the child ends; a signal ends it. -> its status of waitpid()
  int wait_for(pid_t pid) {
    int status = 0;
    while (::waitpid(pid, &status, WNOHANG) == 0) {
      const int signal = ::sigwaitinfo(&set_, nullptr);
      if (signal != SIGINT && signal != SIGTERM) continue;
      ended_by_ = signal;
      ::kill(pid, SIGKILL);
    }
    return status;
  }

 private:
  sigset_t set_{}, before_{};
  int ended_by_ = 0;
};

/// In the child: without the rights of root, and with nothing of the environment that is not for
/// this program.
[[noreturn]] void become(char* const* argv, char* const* environment, int output, int errors,
                         const sigset_t& signals, bool root) {
  const rlimit no_core{0, 0}, file{symbols::kMaxElfSize, symbols::kMaxElfSize};
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::setrlimit(RLIMIT_FSIZE, &file);
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  const bool without =
      !root || (!::setgroups(0, nullptr) && !::setresgid(kNobodyId, kNobodyId, kNobodyId) &&
                !::setresuid(kNobodyId, kNobodyId, kNobodyId));
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);  // a change of the user clears it
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (without && !::chdir("/") && ::dup2(nothing, STDIN_FILENO) >= 0 &&
      ::dup2(output, STDOUT_FILENO) >= 0 && ::dup2(errors, STDERR_FILENO) >= 0) {
    ::sigprocmask(SIG_SETMASK, &signals, nullptr);
    ::execvpe(argv[0], argv, environment);
  }
  const int why = errno;
  (void)!::write(errors, &why, sizeof why);
  ::_exit(kNotStarted);
}

std::string last_line(int fd) {
  const auto text = text_of_child(fd);
  return text.substr(text.rfind('\n') + 1);
}

/// -> the path that the program prints
Result<std::string> run_program(const std::string& build_id, const std::string& cache, bool root,
                                SignalsHeld& signals) {
  const Fd output(::memfd_create("output", MFD_CLOEXEC)),
      errors(::memfd_create("errors", MFD_CLOEXEC));
  if (!output || !errors) return system_error("cannot keep messages", errno);
  std::vector<std::string> words{kProgram, "debuginfo", build_id}, settings;
  for (auto* name : {"PATH", kServers, "DEBUGINFOD_TIMEOUT", "DEBUGINFOD_MAXTIME",
                     "DEBUGINFOD_MAXSIZE", "DEBUGINFOD_RETRY_LIMIT", "http_proxy", "https_proxy",
                     "no_proxy", "all_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR"})
    if (auto value = setting(name); !value.empty())
      settings.push_back(fmt::format("{}={}", name, value));
  if (!cache.empty()) settings.push_back("DEBUGINFOD_CACHE_PATH=" + cache);
  if (!root)
    for (auto* name : {"HOME", "XDG_CACHE_HOME"})
      if (auto value = setting(name); !value.empty())
        settings.push_back(fmt::format("{}={}", name, value));
  auto pointers = [](std::vector<std::string>& texts) {
    std::vector<char*> all;
    all.reserve(texts.size() + 1);
    for (auto& text : texts) all.push_back(text.data());
    all.push_back(nullptr);
    return all;
  };
  auto argv = pointers(words), environment = pointers(settings);
  const pid_t pid = ::fork();
  if (pid < 0) return system_error("cannot start a process", errno);
  if (!pid)
    become(argv.data(), environment.data(), output.get(), errors.get(), signals.before(), root);
  const int status = signals.wait_for(pid);
  int why = 0;
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotStarted &&
      read_bytes(errors.get(), 0, &why, sizeof why) == sizeof why) {
    auto error = system_error(fmt::format("cannot run {}", kProgram), why);
    if (why == ENOENT) error.hint = "it is in the package debuginfod or elfutils-debuginfod-client";
    return error;
  }
  if (status) return Error{fmt::format("{} has found nothing", kProgram), last_line(errors.get())};
  return last_line(output.get());
}

}  // namespace

Result<void> check_debuginfod() {
  if (!setting(kServers).empty()) return {};
  return usage(fmt::format("--debuginfod: {} is not set", kServers),
               "it has the addresses of the servers, with blanks between them");
}

Result<Fd> ask_debuginfod(const std::string& path, const std::string& build_id) {
  if (build_id.empty()) return Error{fmt::format("{} has no build id", printable(path))};
  fmt::print(stderr, "Asking {} for debug information of {} (build id {})... Ctrl-C ends it.\n",
             printable(setting(kServers)), printable(path), build_id);
  const bool root = ::geteuid() == 0;
  auto cache = setting("DEBUGINFOD_CACHE_PATH");
  SignalsHeld signals;  // the directory is removed first
  DownloadDirectory directory;
  if (root && cache.empty()) {
    if (auto made = directory.make(); !made) return made.error();
    cache = directory.path();
  }
  auto found = run_program(build_id, cache, root, signals);
  if (!found) return found.error();
  // The path comes from a process without rights: only a regular file is opened.
  Fd file = symbols::open_regular(symbols::open_handle(*found, true), symbols::kMaxElfSize);
  if (!file) return system_error(fmt::format("cannot open {}", printable(*found)), errno);
  return file;
}

}  // namespace coretap
