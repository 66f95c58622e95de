// Positions of a filter's instructions.
#include "program/pads.hpp"

#include "expect.hpp"
#include "expression/compile.hpp"
#include "expression/syntax.hpp"
#include "lib/targets/expression.h"

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

TEST(Pads, WhatNeedsAStackOrMoreRoomIsNotShort) {
  for (auto* text : {"arg1 > 3", "$pid == 7", "arg1"})
    EXPECT_TRUE(with_filter(text).filter_is_short()) << text;
  for (auto* text : {"STREQ(\"a\", arg1)", "arg1 + arg2 > arg3 * 2"})
    EXPECT_FALSE(with_filter(text).filter_is_short()) << text;
  auto pads = with_filter("arg1");
  pads.filter.resize(EXPRESSION_SHORT_ROOM + 1);
  EXPECT_FALSE(pads.filter_is_short());
}

}  // namespace
}  // namespace coretap
