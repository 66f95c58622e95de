// Where the instructions of a filter go.
#include "program/pads.hpp"

#include <gtest/gtest.h>

#include "expression/compile.hpp"
#include "expression/syntax.hpp"
#include "lib/expression.h"

namespace coretap {
namespace {

using namespace expression;

Pads with_filter(std::string_view text) {
  Scope scope;
  add_common_names(scope);
  add_arguments(scope, {});
  Parser parser(text, 0, [](std::string_view) { return false; });
  auto node = parser.expression();
  EXPECT_TRUE(node);
  Code code;
  EXPECT_TRUE(Compiler(text, scope, code).filter(**node));
  return {code.instructions(), {}};
}

TEST(Pads, WhatReadsOnlyItsInputsIsShort) {
  EXPECT_TRUE(with_filter("arg1 > 3").filter_is_short());
  EXPECT_TRUE(with_filter("$pid == 7").filter_is_short());
  EXPECT_TRUE(with_filter("arg1").filter_is_short());
}

TEST(Pads, WhatNeedsAStackOrMoreRoomIsNot) {
  EXPECT_FALSE(with_filter("STREQ(\"a\", arg1)").filter_is_short());
  EXPECT_FALSE(with_filter("arg1 + arg2 > arg3 * 2").filter_is_short());
  auto pads = with_filter("arg1");
  pads.filter.resize(EXPRESSION_SHORT_ROOM + 1);
  EXPECT_FALSE(pads.filter_is_short());
}

}  // namespace
}  // namespace coretap
