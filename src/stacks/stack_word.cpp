#include "stacks/stack_word.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "coretap/symbols.hpp"

namespace coretap {

namespace {

struct Annotation {
  FrameCode code;
  std::string_view end;
};
constexpr Annotation kAnnotations[] = {
    {FrameCode::kernel, "_[k]"}, {FrameCode::compiled, "_[j]"}, {FrameCode::inlined, "_[i]"}};

}  // namespace

FrameCode code_of(const StackWord& word) {
  if (word.place && word.place->inlined) return FrameCode::inlined;
  if (word.kind == StackWord::kernel) return FrameCode::kernel;
  if (word.kind != StackWord::user || !word.place) return FrameCode::unknown;
  auto& place = *word.place;
  if (place.interpreted) return FrameCode::interpreted;
  if (place.compiled) return FrameCode::compiled;
  if (place.object.empty()) return FrameCode::unknown;
  if (place.at && place.file) return place.file->program ? FrameCode::program : FrameCode::library;
  // The file cannot be read, but has a name.
  return place.object.starts_with('[') || object_of(place, false).find(".so") != std::string::npos
             ? FrameCode::library
             : FrameCode::program;
}

std::string_view annotation_of(FrameCode code) {
  auto* found = std::ranges::find(kAnnotations, code, &Annotation::code);
  return found == std::end(kAnnotations) ? std::string_view() : found->end;
}

FrameCode take_annotation(std::string_view& name) {
  for (auto& a : kAnnotations) {
    if (!name.ends_with(a.end)) continue;
    name.remove_suffix(a.end.size());
    return a.code;
  }
  return FrameCode::unknown;
}

std::string object_of(const FramePlace& place, bool kernel) {
  if (kernel) return fmt::format("[{}]", place.object.empty() ? "kernel" : place.object);
  return place.object.substr(place.object.rfind('/') + 1);
}

}  // namespace coretap
