#include "program/section.hpp"

#include <bpf/libbpf.h>

#include <fmt/format.h>

#include "coretap/hooks.hpp"
#include "coretap/parse.hpp"
#include "kernel/kernel.hpp"

namespace coretap {

std::vector<bpf_program*> programs_of(const bpf_object* object) {
  std::vector<bpf_program*> all;
  bpf_program* program = nullptr;
  while (object && (program = bpf_object__next_program(object, program))) all.push_back(program);
  return all;
}

std::vector<bpf_map*> maps_of(const bpf_object* object) {
  std::vector<bpf_map*> all;
  bpf_map* map = nullptr;
  while (object && (map = bpf_object__next_map(object, map))) all.push_back(map);
  return all;
}

namespace {

bool has_number(std::string_view section) {
  return section.size() > 2 && section[section.size() - 2] == '/';
}

}  // namespace

Section split_section(std::string_view section) {
  auto slash = section.find('/');
  if (slash == std::string_view::npos) return {section, {}};
  Section parts{section.substr(0, slash), section.substr(slash + 1)};
  if (is_probe(parts) && has_number(section)) parts.target.remove_suffix(2);
  return parts;
}

unsigned arguments_read(const bpf_program* program) {
  const std::string_view section = bpf_program__section_name(program);
  return has_number(section) ? static_cast<unsigned>(section.back() - '0') : EntryReads().arguments;
}

std::string Section::text() const {
  return fmt::format("{}{}{}", kind, target.empty() ? "" : "/", target);
}

Section section_of(const bpf_program* program) {
  return split_section(bpf_program__section_name(program));
}

bool is_probe(const Section& section) {
  return section.kind == "uprobe" || section.kind == "uretprobe";
}

std::vector<std::string> listed_tracepoints(std::string_view target) {
  auto category = target.substr(0, target.find('/') + 1);
  target.remove_prefix(category.size());
  std::vector<std::string> all;
  do all.push_back(fmt::format("{}{}", category, take_until(target, ',')));
  while (!target.empty());
  return all;
}

Result<int> listed_tracepoint_id(std::string_view name) {
  auto [category, event] = split_section(name);
  return tracepoint_id(category, event);
}

}  // namespace coretap
