#include "tools/memory/memleak/report_outstanding.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/random.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "coretap/clock.hpp"
#include "coretap/report_kind.hpp"
#include "memleak.skel.h"
#include "memory/memleak.h"
#include "metrics/exporter.hpp"
#include "program/maps.hpp"
#include "program/session.hpp"
#include "program/variables.hpp"
#include "reports/reporter.hpp"
#include "stacks/stack_files.hpp"
#include "stacks/stack_layout.hpp"
#include "stacks/stack_names.hpp"
#include "tools/memory/memleak/allocation_tracker.hpp"

namespace coretap {

namespace {

constexpr std::uint64_t kTop = 10;        // stacks in text without --top
constexpr std::uint64_t kYoungest = 500;  // ms; younger allocations may be freed soon

constexpr MapName kBlocks = maps::allocs, kSums = maps::alloc_sums;

const std::string kSeveral = "[several]";  // instead of a process name

/// Totals of all outstanding allocations, for exporters.
struct Totals {
  std::uint64_t bytes, count;
};

/// Shows the largest stacks of each interval, in ascending order.
class OutstandingReporter : public Reporter {
 public:
  void configure(Session& s) override {
    if (s.config.given("show-allocs")) s.names.ask_hidden();
    auto& c = s.config;
    sums_ = c.given("combined-only");
    by_count_ = c.rows.sort == "count";
    one_in_ = std::max<std::uint64_t>(1, c.number("sample-rate", 1));
    text_ = c.format == OutputFormat::text && !c.given("folded") && c.files.svg.empty() &&
            c.files.pprof.empty();
    top_ = c.rows.top ? c.rows.top : text_ ? kTop : UINT64_MAX;
    names_.configure(s,
                     {.offsets = c.given("offset"),
                      .modules = c.given("verbose"),
                      .places = text_,
                      .located = StackFiles::need_places(c) || s.exporter,
                      .lines = c.given("lines")},
                     c.holds("task-filter"));
    std::uint64_t salt = 0;
    if (getrandom(&salt, sizeof salt, GRND_NONBLOCK) != sizeof salt) salt = monotonic_ns();
    set_variable(s, "sample_salt", salt);
  }

  void size_maps(Session& s) override {
    StackNames::size_maps(s);
    if (auto* map = s.map(maps::stacks)) size_for_stacks(s, map);
  }
  Result<void> ready(Session& s) override { return names_.ready(s); }
  Result<void> open(Session& s) override {
    return files_.open(s, {{{"inuse_objects", "count"}, {"inuse_space", "bytes"}}});
  }

  void begin(Session& s) override {
    if (s.config.format == OutputFormat::csv)
      s.out.line("time,comm,pid,exited,bytes,count,oldest_age_ns,newest_age_ns,stack");
  }

  void record(Session& s, const void* data, std::size_t size) override {
    if (names_.take(s, data, size)) return;
    if (size == sizeof(alloc_note)) {
      auto& note = *static_cast<const alloc_note*>(data);
      tracker_.note(note);
      if (tracker_.crowded()) forget_notes(s);
    }
  }

  double poll_seconds() const override { return names_.poll_seconds(); }
  void poll(Session& s) override { names_.poll(s); }
  std::vector<int> wakes() const override { return names_.wakes(); }

  void report(Session& s) override {
    auto now = monotonic_ns();
    auto rows = read(s, now);
    if (s.exporter) return export_totals(s, rows);
    auto measure = [&](const OutstandingRow& r) {
      return by_count_ ? std::pair(r.count, r.bytes) : std::pair(r.bytes, r.count);
    };
    std::sort(rows.begin(), rows.end(), [&](auto& a, auto& b) {
      return measure(a) != measure(b) ? measure(a) < measure(b) : a.stack < b.stack;
    });
    if (rows.size() > top_)
      rows.erase(rows.begin(), rows.end() - static_cast<std::ptrdiff_t>(top_));
    if (text_) title(s, rows.size());
    files_.begin(1);
    std::map<std::string, std::uint64_t> folded;
    for (auto& r : rows) {
      s.ledger.shown += r.count;
      auto p = party(s, r);
      auto sum = (by_count_ ? r.count : r.bytes) * one_in_;
      if (files_.wanted())
        files_.add(layout_.path({p}), {p.name(), p.who.tgid}, sum,
                   {r.count * one_in_, r.bytes * one_in_});
      if (s.config.format == OutputFormat::json)
        json(s, r, p, now);
      else if (s.config.format == OutputFormat::csv)
        csv(s, r, p, now);
      else if (text_)
        text(s, r, p);
      else if (s.config.given("folded"))
        folded[layout_.folded({p})] += sum;
    }
    for (auto& [stack, sum] : folded) s.out.line(fmt::format("{} {}", stack, sum));
    names_.next_report();
  }

