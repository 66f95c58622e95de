#include "run/command.hpp"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/descriptors.hpp"
#include "base/loop.hpp"
#include "base/uninterrupted.hpp"

namespace coretap {

Command::~Command() {
  if (pid_ > 0 && !started_) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
}

namespace {

Error cannot_run(std::string_view name, int error) {
  auto what = fmt::format("cannot run '{}'", name);
  if (error == ENOENT)
    return {what, "there is no such command", "give its path, or a name in PATH", kNotFound};
  return {what, strerror(error), "it must be an executable file", kCannotRun};
}

/// The errno with which execvp() would fail; 0: none was found. Checked before anything is
/// attached.
int refusal(const std::string& name) {
  auto check = [](const std::string& path) {
    struct stat st {};
    if (stat(path.c_str(), &st)) return errno;
    if (S_ISDIR(st.st_mode)) return EISDIR;
    return access(path.c_str(), X_OK) ? errno : 0;
  };
  if (name.empty()) return ENOENT;
  if (name.find('/') != name.npos) return check(name);
  auto* path = getenv("PATH");
  std::string_view rest = path ? path : "/bin:/usr/bin";
  int found = ENOENT;
  while (true) {
    auto directory = rest.substr(0, rest.find(':'));
    int error = check(fmt::format("{}/{}", directory.empty() ? "." : directory, name));
    if (!error) return 0;
    if (error == EACCES) found = error;
    if (directory.size() == rest.size()) return found;
    rest.remove_prefix(directory.size() + 1);
  }
}

}  // namespace

Result<void> Command::prepare(const std::vector<std::string>& words) {
  if (int error = refusal(words[0])) return cannot_run(words[0], error == ENOTDIR ? ENOENT : error);
  auto cannot = [&](std::string_view what) {
    return system_error(fmt::format("cannot {} '{}'", what, words[0]), errno);
  };
  int go[2], failed[2];
  if (pipe2(go, O_CLOEXEC)) return cannot("start");
  const Fd waits(go[0]);
  go_.reset(go[1]);
  if (pipe2(failed, O_CLOEXEC)) return cannot("start");
  failed_.reset(failed[0]);
  const Fd tells(failed[1]);
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  name_ = words[0];
  for (auto& w : words) argv.push_back(const_cast<char*>(w.c_str()));
  argv.push_back(nullptr);
  pid_ = fork();
  if (pid_ < 0) return cannot("start");
  if (pid_ == 0) {
    go_.reset();
    restore_descriptor_limit();  // now, as its actions after the start are traced
    char byte = 0;
    if (uninterrupted([&] { return read(go[0], &byte, 1); }) != 1) _exit(127);
    unblock_signals();
    execvp(argv[0], argv.data());
    int error = errno;
    (void)!write(failed[1], &error, sizeof error);
    _exit(127);
  }
  pidfd_.reset(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  if (!pidfd_) return cannot("watch");
  return {};
}

Result<void> Command::start() {
  if (uninterrupted([&] { return write(go_.get(), "", 1); }) != 1)
    return Error{fmt::format("cannot start '{}'", name_), strerror(errno)};
  started_ = true;
  int error = 0;
  if (uninterrupted([&] { return read(failed_.get(), &error, sizeof error); }) == sizeof error) {
    waitpid(pid_, nullptr, 0);
    return cannot_run(name_, error);
  }
  return {};
}

int Command::status() {
  int status = 0;
  if (status_ < 0 && waitpid(pid_, &status, WNOHANG) == pid_)
    status_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return status_;
}

}  // namespace coretap
