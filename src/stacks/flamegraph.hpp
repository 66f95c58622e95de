// Flame graphs: weighted stacks merged into a tree, drawn as one interactive SVG file.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "program/picture.hpp"
#include "stacks/stack_word.hpp"

namespace coretap {

class FlameGraph {
 public:
  static constexpr std::size_t kMostFrames = 1 << 20;
  static constexpr std::size_t kMostNameBytes = 128 << 20;  ///< total of all names
  static constexpr std::size_t kLongestName = 1024;         ///< bytes; the rest is cut

  /// The meaning of frames' colours.
  enum class ColourBy : std::uint8_t {
    kind,    ///< of the words only; frames merge by kind and name
    code,    ///< the kind of code: code_of()
    object,  ///< the file: object_of()
    name,    ///< the name
  };

  /// Values are shown divided by `scale`: 1000 for nanoseconds that are shown as microseconds.
  explicit FlameGraph(std::uint64_t scale = 1, ColourBy by = ColourBy::kind)
      : scale_(scale), colour_by_(by) {
    nodes_.emplace_back();
  }
  FlameGraph(FlameGraph&&) = default;  // not copyable: names_ points to the keys

  /// Adds a path, the outermost frame first. If there is no room for another frame, the value
  /// counts for the frames below it.
  void add(std::span<const StackWord> path, std::uint64_t value);

  std::uint64_t total() const { return total_; }  ///< unscaled

  /// The frame above `parent` (0: the outermost); 0: no room for another one.
  std::uint32_t child(std::uint32_t parent, const StackWord& frame);
  /// Adds a value to that of a frame itself.
  void add_to(std::uint32_t frame, std::uint64_t value);

  /// A frame in the tree.
  struct Branch {
    std::uint32_t level;  ///< 0: the outermost
    std::string_view name;
    StackWord::Kind kind;
    std::uint64_t own, total;  ///< unscaled
  };
  /// Visits the frames, each before those above it, the largest first if `sorted`; `enter` returns
  /// false to leave out those above.
  void walk(bool sorted, const std::function<bool(const Branch&)>& enter) const;

  /// Colours with another meaning than that of the frames' kinds.
  struct Paint {
    struct Look {
      std::string_view style;  ///< a class of `css`
      std::string words;       ///< instead of the value
    };
    std::string_view css;
    std::vector<std::pair<std::string, std::string>> legend;  ///< styles and meanings
    std::function<Look(std::uint32_t frame)> look;            ///< 0: all
  };

  /// The complete file. Omits frames narrower than a tenth of a pixel; a note has their number.
  std::string svg(const PictureTitle& title) const { return svg(title, nullptr); }
  std::string svg(const PictureTitle& title, const Paint& paint) const {
    return svg(title, &paint);
  }

 private:
  struct Node {
    std::uint32_t parent = 0, name = 0;
    StackWord::Kind kind = StackWord::mark;
    bool waker = false;
    std::uint16_t part = 0;  ///< of the meaning of its colour: the code, or the object's number
    std::uint64_t own = 0;   ///< of stacks that end here
  };
  struct Box {
    std::uint32_t node, level;
    std::uint64_t start;
  };
  struct Tree;
  struct Colours;

  std::uint16_t part_of(const StackWord& frame);

  std::string svg(const PictureTitle& title, const Paint* paint) const;
  void put_frame(std::string& out, const Tree& tree, const Box& box, const Colours& colours,
                 int rows, const Paint* paint) const;

  std::uint64_t scale_, total_ = 0, shortened_ = 0;
  ColourBy colour_by_;
  std::vector<std::string> objects_{{}};  ///< by number; 0: none, or one of too many
  std::unordered_map<std::string, std::uint16_t> object_numbers_;
  std::vector<Node> nodes_;  ///< parents before children; the first is the root
  std::unordered_map<std::uint64_t, std::uint32_t> children_;
  std::unordered_map<std::string, std::uint32_t> ids_;
  std::vector<const std::string*> names_;  ///< pointers to the keys of ids_
  std::size_t name_bytes_ = 0;
};

}  // namespace coretap
