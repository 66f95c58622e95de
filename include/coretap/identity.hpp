// Who: the fields of a struct task_id (bpf/lib/shared.h), the same in every tool.
#pragma once
#include <string_view>
#include <vector>

#include "coretap/fields.hpp"
#include "lib/shared.h"

namespace coretap {

/// What who<> and owner<> show, in the order in which they get it: id::pid, id::tid.with("json").
namespace id {
template <class Of>
struct Part {
  Field field;  // but for its reader

  Part with(std::string_view option) const { return {field.with(option)}; }
  Part only(std::string_view option) const { return {field.only(option)}; }
  Part titled(std::string_view title) const {
    auto part = *this;
    part.field.title = title;
    return part;
  }
  Part columns(int width) const {
    auto part = *this;
    part.field.format.width = width;
    return part;
  }
};

struct Uid {
  static auto& of(auto& who) { return who.uid; }
};
struct Pid {
  static auto& of(auto& who) { return who.pid; }
};
struct Tid {
  static auto& of(auto& who) { return who.tid; }
};
struct Comm {
  static auto& of(auto& who) { return who.comm; }
};
struct Cgroup {
  static auto& of(auto& who) { return who.cgroup; }
};

inline constexpr Part<Uid> uid{{.key = "uid",
                                .title = "UID",
                                .format = as::wide(as::pid, -6),
                                .doc = "user id",
                                .shown_with = "print-uid"}};
inline constexpr Part<Pid> pid{{.key = "pid", .title = "PID", .format = as::pid, .doc = "process"}};
inline constexpr Part<Tid> tid{
    {.key = "tid", .title = "TID", .format = as::pid, .doc = "thread", .shown_with = "json"}};
inline constexpr Part<Comm> comm{
    {.key = "comm", .title = "COMM", .format = as::comm, .doc = "command name of the task"}};
inline constexpr Part<Cgroup> cgroup{{.key = "cgroup_id",
                                      .title = "CGROUP",
                                      .format = as::number,
                                      .doc = "cgroup (version 2) of the task",
                                      .shown_with = "json"}};
}  // namespace id

namespace detail {
template <class Of>
Field read_with(const id::Part<Of>& part, Value (*read)(const void*, const FieldContext&)) {
  auto field = part.field;
  field.read = read;
  return field;
}
}  // namespace detail

/// Of a member of the record that is a struct task_id, or has members of the same names:
/// who<&Event::who>(id::pid, id::comm).
template <auto Who, class... Of>
std::vector<Field> who(const id::Part<Of>&... parts) {
  using Record = typename detail::member_of<decltype(Who)>::record;
  return {detail::read_with(parts, [](const void* record, const FieldContext&) -> Value {
    return detail::to_value(Of::of(static_cast<const Record*>(record)->*Who));
  })...};
}

/// Of a record that has such members itself.
template <class Record, class... Of>
std::vector<Field> who(const id::Part<Of>&... parts) {
  return {detail::read_with(parts, [](const void* record, const FieldContext&) -> Value {
    return detail::to_value(Of::of(*static_cast<const Record*>(record)));
  })...};
}

/// Of a struct task_id; empty where no task is known.
template <auto Owner, class... Of>
std::vector<Field> owner(const id::Part<Of>&... parts) {
  using Record = typename detail::member_of<decltype(Owner)>::record;
  return {detail::read_with(parts, [](const void* record, const FieldContext&) -> Value {
    const task_id& o = static_cast<const Record*>(record)->*Owner;
    return o.known ? detail::to_value(Of::of(o)) : Value{};
  })...};
}

}  // namespace coretap
