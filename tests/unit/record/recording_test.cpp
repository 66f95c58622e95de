// Recordings: whatever a report printed from kernel programs' data, it prints again from the file.
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include <csignal>
#include <regex>

#include "../reports/replay.hpp"
#include "base/recall.hpp"
#include "coretap/clock.hpp"
#include "places.hpp"
#include "record/changes.hpp"
#include "record/recorder.hpp"
#include "record/replay.hpp"

namespace coretap::record {
namespace {

using replay::Chance;
using replay::MadeSource;

/// Standard output of a session, in memory.
class Printed {
 public:
  explicit Printed(Session& s) : file_(memfd_create("printed", MFD_CLOEXEC)) {
    s.out = Sink(file_.get());
  }
  std::string text() const {
    std::string all(static_cast<std::size_t>(lseek(file_.get(), 0, SEEK_END)), '\0');
    EXPECT_EQ(pread(file_.get(), all.data(), all.size(), 0), static_cast<ssize_t>(all.size()));
    return all;
  }

 private:
  Fd file_;
};

constexpr int kReports = 3;

/// `segments`: there instead, one for each report; `each`: what each report printed.
std::string recorded(const Tool& tool, const Config& config, std::uint32_t seed,
                     const std::string& path, Segments* segments = nullptr,
                     std::vector<std::string>* each = nullptr) {
  Recorder recorder;
  EXPECT_TRUE(segments ? recorder.open(*segments) : recorder.open(path));
  recorder.head({.tool = std::string(tool.name), .record_bytes = tool.report->record_size()});
  const Recalling recalling(recorder);
  Session s(tool, config);
  s.recorder = &recorder;
  s.source = recorder.over(
      std::make_unique<MadeSource>(seed, tool.report->record_size(), std::size_t{8}, true, true));
  const Printed printed(s);
  auto reporter = tool.report->reporter();
  reporter->configure(s);
  recorder.moment();
  EXPECT_TRUE(reporter->open(s));
  s.began_ns = 1;
  EXPECT_TRUE(s.source->open_records(
      [&](const void* record, std::size_t bytes) { reporter->record(s, record, bytes); }));
  reporter->begin(s);
  recorder.did(Did::begin);
  if (tool.report->name() == "event") s.source->take_records({}, 0);
  for (int i = 0; i < kReports; i++) {
    recorder.moment();
    recorder.sampling = true;
    reporter->sample(s);
    recorder.sampling = false;
    recorder.did(Did::sample);
    recorder.moment();
    s.out.flush();
    const auto before = printed.text().size();
    reporter->report(s);
    recorder.did(Did::report);
    s.out.flush();
    if (each) each->push_back(printed.text().substr(before));
    if (!segments || i + 1 == kReports) continue;
    recorder.moment();
    recorder.did(Did::split);
    recorder.next_segment();
  }
  EXPECT_TRUE(reporter->finish(s));
  recorder.did(Did::finish);
  recorder.close();
  EXPECT_FALSE(recorder.file().failed());
  s.out.flush();
  return printed.text();
}

std::string shown(const Tool& tool, const Config& config, const std::vector<std::string>& paths,
                  std::string* last_report = nullptr) {
  Replay replay;
  EXPECT_TRUE(replay.open(paths));
  EXPECT_EQ(replay.head().tool, tool.name);
  const Recalling recalling(replay);
  auto mark = replay.begin();
  EXPECT_TRUE(mark);
  if (!mark) return {};
  Session s(tool, config);
  s.source = replay.source();
  s.began_ns = 1;
  const Printed printed(s);
  auto reporter = tool.report->reporter();
  hold_clock(mark->monotonic_ns);
  reporter->configure(s);
  EXPECT_TRUE(reporter->open(s));
  EXPECT_TRUE(s.source->open_records(
      [&](const void* record, std::size_t bytes) { reporter->record(s, record, bytes); }));
  reporter->begin(s);
  if (replay.has_base()) reporter->report(s);
  for (;;) {
    auto next = replay.next();
    EXPECT_TRUE(next);
    if (!next || !*next || (*next)->did == Did::finish) break;
    hold_clock((*next)->monotonic_ns);
    s.out.flush();
    const auto before = printed.text().size();
    if ((*next)->did == Did::report) reporter->report(s);
    s.out.flush();
    if ((*next)->did == Did::report && last_report) *last_report = printed.text().substr(before);
  }
  EXPECT_TRUE(reporter->finish(s));
  s.out.flush();
  return printed.text();
}

std::string shown(const Tool& tool, const Config& config, const std::string& path) {
  return shown(tool, config, std::vector{path});
}

/// A directory of segments, as the store makes it.
struct SegmentDirectory {
  ScratchDirectory place;
  Shared shared{};
  Fd fd{open(place.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)}, wake{eventfd(0, 0)};
  Segments segments{shared, shared.tools[0], fd.get(), "tool", wake.get(), {~0ULL, ~0ULL}};

