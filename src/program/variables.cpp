#include "program/variables.hpp"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "program/section.hpp"
#include "program/session.hpp"

namespace coretap {

namespace {

bpf_map* data_map(const Session& s, std::string_view suffix) {
  for (auto* map : maps_of(s.object.get()))
    if (std::string_view(bpf_map__name(map)).ends_with(suffix)) return map;
  return nullptr;
}

/// Calls back for each variable of a data section: name, offset, size.
template <class Visit>
void each_variable(const Session& s, const char* section, Visit visit) {
  auto* types = bpf_object__btf(s.object.get());
  int id = types ? btf__find_by_name_kind(types, section, BTF_KIND_DATASEC) : -1;
  if (id < 0) return;
  auto* datasec = btf__type_by_id(types, static_cast<__u32>(id));
  auto* variables = btf_var_secinfos(datasec);
  for (int i = 0; i < btf_vlen(datasec); i++) {
    auto* variable = btf__type_by_id(types, variables[i].type);
    visit(std::string_view(btf__name_by_offset(types, variable->name_off)), variables[i].offset,
          variables[i].size);
  }
}

}  // namespace

void edit_rodata(const Session& s, std::size_t offset, const void* bytes, std::size_t size) {
  auto* map = data_map(s, ".rodata");
  std::size_t total = 0;
  auto* initial = map ? static_cast<const char*>(bpf_map__initial_value(map, &total)) : nullptr;
  if (!initial || offset + size > total) return;
  std::string data(initial, total);
  memcpy(data.data() + offset, bytes, size);
  bpf_map__set_initial_value(map, data.data(), total);
}

void each_constant(const Session& s, const VisitVariable& visit) {
  each_variable(s, ".rodata", visit);
}

bool set_variable(Session& s, std::string_view name, const void* bytes, std::size_t size) {
  bool done = false;
  if (s.constants)
    s.constants->insert_or_assign(std::string(name),
                                  std::string(static_cast<const char*>(bytes), size));
  each_variable(s, ".rodata", [&](std::string_view n, std::uint32_t offset, std::uint32_t room) {
    if (n != name) return;
    edit_rodata(s, offset, bytes, std::min<std::size_t>(size, room));
    done = true;
  });
  return done;
}

bool set_variable(Session& s, std::string_view name, std::uint64_t value) {
  return set_variable(s, name, &value, sizeof value);
}

Result<void> open_live(Session& s) {
  auto* bss = data_map(s, ".bss");
  if (!bss) return {};
  return map_memory(s.live, bss, bpf_map__value_size(bss), PROT_READ | PROT_WRITE);
}

void set_live(Session& s, std::string_view variable, const void* bytes, std::uint32_t count) {
  if (!s.live.data()) return;
  each_variable(s, ".bss", [&](std::string_view name, std::uint32_t offset, std::uint32_t size) {
    if (name != variable || size != count) return;
    // Writes only this variable: programs update others at the same time.
    memcpy(s.live.data() + offset, bytes, count);
  });
}

}  // namespace coretap
