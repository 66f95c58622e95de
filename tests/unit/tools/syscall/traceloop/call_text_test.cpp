#include "tools/syscall/traceloop/call_text.hpp"

#include <sys/socket.h>

#include "expect.hpp"
#include "kernel/syscalls.hpp"

namespace coretap {
namespace {

TEST(CallText, NumbersByTheirTypeAndName) {
  struct {
    std::string_view type, name;
    std::uint64_t value;
    std::string_view text;
  } const cases[] = {{"int", "n", 0xffffffff, "-1"},
                     {"unsigned int", "n", 0xffffffff, "4294967295"},
                     {"long", "n", UINT64_MAX, "-1"},
                     {"size_t", "count", 4096, "4096"},
                     {"unsigned long", "addr", 0x7f0000000000, "0x7f0000000000"},
                     {"void *", "p", 0, "NULL"},
                     {"void *", "p", 0x1000, "0x1000"},
                     {"int", "dfd", static_cast<std::uint32_t>(AT_FDCWD), "AT_FDCWD"},
                     {"unsigned long", "fd", UINT32_MAX, "-1"},
                     {"umode_t", "mode", 0644, "0644"},
                     {"int", "sig", SIGTERM, "SIGTERM"},
                     {"int", "sig", 0, "0"},
                     {"int", "sig", 1'000'000, "1000000"},
                     {"int", "flags", 0x80, "0x80"}};
  for (auto& c : cases)
    EXPECT_EQ(argument_text({std::string(c.type), std::string(c.name)}, c.value), c.text) << c.name;
}

TEST(CallText, Results) {
  EXPECT_EQ(result_text(3), "3");
  EXPECT_EQ(result_text(-2), "-1 ENOENT (No such file or directory)");
  EXPECT_EQ(result_text(static_cast<std::int64_t>(0x7f0000000000)), "0x7f0000000000");
  EXPECT_TRUE(result_text(-512).starts_with("? ERESTARTSYS")) << result_text(-512);
  EXPECT_EQ(result_error(-4096), 0);
  EXPECT_EQ(result_error(-4095), 4095);
}

record_slot text_slot(std::uint8_t arg, std::string_view text, std::uint8_t flags = 0) {
  record_slot slot{};
  slot.kind = RECORD_TEXT;
  slot.arg = arg;
  slot.flags = flags;
  slot.bytes = static_cast<std::uint32_t>(text.size());
  memcpy(slot.text, text.data(), text.size());
  return slot;
}

TEST(CallText, WholeCalls) {
  record_slot first{};
  first.call.index = syscall_indices("renameat2").front();
  first.call.args[0] = first.call.args[2] = static_cast<std::uint32_t>(AT_FDCWD);
  CallArguments names = {{"int", "olddfd"},
                         {"const char *", "oldname"},
                         {"int", "newdfd"},
                         {"const char *", "newname"},
                         {"unsigned int", "flags"}};
  auto record =
      CallRecord::of({first, text_slot(1, "/tmp/a \"b\"\n\x1b["),
                      text_slot(3, "/long", RECORD_MORE), text_slot(3, "er", RECORD_CUT)});
  EXPECT_EQ(call_text(record, &names),
            "renameat2(olddfd=AT_FDCWD, oldname=\"/tmp/a \\\"b\\\"\\x0a\\x1b[\", newdfd=AT_FDCWD, "
            "newname=\"/longer\"..., flags=0)");
  EXPECT_EQ(call_text(record, nullptr), "renameat2(0xffffff9c, 0x0, 0xffffff9c, 0x0, 0, 0x0)");
}

TEST(CallText, FlagsInWords) {
  record_slot first{};
  first.call.index = syscall_indices("socket").front();
  first.call.args[0] = AF_INET;
  first.call.args[1] = SOCK_STREAM | SOCK_CLOEXEC;
  CallArguments names = {{"int", "family"}, {"int", "type"}, {"int", "protocol"}};
  EXPECT_EQ(call_text(CallRecord::of({first}), &names),
            "socket(family=AF_INET, type=SOCK_STREAM|SOCK_CLOEXEC, protocol=IPPROTO_IP)");
}

// An address that could not be read; numbers of arguments that there are not.
TEST(CallText, WithoutItsText) {
  record_slot first{};
  first.call.index = syscall_indices("chdir").front();
  first.call.args[0] = 0x10;
  CallArguments names = {{"const char *", "filename"}};
  auto record = CallRecord::of({first, text_slot(0, "", RECORD_CUT), text_slot(200, "x")});
  EXPECT_EQ(call_text(record, &names), "chdir(filename=0x10)");
  EXPECT_TRUE(CallRecord::of({}).call.index == 0);
}

}  // namespace
}  // namespace coretap
