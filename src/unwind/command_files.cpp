#include "unwind/command_files.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "base/uninterrupted.hpp"
#include "coretap/fd.hpp"
#include "coretap/parse.hpp"
#include "symbols/elf_file.hpp"
#include "symbols/elf_symbols.hpp"
#include "symbols/process_files.hpp"

namespace coretap::unwind {

namespace {

constexpr std::size_t kMostOutput = 1 << 18;
constexpr std::size_t kScriptLine = 256;  // BINPRM_BUF_SIZE
constexpr int kScripts = 5;               // the kernel's limit of nested scripts
constexpr int kPatienceMs = 2000;

Fd open_file(const std::string& path) {
  return symbols::open_regular(symbols::open_handle(path, true), symbols::kMaxElfSize);
}

/// The command's output until a timeout; a dynamic linker that does not know --list fails.
std::string output_of(const std::vector<std::string>& words) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC)) return {};
  Fd from(ends[0]), to(ends[1]);
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to.get(), STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  pid_t pid = 0;
  int error = posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error) return {};
  to = Fd();
  std::string text(kMostOutput, '\0');
  std::size_t size = 0;
  pollfd wait{from.get(), POLLIN, 0};
  while (size < text.size() && uninterrupted([&] { return poll(&wait, 1, kPatienceMs); }) > 0) {
    auto got =
        uninterrupted([&] { return read(from.get(), text.data() + size, text.size() - size); });
    if (got <= 0) break;
    size += static_cast<std::size_t>(got);
  }
  kill(pid, SIGKILL);
  uninterrupted([&] { return waitpid(pid, nullptr, 0); });
  text.resize(size);
  return text;
}

void add(std::vector<std::string>& files, const std::string& path) {
  if (std::find(files.begin(), files.end(), path) == files.end()) files.push_back(path);
}

/// The path as mapped, without symbolic links: a debug file is stored beside the file itself.
std::string whole_path(const std::string& path) {
  std::error_code error;
  return std::filesystem::canonical(path, error).string();
}

}  // namespace

std::string interpreter_of_script(const Image& image) {
  std::string line(std::min<std::uint64_t>(image.size(), kScriptLine), '\0');
  if (!image.read(0, line.data(), line.size()) || !line.starts_with("#!")) return {};
  auto rest = std::string_view(line).substr(2);
  rest = rest.substr(0, rest.find('\n'));
  constexpr std::string_view kBlanks = " \t";
  rest.remove_prefix(std::min(rest.find_first_not_of(kBlanks), rest.size()));
  return std::string(rest.substr(0, rest.find_first_of(kBlanks)));
}

std::vector<std::string> listed_libraries(const std::string& output) {
  std::vector<std::string> paths;
  for (std::string_view lines = output; !lines.empty();) {
    auto line = take_until(lines, '\n');
    auto arrow = line.find("=> ");
    auto from = arrow == line.npos ? line.find_first_not_of(" \t") : arrow + 3;
    auto end = line.rfind(" (0x");
    if (end == line.npos || from >= end || line[from] != '/') continue;
    add(paths, std::string(line.substr(from, end - from)));
  }
  return paths;
}

std::vector<std::string> files_of_command(const std::string& name) {
  std::vector<std::string> files;
  auto path = whole_path(symbols::program_path(name));
  for (int i = 0; i <= kScripts && !path.empty(); i++) {
    auto fd = open_file(path);
    if (!fd) break;
    if (auto script = interpreter_of_script(Image(fd.get())); !script.empty()) {
      path = whole_path(script);
      continue;
    }
    add(files, path);
    auto elf = symbols::open_elf(fd.get());
    auto linker = elf ? symbols::interpreter_of(elf.get()) : std::string();
    if (!linker.starts_with('/')) break;
    add(files, whole_path(linker));
    for (auto& library : listed_libraries(output_of({linker, "--list", path})))
      add(files, whole_path(library));
    break;
  }
  return files;
}

}  // namespace coretap::unwind
