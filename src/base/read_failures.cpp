#include "base/read_failures.hpp"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "base/descriptors.hpp"
#include "coretap/sanitize.hpp"

namespace coretap {

namespace {

thread_local ReadFailures* innermost = nullptr;

}  // namespace

bool is_absence(int error) {
  const int known[] = {ENOENT, ENOTDIR, ESRCH, EACCES, EPERM, ELOOP, ENAMETOOLONG};
  return std::ranges::find(known, error) != std::end(known);
}

ReadFailures::ReadFailures(std::string_view path)
    : outer_(std::exchange(innermost, this)), path_(path) {}

ReadFailures::~ReadFailures() { innermost = outer_; }

Error ReadFailures::error(std::string what) const {
  auto e = system_error(std::move(what), error_);
  if (!error_) e.why = "it is damaged, or not whole";
  e.why = "cannot read " + (failed_path_.empty() ? "it" : printable(failed_path_)) + ": " + e.why;
  return e;
}

void ReadFailures::note(int error) {
  if (!innermost || innermost->failed_) return;
  innermost->failed_ = true;
  innermost->error_ = error;
  innermost->failed_path_ = innermost->path_;
}

void ReadFailures::note_open(int error) {
  if (!is_absence(error)) note(error);
}

}  // namespace coretap
