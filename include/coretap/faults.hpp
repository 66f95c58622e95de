// Page faults: shared by tools with bpf/lib/mm/fault.bpf.h.
#pragma once
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/fields.hpp"
#include "coretap/hooks.hpp"
#include "lib/mm/fault.h"

namespace coretap {

inline constexpr std::string_view kAreaKinds[] = {"unknown", "file",  "anonymous",
                                                  "heap",    "stack", "special"};

/// The path of a mapped file, or the kind of memory, in
/// brackets. `path`: as sent by the kernel program, or nullptr.
inline Value area_name(const area_id& area, const std::string* path) {
  static constexpr std::string_view kNames[] = {"[unknown]", "",        "[anon]",
                                                "[heap]",    "[stack]", "[special]"};
  if (area.kind != AREA_FILE)
    return area.kind < std::size(kNames) ? Value(std::string(kNames[area.kind])) : Value();
  return path ? Value(file_name(0, area.file.inode, *path)) : Value();
}

/// For a Row whose key has a struct area_id: its name, its kind, and the file's identity.
template <class Line, auto Member>
std::vector<Field> area_fields() {
  return {
      Field{"file", "FILE", as::rest, "path of the mapped file, or what the memory is, in brackets",
            [](const void* row, const FieldContext& context) {
              auto& key = static_cast<const Line*>(row)->key;
              return area_name(key.*Member, context.row_text(key));
            }}
          .or_null(),
      {.key = "area",
       .title = "AREA",
       .format = as::text,
       .doc = "kind of memory: file, anonymous, heap, stack, special (the kernel's own, such as "
              "the vDSO), unknown",
       .read = [](const void* row, const FieldContext&) -> Value {
         std::size_t kind = (static_cast<const Line*>(row)->key.*Member).kind;
         return std::string(kAreaKinds[kind < std::size(kAreaKinds) ? kind : 0]);
       },
       .shown_with = "json",
       .values = Values::bounded},
      {.key = "device",
       .title = "DEV",
       .format = as::disk,
       .doc = "disk or device number of the file",
       .read = [](const void* row, const FieldContext&) -> Value {
         return std::uint64_t{(static_cast<const Line*>(row)->key.*Member).file.dev};
       },
       .shown_with = "json"},
      {.key = "inode",
       .title = "INODE",
       .format = as::number,
       .doc = "number of the inode; 0: no file",
       .read = [](const void* row, const FieldContext&) -> Value {
         return std::uint64_t{(static_cast<const Line*>(row)->key.*Member).file.inode};
       },
       .shown_with = "json"},
  };
}

namespace faults {

/// Whether the mapping at an address can be looked up: since 5.17.
inline Need finds_areas() { return has_enumerator("bpf_func_id", "BPF_FUNC_find_vma"); }

inline Hook minor(When when = {}) {
  return {.name = "minor faults",
          .candidates = {{{ProgramName("on_minor")}, {finds_areas()}},
                         {{ProgramName("on_minor_kept")}}},
          .when = when,
          .sampling = every(1)};
}
inline Hook major(When when = {}) {
  return {.name = "major faults",
          .candidates = {{{ProgramName("on_major")}, {finds_areas()}},
                         {{ProgramName("on_major_kept")}}},
          .when = when,
          .sampling = every(1)};
}
inline Hook areas(When when = {}) {
  return {.name = "mapping of the address",
          .candidates = {{{}, {finds_areas()}},
                         {{ProgramName("on_fault")}},
                         {{ProgramName("on_fault_kprobe")}}},
          .when = when};
}
/// Programs at the start of a fault, with the kind of access.
inline Hook starts(When when = {}, std::string_view optional = {}) {
  return {.name = "start of a fault",
          .candidates = {{{ProgramName("on_user_fault"), ProgramName("on_kernel_fault")}},
                         {{ProgramName("on_fault")}},
                         {{ProgramName("on_fault_kprobe")}}},
          .when = when,
          .optional = optional};
}

}  // namespace faults
}  // namespace coretap
