#include "tools/syscall/traceloop/call_formats.hpp"
#include "expect.hpp"
#include "kernel/syscalls.hpp"

namespace coretap {
namespace {

constexpr char kOpenat[] =
    "name: sys_enter_openat\nID: 654\nformat:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
    "\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n"
    "\tfield:int dfd;\toffset:16;\tsize:8;\tsigned:0;\n"
    "\tfield:const char * filename;\toffset:24;\tsize:8;\tsigned:0;\n"
    "\tfield:int flags;\toffset:32;\tsize:8;\tsigned:0;\n"
    "\tfield:umode_t mode;\toffset:40;\tsize:8;\tsigned:0;\n"
    "\tfield:__data_loc char[] __filename_val;\toffset:48;\tsize:4;\tsigned:0;\n\n"
    "print fmt: \"dfd: 0x%08lx\", ((unsigned long)(REC->dfd))\n";

TEST(CallFormats, ArgumentsByNameAndType) {
  auto all = parse_call_format(kOpenat);
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].name, "dfd");
  EXPECT_EQ(all[0].type, "int");
  EXPECT_FALSE(all[0].is_text());
  EXPECT_EQ(all[1].type, "const char *");
  EXPECT_TRUE(all[1].is_text());
  EXPECT_TRUE(all[1].is_pointer());
  EXPECT_EQ(all[3].name, "mode");
}

TEST(CallFormats, BuffersAreNoText) {
  for (auto* name : {"buf", "list", "optval", "u_msg_ptr"})
    EXPECT_FALSE((CallArgument{"char *", name}.is_text())) << name;
  EXPECT_TRUE((CallArgument{"char *", "dev_name"}.is_text()));
  EXPECT_FALSE((CallArgument{"const char *const *", "argv"}.is_text()));
  EXPECT_FALSE((CallArgument{"void *", "data"}.is_text()));
}

TEST(CallFormats, Damaged) {
  EXPECT_TRUE(parse_call_format("").empty());
  EXPECT_TRUE(parse_call_format("\tfield:\n\tfield:x\n\tfield:;").empty());
  std::string many;
  for (int i = 0; i < 100; i++) many += "\tfield:int a;\toffset:1;\n";
  EXPECT_EQ(parse_call_format(many).size(), 6u);
}

TEST(CallFormats, OfThisKernel) {
  CallFormats formats;
  if (!formats.read()) GTEST_SKIP() << "no tracefs here";
  for (auto& [call, names] :
       std::vector<std::pair<const char*, Words>>{{"read", {"fd", "buf", "count"}},
                                                  {"openat", {"dfd", "filename", "flags", "mode"}},
                                                  {"stat", {"filename", "statbuf"}}}) {
    for (auto index : syscall_indices(call)) {
      auto* arguments = formats.find(index);
      if (!arguments && index >= 512) continue;  // of the other table
      ASSERT_NE(arguments, nullptr) << call;
      ASSERT_EQ(arguments->size(), names.size()) << call;
      for (std::size_t i = 0; i < names.size(); i++) EXPECT_EQ((*arguments)[i].name, names[i]);
    }
  }
  EXPECT_EQ(formats.find(511), nullptr);
}

}  // namespace
}  // namespace coretap