  /// Includes all allocations outstanding at its end, whenever they were made.
  MakeProfile profile(Session&, bool from_now) override {
    return [this, from_now, asked = monotonic_ns()](Session& s) {
      auto now = monotonic_ns();
      auto profile = files_.profile();
      for (auto& r : read(s, now)) {
        auto p = party(s, r, false);
        profile.add(layout_.path({p}), {p.name(), p.who.tgid},
                    {r.count * one_in_, r.bytes * one_in_});
      }
      names_.next_report();
      return profile.finish(s, from_now ? asked : s.began_ns, now);
    };
  }

  Result<void> finish(Session& s) override {
    return files_.finish(s, by_count_ ? "allocations" : "bytes outstanding");
  }
  bool keeps_file() const override { return files_.keeps_file(); }

 private:
  void export_totals(Session& s, const std::vector<OutstandingRow>& rows) const {
    Totals totals{};
    for (auto& r : rows) {
      totals.bytes += r.bytes * one_in_;
      totals.count += r.count * one_in_;
    }
    s.exporter->set_totals(s, &totals);
  }

  /// Removes entries for which `visit` is false.
  template <class Key, class Value, class Visit>
  static void visit(Session& s, MapName map, Visit visit) {
    std::vector<Key> unwanted;
    s.source->each_typed_entry<Key, Value>(map, [&](auto& key, auto& value) {
      if (!visit(key, value)) unwanted.push_back(key);
    });
    for (auto& key : unwanted) s.source->erase(map, &key);
  }

  std::vector<OutstandingRow> read(Session& s, std::uint64_t now) {
    auto youngest = s.config.number("older", kYoungest);
    youngest = youngest > now / kMillisecond ? now : youngest * kMillisecond;
    tracker_.begin(
        {.until_ns = sums_ ? 0 : now - youngest, .blocks = s.config.given("show-allocs")});
    if (!sums_ || tracker_.owners_ended())
      visit<alloc_key, alloc_info>(
          s, kBlocks, [&](auto& key, auto& value) { return tracker_.add(key, value); });
    if (sums_)
      visit<alloc_site, alloc_sum>(s, kSums,
                                   [&](auto& site, auto& sum) { return tracker_.add(site, sum); });
    return tracker_.finish();
  }

  void forget_notes(Session& s) {
    tracker_.begin_to_forget();
    s.source->each_typed_entry<alloc_key, alloc_info>(
        kBlocks, [&](auto& key, auto& value) { tracker_.keep_notes_of(key, value); });
    tracker_.forget_notes();
  }

  /// `counts`: the stack is shown, so its defects go into the ledger.
  StackParty party(Session& s, const OutstandingRow& r, bool counts = true) {
    StackParty p;
    p.who.tgid = p.who.tid = r.tgid;
    auto& comm = r.tgid ? r.comm : kSeveral;
    memcpy(p.who.comm, comm.data(), std::min(comm.size(), sizeof p.who.comm));
    auto& named =
        r.owner ? names_.user(s, r.stack, static_cast<pid_t>(r.tgid)) : names_.kernel(s, r.stack);
    (r.owner ? p.user : p.kernel) = named.frames;
    (r.owner ? p.user_places : p.kernel_places) = named.places;
    p.cut = named.cut;
    p.guessed = named.guessed;
    if (!counts) return p;
    if (named.missed) s.ledger.count[LEDGER_STACK_FAILED] += r.count;
    s.ledger.user_stack(named.cut, named.guessed, r.count);
    return p;
  }

  void title(Session& s, std::size_t rows) const {
    if (!rows) {
      s.out.line(fmt::format("[{}] No outstanding allocations to show", wall_time()));
      return;
    }
    s.out.line(fmt::format(
        "[{}] Top {} stacks with outstanding allocations{}:", wall_time(), rows,
        one_in_ > 1 ? fmt::format(" (estimates, from 1 of {} addresses)", one_in_) : ""));
  }

  void text(Session& s, const OutstandingRow& r, const StackParty& p) const {
    std::string whose;
    if (r.owner && (s.config.tasks.pids.size() != 1 || r.exited))
      whose = fmt::format(" [{} {}{}]", printable(r.comm), r.tgid, r.exited ? ", has ended" : "");
    s.out.line(fmt::format("\t{} bytes in {} allocations from stack{}", r.bytes * one_in_,
                           r.count * one_in_, whose));
    for (auto& b : r.blocks)
      s.out.line(s.names.hides(b.address)
                     ? fmt::format("\t\taddr = {} size = {}", kHiddenAddress, b.bytes)
                     : fmt::format("\t\taddr = {:#x} size = {}", b.address, b.bytes));
    for (auto* frames : {&p.kernel, &p.user})
      for (auto& f : *frames) s.out.line("\t\t" + printable(f));
    if (auto marks = stack_marks(p.cut, p.guessed); !marks.empty()) s.out.line("\t\t" + marks);
  }

  static std::uint64_t age(std::uint64_t then, std::uint64_t now) {
    return now > then ? now - then : 0;
  }

