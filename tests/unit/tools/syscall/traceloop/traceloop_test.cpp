// Recorded calls, and their text.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "cli/parser.hpp"
#include "coretap/call_formats.hpp"
#include "coretap/syscalls.hpp"
#include "coretap/tool.hpp"
#include "expect.hpp"
#include "kernel/kernel.hpp"
#include "syscall/traceloop.h"
#include "tools/syscall/traceloop/call_text.hpp"
#include "tools/syscall/traceloop/recorded_cgroups.hpp"
#include "tools/syscall/traceloop/recorder.hpp"
#include "tools/syscall/traceloop/report_calls.hpp"
#include "tools/syscall/traceloop/shown_calls.hpp"

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
  EXPECT_TRUE(all[0].name == "dfd" && all[0].type == "int" && !all[0].is_text());
  EXPECT_TRUE(all[1].type == "const char *" && all[1].is_text() && all[1].is_pointer());
  EXPECT_EQ(all[3].name, "mode");
}

TEST(CallFormats, BuffersAreNoText) {
  for (auto* name : {"buf", "list", "optval", "u_msg_ptr"})
    EXPECT_FALSE((CallArgument{"char *", name}.is_text())) << name;
  EXPECT_TRUE((CallArgument{"char *", "dev_name"}.is_text()));
  EXPECT_FALSE((CallArgument{"const char *const *", "argv"}.is_text()));
  EXPECT_FALSE((CallArgument{"void *", "data"}.is_text()));
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
  first.call.args[0] = first.call.args[2] = static_cast<std::uint32_t>(AT_FDCWD);
  CallArguments names = {{"int", "olddfd"},
                         {"const char *", "oldname"},
                         {"int", "newdfd"},
                         {"const char *", "newname"},
                         {"unsigned int", "flags"}};
  auto record =
      CallRecord::of({first, text_slot(1, "/tmp/a \"b\"\n\x1b["),
                      text_slot(3, "/long", RECORD_MORE), text_slot(3, "er", RECORD_CUT)});
  EXPECT_EQ(call_text(record, {"renameat2", "", names}),
            "renameat2(olddfd=AT_FDCWD, oldname=\"/tmp/a \\\"b\\\"\\x0a\\x1b[\", newdfd=AT_FDCWD, "
            "newname=\"/longer\"..., flags=0)");
  EXPECT_EQ(call_text(record, {"renameat2", ""}),
            "renameat2(0xffffff9c, 0x0, 0xffffff9c, 0x0, 0, 0x0)");
}

TEST(CallText, FlagsInWords) {
  record_slot first{};
  first.call.args[0] = AF_INET;
  first.call.args[1] = SOCK_STREAM | SOCK_CLOEXEC;
  CallArguments names = {{"int", "family"}, {"int", "type"}, {"int", "protocol"}};
  EXPECT_EQ(call_text(CallRecord::of({first}), {"socket", "", names}),
            "socket(family=AF_INET, type=SOCK_STREAM|SOCK_CLOEXEC, protocol=IPPROTO_IP)");
}

TEST(CallText, ArgumentsThatAreRead) {
  using Values = std::array<std::uint64_t, CALL_ARGS>;
  EXPECT_EQ(used_arguments("futex", nullptr, Values{1, 129}), 0b111u);
  EXPECT_EQ(used_arguments("futex", nullptr, Values{1, 137}), 0b101111u);
  EXPECT_EQ(used_arguments("openat", nullptr, Values{0, 0, O_CLOEXEC}), 0b111u);
  EXPECT_EQ(used_arguments("openat", nullptr, Values{0, 0, O_TMPFILE}), 0b1111u);
  EXPECT_EQ(used_arguments("fcntl", nullptr, Values{3, F_GETFL, 7}), 0b11u);
  EXPECT_EQ(used_arguments("mremap", nullptr, Values{0, 0, 0, MREMAP_MAYMOVE}), 0b1111u);
}

// An address that could not be read; argument numbers that do not exist.
TEST(CallText, WithoutItsText) {
  record_slot first{};
  first.call.args[0] = 0x10;
  CallArguments names = {{"const char *", "filename"}};
  auto record = CallRecord::of({first, text_slot(0, "", RECORD_CUT), text_slot(200, "x")});
  EXPECT_EQ(call_text(record, {"chdir", "", names}), "chdir(filename=0x10)");
  EXPECT_TRUE(CallRecord::of({}).call.index == 0);
}

