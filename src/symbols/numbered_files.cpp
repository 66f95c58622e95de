#include "symbols/numbered_files.hpp"

#include <fcntl.h>

#include <array>
#include <utility>

#include "symbols/elf_symbols.hpp"

namespace coretap::symbols {

namespace {

constexpr FileIdentity kVdso{};

/// Only package managers change files there.
bool in_system_directory(const std::string& path) {
  for (const char* directory : {"/usr/", "/lib", "/bin/", "/sbin/", "/opt/"})
    if (path.starts_with(directory)) return true;
  return false;
}

bool is_of(const Fd& handle, const FileIdentity& id) {
  const auto found = identity_of(handle.get());
  return found && *found == id;
}

}  // namespace

std::uint16_t NumberedFiles::add(NumberedFile file) {
  if (files_.size() >= kMost) return 0;
  const auto number = static_cast<std::uint16_t>(files_.size() + 1);
  numbers_.emplace(file.id, number);
  files_.push_back(std::move(file));
  return number;
}

std::uint16_t NumberedFiles::number(const FileIdentity& id, const std::string& path,
                                    std::uint64_t base, const Fd& handle, pid_t mapped_by) {
  if (const auto known = numbers_.find(id); known != numbers_.end()) {
    if (mapped_by) files_[known->second - 1U].mapped_by = mapped_by;
    return known->second;
  }
  NumberedFile file;
  file.id = id;
  file.path = path;
  file.base = base;
  file.mapped_by = mapped_by;
  const auto number = add(std::move(file));
  if (number && !(in_system_directory(path) && is_of(open_handle(path, true), id)))
    keep(number, handle);
  return number;
}

std::uint16_t NumberedFiles::number_of_vdso(std::string image, std::uint64_t base) {
  if (const auto known = numbers_.find(kVdso); known != numbers_.end())
    return files_[known->second - 1U].image == image ? known->second : std::uint16_t{0};
  NumberedFile file;
  file.path = "[vdso]";
  file.base = base;
  file.image = std::move(image);
  return add(std::move(file));
}

void NumberedFiles::keep(std::uint16_t number, const Fd& handle) {
  Fd copy(::fcntl(handle.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy) return;
  if (kept_.size() >= kMostHandles) {
    files_[kept_.front() - 1U].handle = Fd();
    kept_.pop_front();
  }
  files_[number - 1U].handle = std::move(copy);
  kept_.push_back(number);
}

const NumberedFile* NumberedFiles::find(std::uint64_t number) const {
  return number - 1 < files_.size() ? &files_[number - 1] : nullptr;
}

Fd NumberedFiles::open(const NumberedFile& file, pid_t tgid) const {
  if (file.handle) return open_regular(file.handle, kMaxElfSize);
  auto handle = open_handle(file.path, true);
  for (const pid_t process : std::array{tgid, file.mapped_by}) {
    if (is_of(handle, file.id)) break;
    if (!process) continue;
    const auto root = open_handle(proc_root_ + "/" + std::to_string(process) + "/root", true);
    if (root) handle = open_handle_in(root.get(), file.path, false);
  }
  return is_of(handle, file.id) ? open_regular(handle, kMaxElfSize) : Fd();
}

}  // namespace coretap::symbols
