#include "core/session.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>

#include "output/sanitize.hpp"

namespace coretap {

void ObjectDeleter::operator()(bpf_object* object) const { bpf_object__close(object); }

CpuSlots::~CpuSlots() {
  if (data_) munmap(data_, size_);
}

Result<void> CpuSlots::open(bpf_map* map) {
  auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  slot_ = (bpf_map__value_size(map) + 7) / 8 * 8;
  cpus_ = bpf_map__max_entries(map);
  size_ = (slot_ * cpus_ + page - 1) / page * page;
  data_ = mmap(nullptr, size_, PROT_READ, MAP_SHARED, bpf_map__fd(map), 0);
  if (data_ == MAP_FAILED) {
    data_ = nullptr;
    return Error{fmt::format("cannot read the map {}", bpf_map__name(map)), strerror(errno)};
  }
  return {};
}

void CpuSlots::sum(std::uint64_t* sum, std::size_t counters) const {
  for (std::uint32_t cpu = 0; cpu < cpus_; cpu++) {
    auto* slot =
        reinterpret_cast<const std::uint64_t*>(static_cast<const char*>(data_) + slot_ * cpu);
    for (std::size_t i = 0; i < counters; i++)
      sum[i] += __atomic_load_n(&slot[i], __ATOMIC_RELAXED);
  }
}

bpf_map* Session::map(std::string_view name) const {
  return object ? bpf_object__find_map_by_name(object.get(), std::string(name).c_str()) : nullptr;
}

void Session::say(std::string_view message) const {
  auto text = fmt::format("{}: {}\n", tool.name, message);
  fputs(text.c_str(), stderr);
}

void Session::note(std::string_view what, const Error& why) const {
  say(fmt::format("note: {}: {}{}{}", what, why.why, why.hint.empty() ? "" : "; ", why.hint));
}

void Session::verbose(std::string_view message) const {
  if (config.given("verbose")) say(message);
}

void print_error(std::string_view program, const Error& error) {
  auto text = fmt::format("{}: {}", program, error.what);
  if (!error.why.empty()) text += ": " + error.why;
  text += '\n';
  if (!error.hint.empty()) text += fmt::format("{}: hint: {}\n", program, error.hint);
  // Paths and names from the command line are echoed.
  std::string safe;
  std::string_view rest = text;
  while (!rest.empty()) {
    auto line = rest.substr(0, rest.find('\n'));
    safe += printable(line) + '\n';
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  }
  fputs(safe.c_str(), stderr);
}

void json_value(JsonLine& line, const Field& field, const Value& value, const Names& names) {
  if (auto* n = std::get_if<std::uint64_t>(&value)) {
    if (names_things(field.format))
      line.text(names.name(field.format, *n));
    else if (field.format.kind == Format::thousandths)
      line.real(static_cast<double>(*n) / 1e3);
    else if (hidden(field.format, *n, names))
      line.null();
    else
      line.number(*n);
  } else if (auto* i = std::get_if<std::int64_t>(&value)) {
    if (names_things(field.format))
      line.text(names.name(field.format, static_cast<std::uint64_t>(*i)));
    else if (field.format.kind == Format::thousandths)
      line.real(static_cast<double>(*i) / 1e3);
    else
      line.integer(*i);
  } else if (auto* d = std::get_if<double>(&value)) {
    line.real(*d);
  } else if (auto* s = std::get_if<std::string>(&value)) {
    line.text(*s);
  } else if (auto* b = std::get_if<bool>(&value)) {
    line.boolean(*b);
  } else {
    line.null();
  }
}

std::string csv_value(const Field& field, const Value& value, const Names& names) {
  if (auto* n = std::get_if<std::uint64_t>(&value)) {
    if (names_things(field.format)) return csv_field(names.name(field.format, *n));
    return hidden(field.format, *n, names) ? "" : std::to_string(*n);
  }
  if (auto* i = std::get_if<std::int64_t>(&value)) {
    if (names_things(field.format))
      return csv_field(names.name(field.format, static_cast<std::uint64_t>(*i)));
    if (field.format.kind == Format::thousandths)
      return fmt::format("{:.3f}", static_cast<double>(*i) / 1e3);
    return std::to_string(*i);
  }
  if (auto* d = std::get_if<double>(&value)) return fmt::format("{:.6g}", *d);
  if (auto* s = std::get_if<std::string>(&value)) return csv_field(*s);
  if (auto* b = std::get_if<bool>(&value)) return *b ? "true" : "false";
  return {};
}

}  // namespace coretap
