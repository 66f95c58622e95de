// Recordings: whatever a report printed from kernel programs' data, it prints again from the file.
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <optional>
#include <regex>

#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include "../reports/replay.hpp"
#include "base/recall.hpp"
#include "coretap/clock.hpp"
#include "places.hpp"
#include "record/changes.hpp"
#include "record/recorder.hpp"
#include "record/replay.hpp"
#include "run/run.hpp"

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

/// Can it be recorded, and can data for it be made here? The calls of traceloop, and counts of
/// perf events, come neither from records nor from maps.
bool has_made_data(const OfTool& of) {
  auto& report = *of.tool.report;
  return report.can_be_recorded() && !report.opens_perf_events() && report.name() != "recorder";
}

/// `segments`: there instead, one for each report; `each`: what each report printed.
std::string recorded(const Tool& tool, const Config& config, std::uint32_t seed,
                     const std::string& path, Segments* segments = nullptr,
                     std::vector<std::string>* each = nullptr) {
  Recorder recorder;
  EXPECT_TRUE(segments ? recorder.open(*segments) : recorder.open(path));
  const ObjectLayouts layouts(tool.object.bytes());
  recorder.use(layouts);
  recorder.head({.tool = std::string(tool.name),
                 .record_bytes = tool.report->record_size(),
                 .layout = layouts.of_struct(tool.report->record_type())});
  const Recalling recalling(recorder);
  Session s(tool, config);
  s.quiet = true;  // writes no file
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
  const ObjectLayouts layouts(tool.object.bytes());
  replay.use(layouts, tool.report->record_type());
  auto mark = replay.begin();
  EXPECT_TRUE(mark);
  if (!mark) return {};
  Session s(tool, config);
  s.quiet = true;
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
    if (!has_made_data(of) || kind == "stacks") continue;
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

/// A struct that has the same members at other places: the last ones first, without gaps.
Layout reordered(const Layout& layout) {
  auto members = layout.members;
  std::ranges::stable_sort(members, {}, &Member::at);
  // Members that share bytes stay together.
  struct Group {
    std::uint32_t begin, end;
    std::vector<Member> members;
  };
  std::vector<Group> groups;
  for (auto& one : members) {
    const auto end = one.at + one.bytes * one.count;
    if (groups.empty() || one.at >= groups.back().end) groups.push_back({one.at, end, {}});
    groups.back().end = std::max(groups.back().end, end);
    groups.back().members.push_back(one);
  }
  Layout other;
  for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
    for (auto one : group->members) {
      one.at = one.at - group->begin + other.bytes;
      other.members.push_back(one);
    }
    other.bytes += group->end - group->begin;
  }
  return other;
}

/// Writes a recording again as if its structs had been others.
class Otherwise {
 public:
  void write(const std::string& from, const std::string& to) {
    Reader in;
    ASSERT_TRUE(in.open(from));
    ASSERT_TRUE(out_.open(to));
    Part part{};
    std::string_view bytes;
    for (;;) {
      auto got = in.next(part, bytes);
      ASSERT_TRUE(got);
      if (!*got) break;
      take(part, bytes);
    }
    out_.close();
  }
  int moved() const { return moved_; }

 private:
  struct Rows {
    MapLayout from, to;
    Changes before, now;
    std::optional<Move> key, value;

    std::string key_of(const std::string& old) const {
      if (!key) return old;
      auto fresh = (*key)(std::string_view(old).substr(0, key->from_bytes()));
      fresh.resize(to.key_bytes);
      if (to.owner) fresh.replace(fresh.size() - to.owner, to.owner, old, old.size() - to.owner);
      return fresh;
    }
    Changes::Words words_of(const Changes::Words& old) const {
      if (!value) return old;
      const auto bytes = (*value)({reinterpret_cast<const char*>(old.data()), value->from_bytes()});
      Changes::Words fresh(to.words());
      memcpy(fresh.data(), bytes.data(), bytes.size());
      return fresh;
    }
    Changes::Rows rows_of(const Changes::Rows& old) const {
      Changes::Rows all;
      for (auto& [name, words] : old) all.emplace(key_of(name), words_of(words));
      return all;
    }
  };

  static std::uint64_t place_of(std::uint64_t at, const Layout& from, const Layout& to) {
    for (auto& was : from.members)
      for (auto& is : to.members)
        if (was.at == at && was.path == is.path) return is.at;
    return at;
  }

  void take(Part part, std::string_view bytes) {
    if (part == Part::head) return head(bytes);
    if (part == Part::map) return map(bytes);
    if (part == Part::records && move_) return records(bytes);
    if (part == Part::pass && move_) return pass(bytes);
    if (part == Part::reading || part == Part::entries || part == Part::removed)
      return reading(part, bytes);
    out_.put(part, bytes);
  }

