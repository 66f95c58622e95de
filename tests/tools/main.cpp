// gtest_main, and the declarations of test files: tool_tests --declarations.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <string_view>

#include "tool_tests.hpp"

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--declarations") {
    std::fputs(coretap::tooltest::declarations_as_json().c_str(), stdout);
    return std::fflush(stdout) ? 1 : 0;
  }
  // Tools keep signals ignored that are ignored at their start, as under nohup or in the
  // background.
  for (int number : {SIGHUP, SIGINT, SIGQUIT}) std::signal(number, SIG_DFL);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
