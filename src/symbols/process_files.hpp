// Opens files that other users control: no devices, no FIFOs, no escapes from a process's root.
#pragma once
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coretap/fd.hpp"

namespace coretap::symbols {

/// Identifies a file; size and modification time detect a reused inode. (The change time is
/// unsuitable: deleting or renaming the file changes it.)
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  std::int64_t modified_ns = 0;
  bool operator==(const FileIdentity&) const = default;
};

struct FileIdentityHash {
  std::size_t operator()(const FileIdentity& id) const;
};

/// The identity if `fd` (O_PATH suffices) is a regular file.
std::optional<FileIdentity> identity_of(int fd);

/// The path at which execvp() finds a command's program; empty: not found.
std::string program_path(const std::string& name);

/// True if both descriptors refer to the same file, or to the same one below overlays. An overlay
/// has a separate device, but the inode number and times of the lower file
/// (Documentation/filesystems/overlayfs.rst); a probe is placed in the lower file, for all its
/// overlays.
bool same_file(int a, int b);

/// O_PATH handles: they have no side effects on devices and FIFOs and never block on them.
Fd open_handle(const std::string& path, bool follow_last_link);
/// Like chroot: no link, "..", or magic link leads out of `root_fd`. The last part may not be a
/// link unless `follow_last_link`.
Fd open_handle_in(int root_fd, const std::string& path, bool follow_last_link);

/// Opens a handle's file for reading, if it is regular and at most `max_size` bytes. The check and
/// the opening see the same inode, whatever happens to names meanwhile.
Fd open_regular(const Fd& handle, std::uint64_t max_size);

/// Reads lines of a file with a bounded buffer. Longer lines are truncated, the rest is skipped.
class LineReader {
 public:
  LineReader(int fd, std::size_t max_line, std::uint64_t max_total);
  /// The next line without its newline, valid until the next call.
  bool next(std::string_view& line);
  bool truncated() const { return truncated_; }    ///< the line was truncated
  bool terminated() const { return terminated_; }  ///< the line ended with a newline
  int error() const { return error_; }             ///< errno of a failed read, else 0

 private:
  bool fill();
  int fd_;
  std::size_t max_line_;
  std::uint64_t left_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool skipping_ = false;  // the rest of a line that was too long
  bool truncated_ = false;
  bool terminated_ = true;
  bool ended_ = false;
  int error_ = 0;
};

/// Many names packed into few blocks, without the slack of a single growing buffer.
class NameArena {
 public:
  static constexpr std::size_t kMaxName = 4096;  // longer names are truncated

  NameArena() = default;
  NameArena(NameArena&&) = default;
  NameArena& operator=(NameArena&&) = default;
  NameArena(const NameArena&) = delete;
  NameArena& operator=(const NameArena&) = delete;

  /// A handle for get(). Names end at their first NUL.
  std::uint32_t add(std::string_view name);
  const char* get(std::uint32_t handle) const {
    return blocks_[handle / kBlock].get() + handle % kBlock;
  }
  std::size_t bytes() const { return blocks_.size() * kBlock; }

 private:
  static constexpr std::size_t kBlock = 64 << 10;
  std::vector<std::unique_ptr<char[]>> blocks_;
  std::size_t used_ = kBlock;
};

/// Removes this character from the front of `text`; false: it begins otherwise.
bool take_char(std::string_view& text, char c);
/// Removes digits from the front of `text`; false if there are none, or more than fit.
bool take_number(std::string_view& text, std::uint64_t& value, int base);
inline bool take_hex(std::string_view& text, std::uint64_t& value) {
  return take_number(text, value, 16);
}

/// At most `max_size` bytes of a small file; empty if it cannot be read.
std::string read_small_file(const std::string& path, std::size_t max_size);

/// Reads up to `size` bytes at `offset`, of a file or of a process's memory.
std::string read_at(int fd, std::uint64_t offset, std::uint64_t size);

}  // namespace coretap::symbols
