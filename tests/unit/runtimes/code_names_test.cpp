#include "runtimes/code_names.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>

#include "made_memory.hpp"

namespace coretap::runtimes {
namespace {

TEST(CodeNames, NamesFileAndLine) {
  CodeNames names;
  send(names, {});
  const auto frame = names.find(word(1, 0));
  EXPECT_EQ(frame.function, "work");
  EXPECT_EQ(frame.file, "/srv/app.py");
  EXPECT_EQ(frame.line, 10u);
  EXPECT_TRUE(frame.shown);
}

TEST(CodeNames, APlaceWithoutLineHasTheFunctionsFirst) {
  CodeNames names;
  send(names, {});
  EXPECT_EQ(names.find(word(1, 77)).line, 10u);
}

TEST(CodeNames, OtherRecordsAreNotTaken) {
  CodeNames names;
  const std::uint64_t other[2] = {42, 43};
  EXPECT_FALSE(names.take(other, sizeof other));
  EXPECT_FALSE(names.take(other, 4));
}

TEST(CodeNames, WideCharactersAreUtf8) {
  CodeNames names;
  auto code = std::make_unique<runtime_code>();
  std::memset(code.get(), 0, sizeof *code);
  code->mark = RUNTIME_CODE;
  code->number = 9;
  code->minor = 12;
  const char16_t two[] = u"日x\xd800";
  const char32_t four[] = {0x1f600, 'y', 0x7fffffff};
  code->name = {6, 2, 0};
  code->file = {12, 4, 1};
  std::memcpy(code->name_text, two, 6);
  std::memcpy(code->file_text, four, 12);
  ASSERT_TRUE(names.take(code.get(), sizeof *code));
  EXPECT_EQ(names.find(word(9, 0)).function, "日x\xef\xbf\xbd");
  EXPECT_EQ(names.find(word(9, 0)).file, "😀y\xef\xbf\xbd...");
}

TEST(CodeNames, TwoCodeObjectsWithOneNumberHaveNoName) {
  CodeNames names;
  send(names, {});
  send(names, {});  // the same again: the kernel program had forgotten it
  EXPECT_EQ(names.find(word(1, 0)).function, "work");
  send(names, {.name = "other"});
  EXPECT_EQ(names.find(word(1, 0)).function, "");
}

TEST(CodeNames, MarksTellWhatIsMissing) {
  CodeNames names;
  for (std::uint64_t mark = 1; mark < RUNTIME_MARKS; mark++) {
    EXPECT_TRUE(names.find(word(0, RUNTIME_PYTHON << RUNTIME_MARK_BITS | mark))
                    .function.starts_with("[python: "))
        << mark;
    EXPECT_TRUE(
        names.find(word(0, RUNTIME_V8 << RUNTIME_MARK_BITS | mark)).function.starts_with("[v8: "))
        << mark;
  }
  EXPECT_EQ(names.find(word(0, 0)).function, "[unknown]");
  EXPECT_EQ(names.find(word(7, 0)).function, "");  // never received
}

TEST(CodeNames, RecordsMayBeTooShortOrLie) {
  CodeNames names;
  runtime_code code{};
  code.mark = RUNTIME_CODE;
  EXPECT_TRUE(names.take(&code, sizeof code.mark));
  code.number = 3;
  code.line = 0xffffffff;
  code.line_bytes = 0xffffffff;
  code.name = {0xffff, 4, 0};
  code.file = {0xffff, 3, 0};
  EXPECT_TRUE(names.take(&code, offsetof(runtime_code, lines) + 1));
  EXPECT_EQ(names.find(word(3, 1)).line, 0u);
}

TEST(CodeNames, MemoryIsBounded) {
  CodeNames names;
  const std::string lines(RUNTIME_LINES, '\x81');
  for (std::uint64_t n = 1; n < 20'000; n++)
    send(names, {.number = n << RUNTIME_KIND_BITS | RUNTIME_PYTHON, .lines = lines});
  EXPECT_LE(names.bytes(), CodeNames::kMostBytes);
  EXPECT_EQ(names.find(word(19'999 << RUNTIME_KIND_BITS | RUNTIME_PYTHON, 0)).function, "work");
  EXPECT_EQ(names.find(word(1 << RUNTIME_KIND_BITS | RUNTIME_PYTHON, 0)).function, "");
}

}  // namespace
}  // namespace coretap::runtimes
