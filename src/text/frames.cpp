#include "text/frames.hpp"

#include "coretap/sanitize.hpp"

namespace coretap {

std::string folded(const Frames& frames, std::string before) {
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
    before += (before.empty() ? "" : ";") + folded_word(*frame);
  return before;
}

std::string frame_line(std::string_view frame) { return "        " + printable(frame); }

}  // namespace coretap