  SegmentDirectory() { shared.left = 1 << 30; }
  std::vector<std::string> paths() const {
    std::vector<std::string> all;
    for (std::uint64_t i = 1; i <= shared.tools[0].segment; i++)
      all.push_back(place.in(segment_name("tool", i)));
    return all;
  }
};

TEST(Recording, SegmentsAreShownAsOneRecordingAndAlone) {
  int shows = 0, alone = 0;
  for (auto& of : all_reports()) {
    const auto kind = of.tool.report->name();
    // The sums of stacks that are made here do not grow.
    if (!of.tool.report->can_be_recorded() || of.tool.compile || kind == "stacks") continue;
    SCOPED_TRACE(::testing::Message() << of.tool.name << " --" << of.when << " " << kind);
    Config config;
    Chance chance(7);
    replay::give_some(config, of, chance);
    SegmentDirectory directory;
    std::vector<std::string> each;
    const auto live = recorded(of.tool, config, 7, "", &directory.segments, &each);
    const auto paths = directory.paths();
    ASSERT_EQ(paths.size(), std::size_t{kReports});
    EXPECT_EQ(shown(of.tool, config, paths), live);
    shows += !live.empty();
    if (kind == "event") continue;
    // Its report has nothing of earlier segments, and its names.
    std::string last;
    shown(of.tool, config, {paths.back()}, &last);
    alone += last == each.back();
  }
  EXPECT_GT(shows, 100);
  EXPECT_GT(alone, 10);
}

TEST(Recording, AMissingSegmentIsCounted) {
  SegmentDirectory directory;
  const auto tool = build(*find_tool("syscount"));
  recorded(tool, {}, 3, "", &directory.segments);
  auto paths = directory.paths();
  const auto gaps = [](const std::vector<std::string>& all) {
    Replay replay;
    EXPECT_TRUE(replay.open(all));
    const Recalling recalling(replay);
    while (true) {
      auto mark = replay.next();
      EXPECT_TRUE(mark);
      if (!mark || !*mark) return replay.gaps();
    }
  };
  EXPECT_EQ(gaps(paths), 0u);
  EXPECT_EQ(gaps({paths[0], paths[2]}), 1u);
  EXPECT_EQ(gaps({paths[2]}), 0u);
  // In another order, or of another run: refused.
  Replay wrong;
  EXPECT_TRUE(wrong.open({paths[1], paths[0]}));
  const Recalling recalling(wrong);
  Result<std::optional<Replay::Mark>> mark = wrong.next();
  while (mark && *mark) mark = wrong.next();
  EXPECT_FALSE(mark);
}

TEST(Recording, WithoutSpaceRecordsAreCounted) {
  SegmentDirectory directory;
  Recorder recorder;
  ASSERT_TRUE(recorder.open(directory.segments));
  recorder.head({.tool = "x"});
  recorder.moment();
  recorder.did(Did::begin);
  auto& state = directory.shared.tools[0];
  directory.shared.left = 0;
  std::uint64_t written = 0;
  std::string noise(100'000, '\0');
  Chance chance(5);
  for (auto& c : noise) c = static_cast<char>(chance.below(256));
  for (int i = 0; i < 10; i++) {
    recorder.record(noise.data(), noise.size());
    recorder.flush();
    written++;
  }
  EXPECT_TRUE(recorder.file().failed());
  EXPECT_EQ(state.unrecorded, written);
  EXPECT_GE(directory.shared.left, 0);
  recorder.moment();
  recorder.did(Did::split);
  recorder.next_segment();
  EXPECT_EQ(state.segment, 1u) << "there is no space for another one";
  EXPECT_EQ(state.closed, 1u);
  directory.shared.left = 1 << 20;
  EXPECT_TRUE(recorder.segment_due());
  recorder.next_segment();
  EXPECT_EQ(state.segment, 2u);
  EXPECT_FALSE(recorder.file().failed());
  recorder.record("x", 1);
  recorder.flush();
  EXPECT_EQ(state.unrecorded, written);
  Replay replay;
  EXPECT_TRUE(replay.open(directory.paths()));
}

TEST(Recording, EachReportPrintsTheSame) {
  const ScratchDirectory directory;
  const auto path = directory.in("one.ctr");
  int shows = 0;
  for (auto& of : all_reports()) {
    if (!of.tool.report->can_be_recorded() || of.tool.compile) continue;
    for (auto format : {OutputFormat::text, OutputFormat::json, OutputFormat::csv}) {
      SCOPED_TRACE(::testing::Message()
                   << of.tool.name << " --" << of.when << ", format " << static_cast<int>(format));
      Config config;
      config.format = format;
      Chance chance(7);
      replay::give_some(config, of, chance);
      const auto live = recorded(of.tool, config, 7, path);
      EXPECT_EQ(shown(of.tool, config, path), live);
      shows += !live.empty();
    }
  }
  EXPECT_GT(shows, 300);
}

/// A recording that was made while text was printed has all that JSON needs: no name is empty in
/// one and known in the other.
TEST(Recording, OtherFormsOfOutputHaveTheirNames) {
  const ScratchDirectory directory;
  const auto text = directory.in("text.ctr"), json = directory.in("json.ctr");
  for (auto& of : all_reports()) {
    if (!of.tool.report->can_be_recorded() || of.tool.compile) continue;
    SCOPED_TRACE(::testing::Message() << of.tool.name << " --" << of.when);
    Config as_text, as_json;
    as_json.format = OutputFormat::json;
    for (auto* config : {&as_text, &as_json})
      if (!of.when.empty()) config->give(of.when, "");
    recorded(of.tool, as_text, 5, text);
    const auto live = recorded(of.tool, as_json, 5, json);
    auto names = [](const std::string& lines) {
      return std::regex_replace(lines, std::regex("[0-9]+"), "0");
    };
    // Snapshots of files are of two moments.
    if (!of.tool.report->has_program()) continue;
    EXPECT_EQ(names(shown(of.tool, as_json, text)), names(live));
  }
}

TEST(Recording, ACutFileIsShownAsFarAsItGoes) {
  const ScratchDirectory directory;
  const auto whole = directory.in("whole"), part = directory.in("part");
  Writer out;
  ASSERT_TRUE(out.open(whole));
  constexpr int kParts = 300;
  for (int i = 0; i < kParts; i++) {
    out.put(Part::answer, std::string(static_cast<std::size_t>(i % 40), static_cast<char>(i)));
    if (i % 10 == 9) out.flush();
  }
  out.close();
  const auto bytes = places::file_text(whole);
  int last = 0;
  for (std::size_t size = 0; size <= bytes.size(); size++) {
    directory.write("part", bytes.substr(0, size));
    Reader in;
    if (!in.open(part)) {
      EXPECT_LT(size, 20u);
      continue;
    }
    int count = 0;
    Part kind{};
    std::string_view data;
    for (;;) {
      auto got = in.next(kind, data);
      ASSERT_TRUE(got) << size;
      if (!*got) break;
      ASSERT_EQ(data, std::string(static_cast<std::size_t>(count % 40), static_cast<char>(count)));
      count++;
    }
    EXPECT_GE(count, last) << "a longer file has no less";
    EXPECT_EQ(in.cut(), size != bytes.size() && size > 20) << size;
    last = count;
  }
  EXPECT_EQ(last, kParts);
}

// The writer was killed: blocks are larger than the reader's steps.
TEST(Recording, AllThatWasFlushedIsRead) {
  const ScratchDirectory directory;
  Writer out;
  ASSERT_TRUE(out.open(directory.in("killed")));
  std::string part(150'000, '\0');
  std::uint32_t random = 1;
  for (int parts = 1; parts <= 20; parts++) {
    for (auto& c : part) c = static_cast<char>((random = random * 1103515245 + 12345) >> 28);
    out.put(Part::records, part);
    out.flush();
    Reader in;
    ASSERT_TRUE(in.open(directory.in("killed")));
    Part kind{};
    std::string_view data;
    int count = 0;
    for (auto got = in.next(kind, data); got && *got; got = in.next(kind, data)) count++;
    EXPECT_EQ(count, parts);
  }
}

TEST(Recording, ChangesMakeTheSameRows) {
  Chance chance(3);
  for (std::size_t words : {1, 2, 7, 100}) {
    Changes from(4, words), to(4, words);
    Changes::Rows rows;
    for (int step = 0; step < 50; step++) {
      for (int i = 0; i < 5; i++) {
        std::string key(4, '\0');
        key[0] = static_cast<char>(chance.below(20));
        if (chance.one_in(4)) {
          rows.erase(key);
          continue;
        }
        auto& row = rows.try_emplace(key, words).first->second;
        if (chance.one_in(2)) row[chance.below(words)] += chance.below(1'000'000);
        if (chance.one_in(9)) chance.fill(reinterpret_cast<char*>(row.data()), words * 8);
      }
      ASSERT_TRUE(to.take(from.to(rows)));
      ASSERT_EQ(to.rows(), rows);
    }
    EXPECT_EQ(from.to(rows).size(), 1u) << "nothing changed";
  }
}

TEST(Recording, OnlyItsOwnerMayReadIt) {
  const ScratchDirectory directory;
  const auto file = directory.in("file"), link = directory.in("link");
  directory.write("file", std::string(10'000, 'x'));
  ASSERT_EQ(chmod(file.c_str(), 0644), 0);
  Writer out;
  ASSERT_TRUE(out.open(file));
  out.close();
  struct stat after {};
  ASSERT_EQ(stat(file.c_str(), &after), 0);
  EXPECT_EQ(after.st_mode & 0777, 0600u);
  EXPECT_LT(after.st_size, 100) << "what it had is gone";
  ASSERT_EQ(symlink(file.c_str(), link.c_str()), 0);
  EXPECT_FALSE(Writer().open(link)) << "a link may lead anywhere";
  EXPECT_FALSE(Writer().open("/dev/null"));
  EXPECT_FALSE(Reader().open(directory.path()));
  EXPECT_FALSE(Reader().open("/dev/null"));
}

TEST(Recording, AFullDiskEndsTheRecordingAlone) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "there is no /dev/full";
  struct rlimit before {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const ScratchDirectory directory;
  signal(SIGXFSZ, SIG_IGN);
  struct rlimit small = {4096, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  Writer out;
  ASSERT_TRUE(out.open(directory.in("file")));
  Chance chance(1);
  for (int i = 0; i < 100 && !out.failed(); i++) {
    std::string noise(1000, '\0');
    for (auto& c : noise) c = static_cast<char>(chance.below(256));
    out.put(Part::records, noise);
    out.flush();
  }
  EXPECT_TRUE(out.failed());
  EXPECT_EQ(out.error().why, strerror(EFBIG));
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, SIG_DFL);
}

}  // namespace
}  // namespace coretap::record
