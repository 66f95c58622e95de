#include "coretap/fields.hpp"
#include "expect.hpp"

namespace coretap {
namespace {

TEST(Paths, ComponentsTurnedRound) {
  for (auto& [components, path] : {std::pair{"passwd\0etc\0"sv, "/etc/passwd"sv},
                                   {"tmp\0"sv, "/tmp"sv},
                                   {""sv, "/"sv},
                                   {"\xff\n\0\x1b[m\0"sv, "/\x1b[m/\xff\n"sv},
                                   {"\0\0"sv, "//"sv},
                                   {"no terminator"sv, "/no terminato"sv}})
    EXPECT_EQ(path_of(components, false), path);
  EXPECT_EQ(path_of("file\0deep\0"sv, true), ".../deep/file") << "without its beginning";
  EXPECT_EQ(path_of(""sv, true), "...");
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
