#include "stacks/pprof.hpp"

#include <zlib.h>

#include "coretap/symbols.hpp"
#include "expect.hpp"
#include "wire.hpp"

namespace coretap {
namespace {

using Path = std::vector<StackWord>;
using test::Wire;

std::string gunzip(const std::string& bytes) {
  z_stream z{};
  EXPECT_EQ(inflateInit2(&z, 15 + 16), Z_OK);
  std::string out(1 << 22, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  z.avail_in = static_cast<uInt>(bytes.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(inflate(&z, Z_FINISH), Z_STREAM_END);
  out.resize(z.total_out);
  inflateEnd(&z);
  return out;
}

/// A profile as its readers interpret it.
struct Read {
  struct Frame {
    std::string name, linkage_name, file, build_id;
    std::uint64_t offset = 0, address = 0;  // in the file, and in the profile
    bool operator==(const Frame&) const = default;
  };
  struct Sample {
    std::vector<Frame> frames;  // leaf first
    Numbers values;
    std::map<std::string, std::string> labels;
  };
  Words types, comments;
  std::vector<Sample> samples;
  std::vector<Wire> mappings;
  std::string main_type;
  std::uint64_t period = 0, began = 0, lasted = 0;

  explicit Read(const std::string& file) {
    Wire all(gunzip(file));
    auto text = all.all(6);
    EXPECT_EQ(text.at(0), "");
    for (auto& t : all.messages(1))
      types.push_back(text.at(t.number(1)) + "/" + text.at(t.number(2)));
    std::map<std::uint64_t, Wire> functions, locations, known;
    for (auto& m : all.messages(5)) EXPECT_TRUE(functions.emplace(m.number(1), m).second);
    for (auto& m : all.messages(4)) EXPECT_TRUE(locations.emplace(m.number(1), m).second);
    for (auto& m : all.messages(3)) EXPECT_TRUE(known.emplace(m.number(1), m).second);
    for (auto& m : all.messages(2)) {
      Sample s;
      for (auto id : m.packed(1)) {
        auto& l = locations.at(id);
        Frame f;
        f.address = l.number(3);
        if (auto mapping = l.number(2)) {
          auto& in = known.at(mapping);
          f.file = text.at(in.number(5));
          f.build_id = text.at(in.number(6));
          if (f.address) {
            EXPECT_GE(f.address, in.number(2));
            EXPECT_LT(f.address, in.number(3));
            f.offset = f.address - in.number(2) + in.number(4);
          }
        }
        for (auto& line : l.messages(4)) {
          auto& function = functions.at(line.number(1));
          f.name = text.at(function.number(2));
          f.linkage_name = text.at(function.number(3));
        }
        s.frames.push_back(f);
      }
      s.values = m.packed(2);
      for (auto& label : m.messages(3))
        s.labels[text.at(label.number(1))] =
            label.number(2) ? text.at(label.number(2)) : std::to_string(label.number(3));
      samples.push_back(s);
    }
    mappings = all.messages(3);
    for (auto c : all.packed(13)) comments.push_back(text.at(c));
    main_type = text.at(all.number(14));
    period = all.number(12);
    began = all.number(9);
    lasted = all.number(10);
  }
  Words names(std::size_t sample) const {
    Words all;
    for (auto& f : samples.at(sample).frames) all.push_back(f.name);
    return all;
  }
};

/// Adds one sample of one frame.
void add(PprofProfile& p, const StackWord& word, std::string_view comm = "app") {
  p.add(Path{word}, {std::string(comm), 7}, Numbers{1, 1});
}

PprofProfile samples() { return PprofProfile({{"samples", "count"}, {"cpu", "nanoseconds"}}); }

TEST(Pprof, EqualStacksAreOneSample) {
  auto p = samples();
  Path path{{StackWord::user, false, "main"}, {StackWord::user, false, "work"}};
  p.add(path, {"app", 7}, Numbers{2, 200});
  p.add(path, {"app", 7}, Numbers{3, 300});
  p.add(path, {"app", 8}, Numbers{1, 100});
  p.add(std::span(path).first(1), {"other", 0}, Numbers{1, 100});
  Read read(p.finish({1'700'000'000'000'000'000, 5'000'000'000, 10'000'000, {"what was lost"}}));
  ASSERT_EQ(read.samples.size(), 3u);
  EXPECT_EQ(read.types, (Words{"samples/count", "cpu/nanoseconds"}));
  EXPECT_EQ(read.main_type, "cpu");
  EXPECT_EQ(read.period, 10'000'000u);
  EXPECT_EQ(read.began, 1'700'000'000'000'000'000u);
  EXPECT_EQ(read.lasted, 5'000'000'000u);
  EXPECT_EQ(read.comments, Words{"what was lost"});
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < 3; i++) {
    auto& s = read.samples[i];
    total += s.values.at(0);
    EXPECT_EQ(s.values.at(1), s.values.at(0) * 100);
    if (s.labels.at("comm") == "other") {
      EXPECT_EQ(read.names(i), Words{"main"});
      EXPECT_FALSE(s.labels.contains("pid"));
    } else {
      EXPECT_EQ(read.names(i), (Words{"work", "main"})) << "leaf first";
      EXPECT_EQ(s.values.at(0), s.labels.at("pid") == "7" ? 5u : 1u);
    }
  }
  EXPECT_EQ(total, 7u);
}

TEST(Pprof, InlinedFunctionsAreLinesOfOneLocation) {
  auto file = std::make_shared<CodeFile>(CodeFile{"/usr/bin/app", "0badcafe", {{0x1000, 0x2345}}});
  FramePlace outer{"outer", "", file, 0x1010}, inner{"inner", "", file, 0x1010}, jit = inner;
  outer.source = "/s/app.c", outer.line = 70;
  inner.source = "/s/app.h", inner.line = 3;
  inner.inlined = jit.inlined = jit.compiled = true;
  auto p = samples();
  const Path path{{StackWord::user, false, "outer", &outer},
                  {StackWord::user, false, "inner", &inner}};
  p.add(path, {"app", 7}, Numbers{1, 1});
  p.add(path, {"app", 7}, Numbers{1, 1});
  p.add(Path{path[0], {StackWord::user, false, "inner", &jit}}, {"app", 8}, Numbers{1, 1});
  Wire all(gunzip(p.finish({})));
  auto text = all.all(6);
  std::map<std::uint64_t, Wire> functions;
  for (auto& m : all.messages(5)) functions.emplace(m.number(1), m);
  std::vector<Words> locations;
  for (auto& m : all.messages(4)) {
    auto& lines = locations.emplace_back();
    for (auto& line : m.messages(4)) {
      auto& f = functions.at(line.number(1));
      lines.push_back(
          fmt::format("{} {}:{}", text.at(f.number(2)), text.at(f.number(4)), line.number(2)));
    }
  }
  std::ranges::sort(locations);
  EXPECT_EQ(locations,
            (std::vector<Words>{
                {"inner /s/app.h:3", "outer /s/app.c:70"}, {"inner :0"}, {"outer /s/app.c:70"}}));
}

TEST(Pprof, AFileHasAMappingForEachSegment) {
  auto file = std::make_shared<CodeFile>(
      CodeFile{"/usr/bin/app", "0badcafe", {{0x1000, 0x2345}, {0x9000, 0x10}}});
  FramePlace one{"ns::f(int)", "_ZN2nsfEi", file, 0x1010}, two{"g", "", file, 0x9008},
      nameless{"", "", file, 0x2000}, outside{"", "", file, 0x8000}, jit{"", "", nullptr, {}};
  auto p = samples();
  for (auto* place : {&one, &two, &nameless, &outside, &jit})
    add(p, {StackWord::user, false, "shown", place});
  Read read(p.finish({}));
  std::vector<Read::Frame> frames;
  for (auto& s : read.samples) frames.push_back(s.frames.at(0));
  auto has = [&](const std::string& name, const std::string& linkage_name, std::uint64_t offset) {
    for (auto& f : frames)
      if (f.name == name && f.linkage_name == linkage_name && f.offset == offset &&
          f.file == (offset ? "/usr/bin/app" : "") && f.build_id == (offset ? "0badcafe" : ""))
        return true;
    return false;
  };
  EXPECT_TRUE(has("ns::f(int)", "_ZN2nsfEi", 0x1010));
  EXPECT_TRUE(has("g", "g", 0x9008));
  EXPECT_TRUE(has("", "", 0x2000)) << "left to the reader, who may have the file";
  EXPECT_TRUE(has("[unknown]", "[unknown]", 0));
  ASSERT_EQ(read.mappings.size(), 2u);
  EXPECT_EQ(read.mappings[0].number(3) - read.mappings[0].number(2), 0x2345u);
  EXPECT_GT(read.mappings[1].number(2), read.mappings[0].number(3)) << "apart";
  EXPECT_EQ(read.mappings[0].number(7), 0u) << "a function of it has no name";
  EXPECT_EQ(read.mappings[1].number(7), 1u);
}

TEST(Pprof, FilesThatSayNonsense) {
  std::vector<CodeFile::Segment> many(70'000, {0, 0x1000});
  auto huge = std::make_shared<CodeFile>(CodeFile{"/huge", "", {{0, UINT64_MAX}, {0x1000, 0x10}}});
  auto empty = std::make_shared<CodeFile>(CodeFile{"/empty", "", {{0, 0}}});
  auto crowd = std::make_shared<CodeFile>(CodeFile{"/crowd", "", many});
  FramePlace one{"f", "", huge, 0x1008}, two{"g", "", empty, 0}, three{"h", "", crowd, 0x10};
  auto p = samples();
  for (auto* place : {&one, &two, &three}) add(p, {StackWord::user, false, "shown", place});
  Read read(p.finish({}));
  EXPECT_EQ(read.samples.size(), 3u);
  EXPECT_LE(read.mappings.size(), 70u);
  std::uint64_t end = 0;
  for (auto& m : read.mappings) {
    EXPECT_GT(m.number(2), end);
    EXPECT_GT(m.number(3), m.number(2));
    end = m.number(3);
  }
  for (auto& s : read.samples)
    EXPECT_EQ(s.frames[0].offset, s.frames[0].name == "f"   ? 0x1008u
                                  : s.frames[0].name == "h" ? 0x10u
                                                            : 0u);
}

TEST(Pprof, KernelCodeHasNoAddresses) {
  FramePlace place{"vfs_read"};
  auto p = samples();
  add(p, {StackWord::kernel, false, "vfs_read_[k]", &place});
  Read read(p.finish({}));
  EXPECT_EQ(read.names(0), Words{"vfs_read"});
  EXPECT_EQ(read.samples[0].frames[0].address, 0u);
  EXPECT_EQ(read.samples[0].frames[0].file, "[kernel.kallsyms]");
}

TEST(Pprof, MarksAndWakersAreFrames) {
  auto p = PprofProfile({{"contentions", "count"}, {"delay", "nanoseconds"}});
  Path path{{StackWord::mark, false, "[truncated: no frame pointers]"},
            {StackWord::user, false, "main"},
            {StackWord::mark, true, "--"},
            {StackWord::task, true, "waker"}};
  p.add(path, {"app", 7}, Numbers{1, 9});
  Read read(p.finish({}));
  EXPECT_EQ(read.names(0), (Words{"waker", "--", "main", "[truncated: no frame pointers]"}));
  EXPECT_EQ(read.period, 0u);
}

TEST(Pprof, TextIsPrintable) {
  auto p = samples();
  add(p, {StackWord::user, false, "a\x1b[31m\xff\n"}, "\xc3(\x07");
  Read read(p.finish({.notes = {"no\xff\x01"}}));
  for (auto& text : {read.names(0)[0], read.samples[0].labels.at("comm"), read.comments[0]})
    for (auto c : text) EXPECT_TRUE(c >= ' ' && static_cast<unsigned char>(c) < 127) << text;
}

TEST(Pprof, NothingIsAProfileToo) {
  Read read(samples().finish({}));
  EXPECT_TRUE(read.samples.empty());
  EXPECT_EQ(read.types.size(), 2u);
}

}  // namespace
}  // namespace coretap
