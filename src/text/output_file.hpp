// The file of --output: a new one is begun when it is full, or when its name was given to another.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/fd.hpp"
#include "coretap/result.hpp"

namespace coretap {

class OutputFile {
 public:
  struct How {
    std::uint64_t most = 0;  ///< bytes in a file before it is renamed; 0: any number
    std::uint64_t keep = 3;  ///< files that were renamed: FILE.1 is the youngest
    bool append = false;     ///< to what is there; else that goes
    std::function<void(std::string_view what, const Error& why)> tell = {};  ///< of a failure
  };

  Result<void> open(std::string path, How how);
  explicit operator bool() const { return static_cast<bool>(fd_); }

  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }
  bool regular() const { return regular_; }
  bool empty() const { return size_ == 0; }

  /// Bytes that it takes before a new one is to be begun.
  std::uint64_t room() const { return most_ > size_ ? most_ - size_ : 0; }
  std::uint64_t room_of_new() const { return how_.most; }
  void wrote(std::size_t bytes) { size_ += bytes; }
  /// Takes as many bytes again as a new one.
  void extend() { most_ = how_.most ? size_ + how_.most : UINT64_MAX; }

  /// Renames it and begins a new one. False: it has told why that cannot be, goes on, and takes as
  /// much again.
  bool rotate();
  /// Opens what has its name now. True: that is another file. Where that cannot be, it goes on.
  bool reopen();

  /// What keeps this process from renaming; empty: nothing.
  std::string hindrance() const;

 private:
  std::string old_name(std::uint64_t number) const;
  bool has_its_name() const;
  Result<void> begin_new();
  Result<Fd> open_named() const;
  /// Gives the new file the mode and group of the old one, as far as that is possible.
  void same_readers(int fresh) const;
  Result<void> rename_all(const std::string& fresh) const;
  void take(Fd fd);
  void tell(std::string_view what, const Error& why) const;

  std::string path_;
  How how_;
  Fd fd_;
  std::uint64_t size_ = 0, most_ = UINT64_MAX;
  bool regular_ = false;
  bool told_ = false;  ///< that it cannot be renamed
};

}  // namespace coretap
