// A program of kind iter: the kernel runs it once for each object when it is read.
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
  /// After load, while this process has its rights.
  Result<void> open(const bpf_object* object, std::string_view program);

  /// The records of one pass over all objects, each of `size` bytes as the program writes them
  /// (bpf_seq_write).
  Result<std::string> read(std::size_t size) const;

 private:
  std::string program_;
  Link link_{nullptr};
};

}  // namespace coretap
