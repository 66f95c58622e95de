#include "kernel/btf.hpp"

#include "fuzz.hpp"
#include "kernel/min_core_btf.hpp"

using namespace coretap;

namespace {

void check(const Btf& btf) {
  std::size_t left = 4096;  // questions: each may take a walk over all types
  for (std::uint32_t id = 1; id < btf.count() && left > 0; id++, left--) {
    const auto* type = btf.type(id);
    MUST(type && reinterpret_cast<std::uintptr_t>(type) % alignof(btf_type) == 0);
    const auto kind = BTF_INFO_KIND(type->info);
    const auto name = btf.name(type->name_off);
    if (!name.empty()) {
      const auto first = btf.find(name, kind);
      MUST(first > 0 && first <= id && btf.name(btf.type(first)->name_off) == name);
    }
    btf.has_member(type, "no_such_member");
    for (auto& [value_name, value] : btf.enumerators(type))
      if (kind == BTF_KIND_ENUM && !type->name_off) btf.enum_with(value_name);
  }
  MUST(!btf.type(btf.count()) && !btf.type(0));
  MUST(btf.name(UINT32_MAX).empty());
}

}  // namespace

FUZZ(btf, bytes) {
  Btf btf;
  if (btf.view(bytes.data(), bytes.size())) check(btf);

  const fuzz::MemoryFile file(bytes);
  Btf opened;
  MUST(opened.open(file.path().c_str()) == btf.is_open());
  MUST(opened.count() == btf.count());
}

/// A kernel's types behind their length, then the object that asks about them.
FUZZ(trim, bytes) {
  fuzz::Input input(bytes);
  const std::string types(input.text(input.number<std::uint16_t>()));
  const std::string object(input.rest());
  Btf kernel;
  kernel.view(types.data(), types.size());
  const auto trimmed = trimmed_types(kernel, object.data(), object.size());
  if (trimmed.empty()) return;
  Btf result;
  MUST(result.view(trimmed.data(), trimmed.size()));
  check(result);
}
