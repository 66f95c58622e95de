// gtest_main, and the declarations of test files: tool_tests --declarations.
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <string_view>

#include "process.hpp"
#include "tool_tests.hpp"

namespace {

/// A directory for files that programs leave in their working directory. Any user may write there,
/// as to some tests' tools.
class WorkingDirectory {
 public:
  WorkingDirectory() {
    auto path = (std::filesystem::temp_directory_path() / "tool_tests.XXXXXX").string();
    if (!::mkdtemp(path.data()) || ::chmod(path.c_str(), 01777)) return;
    coretap::tooltest::working_directory = path;
  }
  ~WorkingDirectory() {
    std::error_code error;
    auto& path = coretap::tooltest::working_directory;
    if (!path.empty()) std::filesystem::remove_all(path, error);
  }
  WorkingDirectory(const WorkingDirectory&) = delete;
  WorkingDirectory& operator=(const WorkingDirectory&) = delete;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--declarations") {
    std::fputs(coretap::tooltest::declarations_as_json().c_str(), stdout);
    return std::fflush(stdout) ? 1 : 0;
  }
  // Tools keep signals ignored that are ignored at their start, as under nohup or in the
  // background.
  for (int number : {SIGHUP, SIGINT, SIGQUIT}) std::signal(number, SIG_DFL);
  ::testing::InitGoogleTest(&argc, argv);
  const WorkingDirectory for_programs;
  return RUN_ALL_TESTS();
}