/// A recording has the same calls, and a part of it is not taken for the whole.
TEST(ShownCalls, AsARecord) {
  record_slot first{};
  first.call = {.start_ns = 5, .end_ns = 9, .result = -2, .tgid = 70, .tid = 71, .index = 3};
  first.call.args[5] = UINT64_MAX;
  memcpy(first.call.comm, "sh", 3);
  first.flags = RECORD_HEADLESS;
  ShownCalls shown{.recorder = "a/b",
                   .why = "requested",
                   .ended = ShownCalls::Ended{70, "sh"},
                   .now_ns = 1,
                   .since_ns = 2,
                   .overwritten = 3};
  shown.calls = {{.cpu = -1, .record = CallRecord::of({first})},
                 {.cpu = 2,
                  .record = CallRecord::of(
                      {first, text_slot(1, "x", RECORD_CUT), text_slot(4, "", RECORD_CUT)})}};
  const auto bytes = shown.packed();
  auto again = ShownCalls::of(bytes);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->packed(), bytes);
  EXPECT_EQ(again->recorder, "a/b");
  EXPECT_EQ(again->why, "requested");
  ASSERT_TRUE(again->ended);
  EXPECT_EQ(again->ended->pid, 70u);
  EXPECT_EQ(again->ended->comm, "sh");
  ASSERT_EQ(again->calls.size(), 2u);
  for (std::size_t i = 0; i < 2; i++) {
    auto &was = shown.calls[i], &is = again->calls[i];
    EXPECT_EQ(is.cpu, was.cpu);
    EXPECT_EQ(is.record.flags, was.record.flags);
    EXPECT_EQ(memcmp(&is.record.call, &was.record.call, sizeof was.record.call), 0);
    for (std::size_t text = 0; text < CALL_ARGS; text++) {
      ASSERT_EQ(is.record.texts[text].has_value(), was.record.texts[text].has_value());
      if (!was.record.texts[text]) continue;
      EXPECT_EQ(is.record.texts[text]->bytes, was.record.texts[text]->bytes);
      EXPECT_EQ(is.record.texts[text]->cut, was.record.texts[text]->cut);
      EXPECT_EQ(is.record.texts[text]->readable, was.record.texts[text]->readable);
    }
  }
  shown.why.reset();
  shown.ended.reset();
  again = ShownCalls::of(shown.packed());
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->why || again->ended);
  for (std::size_t size = 0; size < bytes.size(); size++) {
    const auto part = ShownCalls::of(std::string_view(bytes).substr(0, size));
    EXPECT_TRUE(!part || part->calls.size() < 2) << size;
  }
}

TEST(CallNames, AsAnAnswer) {
  const CallNames names{"openat", "x86_64",
                        CallArguments{{"int", "dfd"}, {"const char *", "name"}}};
  auto again = CallNames::of(names.packed());
  EXPECT_EQ(again.name, "openat");
  EXPECT_EQ(again.abi, "x86_64");
  ASSERT_TRUE(again.arguments);
  ASSERT_EQ(again.arguments->size(), 2u);
  EXPECT_EQ((*again.arguments)[1].name, "name");
  EXPECT_FALSE(CallNames::of(CallNames{"x", "y"}.packed()).arguments);
  EXPECT_TRUE(CallNames::of("").name.empty());
  const CallNames made{"a\x1b", "", CallArguments(20, {"t\x1b", "n"})};
  again = CallNames::of(made.packed());
  EXPECT_EQ(again.name, "a\\x1b");
  EXPECT_EQ(again.arguments->size(), std::size_t{CALL_ARGS});
  EXPECT_EQ(again.arguments->front().type, "t\\x1b");
}

/// Writes as bpf/syscall/record.bpf.h does.
struct Writer {
  static constexpr std::uint32_t kSlots = 16;
  std::vector<record_slot> slots{kSlots};
  record_head head{};

  record_slot& slot(std::uint64_t at) { return slots[at % kSlots]; }

  void call(std::uint64_t start, unsigned texts = 0) {
    auto& first = slot(head.next);
    first = {};
    first.kind = RECORD_CALL;
    first.call.start_ns = start;
    first.bytes = static_cast<std::uint32_t>(head.calls++);
    first.slots = static_cast<std::uint8_t>(1 + texts);
    first.seq = head.next + 1;
    for (unsigned i = 1; i <= texts; i++) {
      auto& text = slot(head.next + i);
      text = {};
      text.kind = RECORD_TEXT;
      text.seq = head.next + i + 1;
    }
    head.next += 1 + texts;
  }
};

