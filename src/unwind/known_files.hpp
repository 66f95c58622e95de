// Which files the kernel program knows by their inodes, for processes of which it has no mappings.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "lib/unwind.h"
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

  /// The file open for reading at `fd` has this table, or none for a reason, and this number.
  /// Known from now on, as long as both are the same. False: the kernel does not tell who it is, or
  /// there is no room.
  bool tell(int fd, const KnownFile& file);
  /// The same of the vdso.
  bool tell_vdso(const KnownFile& file);
  /// The state or place of its table is another one.
  void changed(const File& file);
  /// It is not known any more.
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

/// What the kernel program needs to know of one.
unwind_file file_entry(const File& file, std::uint16_t number);

}  // namespace coretap::unwind
