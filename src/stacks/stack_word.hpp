// A part of the path that leads to a sum: a frame, a name, or a mark.
#pragma once
#include <cstdint>
#include <string>

namespace coretap {

struct StackWord {
  enum Kind : std::uint8_t { task, user, kernel, mark } kind = task;
  bool waker = false;  ///< belongs to one that woke another
  std::string text;    ///< from outside: may be anything
};

}  // namespace coretap
