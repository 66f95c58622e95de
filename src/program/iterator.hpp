// A program of type iter: reading its descriptor runs it once for each object.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "coretap/result.hpp"
#include "program/links.hpp"

struct bpf_object;

namespace coretap {

class Iterator {
 public:
  /// After load, while this process still has its capabilities.
  Result<void> open(const bpf_object* object, std::string_view program);

  /// Returns the records of one pass over all objects, each of `size` bytes as the program writes
  /// them (bpf_seq_write).
  Result<std::string> read(std::size_t size) const;

 private:
  std::string program_;
  Link link_{nullptr};
};

}  // namespace coretap
