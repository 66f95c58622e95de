// Layouts of structs in recordings: data of a version of coretap whose structs were others.
#include "record/layout.hpp"

#include <gtest/gtest.h>

#include <random>

#include "../reports/replay.hpp"
#include "made_btf.hpp"
#include "reports/lacking.hpp"

namespace coretap::record {
namespace {

/// Type information with numbers, and a struct text.
struct Numbers {
  Made types;
  std::uint32_t u8 = integer("unsigned char", 1, 0), u16 = integer("unsigned short", 2, 0),
                u32 = integer("unsigned int", 4, 0), u64 = integer("unsigned long long", 8, 0),
                s32 = integer("int", 4, BTF_INT_SIGNED), s64 = integer("long", 8, BTF_INT_SIGNED),
                yes = integer("_Bool", 1, BTF_INT_BOOL),
                text = record("text", 4, {{"at", u16, 0}, {"bytes", u16, 2}});

  struct Part {
    const char* name;
    std::uint32_t type, at;
  };
  std::uint32_t integer(const char* name, std::uint32_t bytes, std::uint32_t encoding) {
    return types.add(name, BTF_KIND_INT, 0, bytes, {encoding << 24 | bytes * 8});
  }
  std::uint32_t array(std::uint32_t of, std::uint32_t count) {
    return types.add("", BTF_KIND_ARRAY, 0, 0, {of, u32, count});
  }
  std::uint32_t record(const char* name, std::uint32_t bytes, std::initializer_list<Part> parts,
                       unsigned kind = BTF_KIND_STRUCT) {
    std::vector<std::uint32_t> tail;
    for (auto& part : parts)
      for (auto word : {types.text(part.name), part.type, part.at * 8}) tail.push_back(word);
    return types.add(name, kind, static_cast<unsigned>(parts.size()), bytes, tail);
  }
};

using Kind = Member::Kind;

TEST(Layout, HasTheMembersOfNestedStructsArraysAndUnions) {
  Numbers n;
  const auto inner = n.record("task", 8, {{"pid", n.u32, 0}, {"code", n.s32, 4}});
  const auto either = n.record("", 8, {{"sum", n.u64, 0}, {"low", n.u32, 0}}, BTF_KIND_UNION);
  const auto pair = n.record("pair", 24, {{"of", n.array(inner, 2), 0}, {"", either, 16}});
  const auto outer = n.record(
      "event", 52, {{"comm", n.array(n.u8, 16), 0}, {"pair", pair, 16}, {"path", n.text, 48}});
  const auto all = Layout::of(n.types.open(), outer);
  const Layout expected{52,
                        {{"comm", 0, 1, 16, Kind::unsigned_number},
                         {"pair.of[0].pid", 16, 4, 1, Kind::unsigned_number},
                         {"pair.of[0].code", 20, 4, 1, Kind::signed_number},
                         {"pair.of[1].pid", 24, 4, 1, Kind::unsigned_number},
                         {"pair.of[1].code", 28, 4, 1, Kind::signed_number},
                         {"pair.sum", 32, 8, 1, Kind::unsigned_number},
                         {"pair.low", 32, 4, 1, Kind::unsigned_number},
                         {"path", 48, 4, 1, Kind::text}}};
  EXPECT_EQ(all, expected);
  EXPECT_EQ(Layout::of(all.packed()), all);
  EXPECT_EQ(Layout::of(n.types.open(), n.u32), (Layout{4, {{"", 0, 4, 1, Kind::unsigned_number}}}));
  EXPECT_FALSE(Layout::of(n.types.open(), 0));
  EXPECT_FALSE(Layout::of(n.types.open(), 9999));
}

TEST(Layout, OthersAreRefused) {
  const Layout good{24, {{"one", 0, 8, 2, Kind::unsigned_number}, {"two", 16, 4, 1, Kind::text}}};
  const auto packed = good.packed();
  ASSERT_TRUE(Layout::of(packed));
  for (std::size_t size = 0; size < packed.size(); size++)
    EXPECT_FALSE(Layout::of(std::string_view(packed).substr(0, size))) << size;
  EXPECT_FALSE(Layout::of(packed + "x"));
  const Member bad[] = {{"x", 24, 1, 1, Kind::unsigned_number},
                        {"x", 0, 8, 4, Kind::unsigned_number},
                        {"x", 0, 0, 1, Kind::bytes_only},
                        {"x", 0, 1, 0, Kind::bytes_only},
                        {"x", 0, 3, 1, Kind::signed_number},
                        {"x", 0, 8, 1, Kind::text},
                        {"x", 0, 4, 2, Kind::text},
                        {"x", ~0U, 8, 1, Kind::unsigned_number},
                        {"x", 8, ~0U, 1, Kind::bytes_only},
                        {"x", 8, 2, ~0U, Kind::bytes_only},
                        {std::string(257, 'x'), 0, 8, 1, Kind::unsigned_number},
                        {"x", 0, 8, 1, static_cast<Kind>(Kind::text + 1)}};
  for (auto& member : bad) {
    auto layout = good;
    layout.members.push_back(member);
    EXPECT_FALSE(Layout::of(layout.packed())) << &member - bad;
  }
  EXPECT_FALSE(Layout::of(Layout{(1 << 20) + 1, {}}.packed()));
  EXPECT_FALSE(Layout::of(Layout{0, {}}.packed()));
  Layout many{8, std::vector<Member>(4097, Member{"x", 0, 8, 1, Kind::unsigned_number})};
  EXPECT_FALSE(Layout::of(many.packed()));
  many.members.pop_back();
  EXPECT_TRUE(Layout::of(many.packed()));
}

template <class T>
void put(std::string& to, std::size_t at, T value) {
  memcpy(to.data() + at, &value, sizeof value);
}
template <class T>
T get(const std::string& from, std::size_t at) {
  T value{};
  memcpy(&value, from.data() + at, sizeof value);
  return value;
}

std::vector<std::string> lacks(const Move& move) {
  std::vector<std::string> all;
  for (auto& lack : move.lacks()) all.push_back(lack.member + ": " + lack.why);
  return all;
}

TEST(Layout, MembersAreMovedAndIntegersWidened) {
  const Layout from{32,
                    {{"first", 0, 4, 1, Kind::unsigned_number},
                     {"removed", 4, 4, 1, Kind::unsigned_number},
                     {"of.code", 8, 4, 1, Kind::signed_number},
                     {"small", 12, 2, 2, Kind::signed_number},
                     {"comm", 16, 1, 8, Kind::signed_number},
                     {"path", 24, 4, 1, Kind::text},
                     {"on", 28, 1, 1, Kind::boolean},
                     {"state", 29, 1, 1, Kind::unsigned_number}}};
  const Layout to{72,
                  {{"comm", 0, 1, 16, Kind::signed_number},
                   {"of.code", 16, 8, 1, Kind::signed_number},
                   {"added", 24, 8, 1, Kind::unsigned_number},
                   {"small", 32, 4, 3, Kind::signed_number},
                   {"first", 48, 8, 1, Kind::unsigned_number},
                   {"path", 56, 4, 1, Kind::text},
                   {"state", 60, 4, 1, Kind::signed_number},
                   {"on", 64, 4, 1, Kind::unsigned_number}}};
  const Move move(from, to);
  EXPECT_EQ(lacks(move), (std::vector<std::string>{"added: not in this recording"}));
  std::string record(32, '\0');
  put(record, 0, std::uint32_t{0xf0000001});
  put(record, 4, std::uint32_t{77});
  put(record, 8, std::int32_t{-5});
  put(record, 12, std::int16_t{-300});
  put(record, 14, std::int16_t{300});
  memcpy(record.data() + 16, "command\0", 8);
  put(record, 24, std::uint16_t{34});
  put(record, 26, std::uint16_t{3});
  put(record, 28, std::uint8_t{1});
  put(record, 29, std::uint8_t{200});
  record += "__abc";
  const auto moved = move(record);
  ASSERT_EQ(moved.size(), 72u + 5);
  EXPECT_EQ(moved.substr(0, 16), std::string("command") + std::string(9, '\0'));
  EXPECT_EQ(get<std::int64_t>(moved, 16), -5);
  EXPECT_EQ(get<std::uint64_t>(moved, 24), 0u);
  EXPECT_EQ(get<std::int32_t>(moved, 32), -300);
  EXPECT_EQ(get<std::int32_t>(moved, 36), 300);
  EXPECT_EQ(get<std::int32_t>(moved, 40), 0);
  EXPECT_EQ(get<std::uint64_t>(moved, 48), 0xf0000001u);
  EXPECT_EQ(moved.substr(get<std::uint16_t>(moved, 56), get<std::uint16_t>(moved, 58)), "abc");
  EXPECT_EQ(get<std::int32_t>(moved, 60), 200);
  EXPECT_EQ(get<std::uint32_t>(moved, 64), 1u);
}

TEST(Layout, WhatDoesNotFitIsLacking) {
  const auto number = Kind::unsigned_number, sign = Kind::signed_number;
  const struct {
    Member from, to;
    bool fits;
  } kCases[] = {
      {{"x", 0, 8, 1, number}, {"x", 0, 4, 1, number}, false},  // narrower
      {{"x", 0, 4, 1, sign}, {"x", 0, 4, 1, number}, false},
      {{"x", 0, 4, 1, sign}, {"x", 0, 8, 1, number}, false},
      {{"x", 0, 4, 1, number}, {"x", 0, 4, 1, sign}, false},
      {{"x", 0, 4, 1, number}, {"x", 0, 8, 1, sign}, true},
      {{"x", 0, 1, 1, Kind::boolean}, {"x", 0, 1, 1, number}, true},
      {{"x", 0, 1, 1, number}, {"x", 0, 1, 1, Kind::boolean}, false},
      {{"x", 0, 1, 16, sign}, {"x", 0, 1, 8, sign}, false},  // a shorter array
      {{"x", 0, 1, 8, sign}, {"x", 0, 1, 16, sign}, true},
      {{"x", 0, 4, 1, Kind::text}, {"x", 0, 4, 1, number}, false},
      {{"x", 0, 4, 1, number}, {"x", 0, 4, 1, Kind::text}, false},
      {{"x", 0, 4, 1, Kind::bytes_only}, {"x", 0, 4, 1, number}, false},
      {{"x", 0, 4, 2, Kind::bytes_only}, {"x", 0, 4, 2, Kind::bytes_only}, true},
      {{"x", 0, 4, 1, Kind::bytes_only}, {"x", 0, 4, 2, Kind::bytes_only}, false},
  };
  for (auto& one : kCases) {
    SCOPED_TRACE(&one - kCases);
    const Move move({16, {one.from}}, {16, {one.to}});
    EXPECT_EQ(move.lacks().empty(), one.fits);
    const auto moved = move(std::string(16, '\x81'));
    ASSERT_EQ(moved.size(), 16u);
    EXPECT_EQ(moved[0], one.fits ? '\x81' : '\0');
  }
}

TEST(Layout, ATextTooFarAwayIsEmpty) {
  const Move move({4, {{"x", 0, 4, 1, Kind::text}}}, {400, {{"x", 0, 4, 1, Kind::text}}});
  std::string record(4, '\xff');
  EXPECT_EQ(move(record), std::string(400, '\0'));
  put(record, 0, std::uint16_t{2});  // within the record: as it was
  EXPECT_EQ(get<std::uint16_t>(move(record), 0), 2u);
}

/// All that a recording has of a tool's records and rows has a layout.
TEST(Layout, OfEachToolIsInItsObject) {
  int records = 0, rows = 0;
  for (auto& of : all_reports()) {
    const auto type = of.tool.report->record_type();
    if (!of.tool.report->can_be_recorded()) continue;
    SCOPED_TRACE(::testing::Message() << of.tool.name << " --" << of.when << " " << type);
    const ObjectLayouts layouts(of.tool.object.bytes());
    if (of.tool.report->name() == "event") {
      EXPECT_EQ(layouts.of_struct(type).bytes, of.tool.report->record_size())
          << "its program lacks RECORD()";
      records++;
    }
    if (of.tool.report->name() != "aggregate" || !of.tool.report->has_program()) continue;
    if (of.tool.compile) continue;  // the forms of its rows are the command line's (Ask::report)
    const Config config;
    Session s(of.tool, config);
    struct Maps : replay::MadeSource {
      using MadeSource::MadeSource;
      std::vector<CounterShape> shapes;
      Result<std::unique_ptr<CounterSource>> counters(CounterShape shape) override {
        shapes.push_back(shape);
        return MadeSource::counters(std::move(shape));
      }
    };
    auto made = std::make_unique<Maps>(1, 8, std::size_t{1});
    auto& maps = *made;
    s.source = std::move(made);
    auto reporter = of.tool.report->reporter();
    reporter->configure(s);
    ASSERT_TRUE(reporter->open(s));
    for (auto& shape : maps.shapes) {
      SCOPED_TRACE(shape.map);
      // Of slots of targets, whose number is chosen before load, the type is not known.
      const auto bytes = layouts.of_value(shape.map, shape.value_size).bytes;
      if (shape.keyed || bytes) {
        EXPECT_EQ(bytes, shape.value_size);
      }
      if (shape.keyed) {
        EXPECT_GT(layouts.of_key(shape.map).bytes, 0u);
        EXPECT_LE(layouts.of_key(shape.map).bytes, shape.key_size);
      }
      rows++;
    }
  }
  EXPECT_GT(records, 45);
  EXPECT_GT(rows, 60);
}

struct Old {
  std::uint64_t time;
  std::uint32_t uid, pid;
  char comm[8];
  std::uint16_t at, bytes;
  std::uint32_t pad;
};

Value half(const Old& o) { return value_if(o.pid != 0, o.uid / 2); }
std::uint64_t twice(const Old& o) { return o.time * 2; }

TEST(Layout, FieldsThatNeedWhatIsLackingAreEmpty) {
  std::vector<Field> fields{field<&Old::uid>("uid", "UID", as::pid, ""),
                            field<&Old::pid>("pid", "PID", as::pid, ""),
                            derived<Old, half>("half", "HALF", as::number, ""),
                            derived<Old, twice>("twice", "TWICE", as::number, ""),
                            field<&Old::comm>("comm", "COMM", as::comm, "")};
  std::vector<std::string> said;
  const std::vector<Lacking> lacking{
      {.member = "uid", .why = "not in this recording", .at = 8, .bytes = 4},
      {.member = "pad", .why = "not in this recording", .at = 28, .bytes = 4}};
  leave_empty(fields, sizeof(Old), lacking, said);
  EXPECT_EQ(said, (std::vector<std::string>{"field uid: not in this recording",
                                            "field half: not in this recording"}));
  const Old record{1, 2, 3, "name", 0, 0, 0};
  for (auto& f : fields)
    EXPECT_EQ(std::holds_alternative<std::monostate>(f.read(&record, {})),
              f.key == "uid" || f.key == "half")
        << f.key;
}

}  // namespace
}  // namespace coretap::record
