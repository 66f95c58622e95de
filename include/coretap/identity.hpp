// Tasks: the fields of a struct task_id (bpf/lib/core/shared.h), the same in every tool.
#pragma once
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "coretap/fields.hpp"
#include "lib/core/shared.h"

namespace coretap {

/// Parts of a task's identity, in the order shown: id::pid, id::tid.with("json").
namespace id {
template <class Of>
struct Part {
  Field field;  // without its reader

  Part with(When option) const { return {field.with(option)}; }
  Part only(When option) const { return {field.only(option)}; }
  /// For a task other than the one that the record is about.
  Part keyed(std::string_view key, std::string_view title) const {
    auto part = titled(title);
    part.field.key = key;
    return part;
  }
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
/// Read::of(record, context): the struct task_id, or a
/// struct with such members; nullptr: the task is not known.
template <class Read, class Of>
Value read_part(const void* record, const FieldContext& context) {
  auto* who = Read::of(record, context);
  return who ? detail::to_value(Of::of(*who)) : Value{};
}

template <class Read, CgroupName Which>
Value read_cgroup_name(const void* record, const FieldContext& context) {
  auto* who = Read::of(record, context);
  if (!who || !context.cgroup_name) return {};
  auto name = context.cgroup_name(id::Cgroup::of(*who), Which);
  return name.empty() ? Value{} : Value{std::move(name)};
}

template <class Read, class Of>
void add_part(std::vector<Field>& to, const id::Part<Of>& part) {
  to.push_back(part.field);
  to.back().read = read_part<Read, Of>;
  if constexpr (std::is_same_v<Of, id::Cgroup>) {
    auto add = [&](std::string_view key, std::string_view title, int width, std::string_view doc,
                   auto read, When option = "containers") {
      to.push_back({.key = key,
                    .title = title,
                    .format = as::wide(as::text, width),
                    .doc = doc,
                    .read = read,
                    .shown_with = option});
    };
    add("cgroup", "", 0, "its path", read_cgroup_name<Read, CgroupName::path>, "json");
    add("container", "CONTAINER", -20, "container of the task: its name, where the runtime has one",
        read_cgroup_name<Read, CgroupName::container>);
    add("container_id", "", 0, "id of the container",
        read_cgroup_name<Read, CgroupName::container_id>, "json");
    add("pod", "POD", -24, "pod of the task (Kubernetes)", read_cgroup_name<Read, CgroupName::pod>);
    add("unit", "UNIT", -24, "systemd unit of the task", read_cgroup_name<Read, CgroupName::unit>);
  }
}

template <class Read, class... Of>
std::vector<Field> parts_of(const id::Part<Of>&... parts) {
  std::vector<Field> all;
  (add_part<Read>(all, parts), ...);
  return all;
}

template <auto Who>
struct OfMember {
  static auto* of(const void* record, const FieldContext&) {
    return &(static_cast<const typename member_of<decltype(Who)>::record*>(record)->*Who);
  }
};
template <class Record>
struct OfRecord {
  static auto* of(const void* record, const FieldContext&) {
    return static_cast<const Record*>(record);
  }
};
template <auto Owner>
struct OfOwner {
  static const task_id* of(const void* record, const FieldContext& context) {
    auto* owner = OfMember<Owner>::of(record, context);
    return owner->known ? owner : nullptr;
  }
};
}  // namespace detail

/// For a member of the record (the template argument) that is a struct task_id, or has members of
/// the same names; parts: id::pid, id::comm. id::cgroup adds the names of container, pod and unit.
template <auto Who, class... Of>
std::vector<Field> who(const id::Part<Of>&... parts) {
  return detail::parts_of<detail::OfMember<Who>>(parts...);
}

/// For a record that has such members itself.
template <class Record, class... Of>
std::vector<Field> who(const id::Part<Of>&... parts) {
  return detail::parts_of<detail::OfRecord<Record>>(parts...);
}

/// For a struct task_id; empty if the task is not known.
template <auto Owner, class... Of>
std::vector<Field> owner(const id::Part<Of>&... parts) {
  return detail::parts_of<detail::OfOwner<Owner>>(parts...);
}

}  // namespace coretap
