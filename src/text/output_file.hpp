// The file of --output: starts a new file when this one is full, or its name refers to another one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "coretap/fd.hpp"
#include "coretap/result.hpp"

namespace coretap {

class OutputFile {
 public:
  struct How {
    std::uint64_t most = 0;  ///< size in bytes at which it is renamed; 0: no limit
    std::uint64_t keep = 3;  ///< number of renamed files: FILE.1 is the newest
    bool append = false;     ///< keeps the existing content; else truncates
    std::function<void(std::string_view what, const Error& why)> tell = {};  ///< reports a failure
  };

  Result<void> open(std::string path, How how);
  explicit operator bool() const { return static_cast<bool>(fd_); }

  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }
  bool regular() const { return regular_; }
  bool empty() const { return size_ == 0; }

  /// Remaining bytes until a new file is started.
  std::uint64_t room() const { return most_ > size_ ? most_ - size_ : 0; }
  std::uint64_t room_of_new() const { return how_.most; }
  void wrote(std::size_t bytes) { size_ += bytes; }
  /// Raises the limit by the size of a new file.
  void extend() { most_ = how_.most ? size_ + how_.most : UINT64_MAX; }

  /// Renames the file and starts a new one. False: reports the failure, keeps the file, and raises
  /// its limit by the size of a new one.
  bool rotate();
  /// Opens the file that has the name now. True: it is another file. On failure keeps the old one.
  bool reopen();

  /// Why this process cannot rename the file; empty: it can.
  std::string hindrance() const;

 private:
  std::string old_name(std::uint64_t number) const;
  bool has_its_name() const;
  Result<void> begin_new();
  Result<Fd> open_named() const;
  /// Gives the new file the mode and group of the old one, as far as possible.
  void same_readers(int fresh) const;
  Result<void> rename_all(const std::string& fresh) const;
  void take(Fd fd);
  void tell(std::string_view what, const Error& why) const;

  std::string path_;
  How how_;
  Fd fd_;
  std::uint64_t size_ = 0, most_ = UINT64_MAX;
  bool regular_ = false;
  bool told_ = false;  ///< a failed rename has been reported
};

}  // namespace coretap
