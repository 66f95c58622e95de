// Files in records and rows: values of a struct file_id `file`
// and the adjacent `mode`, in a record or in a row's key.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "coretap/config.hpp"
#include "coretap/fields.hpp"

namespace coretap {

/// The record itself, or a row's key.
template <class Record>
const auto& with_file(const Record& r) {
  if constexpr (requires { r.key; })
    return r.key;
  else
    return r;
}

template <class Record>
std::uint32_t device_of_file(const Record& r) {
  return with_file(r).file.dev;
}
template <class Record>
std::uint64_t inode_of_file(const Record& r) {
  return with_file(r).file.inode;
}

/// Device and inode, in JSON.
template <class Record>
std::vector<Field> identity_of_file() {
  return {
      derived<Record, device_of_file<Record>>("device", "DEV", as::disk,
                                              "disk or device number of the file")
          .with("json"),
      derived<Record, inode_of_file<Record>>("inode", "INODE", as::number, "number of the inode")
          .key_part()
          .with("json")};
}

/// For a row: the path sent by bpf/lib/paths/row_text.bpf.h; null: it was lost.
template <class Record>
Value file_of_row(const Record& r, const FieldContext& context) {
  auto& key = with_file(r);
  auto* path = context.row_text(key);
  return path ? Value(file_name(key.mode, key.file.inode, *path)) : Value();
}

/// For a record with a `path` from file_path() in bpf/lib/paths/path.bpf.h, and its `path_kind`.
template <class Event>
std::string path_of_event(const Event& e) {
  return file_path(text_of(e, e.path), e.path_kind);
}
template <class Event>
std::string file_of_event(const Event& e) {
  return file_name(e.mode, e.file.inode, path_of_event(e));
}

/// For EventReport::only: --directory.
template <class Event>
bool event_below_directory(const Config& config, const void* record) {
  return config.wants_path(path_of_event(*static_cast<const Event*>(record)));
}

}  // namespace coretap
