#include "unwind/table.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "cfi/read_cfi.hpp"
#include "unwind/go_frames.hpp"

namespace coretap::unwind {

namespace {

constexpr std::uint64_t kPage = 1 << UNWIND_PAGE_BITS;

std::string_view bytes_of(const unwind_rule& rule) {
  return {reinterpret_cast<const char*>(&rule), sizeof rule};
}

class Builder {
 public:
  explicit Builder(Table& table) : table_(table) {}

  void add(std::uint64_t address, std::uint16_t rule) {
    if (table_.pages.empty()) {
      if (rule == Rules::kNone) return;
      table_.base = address & ~(kPage - 1);
      next_page();
    }
    auto page = (address - table_.base) / kPage;
    if (page >= UNWIND_PAGES) full_ = true;
    if (full_) return;
    while (table_.pages.size() <= page) next_page();
    auto low = static_cast<std::uint32_t>(address & (kPage - 1));
    if (!low) {  // replaces the rule carried over from the page before
      table_.rows.pop_back();
      table_.pages.back().count--;
    }
    push(low, rule);
    last_ = rule;
  }
  bool full() const { return full_; }

 private:
  void push(std::uint32_t low, std::uint16_t rule) {
    table_.rows.push_back(low << 16 | rule);
    table_.pages.back().count++;
  }
  void next_page() {
    table_.pages.push_back({static_cast<std::uint32_t>(table_.rows.size()), 0});
    push(0, last_);
  }

  Table& table_;
  std::uint16_t last_ = Rules::kNone;
  bool full_ = false;
};

/// The entry point of a program has no caller, and is mostly assembler code without unwind
/// information: adds an end rule up to the next code that has some.
class EntryRow {
 public:
  EntryRow(Builder& builder, const ElfCode& elf, Rules& rules) : builder_(builder) {
    if (!elf.entry || !elf.offset_of_address(elf.entry)) return;
    unwind_rule end{};
    end.cfa = UNWIND_END;
    end_ = rules.index_of(end);
    at_ = elf.entry;
  }
  /// Call before adding each row: returns the rule to add.
  std::uint16_t pass(std::uint64_t address, std::uint16_t rule) {
    auto before = std::exchange(last_, rule);
    if (address < at_) return rule;
    auto entry = std::exchange(at_, UINT64_MAX);
    if (address == entry) return rule == Rules::kNone ? end_ : rule;
    if (before == Rules::kNone) builder_.add(entry, end_);
    return rule;
  }

 private:
  Builder& builder_;
  std::uint64_t at_ = UINT64_MAX;
  std::uint16_t end_ = Rules::kNone, last_ = Rules::kNone;
};

}  // namespace

Rules::Rules() {
  unwind_rule none{}, other{};
  other.cfa = UNWIND_OTHER;
  index_of(none);
  index_of(other);
}

std::uint16_t Rules::index_of(const unwind_rule& rule) {
  if (auto known = index_.find(bytes_of(rule)); known != index_.end()) return known->second;
  if (all_.size() >= UNWIND_RULES) {
    refused_++;
    return kOther;
  }
  auto index = static_cast<std::uint16_t>(all_.size());
  all_.push_back(rule);
  index_.emplace(bytes_of(rule), index);
  return index;
}

std::uint16_t Table::find(std::uint64_t address) const {
  auto page = (address - base) / kPage;
  if (address < base || page >= pages.size()) return Rules::kNone;
  auto first = rows.begin() + pages[page].first;
  auto key = static_cast<std::uint32_t>(address & (kPage - 1)) << 16 | 0xffff;
  return static_cast<std::uint16_t>(*(std::upper_bound(first, first + pages[page].count, key) - 1));
}

Table make_table(const Image& image, const ElfCode& elf, Rules& rules) {
  Table table;
  if (elf.state != ElfCode::usable) return table;
  Builder builder(table);
  EntryRow entry(builder, elf, rules);
  // Neighboring rows mostly share a few rules.
  unwind_rule last{};
  std::uint16_t last_index = Rules::kNone;
  const auto add = [&](std::uint64_t address, const unwind_rule& rule) {
    if (same_rule(rule, last)) return;
    last = rule;
    last_index = rules.index_of(rule);
    builder.add(address, entry.pass(address, last_index));
  };
  // Where both have a rule, Go's table is believed: Go's runtime itself finds pointers in
  // frames by it, so it is right at every instruction, and it marks the functions that change
  // stacks. Go's tools write no CFI into files, so none of Go's code has any by them.
  GoFrames go(image, elf);
  unwind_rule by_go{}, by_cfi{};
  const auto pass_go = [&](std::uint64_t before) {
    for (const auto* row = go.peek(); row && row->address < before; row = go.peek()) {
      by_go = row->rule;
      add(row->address, by_go.cfa != UNWIND_NONE ? by_go : by_cfi);
      go.pop();
    }
  };
  bool has_cfi = false;
  const bool complete = read_cfi(image, elf, [&](std::uint64_t address, const unwind_rule& rule) {
    has_cfi = true;
    pass_go(address);
    by_cfi = rule;
    const auto* row = go.peek();
    if (by_go.cfa == UNWIND_NONE && (!row || row->address != address)) add(address, by_cfi);
  });
  if (has_cfi && !complete) return {};
  pass_go(UINT64_MAX);
  if (builder.full()) table = {};
  return table;
}

}  // namespace coretap::unwind
