// Runs the real executables: all that a tool's tests use.
#pragma once
#include <gtest/gtest.h>

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
