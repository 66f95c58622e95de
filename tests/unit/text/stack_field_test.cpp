// Stacks as fields of a record.
#include "coretap/schema.hpp"
#include "expect.hpp"
#include "lib/shared.h"
#include "text/columns.hpp"

namespace coretap {
namespace {

struct StackRecord {
  std::uint64_t number;
  stack kernel;
};

const std::vector<Field>& stack_fields() {
  static const std::vector<Field> all = {
      kernel_stack_field<&StackRecord::kernel>(),
      field<&StackRecord::number>("number", "NUMBER", as::small, "a number")};
  return all;
}

struct StackField : testing::Test {
  StackField() {
    record.kernel.depth = 3;
    names.context.kernel_frames = [](const stack& s) {
      Frames all{"inner+0x1", "b;\x1b", "outer"};
      all.resize(s.depth);
      return all;
    };
  }
  Columns columns(OutputFormat format) {
    Config config;
    config.format = format;
    Columns c;
    c.choose(config, stack_fields());
    return c;
  }
  StackRecord record{42, {}};
  Names names;
};

TEST_F(StackField, BelowTheRowOfATable) {
  auto c = columns(OutputFormat::text);
  EXPECT_EQ(c.titles(), "NUMBER");
  EXPECT_EQ(c.row(&record, names), "   42");
  EXPECT_EQ(c.below(&record, names),
            (Words{"        inner+0x1", "        b;\\x1b", "        outer"}));
  record.kernel.depth = 0;
  EXPECT_TRUE(c.below(&record, names).empty());
}

TEST_F(StackField, AnArrayInJson) {
  auto json = [&] {
    JsonLine line;
    columns(OutputFormat::json).json(line, &record, names);
    return std::string(line.finish());
  };
  EXPECT_EQ(json(), R"({"kernel_stack":["inner+0x1","b;\u001b","outer"],"number":42})");
  record.kernel.depth = 0;
  EXPECT_EQ(json(), R"({"kernel_stack":[],"number":42})");
}

TEST_F(StackField, FoldedInCsv) {
  auto c = columns(OutputFormat::csv);
  EXPECT_EQ(c.keys(), "kernel_stack,number");
  EXPECT_EQ(c.csv(&record, names), "outer;b:\\x1b;inner+0x1,42");
  record.kernel.depth = 0;
  EXPECT_EQ(c.csv(&record, names), ",42");
}

TEST_F(StackField, HasATypeInEachFormat) {
  EXPECT_EQ(key_of(stack_fields()[0], &record).type, "array of strings");
  EXPECT_EQ(key_of(stack_fields()[0], &record).doc, kernel_stack_key().doc);
  EXPECT_EQ(csv_key_of(stack_fields()[0], &record).type, "string");
  EXPECT_EQ(csv_key_of(stack_fields()[0], &record).doc, folded_kernel_stack_key().doc);
  EXPECT_EQ(csv_key_of(stack_fields()[1], &record).type, "integer");
}

}  // namespace
}  // namespace coretap