  void head(std::string_view bytes) {
    auto head = Head::of(bytes);
    if (head.layout) {
      const auto other = reordered(head.layout);
      move_.emplace(head.layout, other);
      moved_ += other != head.layout;
      if (head.record_bytes == head.layout.bytes) head.record_bytes = other.bytes;
      head.layout = other;
    }
    out_.put(Part::head, head.bytes());
  }

  void map(std::string_view bytes) {
    const auto from = MapLayout::of(bytes);
    auto to = from;
    Rows rows{from, to, Changes(0, 0), Changes(0, 0), {}, {}};
    if (from.key) {
      to.key = reordered(from.key);
      rows.key.emplace(from.key, to.key);
      to.key_bytes = from.owner ? (to.key.bytes + 7) / 8 * 8 + from.owner
                                : from.key_bytes - from.key.bytes + to.key.bytes;
      moved_ += to.key != from.key;
    }
    if (from.value && from.sums == 0) {
      to.value = reordered(from.value);
      rows.value.emplace(from.value, to.value);
      to.value_bytes = to.value.bytes;
      moved_ += to.value != from.value;
      for (auto& at : to.largest_at) at = place_of(at, from.value, to.value);
    }
    rows.to = to;
    rows.before = Changes(from.key_bytes, from.words());
    rows.now = Changes(to.key_bytes, to.words());
    maps_.insert_or_assign(from.number, std::move(rows));
    out_.put(Part::map, to.bytes());
  }

  void reading(Part part, std::string_view bytes) {
    protozero::pbf_reader in(bytes.data(), bytes.size());
    std::string to;
    protozero::pbf_writer out(to);
    Rows* rows = nullptr;
    while (in.next()) {
      if (in.tag() == 1) {
        const auto number = in.get_uint64();
        rows = &maps_.at(number);
        out.add_uint64(1, number);
      } else if (in.tag() == 2) {
        const auto changes = in.get_string();
        if (part == Part::removed) {
          Changes gone(rows->from.key_bytes, rows->from.words());
          ASSERT_TRUE(gone.take(changes));
          out.add_bytes(
              2, Changes::whole(rows->rows_of(gone.rows()), rows->to.key_bytes, rows->to.words()));
          for (auto& [key, words] : gone.rows()) {
            rows->before.erase(key);
            rows->now.erase(rows->key_of(key));
          }
        } else {
          ASSERT_TRUE(rows->before.take(changes));
          out.add_bytes(2, rows->now.to(rows->rows_of(rows->before.rows())));
        }
      } else {
        Changes largest(rows->from.key_bytes, rows->from.largest);
        ASSERT_TRUE(largest.take(in.get_string()));
        Changes::Rows all;
        for (auto& [key, values] : largest.rows()) all.emplace(rows->key_of(key), values);
        out.add_bytes(3, Changes::whole(all, rows->to.key_bytes, rows->to.largest));
      }
    }
    out_.put(part, to);
  }

  void records(std::string_view bytes) {
    std::string to;
    for (std::uint64_t size = 0; !bytes.empty();) {
      ASSERT_TRUE(take_varint(bytes, size));
      const auto record = (*move_)(bytes.substr(0, size));
      bytes.remove_prefix(size);
      put_varint(to, record.size());
      to += record;
    }
    out_.put(Part::records, to);
  }

  void pass(std::string_view bytes) {
    protozero::pbf_reader in(bytes.data(), bytes.size());
    std::string to;
    protozero::pbf_writer out(to);
    while (in.next()) {
      const bool is_name = in.tag() == 1;
      const auto all = in.get_string();
      if (is_name) {
        out.add_string(1, all);
        continue;
      }
      std::string moved;
      for (std::size_t at = 0; at + move_->from_bytes() <= all.size(); at += move_->from_bytes())
        moved += (*move_)(all.substr(at, move_->from_bytes()));
      out.add_bytes(2, moved);
    }
    out_.put(Part::pass, to);
  }

  Writer out_;
  std::optional<Move> move_;
  std::map<std::uint64_t, Rows> maps_;
  int moved_ = 0;
};

/// Data of other structs are shown as they were printed.
TEST(Recording, OfOtherLayoutsIsShownTheSame) {
  const ScratchDirectory directory;
  const auto own = directory.in("own.ctr"), other = directory.in("other.ctr");
  int moved = 0;
  for (auto& of : all_reports()) {
    if (!has_made_data(of)) continue;
    SCOPED_TRACE(::testing::Message() << of.tool.name << " --" << of.when);
    Config config;
    config.format = OutputFormat::json;
    Chance chance(11);
    replay::give_some(config, of, chance);
    const auto live = recorded(of.tool, config, 11, own);
    Otherwise otherwise;
    otherwise.write(own, other);
    EXPECT_EQ(shown(of.tool, config, other), live);
    moved += otherwise.moved() > 0;
  }
  EXPECT_GT(moved, 100);
}

