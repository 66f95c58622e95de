// The unwind tables of all files, in the kernel's maps, within a memory budget.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "coretap/fd.hpp"
#include "lib/stack/runtime.h"
#include "symbols/process_files.hpp"
#include "unwind/extents.hpp"
#include "unwind/table.hpp"

namespace coretap::unwind {

/// A file with its table, or the reason why it has none.
struct File {
  ElfCode elf;
  enum State { ready, no_cfi, no_memory } state = no_cfi;
  std::uint64_t base = 0;
  std::uint32_t page = 0, pages = 0;  ///< in unwind_pages
  std::uint8_t runtime = 0;           ///< in runtime_files; 0: it has no interpreter
  std::uint8_t hotspot = 0;           ///< for Tables::hotspot(); 0: it is not HotSpot
  struct Rows {
    std::uint32_t chunk, first, count;
  };
  std::vector<Rows> rows;
  std::size_t bytes = 0;
  std::size_t lacking = 0;             ///< size of its table in bytes (no_memory)
  std::size_t no_place_at = SIZE_MAX;  ///< bytes in use when no free range was large enough
  bool wanted = false;                 ///< stacks were truncated there for lack of memory
  std::uint64_t used = 0;              ///< time of the last use, as a counter of uses
};

/// A file that stacks may pass through.
struct KnownFile {
  std::shared_ptr<File> table;  ///< null: unknown
  std::uint16_t number = 0;     ///< symbols::NumberedFiles; 0: none
};

class Tables {
 public:
  using Clock = std::chrono::steady_clock;
  /// Programs that read freed room have finished after this time.
  static constexpr std::chrono::milliseconds kGrace{100};

  /// Descriptors of unwind_rules, unwind_pages, unwind_rows and runtime_files.
  struct Maps {
    int rules = -1, pages = -1, rows = -1, runtimes = -1;
  };
  Tables(Maps maps, std::size_t budget);
  static std::uint32_t chunks_for(std::size_t budget);
  /// True if the kernel's maps can be written.
  bool ready() { return write_rules(); }

  /// The table of a file that is open for reading; files with equal tables share it: copies in
  /// containers, links. Never null.
  std::shared_ptr<File> of_file(int fd, const symbols::FileIdentity& id);
  /// The table if it is known already; else null.
  std::shared_ptr<File> known(const symbols::FileIdentity& id);
  /// The table of an image in memory: the vdso.
  std::shared_ptr<File> of_image(const std::string& image);

  /// True if the file had no room, and may have some now.
  bool worth_trying(const File& file);
  /// True if this many bytes are free, or can be freed.
  bool fits(std::size_t bytes);
  /// Frees the tables of files that no process has mapped, the least recently used first, until
  /// this many bytes are free. False: there are not enough of them.
  bool make_room(std::size_t bytes);
  /// Drops the table of a file; callers must have updated all mappings of it.
  void drop(File& file);
  /// Frees dropped tables after kGrace. True: some were freed.
  bool settle(Clock::time_point now);

  /// Called when a file's table is dropped, before its room is freed; and when it is forgotten.
  std::function<void(const File&)> dropped, forgotten;

  /// The facts about HotSpot in a file that has it; null: it has none.
  const runtime_file* hotspot(const File& file) const {
    return file.hotspot ? &runtimes_[file.hotspot - 1U] : nullptr;
  }

  std::size_t bytes() const { return bytes_; }
  const Rules& rules() const { return rules_; }

 private:
  struct Chunk {
    Fd map;
    Extents room{UNWIND_CHUNK_ROWS};
  };
  struct Dropped {
    Clock::time_point since;
    std::uint32_t page, pages;
    std::vector<File::Rows> rows;
    std::size_t bytes;
  };
  std::shared_ptr<File> build(const Image& image, std::shared_ptr<File> file, int fd = -1);
  std::uint8_t runtime_of(int fd, std::uint64_t base);
  bool is_hotspot(std::uint8_t runtime) const {
    return runtime && runtimes_[runtime - 1U].kind == RUNTIME_HOTSPOT;
  }
  std::shared_ptr<File> equal_file(const ElfCode& elf, const Table& table, std::uint8_t runtime);
  bool holds(const File& file, const Table& table) const;
  std::vector<File*> idle() const;
  void drop_idle(std::size_t bytes);
  void forget_idle();
  bool place(File& file, const Table& table);
  bool place_rows(File& file, const Table& table, std::vector<unwind_page>& pages);
  bool take_rows(std::uint32_t count, std::uint32_t& chunk, std::uint32_t& first);
  void give_rows(const std::vector<File::Rows>& rows);
  bool write_rules();

  Maps maps_;
  std::size_t budget_, bytes_ = 0;
  std::uint64_t clock_ = 0;
  Rules rules_;
  std::size_t rules_written_ = 0;
  Extents page_room_{UNWIND_PAGES};
  std::vector<std::unique_ptr<Chunk>> chunks_;  // null: not allocated
  std::map<std::string, std::shared_ptr<File>> by_image_;
  std::multimap<std::uint64_t, std::weak_ptr<File>> by_content_;
  std::unordered_map<symbols::FileIdentity, std::shared_ptr<File>, symbols::FileIdentityHash>
      by_identity_;
  std::deque<Dropped> dropped_;
  std::vector<runtime_file> runtimes_;  // from index 1 on
};

}  // namespace coretap::unwind
