// gtest_main, and what test files declare: tool_tests --declarations.
#include <gtest/gtest.h>

#include <cstdio>
#include <string_view>

#include "tool_tests.hpp"

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--declarations") {
    std::fputs(coretap::tooltest::declarations_as_json().c_str(), stdout);
    return std::fflush(stdout) ? 1 : 0;
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
