// Stacks as text.
#pragma once
#include <string>
#include <string_view>

#include "coretap/fields.hpp"

namespace coretap {

/// Frames on one line, the outermost first, joined by semicolons; after `before` if that is not
/// empty.
std::string folded(const Frames& frames, std::string before = {});

/// A frame on a separate line.
std::string frame_line(std::string_view frame);

}  // namespace coretap
