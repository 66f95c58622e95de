// Reports without a kernel: generated records and counters pass through a tool's reporter.
#pragma once

#include "all_tools.hpp"
#include "program/session.hpp"
#include "program/source.hpp"
#include "reports/reporter.hpp"

namespace coretap::replay {

/// Numbers as from kernel programs: mostly small, some of them the largest.
class Chance {
 public:
  explicit Chance(std::uint32_t seed) : random_(seed) {}

  std::uint64_t below(std::uint64_t most) { return random_() % most; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  void fill(char* to, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += 8) {
      const auto many = below(100'000);
      const std::uint64_t words[] = {
          0, random_(), ~std::uint64_t{0}, below(256) << 32 | below(256), many, many};
      const auto word = words[below(std::size(words))];
      memcpy(to + at, &word, std::min<std::size_t>(sizeof word, bytes - at));
    }
  }

 private:
  std::mt19937_64 random_;
};

/// Random data as from a kernel program. All data passed on are counted.
class MadeSource : public Source {
 public:
  /// `stacks`: kernel stacks, one after each record. `with_texts`: records are said to be as long
  /// as their texts may be.
  MadeSource(std::uint32_t seed, std::size_t record_size, std::size_t records, bool stacks = false,
             bool with_texts = false)
      : chance_(seed),
        passes_(~seed),
        record_size_(record_size),
        records_(records),
        stacks_(stacks),
        with_texts_(with_texts) {}

  Result<void> open_records(TakeRecord take) override {
    take_ = std::move(take);
    return {};
  }
  bool take_records(std::chrono::nanoseconds, std::uint64_t) override {
    // Offsets of texts may point anywhere after a record, including its trailing data.
    static std::string record(kRoom, 'x');
    const stack none{};
    memcpy(record.data() + record_size_, &none, sizeof none);
    for (std::size_t i = 0; i < records_; i++) {
      chance_.fill(record.data(), record_size_);
      take_(record.data(),
            with_texts_ ? record.size() : record_size_ + (stacks_ ? sizeof(stack) : 0));
    }
    return false;
  }

  Result<std::unique_ptr<CounterSource>> counters(CounterShape shape) override {
    return std::unique_ptr<CounterSource>(std::make_unique<Made>(*this, std::move(shape)));
  }

