#include "text/output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace coretap {

namespace {

// The data may be secret: a new file is for its owner only. O_APPEND lets other programs truncate
// it.
constexpr int kOpenFlags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY;
constexpr mode_t kMode = 0600;

Error failure(std::string what, int error) {
  bool rights = error == EACCES || error == EPERM;
  return {std::move(what), strerror(error),
          rights ? "after the start it has no capabilities: its user needs the right to write to "
                   "the directory and the file"
                 : ""};
}

/// True if the file ends with an incomplete line, after a program has died.
bool ends_in_a_line(const std::string& path, off_t size) {
  Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  char last = '\n';
  return file && size > 0 && pread(file.get(), &last, 1, size - 1) == 1 && last != '\n';
}

}  // namespace

Result<void> OutputFile::open(std::string path, How how) {
  path_ = std::move(path);
  how_ = std::move(how);
  struct stat there {};
  // Of a symbolic link such as /dev/stdout, the link would be renamed instead of the file.
  if (how_.most && lstat(path_.c_str(), &there) == 0 && !S_ISREG(there.st_mode))
    return Error{fmt::format("--rotate: {} is not a regular file", path_),
                 {},
                 "name a file that can be renamed",
                 kUsage};
  Fd file(::open(path_.c_str(), kOpenFlags | (how_.append ? 0 : O_TRUNC), kMode));
  if (!file) return Error{fmt::format("cannot write to {}", path_), strerror(errno)};
  take(std::move(file));
  if (regular_ && ends_in_a_line(path_, static_cast<off_t>(size_)) && write(fd(), "\n", 1) == 1)
    size_++;
  return {};
}

void OutputFile::take(Fd fd) {
  // Some file systems report a lack of space only here.
  if (fd_ && close(fd_.release()))
    tell(fmt::format("the end of the file that was {} may be missing", path_), failure({}, errno));
  fd_ = std::move(fd);
  struct stat now {};
  regular_ = fstat(fd_.get(), &now) == 0 && S_ISREG(now.st_mode);
  size_ = regular_ ? static_cast<std::uint64_t>(now.st_size) : 0;
  most_ = how_.most ? how_.most : UINT64_MAX;
}

void OutputFile::tell(std::string_view what, const Error& why) const {
  if (how_.tell) how_.tell(what, why);
}

std::string OutputFile::old_name(std::uint64_t number) const {
  return fmt::format("{}.{}", path_, number);
}

bool OutputFile::has_its_name() const {
  struct stat named {};
  struct stat open {};
  return stat(path_.c_str(), &named) == 0 && fstat(fd(), &open) == 0 &&
         named.st_dev == open.st_dev && named.st_ino == open.st_ino;
}

Result<void> OutputFile::rename_all(const std::string& fresh) const {
  auto rename_to = [](const std::string& from, const std::string& to) -> Result<void> {
    if (rename(from.c_str(), to.c_str()) == 0) return {};
    return failure(fmt::format("cannot rename {} to {}", from, to), errno);
  };
  for (auto number = how_.keep; number > 1; number--)
    if (access(old_name(number - 1).c_str(), F_OK) == 0)
      if (auto r = rename_to(old_name(number - 1), old_name(number)); !r) return r;
  if (auto r = rename_to(path_, old_name(1)); !r) return r;
  auto r = rename_to(fresh, path_);
  if (!r) rename(old_name(1).c_str(), path_.c_str());
  return r;
}

Result<void> OutputFile::begin_new() {
  // Another program has renamed or removed the file.
  if (!has_its_name()) {
    auto named = open_named();
    if (!named) return named.error();
    take(std::move(*named));
    return {};
  }
  // Creates the new file first: without space for it, nothing is renamed or removed.
  auto name = fmt::format("{}.{}.new", path_, getpid());
  Fd fresh(::open(name.c_str(), kOpenFlags | O_EXCL, kMode));
  if (!fresh) return failure(fmt::format("cannot create {}", name), errno);
  same_readers(fresh.get());
  if (auto r = rename_all(name); !r) {
    unlink(name.c_str());
    return r;
  }
  take(std::move(fresh));
  return {};
}

void OutputFile::same_readers(int fresh) const {
  struct stat old {};
  struct stat now {};
  if (fstat(fd(), &old) || fstat(fresh, &now)) return;
  auto mode = old.st_mode & 0777;
  if (now.st_gid != old.st_gid && fchown(fresh, static_cast<uid_t>(-1), old.st_gid))
    mode &= ~static_cast<mode_t>(S_IRWXG);  // these permissions would apply to another group
  fchmod(fresh, mode);
}

Result<Fd> OutputFile::open_named() const {
  // Opening a pipe without a reader would block.
  Fd file(::open(path_.c_str(), kOpenFlags | O_NONBLOCK | (how_.most ? O_NOFOLLOW : 0), kMode));
  auto what = fmt::format("cannot open {} again", path_);
  if (!file) return failure(what, errno);
  struct stat now {};
  if (how_.most && (fstat(file.get(), &now) || !S_ISREG(now.st_mode)))
    return Error{what, "it is not a regular file"};
  fcntl(file.get(), F_SETFL, O_APPEND);
  return file;
}

bool OutputFile::rotate() {
  auto begun = begin_new();
  if (!begun) {
    if (!std::exchange(told_, true))
      tell(fmt::format("{} grows beyond --rotate: {}", path_, begun.error().what), begun.error());
    extend();
    return false;
  }
  told_ = false;
  return true;
}

bool OutputFile::reopen() {
  if (has_its_name()) return false;
  auto named = open_named();
  if (!named) {
    tell(named.error().what + ", and the old file goes on", named.error());
    return false;
  }
  take(std::move(*named));
  return true;
}

std::string OutputFile::hindrance() const {
  auto slash = path_.rfind('/');
  auto directory = slash == path_.npos ? "." : path_.substr(0, slash + 1);
  if (faccessat(AT_FDCWD, directory.c_str(), W_OK | X_OK, AT_EACCESS) == 0) return {};
  return fmt::format("user {} cannot write to the directory {} without capabilities", geteuid(),
                     directory);
}

}  // namespace coretap
