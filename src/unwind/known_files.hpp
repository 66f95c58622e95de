// Files that the kernel program knows by inode, for processes whose mappings it does not have.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "lib/stack/unwind.h"
#include "unwind/tables.hpp"

namespace coretap::unwind {

class KnownFiles {
 public:
  struct Maps {
    int files = -1;   ///< unwind_files
    int ask = -1;     ///< the program unwind_ask_key
    int answer = -1;  ///< unwind_answer
  };
  explicit KnownFiles(Maps maps) : maps_(maps) {}

  /// Adds the file open for reading at `fd`, with its table (or the reason why it has none) and its
  /// number. Valid until changed() or forget(). False: the kernel program cannot identify the file,
  /// or the map is full.
  bool tell(int fd, const KnownFile& file);
  /// The same for the vdso.
  bool tell_vdso(const KnownFile& file);
  /// The state or position of the file's table has changed.
  void changed(const File& file);
  /// Removes the file.
  void forget(const File& file);
  std::size_t size() const { return files_.size(); }

 private:
  struct Before {
    bool operator()(const unwind_file_key& a, const unwind_file_key& b) const;
  };
  std::optional<unwind_file_key> key_of(int fd) const;
  std::optional<unwind_answer> ask(const void* address) const;
  bool enter(const unwind_file_key& key, const KnownFile& file);
  bool write(const unwind_file_key& key, const File& file, std::uint16_t number) const;

  struct Entry {
    std::weak_ptr<File> file;
    std::uint16_t number = 0;
  };
  Maps maps_;
  std::map<unwind_file_key, Entry, Before> files_;
};

/// The kernel program's entry for a file.
unwind_file file_entry(const File& file, std::uint16_t number);

}  // namespace coretap::unwind