  void json(Session& s, const OutstandingRow& r, const StackParty& p, std::uint64_t now) const {
    JsonLine line("stack", s.tool.name);
    line.text("time", iso_time(now));
    line.text_if(r.tgid, "comm", r.comm).number_if(r.tgid, "pid", r.tgid);
    line.boolean("exited", r.exited).number("bytes", r.bytes * one_in_);
    line.number("count", r.count * one_in_).number("sample_rate", one_in_);
    line.number_if(r.oldest_ns, "oldest_age_ns", age(r.oldest_ns, now));
    line.number("newest_age_ns", age(r.newest_ns, now));
    json_frames(line, p);
    if (s.config.given("show-allocs")) {
      line.key("allocations").begin_array();
      for (auto& b : r.blocks) {
        line.begin_object().number_if(!s.names.hides(b.address), "address", b.address);
        line.number("bytes", b.bytes).number("age_ns", age(b.time_ns, now)).end_object();
      }
      line.end_array();
    }
    s.out.line(line.finish());
  }

  void csv(Session& s, const OutstandingRow& r, const StackParty& p, std::uint64_t now) const {
    s.out.line(fmt::format("{},{},{},{},{},{},{},{},{}", iso_time(now), csv_field(r.comm),
                           r.tgid ? std::to_string(r.tgid) : "", r.exited, r.bytes * one_in_,
                           r.count * one_in_,
                           r.oldest_ns ? std::to_string(age(r.oldest_ns, now)) : "",
                           age(r.newest_ns, now), csv_field(layout_.folded({p}))));
  }

  StackReport stacks_{};
  StackFiles files_;
  AllocationTracker tracker_;
  StackLayout layout_{stacks_, {}};
  StackNames names_;
  std::uint64_t top_ = 0, one_in_ = 1;
  bool sums_ = false, by_count_ = false, text_ = false;
};

std::vector<OutputKey> sums() {
  return {key("exited", "boolean", "not freed when the process ended"),
          key("bytes", "integer", "not freed"), key("count", "integer", "allocations not freed")};
}

std::vector<OutputKey> ages() {
  return {key("oldest_age_ns", "integer or null", "age of the oldest allocation; null: not known"),
          key("newest_age_ns", "integer", "age of the newest allocation")};
}

void add(std::vector<OutputKey>& to, const std::vector<OutputKey>& keys) {
  to.insert(to.end(), keys.begin(), keys.end());
}

class OutstandingKind : public ReportKind {
 public:
  std::string_view name() const override { return "outstanding"; }
  bool can_be_recorded() const override { return true; }
  std::unique_ptr<Reporter> reporter() const override {
    return std::make_unique<OutstandingReporter>();
  }
  bool kernel_symbols() const override { return true; }
  MetricShape metrics(const Config&) const override {
    return {.kind = MetricShape::stacks,
            .totals = {field<&Totals::bytes>("outstanding_bytes", "", as::number,
                                             "bytes that are not freed")
                           .gauge(),
                       field<&Totals::count>("outstanding_allocations", "", as::number,
                                             "allocations that are not freed")
                           .gauge()}};
  }

  std::vector<JsonKind> json() const override {
    JsonKind kind{"stack",
                  "one per stack and process in each report, the largest last",
                  {type_key("stack"), time_key(),
                   key("comm", "string or null", "command name; null: several processes"),
                   key("pid", "integer or null", "process; null: several")}};
    add(kind.keys, sums());
    kind.keys.push_back(
        key("sample_rate", "integer",
            "sums are estimates from one of this many addresses; 1: they are exact"));
    add(kind.keys, ages());
    kind.keys.push_back(kernel_stack_key());
    add(kind.keys, user_stack_keys());
    kind.keys.push_back(
        key("allocations", "array of objects", "each allocation", "show-allocs",
            {key("address", "integer or null", "null: a hidden kernel address"),
             key("bytes", "integer", "its size"), key("age_ns", "integer", "its age")}));
    return {kind};
  }

  std::vector<OutputKey> csv() const override {
    std::vector<OutputKey> all = {time_key(), key("comm", "string", "command name"),
                                  key("pid", "integer", "process; empty: several")};
    add(all, sums());
    add(all, ages());
    all.push_back(key("stack", "string", "folded: command and frames, outermost first"));
    return all;
  }

  void manual(Manual& m) const override {
    m.prose(
        "Each report begins with the time of day and the number of stacks that follow, the largest "
        "last. Each stack has a line with its total bytes and allocations, and its frames, "
        "innermost first. If several processes may be traced, that line ends with the name and id "
        "of the process, and with \"has ended\" if it shows what the process had not freed when it "
        "exited, which is shown once.");
    if (m.has_option("show-allocs"))
      m.prose("With --show-allocs each allocation's address and size come before the frames.");
    if (m.has_option("folded"))
      m.prose(
          "With --folded each stack is a line: name and frames, outermost first, joined by "
          "semicolons, and the sum.");
    StackFiles::manual(m);
  }
};

}  // namespace

std::shared_ptr<const ReportKind> make_kind(OutstandingReport) {
  return std::make_shared<OutstandingKind>();
}

}  // namespace coretap
