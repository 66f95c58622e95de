#include "coretap/fields.hpp"
#include "expect.hpp"

namespace coretap {
namespace {

using namespace std::string_view_literals;

TEST(Paths, ComponentsTurnedRound) {
  EXPECT_EQ(path_of("passwd\0etc\0"sv, false), "/etc/passwd");
  EXPECT_EQ(path_of("tmp\0"sv, false), "/tmp");
  EXPECT_EQ(path_of(""sv, false), "/");
}

TEST(Paths, WithoutItsBeginning) {
  EXPECT_EQ(path_of("file\0deep\0"sv, true), ".../deep/file");
  EXPECT_EQ(path_of(""sv, true), "...");
}

TEST(Paths, AnyBytes) {
  EXPECT_EQ(path_of("\xff\n\0\x1b[m\0"sv, false), "/\x1b[m/\xff\n");
  EXPECT_EQ(path_of("\0\0"sv, false), "//");
  EXPECT_EQ(path_of("no terminator"sv, false), "/no terminato");
}

struct TextRecord {
  int number;
  struct {
    unsigned short at, bytes;
  } text;
  char behind[8];
};

TEST(Paths, TextBehindARecord) {
  TextRecord record{1, {offsetof(TextRecord, behind), 3}, "abcdef"};
  EXPECT_EQ(text_of(record, record.text), "abc");
  auto value = text_field<&TextRecord::text>("t", "T", as::rest, "").read(&record, {});
  EXPECT_EQ(std::get<std::string>(value), "abc");
}

}  // namespace
}  // namespace coretap
