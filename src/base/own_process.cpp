#include "base/own_process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "base/descriptors.hpp"
#include "coretap/small_files.hpp"

namespace coretap {

Result<pid_t> start_own_process(std::vector<std::string> words, int output, int errors) {
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;  // this process may wait for signals itself
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  // By its path, as a process is named after the file that it runs.
  std::error_code unread;
  auto self = std::filesystem::read_symlink("/proc/self/exe", unread).string();
  if (unread || ::access(self.c_str(), X_OK)) self = "/proc/self/exe";
  pid_t pid = -1;
  int error = posix_spawn(&pid, self.c_str(), &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (!error) return pid;
  return system_error("cannot start a process", error);
}

std::string text_of_child(int fd) {
  std::string text(4096, '\0');
  text.resize(read_bytes(fd, 0, text.data(), text.size()));
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace coretap
