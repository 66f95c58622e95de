// Paths passed to system calls: shared by tools with bpf/lib/paths/given_path.bpf.h.
#pragma once
#include <string>

#include "coretap/fields.hpp"
#include "coretap/options.hpp"
#include "lib/paths/given_path.h"

namespace coretap {

/// For a path in the record: as passed by the program, with --full-path after
/// the directory that it is relative to; empty if its memory could not be read.
template <class Record>
Value given_path_of(const Record& record, const given_path& path) {
  if (!(path.what & GIVEN_PATH_TEXT)) return {};
  auto text = std::string(text_of(record, path.text)) + (path.what & GIVEN_PATH_CUT ? "..." : "");
  if (!(path.what & GIVEN_PATH_BASE)) return text;
  auto base = path_of(text_of(record, path.base), path.what & GIVEN_PATH_BASE_CUT);
  return (base == "/" ? "" : base) + "/" + text;
}

inline bool incomplete(const given_path& path) {
  return path.what & (GIVEN_PATH_CUT | GIVEN_PATH_BASE_CUT);
}

namespace shared {
template <class Rodata>
Option full_path() {
  return flag('F', "full-path", "paths with the directory that they are relative to",
              setting(&Rodata::full_path));
}
}  // namespace shared

}  // namespace coretap
