// What is held: from the kernel program's entries and notes (bpf/lib/held.bpf.h) to one row per
// stack. Pure.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "lib/shared.h"

namespace coretap {

struct HeldBlock {
  std::uint64_t address, bytes, time_ns;
};

struct HeldRow {
  std::uint64_t stack = 0;
  std::uint32_t owner = 0;  ///< 0: the kernel
  std::uint32_t tgid = 0;   ///< who took it; 0: several
  std::string comm;         ///< empty: several
  bool exited = false;      ///< held until the process ended
  std::uint64_t bytes = 0, count = 0;
  std::uint64_t oldest_ns = 0, newest_ns = 0;  ///< when it was taken; 0: not known
  std::vector<HeldBlock> blocks;
};

class HeldBook {
 public:
  struct Want {
    std::uint64_t until_ns = UINT64_MAX;  ///< only what was taken by then
    bool blocks = false;                  ///< each one's address too
  };

  void note(const held_note& note);
  /// So many notes that those without effect should go: forget_notes().
  bool crowded() const { return holes_kept_ >= most_; }

  /// A report: begin, all entries or all sums, finish. False: the entry need not be kept, because
  /// its owner has gone or nothing is left of it.
  void begin(Want want);
  bool add(const held_key& key, const held& value);
  bool add(const held_place& place, const held_sum& sum);
  std::vector<HeldRow> finish();

  /// The same without a report.
  void begin_to_forget();
  void keep_notes_of(const held_key& key, const held& value);
  void forget_notes();

  /// Owners have gone since the last report: what they held is to be found.
  bool owners_gone() const { return !gone_.empty(); }

 private:
  struct Hole {
    std::uint64_t begin, end, time_ns;
    bool used;
  };
  /// Those of one owner.
  struct Holes {
    std::vector<Hole> all;
    std::vector<std::uint64_t> reach;  ///< the farthest end of this one and those before it
  };
  struct Gone {
    std::uint64_t time_ns;
    bool exited;
  };

  std::vector<HeldBlock> left_of(const held_key& key, const held& value);
  /// Its owner's end came after it was taken.
  const Gone* gone(std::uint32_t owner, std::uint64_t time_ns) const;
  HeldRow& row(std::uint64_t stack, std::uint32_t owner, bool exited);
  static void meet(HeldRow& row, std::uint32_t tgid, const char* comm);

  static constexpr std::size_t kMostNotes = 1 << 18;
  Want want_;
  std::map<std::uint32_t, Holes> holes_;
  std::map<std::uint32_t, Gone> gone_;
  std::map<std::tuple<std::uint64_t, std::uint32_t, bool>, HeldRow> rows_;
  std::size_t holes_kept_ = 0, most_ = kMostNotes;
};

}  // namespace coretap
