#include "lists/tracepoints.hpp"
#include "expect.hpp"

namespace coretap {
namespace {

constexpr std::string_view kFormat = R"(format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;

	field:int fd;	offset:8;	size:4;	signed:1;
	field:__data_loc char[] name;	offset:12;	size:4;	signed:0;

print fmt: "field:int x;"
)";

TEST(Wanted, ByPatternsOfTheShell) {
  const std::string name = "sched:sched_switch";
  // The name alone, too.
  for (auto* pattern :
       {"", "sched:sched_switch", "sched_switch", "sched:*", "*switc[gh]", "*d:sched_switc?"})
    EXPECT_TRUE(is_wanted(pattern, name)) << pattern;
  for (auto* pattern : {"sched", "x:sched_switch"})
    EXPECT_FALSE(is_wanted(pattern, name)) << pattern;
  EXPECT_TRUE(is_wanted("vfs_*", "vfs_read"));
  EXPECT_FALSE(is_wanted("[", "vfs_read")) << "no pattern at all";
}

TEST(Fields, AreThoseOfTheTracepointItself) {
  EXPECT_EQ(field_lines(kFormat, false), "    int fd;\n    __data_loc char[] name;\n");
  EXPECT_EQ(field_lines(kFormat, true),
            "    int fd;  offset 8, 4 bytes, signed\n"
            "    __data_loc char[] name;  offset 12, 4 bytes\n");
  EXPECT_EQ(field_lines("field:char \x1b[2J;", false), "    char \\x1b[2J;\n");
  JsonLine line;
  add_fields(line, kFormat);
  EXPECT_EQ(line.finish(),
            R"({"fields":[{"declaration":"int fd","offset_bytes":8,"size_bytes":4,"signed":true},)"
            R"({"declaration":"__data_loc char[] name","offset_bytes":12,"size_bytes":4,)"
            R"("signed":false}]})");
}

TEST(Usdt, ByLevel) {
  std::vector<symbols::UsdtProbe> places = {{"app", "start", "-4@%edi 8@%rsi", 0x1139, 0x4010},
                                            {"app", "start", "-4@$5 8@%rax", 0x1200, 0x4010}};
  EXPECT_EQ(usdt_lines("/bin/\x1b", places, 0), "/bin/\\x1b app:start\n");
  EXPECT_EQ(usdt_lines("/bin/a", places, 1),
            "/bin/a app:start [semaphore 0x4010]\n  2 location(s)\n  2 argument(s)\n");
  EXPECT_EQ(usdt_lines("/bin/a", places, 2),
            "/bin/a app:start [semaphore 0x4010]\n  2 location(s)\n  2 argument(s)\n"
            "  location #0 0x1139\n    arguments -4@%edi 8@%rsi\n"
            "  location #1 0x1200\n    arguments -4@$5 8@%rax\n");
  places = {{"app", "odd", "4@name(%rip)", 0x10, 0}};
  EXPECT_EQ(usdt_lines("a", places, 1),
            "a app:odd\n  1 location(s)\n  argument(s) in a form that is not known\n");
}

}  // namespace
}  // namespace coretap
