// Stacks in words.
#pragma once
#include <string>
#include <string_view>

#include "coretap/fields.hpp"

namespace coretap {

/// Frames on one line, the outermost first, joined by semicolons; behind `before` if it is not
/// empty.
std::string folded(const Frames& frames, std::string before = {});

/// A frame on a line of its own.
std::string frame_line(std::string_view frame);

}  // namespace coretap
