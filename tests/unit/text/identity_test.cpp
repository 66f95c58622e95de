// Who: fields of a struct task_id, and lists that they are a part of.
#include "coretap/identity.hpp"
#include "expect.hpp"

using namespace coretap;

namespace {

struct Event {
  std::uint64_t bytes;
  task_id who;
};
struct Key {
  std::uint32_t pid;
  char comm[COMM_LEN];
};

const Event kEvent = {4096,
                      {.cgroup = 7, .pid = 10, .tid = 11, .uid = 12, .known = 1, .comm = "cat"}};

std::vector<Value> read(const std::vector<Field>& fields, const void* record) {
  std::vector<Value> all;
  all.reserve(fields.size());
  for (auto& f : fields) all.push_back(f.read(record, {}));
  return all;
}

TEST(Identity, EachPartReadsItsOwnMember) {
  auto all = who<&Event::who>(id::comm, id::uid, id::tid, id::pid, id::cgroup);
  const Value none;
  EXPECT_EQ(read(all, &kEvent),
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
  auto all = who<&Event::who>(id::cgroup);
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
  EXPECT_EQ(read(owner<&Event::who>(id::pid, id::comm), &nobody),
            (std::vector<Value>{std::monostate(), std::monostate()}));
  EXPECT_EQ(read(owner<&Event::who>(id::pid, id::comm), &kEvent),
            (std::vector<Value>{std::uint64_t{10}, std::string("cat")}));
}

TEST(Identity, KeysWithTheSameMembers) {
  Key key = {3, "dd"};
  EXPECT_EQ(read(who<Key>(id::pid, id::comm), &key),
            (std::vector<Value>{std::uint64_t{3}, std::string("dd")}));
}

TEST(Identity, WhatDiffersBetweenTools) {
  auto field = who<&Event::who>(id::tid.titled("LWP").columns(-9).with("extended")).front();
  EXPECT_EQ(field.title, "LWP");
  EXPECT_EQ(field.format.width, -9);
  EXPECT_EQ(field.shown_with, "extended");
  EXPECT_EQ(id::tid.field.shown_with, "json");
  EXPECT_EQ(who<&Event::who>(id::pid.only("process")).front().only_with, "process");
}

TEST(Identity, ListsTakeFieldsAndGroupsInTheirOrder) {
  std::vector<Field> all = FieldList{who<&Event::who>(id::pid, id::comm),
                                     field<&Event::bytes>("bytes", "BYTES", as::number, "length"),
                                     who<&Event::who>(id::uid)};
  EXPECT_EQ(read(all, &kEvent), (std::vector<Value>{std::uint64_t{10}, std::string("cat"),
                                                    std::uint64_t{4096}, std::uint64_t{12}}));
}

}  // namespace
