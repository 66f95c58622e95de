// Runs the real executables: shared by all tests of tools.
#pragma once
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <concepts>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "json.hpp"
#include "machine.hpp"
#include "observe.hpp"
#include "process.hpp"
#include "text.hpp"
#include "tool_tests.hpp"
#include "tracer.hpp"

/// A test that may throw Skip anywhere.
#define TOOL_TEST_BODY(function)                    \
  try {                                             \
    function;                                       \
  } catch (const ::coretap::tooltest::Skip& skip) { \
    GTEST_SKIP() << skip.what();                    \
  }
#define TOOL_TEST(suite, name)                           \
  static void suite##_##name();                          \
  TEST(suite, name) { TOOL_TEST_BODY(suite##_##name()) } \
  static void suite##_##name()

/// Tests that are run with each of these tools, or other arguments.
#define TOOL_SUITE(suite, tools)                                             \
  class suite : public ::testing::TestWithParam<std::string> {};             \
  INSTANTIATE_TEST_SUITE_P(Tools, suite, ::testing::ValuesIn(Strings tools), \
                           [](auto& info) { return info.param; })
#define TOOL_TEST_P(suite, name, parameter)                          \
  static void suite##_##name(const std::string& parameter);          \
  TEST_P(suite, name) { TOOL_TEST_BODY(suite##_##name(GetParam())) } \
  static void suite##_##name(const std::string& parameter)
