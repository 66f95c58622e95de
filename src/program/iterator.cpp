#include "program/iterator.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/descriptors.hpp"
#include "coretap/fd.hpp"

namespace coretap {

Result<void> Iterator::open(const bpf_object* object, std::string_view program) {
  program_ = program;
  auto* found = bpf_object__find_program_by_name(object, program_.c_str());
  if (!found || bpf_program__fd(found) < 0)
    return Error{fmt::format("cannot read the iterator {}", program_), "it is not loaded"};
  auto* link = bpf_program__attach_iter(found, nullptr);
  if (!link)
    return system_error(fmt::format("cannot read the iterator {}", program_), errno, kUnsupported);
  link_ = Link(link);
  return {};
}

Result<std::string> Iterator::read(std::size_t size) const {
  const auto what = fmt::format("cannot read the iterator {}", program_);
  // An iterator cannot be rewound: each pass opens a new descriptor.
  const Fd fd(bpf_iter_create(link_.fd()));
  if (!fd) return system_error(what, errno);
  std::string bytes;
  char buffer[32768];
  while (true) {
    auto n = ::read(fd.get(), buffer, sizeof buffer);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;  // EAGAIN: after a million objects
    if (n < 0) return system_error(what, errno);
    if (n == 0) break;
    bytes.append(buffer, static_cast<std::size_t>(n));
  }
  if (bytes.size() % size) return Error{what, "a record is incomplete"};
  return bytes;
}

}  // namespace coretap