Numbers starts(RecordSegment& segment) {
  Numbers all;
  segment.read([&](auto& record) { all.push_back(record[0].call.start_ns); });
  return all;
}

struct Segment : testing::Test {
  Writer writer;
  RecordSegment segment{writer.slots.data(), Writer::kSlots, &writer.head};
};

TEST_F(Segment, WhatIsNewEachTime) {
  EXPECT_EQ(starts(segment), Numbers());
  writer.call(1);
  writer.call(2, 3);
  writer.call(3);
  EXPECT_EQ(starts(segment), (Numbers{1, 2, 3}));
  EXPECT_EQ(starts(segment), Numbers());
  writer.call(4);
  EXPECT_EQ(starts(segment), (Numbers{4}));
  EXPECT_EQ(segment.overwritten(), 0u);
}

TEST_F(Segment, OverwrittenOnesAreCounted) {
  for (std::uint64_t i = 0; i < 100; i++) writer.call(i);
  auto seen = starts(segment);
  ASSERT_EQ(seen.size(), Writer::kSlots);
  EXPECT_EQ(seen.front(), 100 - Writer::kSlots);
  EXPECT_EQ(segment.overwritten(), 100 - Writer::kSlots);
  // The first remaining slots are texts whose call is overwritten.
  for (std::uint64_t i = 0; i < 10; i++) writer.call(i, 2);
  seen = starts(segment);
  EXPECT_EQ(seen, (Numbers{5, 6, 7, 8, 9}));
  EXPECT_EQ(segment.overwritten(), 100 - Writer::kSlots + 5);
}

TEST_F(Segment, WhatIsBeingWrittenIsLeftOut) {
  for (std::uint64_t i = 0; i < 4; i++) writer.call(i, 1);
  writer.slot(2).seq = 0;      // a call
  writer.slot(5).seq = 99999;  // a text of the next one
  EXPECT_EQ(starts(segment), (Numbers{0, 3}));
  EXPECT_EQ(segment.overwritten(), 2u);
}

TEST_F(Segment, NonsenseEndsNowhere) {
  writer.call(1);
  writer.slot(0).slots = 0;
  writer.call(2);
  writer.slot(1).slots = 255;
  EXPECT_EQ(starts(segment), (Numbers{1}));
}

// A slot has 32 bits of a call's number.
TEST_F(Segment, NumbersGoOn) {
  writer.head.calls = 0xfffffffe;
  for (std::uint64_t i = 0; i < 4; i++) writer.call(i);
  EXPECT_EQ(starts(segment).size(), 4u);
  EXPECT_EQ(segment.overwritten(), 0xfffffffeu);
  writer.call(4);
  EXPECT_EQ(starts(segment).size(), 1u);
  EXPECT_EQ(segment.overwritten(), 0xfffffffeu);
}

using Levels = std::vector<std::uint32_t>;

Levels every_level() {
  Levels all;
  for (std::uint32_t level = RECORD_LEVELS; level-- > 0;) all.push_back(level);
  return all;
}

TEST(RecordedCgroups, LevelsDeepestFirst) {
  auto levels = cgroup_levels({{1, "a", 2}, {2, "b", 5}, {3, "c", 2}, {4, "/", 0}});
  EXPECT_EQ(levels, in_first_cgroup_namespace() ? (Levels{5, 2, 0}) : every_level());
}

TEST(RecordedCgroups, AllLevelsWhereOneIsTooDeep) {
  EXPECT_EQ(cgroup_levels({{1, "a", RECORD_LEVELS}, {2, "b", 1}}), every_level());
}

TEST(RecordedCgroups, ThoseOfTheCommandLine) {
  auto parsed = parse_command_line(build(*find_tool("traceloop")),
                                   {"-c", "/a", "--cgroup", "b", "/c", "--dump-signal", "USR2"});
  ASSERT_TRUE(parsed) << parsed.error().what;
  auto& settings = parsed->config.own<CallSettings>();
  Words names;
  for (auto& cgroup : settings.cgroups) names.push_back(cgroup.name);
  EXPECT_EQ(names, (Words{"/a", "b", "/c"}));
  EXPECT_EQ(settings.dump_signal, SIGUSR2);
}

TEST(RecordedCgroups, OneThatThereIsNot) {
  std::vector<RecordedCgroup> none{{0, "/no/such/cgroup", 0}};
  EXPECT_FALSE(find_cgroups(none, true));
}

}  // namespace
}  // namespace coretap