  bool each_entry(MapName map, const VisitEntry& visit) override {
    if (map != MapName("stack_counts")) return true;
    for (std::uint64_t id = 1; id <= kStacks; id++) {
      std::string value(sizeof(stack_sum) + sizeof(stack_party), '\0');
      const stack_sum sum{.total_ns = chance_.below(1'000'000), .count = 1 + chance_.below(9)};
      stack_party party{};
      party.kernel = id;
      party.tgid = party.tid = static_cast<std::uint32_t>(2'000'000'000 + chance_.below(3));
      memcpy(party.comm, "made\n", 5);
      memcpy(value.data(), &sum, sizeof sum);
      memcpy(value.data() + sizeof sum, &party, sizeof party);
      counted_ += sum.count;
      visit({reinterpret_cast<const char*>(&id), sizeof id}, value);
    }
    return true;
  }
  bool stack_of(std::uint64_t id, stack& to) override {
    if (id % 3 == 0) return false;
    to.depth = 1;
    to.ip[0] = 0xffffffff81000000 + id;
    return true;
  }

  Result<void> open_iterator(ProgramName) override { return {}; }
  Result<std::string> pass(ProgramName, std::size_t size) override {
    std::string all(size * records_, '\0');
    passes_.fill(all.data(), all.size());
    return all;
  }
  void add_ledger(std::uint64_t*) override {}

  std::uint64_t counted() const { return counted_; }  ///< in stacks

 private:
  static constexpr std::size_t kRoom = 1 << 17;
  static constexpr std::uint64_t kStacks = 12;

  /// Counters that grow from one reading to the next; new keys appear.
  class Made : public CounterSource {
   public:
    Made(MadeSource& source, CounterShape shape) : source_(source), shape_(std::move(shape)) {}

    Reading read(std::uint64_t, Reading& largest) override {
      auto& chance = source_.chance_;
      for (std::uint64_t fresh = chance.below(4); fresh > 0; fresh--) {
        std::string key(shape_.key_size, '\0');
        chance.fill(key.data(), key.size());
        if (!shape_.keyed && !key.empty()) {  // small numbers
          std::fill(key.begin(), key.end(), '\0');
          key[0] = static_cast<char>(chance.below(4));
        }
        all_.try_emplace(std::move(key), shape_.value_size / 8);
      }
      for (auto& [key, counters] : all_) {
        if (chance.one_in(3)) continue;  // idle
        // Every event is counted, and may have further counters.
        for (auto& c : counters) c += chance.below(1000);
        counters[0] += 1;
        for (auto at : shape_.largest) memset(counters.data() + at / 8, 0, sizeof(extreme));
        if (!shape_.largest.empty())
          largest.emplace(key, Counters(shape_.largest.size(), chance.below(1'000'000)));
      }
      return all_;
    }

   private:
    MadeSource& source_;
    CounterShape shape_;
    Reading all_;
  };

  Chance chance_;
  Chance passes_;  ///< separate: a table may make passes before its readings
  std::size_t record_size_, records_;
  bool stacks_, with_texts_;
  TakeRecord take_;
  std::uint64_t counted_ = 0;
};

/// A tool's report with these options of its configuration, and `reports` intervals.
struct Replayed {
  Replayed(const Tool& tool, const Config& config, std::uint32_t seed, int reports = 1)
      : Replayed(tool, config,
                 std::make_unique<MadeSource>(seed, tool.report->record_size(), kRecords,
                                              tool.report->kernel_symbols()),
                 reports) {}
  Replayed(const Tool& tool, const Config& config, std::unique_ptr<MadeSource> made, int reports)
      : session(tool, config) {
    auto* source = made.get();
    session.source = std::move(made);
    const int file = memfd_create("replay", MFD_CLOEXEC);
    session.out = Sink(file);
    auto reporter = tool.report->reporter();
    reporter->configure(session);
    auto opened = reporter->open(session);
    EXPECT_TRUE(opened) << (opened ? "" : opened.error().what);
    session.began_ns = 1;
    (void)source->open_records(
        [&](const void* record, std::size_t bytes) { reporter->record(session, record, bytes); });
    reporter->begin(session);
    if (tool.report->name() == "event") source->take_records({}, 0);
    for (int i = 0; i < reports; i++) reporter->report(session);
    auto finished = reporter->finish(session);
    EXPECT_TRUE(finished) << (finished ? "" : finished.error().what);
    session.out.flush();
    counted = source->counted();
    text.resize(static_cast<std::size_t>(lseek(file, 0, SEEK_END)));
    EXPECT_EQ(pread(file, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    ::close(file);
    lines = lines_of(text);
  }

  static constexpr std::size_t kRecords = 8;

  Session session;
  std::string text;
  Words lines;
  std::uint64_t counted = 0;  ///< counts passed with stacks
};

/// Options that its output depends on, each randomly given or not.
inline void give_some(Config& config, const OfTool& of, Chance& chance) {
  WordSet names;
  auto add = [&](std::string_view condition) {
    for (auto& name : options_of(condition)) names.insert(name);
  };
  for (auto& f : of.tool.report->fields()) {
    add(f.shown_with);
    add(f.only_with);
  }
  for (auto& when : of.tool.report->conditions()) add(when);
  for (auto* word : {"timestamp", "verbose"}) add(word);
  if (!of.when.empty()) config.give(of.when, "");
  // They take values, or select another report.
  for (auto* other : {"task-filter", "by", "heatmap", "svg", "pprof", "ratio", "cpi"})
    names.erase(other);
  for (auto& other : of.tool.other_reports) names.erase(std::string(other.when));
  for (auto& name : names)
    if (chance.one_in(2)) config.give(name, "");
}

}  // namespace coretap::replay