/// Recordings show the same in each later version. The files have data as replay.hpp makes them.
TEST(Recording, StoredOnesAreShownAsThen) {
  int count = 0;
  for (auto& entry : std::filesystem::directory_iterator(places::test_data() + "/recordings")) {
    auto path = entry.path();
    if (path.extension() != ".ctr") continue;
    SCOPED_TRACE(path.filename().string());
    auto now = recording_as_json(path.native());
    ASSERT_TRUE(now) << now.error().why;
    EXPECT_EQ(*now, places::file_text(path.replace_extension(".json")));
    count++;
  }
  EXPECT_GE(count, 4);
}

/// Of a version whose records had no user id, and a narrower latency.
TEST(Recording, FieldsThatItLacksAreEmpty) {
  const ScratchDirectory directory;
  const auto file = directory.in("one.ctr");
  const auto tool = build(*find_tool("opensnoop"));
  const ObjectLayouts layouts(tool.object.bytes());
  auto older = layouts.of_struct("opensnoop_event");
  std::erase_if(older.members, [](auto& member) { return member.path == "who.uid"; });
  for (auto& member : older.members)
    if (member.path == "latency_ns") member.bytes = 4;
  std::string record(older.bytes, '\0');
  for (auto& member : older.members)
    if (member.path == "latency_ns" || member.path == "who.pid") record[member.at] = 77;
  Recorder recorder;
  ASSERT_TRUE(recorder.open(file));
  recorder.head(
      {.coretap = "0.0.9", .tool = "opensnoop", .record_bytes = older.bytes, .layout = older});
  recorder.moment();
  recorder.did(Did::begin);
  recorder.record(record.data(), record.size());
  recorder.moment();
  recorder.did(Did::finish);
  recorder.close();
  const auto shown = recording_as_json(file);
  ASSERT_TRUE(shown) << shown.error().why;
  for (auto* has : {"\"uid\":null", "\"pid\":77", "\"latency_ns\":77"})
    EXPECT_NE(shown->find(has), std::string::npos) << has << " in " << *shown;
}

/// A report that is not made of fields needs what it reads, and has no use for the rest.
TEST(Recording, ReportsWithoutFieldsAreNotShownWithoutTheirData) {
  const ScratchDirectory directory;
  const auto file = directory.in("one.ctr");
  const auto tool = build(*find_tool("ttysnoop"));
  const ObjectLayouts layouts(tool.object.bytes());
  for (std::string_view lacks : {"who.uid", "head.time_ns"}) {
    SCOPED_TRACE(lacks);
    auto older = layouts.of_struct("ttysnoop_event");
    ASSERT_EQ(std::erase_if(older.members, [&](auto& member) { return member.path == lacks; }), 1u);
    Recorder recorder;
    ASSERT_TRUE(recorder.open(file));
    recorder.head({.coretap = "0.0.9",
                   .tool = "ttysnoop",
                   .words = {"--raw", "pts/3"},
                   .record_bytes = older.bytes,
                   .layout = older});
    recorder.moment();
    recorder.did(Did::begin);
    recorder.did(Did::finish);
    recorder.close();
    const auto shown = recording_as_json(file);
    EXPECT_EQ(static_cast<bool>(shown), lacks == "who.uid");
    if (!shown) {
      EXPECT_TRUE(
          shown.error().what.ends_with("coretap 0.0.9 has recorded it without head.time_ns"))
          << shown.error().what;
    }
  }
}

/// Files may be anyone's, and root may show them.
TEST(Recording, WordsThatNameAFileToWriteAreRefused) {
  const ScratchDirectory directory;
  const auto file = directory.in("one.ctr"), written = directory.in("written");
  const struct {
    const char *tool, *option;
    bool refused;
  } kCases[] = {{"opensnoop", "--failed", false},   {"opensnoop", "--output", true},
                {"opensnoop", "--record", true},    {"opensnoop", "--perfetto", true},
                {"offcputime", "--svg", true},      {"offcputime", "--pprof", true},
                {"deadlock", "--dump-graph", true}, {"runqlat", "--heatmap", true}};
  for (auto& one : kCases) {
    SCOPED_TRACE(one.option);
    const auto tool = build(*find_tool(one.tool));
    Recorder recorder;
    ASSERT_TRUE(recorder.open(file));
    recorder.head({.tool = one.tool,
                   .words = {one.refused ? std::string(one.option) + "=" + written : one.option},
                   .record_bytes = tool.report->record_size()});
    recorder.moment();
    recorder.did(Did::begin);
    recorder.did(Did::finish);
    recorder.close();
    auto shown = recording_as_json(file);
    EXPECT_EQ(static_cast<bool>(shown), !one.refused);
    if (!shown) {
      EXPECT_EQ(shown.error().why, "it is damaged");
    }
    EXPECT_FALSE(std::filesystem::exists(written));
  }
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
    if (!has_made_data(of)) continue;
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
    if (!has_made_data(of)) continue;
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

TEST(Recording, RowsWithoutKeysAndWordsAreDamaged) {
  EXPECT_TRUE(Changes(0, 0).take(std::string_view("\0", 1)));
  EXPECT_FALSE(Changes(0, 0).take(std::string_view("\0x", 2)));
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
