#include "stacks/recorded_stacks.hpp"

#include "expect.hpp"
#include "stacks/pprof.hpp"
#include "text/gzip.hpp"

namespace coretap {
namespace recorded {
namespace {

constexpr RecordedType kTime{"time", "nanoseconds", 1000};

Result<RecordedStacks> read(std::string_view bytes) {
  return recorded_stacks(bytes, "old.pb.gz", kTime, "walltime");
}

/// "a;b;c 5x2": value and count of each.
Words words(const RecordedStacks& r) {
  Words all;
  for (auto& s : r.stacks) {
    std::string line;
    for (auto f : s.frames) line += (line.empty() ? "" : ";") + r.names[f];
    all.push_back(line + fmt::format(" {}x{}", s.value, s.count));
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::string profile(const Words& notes, std::vector<PprofProfile::Type> types = {
                                            {"waits", "count"}, {"time", "nanoseconds"}}) {
  PprofProfile p(types);
  const FramePlace in_kernel{.function = "do_wait"}, main{.function = "main"};
  const std::vector<StackWord> one{{StackWord::user, false, "main+0x5", &main},
                                   {StackWord::kernel, false, "do_wait", &in_kernel},
                                   {StackWord::lock, false, "[lock]"}};
  const std::vector<StackWord> two{{StackWord::cpu, false, "[cpu]"}};
  std::vector<std::uint64_t> of_one(types.size()), of_two(types.size());
  for (std::size_t i = 0; i < types.size(); i++) of_one[i] = 3 + 97 * i, of_two[i] = 1 + 6 * i;
  p.add(one, {"a;b", 7}, of_one);
  p.add(two, {"other", 8}, of_two);
  return p.finish({.lasted_ns = 5'000'000'000, .notes = notes});
}

void expect_broken(std::string_view bytes, std::string_view why) {
  auto r = read(bytes);
  ASSERT_FALSE(r);
  EXPECT_TRUE(says(r.error().what, "old.pb.gz cannot be compared with"));
  EXPECT_TRUE(says(r.error().why, why));
  EXPECT_TRUE(says(r.error().hint, "'walltime --pprof FILE'"));
  EXPECT_EQ(r.error().status, kFailed);
}

TEST(RecordedStacks, ReadsWhatProfilesHave) {
  auto r = read(profile({"walltime", thread_time_note(20'000'000'000, 5'000'000'000)}));
  ASSERT_TRUE(r) << r.error().why;
  EXPECT_EQ(words(*r), (Words{"a:b;main;do_wait;[lock] 100x3", "other;[cpu] 7x1"}));
  EXPECT_EQ(r->lasted_ns, 5'000'000'000u);
  EXPECT_EQ(r->thread_ns, 20'000'000'000u);
  for (std::size_t i = 0; i < r->names.size(); i++)
    EXPECT_EQ(r->kernel[i], r->names[i] == "do_wait") << r->names[i];
  EXPECT_FALSE(r->folded);
}

TEST(RecordedStacks, ProfilesOfEarlierVersionsHaveNoThreadTime) {
  auto r = read(profile({"walltime", "thread time: many"}));
  ASSERT_TRUE(r);
  EXPECT_EQ(r->thread_ns, 0u);
}

TEST(RecordedStacks, ReadsFoldedStacks) {
  auto r = read("a;main;do_wait_[k];[lock] 5\r\n\na b;[cpu] 7\nzero;[cpu] 0");
  ASSERT_TRUE(r) << r.error().why;
  EXPECT_EQ(words(*r), (Words{"a b;[cpu] 7000x0", "a;main;do_wait;[lock] 5000x0"}));
  EXPECT_TRUE(r->folded);
  EXPECT_EQ(r->thread_ns, 0u);
}

TEST(RecordedStacks, AnnotationsAreNoPartOfNames) {
  auto r = read("a;main;run_[j];get_[i];do_wait_[k];_[x];[lock] 5\n");
  ASSERT_TRUE(r) << r.error().why;
  EXPECT_EQ(words(*r), (Words{"a;main;run;get;do_wait;_[x];[lock] 5000x0"}));
  for (std::size_t i = 0; i < r->names.size(); i++)
    EXPECT_EQ(r->kernel[i], r->names[i] == "do_wait") << r->names[i];
}

TEST(RecordedStacks, NamesAreMadeSafe) {
  auto r = read("a\x1b[31m;b\xff;[cpu] 5\n");
  ASSERT_TRUE(r);
  for (auto& name : r->names)
    for (unsigned char c : name) EXPECT_TRUE(c >= 0x20 && c != 0x7f) << name;
}

TEST(RecordedStacks, SaysWhatIsBroken) {
  expect_broken("", "no stacks");
  expect_broken("a;b\n", "line 1 is not a stack and a number");
  expect_broken("a;b 5\na;b -5\n", "line 2");
  expect_broken("a 99999999999999999999\n", "line 1");
  expect_broken("a 9999999999999999999\n", "make no sense");
  expect_broken(std::string("a\0b 5\n", 6), "neither gzip-compressed nor text");
  auto whole = profile({});
  expect_broken(whole.substr(0, whole.size() / 2), "damaged");
  expect_broken(whole + "more", "damaged");
  expect_broken(gzip("not a profile", Compression::fast), "");
  expect_broken(profile({}, {{"samples", "count"}, {"cpu", "nanoseconds"}}),
                "no value 'time' in nanoseconds");
  std::string deep;
  for (std::size_t i = 0; i <= RecordedStacks::kMostDepth; i++) deep += "f;";
  expect_broken(deep + "[cpu] 5\n", "more than 4096 frames");
}

TEST(RecordedStacks, UnpackedSizeIsBounded) {
  auto packed = gzip(std::string(1 << 20, 'x'), Compression::fast);
  EXPECT_EQ(coretap::gunzip(packed, 1 << 20)->size(), std::size_t{1} << 20);
  EXPECT_FALSE(coretap::gunzip(packed, (1 << 20) - 1));
  EXPECT_FALSE(coretap::gunzip("", 5));
}

TEST(RecordedStacks, FilesThatCannotBeRead) {
  auto none = read_recorded_stacks("/nonexistent/profile", kTime, "walltime");
  ASSERT_FALSE(none);
  EXPECT_TRUE(says(none.error().what, "/nonexistent/profile"));
  auto directory = read_recorded_stacks("/", kTime, "walltime");
  ASSERT_FALSE(directory);
  EXPECT_FALSE(directory.error().hint.empty());
}

}  // namespace
}  // namespace recorded
}  // namespace coretap
