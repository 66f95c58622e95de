// Fields of many tools' records: tasks, paths, stacks, addresses.
#include <arpa/inet.h>

#include "coretap/fields.hpp"
#include "coretap/identity.hpp"
#include "coretap/net.hpp"
#include "coretap/schema.hpp"
#include "expect.hpp"
#include "lib/core/shared.h"
#include "text/columns.hpp"

namespace coretap {
namespace {

struct IdentityEvent {
  std::uint64_t bytes;
  task_id who;
};
struct IdentityKey {
  std::uint32_t pid;
  char comm[COMM_LEN];
};

const IdentityEvent kEvent = {
    4096, {.cgroup = 7, .pid = 10, .tid = 11, .uid = 12, .known = 1, .comm = "cat"}};

std::vector<Value> read_all(const std::vector<Field>& fields, const void* record) {
  std::vector<Value> all;
  all.reserve(fields.size());
  for (auto& f : fields) all.push_back(f.read(record, {}));
  return all;
}

TEST(Identity, EachPartReadsItsOwnMember) {
  auto all = who<&IdentityEvent::who>(id::comm, id::uid, id::tid, id::pid, id::cgroup);
  const Value none;
  EXPECT_EQ(read_all(all, &kEvent),
            (std::vector<Value>{std::string("cat"), std::uint64_t{12}, std::uint64_t{11},
                                std::uint64_t{10}, std::uint64_t{7}, none, none, none, none, none}))
      << "nothing can be asked for names of cgroups";
  std::vector<std::string_view> keys;
  keys.reserve(all.size());
  for (auto& f : all) keys.push_back(f.key);
  EXPECT_EQ(keys, (std::vector<std::string_view>{"comm", "uid", "tid", "pid", "cgroup_id", "cgroup",
                                                 "container", "container_id", "pod", "unit"}));
}

TEST(Identity, NamesOfTheCgroup) {
  auto all = who<&IdentityEvent::who>(id::cgroup);
  FieldContext context;
  context.cgroup_name = [](std::uint64_t cgroup, CgroupName which) {
    return which == CgroupName::unit || cgroup != 7 ? std::string() : std::string("web");
  };
  for (auto& f : all) {
    if (f.key == "cgroup_id") continue;
    EXPECT_EQ(f.read(&kEvent, context), f.key == "unit" ? Value() : Value(std::string("web")));
  }
}

TEST(Identity, NobodyIsKnown) {
  auto nobody = kEvent;
  nobody.who.known = 0;
  EXPECT_EQ(read_all(owner<&IdentityEvent::who>(id::pid, id::comm), &nobody),
            (std::vector<Value>{std::monostate(), std::monostate()}));
  EXPECT_EQ(read_all(owner<&IdentityEvent::who>(id::pid, id::comm), &kEvent),
            (std::vector<Value>{std::uint64_t{10}, std::string("cat")}));
}

TEST(Identity, KeysWithTheSameMembers) {
  IdentityKey key = {3, "dd"};
  EXPECT_EQ(read_all(who<IdentityKey>(id::pid, id::comm), &key),
            (std::vector<Value>{std::uint64_t{3}, std::string("dd")}));
}

TEST(Identity, WhatDiffersBetweenTools) {
  auto field = who<&IdentityEvent::who>(id::tid.titled("LWP").columns(-9).with("extended")).front();
  EXPECT_EQ(field.title, "LWP");
  EXPECT_EQ(field.format.width, -9);
  EXPECT_EQ(field.shown_with, "extended");
  EXPECT_EQ(id::tid.field.shown_with, "json");
  EXPECT_EQ(who<&IdentityEvent::who>(id::pid.only("process")).front().only_with, "process");
}

TEST(Identity, ListsTakeFieldsAndGroupsInTheirOrder) {
  std::vector<Field> all =
      FieldList{who<&IdentityEvent::who>(id::pid, id::comm),
                field<&IdentityEvent::bytes>("bytes", "BYTES", as::number, "length"),
                who<&IdentityEvent::who>(id::uid)};
  EXPECT_EQ(read_all(all, &kEvent), (std::vector<Value>{std::uint64_t{10}, std::string("cat"),
                                                        std::uint64_t{4096}, std::uint64_t{12}}));
}

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

constexpr std::uint8_t kDocumentation[16] = {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0,
                                             0,    0,    0,    0,    0, 0, 0, 1};

TEST(Address, OfBothVersions) {
  EXPECT_EQ(ip_address(4, "\xc0\0\2\1"), "192.0.2.1");
  EXPECT_EQ(ip_address(6, kDocumentation), "2001:db8::1");
  EXPECT_EQ(ip_endpoint(4, "\x7f\0\0\1", 80), "127.0.0.1:80");
  EXPECT_EQ(ip_endpoint(6, kDocumentation, 65535), "[2001:db8::1]:65535");
}

TEST(Address, AsTheCLibraryHasIt) {
  for (unsigned at = 0; at < 4; at++)
    for (unsigned value = 0; value < 256; value++) {
      std::uint8_t bytes[4] = {10, 200, 0, 99};
      bytes[at] = static_cast<std::uint8_t>(value);
      char text[INET_ADDRSTRLEN] = "";
      ASSERT_TRUE(inet_ntop(AF_INET, bytes, text, sizeof text));
      EXPECT_EQ(ip_address(4, bytes), text);
    }
}

TEST(Address, NamesOfNumbers) {
  auto named = [](auto name) {
    return [name](const std::string& n) { return std::string(name(std::stoi(n))); };
  };
  expect_each(named(tcp_state), {"1 => ESTABLISHED", "12 => NEW_SYN_RECV", "0 => 0", "13 => 13"});
  expect_each(named(ip_protocol), {"6 => TCP", "17 => UDP", "262 => MPTCP", "253 => 253"});
  EXPECT_EQ(show(as::kilobytes, std::uint64_t{1023}, {}), "    0");
  EXPECT_EQ(show(as::kilobytes, std::uint64_t{70000}, {}), "   68");
}

struct FlowRecord {
  std::uint64_t before;
  flow ends;
};

TEST(Address, FieldsOfAFlow) {
  FlowRecord r{};
  memcpy(r.ends.local, kDocumentation, 16);
  r.ends.ip = 6;
  r.ends.lport = 443;
  r.ends.rport = 51000;
  auto text = [&](const Field& f) { return std::get<std::string>(f.read(&r, {})); };
  auto number = [&](const Field& f) { return std::get<std::uint64_t>(f.read(&r, {})); };
  EXPECT_EQ(text(net::local_address<&FlowRecord::ends>()), "2001:db8::1");
  EXPECT_EQ(text(net::remote_address<&FlowRecord::ends>()), "::");
  EXPECT_EQ(number(net::local_port<&FlowRecord::ends>()), 443u);
  EXPECT_EQ(number(net::remote_port<&FlowRecord::ends>()), 51000u);
  EXPECT_EQ(number(net::ip_version<&FlowRecord::ends>()), 6u);
}

TEST(Address, WideColumns) {
  FlowRecord r{};
  r.ends.ip = 4;
  for (bool wide : {false, true}) {
    Config config;
    if (wide) config.give("wide", "");
    Columns columns;
    columns.choose(config,
                   {net::local_address<&FlowRecord::ends>(), net::local_port<&FlowRecord::ends>()});
    EXPECT_EQ(columns.titles().find("LPORT"), wide ? 40u : 16u);
    EXPECT_EQ(columns.row(&r, {}).find_last_of('0'), wide ? 40u : 16u);
  }
}

}  // namespace
}  // namespace coretap
