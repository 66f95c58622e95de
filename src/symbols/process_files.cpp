#include "symbols/process_files.hpp"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "base/read_failures.hpp"
#include "base/uninterrupted.hpp"
#include "coretap/parse.hpp"
#include "coretap/small_files.hpp"

namespace coretap::symbols {

std::size_t FileIdentityHash::operator()(const FileIdentity& id) const {
  std::uint64_t hash = id.inode * 0x9e3779b97f4a7c15U;
  hash ^= (id.device + (hash << 6) + (hash >> 2)) * 0xc2b2ae3d27d4eb4fU;
  hash ^= static_cast<std::uint64_t>(id.modified_ns) + id.size;
  return hash;
}

std::optional<FileIdentity> identity_of(int fd) {
  struct stat st;
  if (fd < 0) return {};
  if (::fstat(fd, &st) != 0) {
    ReadFailures::note(errno);
    return {};
  }
  if (!S_ISREG(st.st_mode) || st.st_size < 0) return {};
  return FileIdentity{.device = st.st_dev,
                      .inode = st.st_ino,
                      .size = static_cast<std::uint64_t>(st.st_size),
                      .modified_ns = st.st_mtim.tv_sec * 1'000'000'000LL + st.st_mtim.tv_nsec};
}

std::string program_path(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* path = ::getenv("PATH");
  for (std::string_view rest = path ? path : "/bin:/usr/bin"; !rest.empty();) {
    const std::string directory(take_until(rest, ':'));
    auto file = (directory.empty() ? "." : directory) + "/" + name;
    if (::access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

bool same_file(int a, int b) {
  struct stat one, other;
  if (::fstat(a, &one) != 0 || ::fstat(b, &other) != 0 || one.st_ino != other.st_ino) return false;
  if (one.st_dev == other.st_dev) return true;
  auto on_overlay = [](int fd) {
    struct statfs fs;
    return ::fstatfs(fd, &fs) == 0 && fs.f_type == OVERLAYFS_SUPER_MAGIC;
  };
  auto same_time = [](const timespec& x, const timespec& y) {
    return x.tv_sec == y.tv_sec && x.tv_nsec == y.tv_nsec;
  };
  return one.st_size == other.st_size && same_time(one.st_mtim, other.st_mtim) &&
         same_time(one.st_ctim, other.st_ctim) && (on_overlay(a) || on_overlay(b));
}

namespace {

Fd opened(int fd) {
  if (fd < 0) ReadFailures::note_open(errno);
  return Fd(fd);
}

}  // namespace

Fd open_handle(const std::string& path, bool follow_last_link) {
  return opened(::open(path.c_str(), O_PATH | O_CLOEXEC | (follow_last_link ? 0 : O_NOFOLLOW)));
}

Fd open_handle_in(int root_fd, const std::string& path, bool follow_last_link) {
  if (root_fd < 0) return {};
  open_how how{};
  how.flags = static_cast<std::uint64_t>(O_PATH | O_CLOEXEC | (follow_last_link ? 0 : O_NOFOLLOW));
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  for (int tries = 0; tries < 4; ++tries) {
    const long fd = ::syscall(SYS_openat2, root_fd, path.c_str(), &how, sizeof how);
    if (fd >= 0) return Fd(static_cast<int>(fd));
    if (errno != EAGAIN && errno != EINTR) break;  // EAGAIN: a rename raced with ".."
  }
  return opened(-1);
}

Fd open_regular(const Fd& handle, std::uint64_t max_size) {
  const auto id = identity_of(handle.get());
  if (!id || id->size > max_size) return {};
  char path[32];
  ::snprintf(path, sizeof path, "/proc/self/fd/%d", handle.get());
  return opened(::open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

LineReader::LineReader(int fd, std::size_t max_line, std::uint64_t max_total)
    : fd_(fd),
      max_line_(max_line),
      left_(max_total),
      buffer_(std::max<std::size_t>(64 << 10, max_line * 2)) {}

bool LineReader::fill() {
  if (ended_) return false;
  if (begin_ > 0) {
    ::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  const std::size_t room =
      static_cast<std::size_t>(std::min<std::uint64_t>(buffer_.size() - end_, left_));
  ssize_t got = 0;
  if (room > 0) {
    got = uninterrupted([&] { return ::read(fd_, buffer_.data() + end_, room); });
  }
  if (got <= 0) {
    if (got < 0) error_ = errno;
    ended_ = true;
    return false;
  }
  end_ += static_cast<std::size_t>(got);
  left_ -= static_cast<std::size_t>(got);
  return true;
}

bool LineReader::next(std::string_view& line) {
  const auto rest = [&] { return std::string_view(buffer_.data() + begin_, end_ - begin_); };
  std::size_t newline = rest().find('\n');
  for (; skipping_; newline = rest().find('\n')) {
    skipping_ = newline == rest().npos;
    begin_ = skipping_ ? end_ : begin_ + newline + 1;
    if (skipping_ && !fill()) return false;
  }
  while (newline == rest().npos && rest().size() <= max_line_ && fill())
    newline = rest().find('\n');
  if (rest().empty()) return false;
  const auto whole = rest().substr(0, newline);
  terminated_ = newline != rest().npos;
  truncated_ = whole.size() > max_line_;
  skipping_ = truncated_ && !terminated_;
  line = whole.substr(0, max_line_);
  begin_ += whole.size() + (terminated_ ? 1 : 0);
  return true;
}

std::uint32_t NameArena::add(std::string_view name) {
  name = name.substr(0, std::min(name.find('\0'), kMaxName));
  if (used_ + name.size() + 1 > kBlock) {
    // Handles have 32 bits: 4 GiB of names, far above all limits of the callers.
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(kBlock));
    used_ = 0;
  }
  char* to = blocks_.back().get() + used_;
  name.copy(to, name.size());
  to[name.size()] = '\0';
  const auto handle = static_cast<std::uint32_t>((blocks_.size() - 1) * kBlock + used_);
  used_ += name.size() + 1;
  return handle;
}

bool take_char(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

bool take_number(std::string_view& text, std::uint64_t& value, int base) {
  value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

std::string read_at(int fd, std::uint64_t offset, std::uint64_t size) {
  std::string bytes(size, '\0');
  bytes.resize(read_bytes(fd, offset, bytes.data(), size));
  return bytes;
}

std::string read_small_file(const std::string& path, std::size_t max_size) {
  const Fd fd = open_regular(open_handle(path, false), max_size);
  std::string text;
  if (!fd) return text;
  text.resize(max_size);
  text.resize(read_bytes(fd.get(), 0, text.data(), max_size));
  return text;
}

}  // namespace coretap::symbols
