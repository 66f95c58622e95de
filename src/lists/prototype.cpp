#include "lists/prototype.hpp"

#include <fmt/format.h>

namespace coretap {

namespace {

constexpr int kDeepest = 32;  // bounds the walk: types may refer to each other in a cycle
constexpr std::string_view kTracepoint = "btf_trace_";

std::string with(std::string_view type, const std::string& name) {
  return name.empty() ? std::string(type) : fmt::format("{} {}", type, name);
}

unsigned kind_of(const btf_type* type) { return type ? BTF_INFO_KIND(type->info) : 0U; }

std::string declare(const Btf& btf, std::uint32_t id, std::string name, int depth);

/// Formats "int fd, const char *path"; `first`: the index of the first parameter.
std::string parameters(const Btf& btf, const btf_type& prototype, unsigned first, int depth) {
  auto* all = reinterpret_cast<const btf_param*>(&prototype + 1);
  std::string text;
  for (auto i = first; i < BTF_INFO_VLEN(prototype.info); i++) {
    if (!text.empty()) text += ", ";
    text += all[i].type || all[i].name_off
                ? declare(btf, all[i].type, btf.text(all[i].name_off), depth)
                : "...";
  }
  return text.empty() ? "void" : text;
}

std::string declare(const Btf& btf, std::uint32_t id, std::string name, int depth) {
  auto* type = btf.type(id);
  if (!id) return with("void", name);
  if (!type || depth > kDeepest) return with("?", name);
  auto own = btf.name(type->name_off);
  auto record = [&](std::string_view word) {
    return with(fmt::format("{} {}", word, own.empty() ? "{...}" : own), name);
  };
  auto qualified = [&](std::string_view word) {
    if (kind_of(btf.plain(type->type, false)) == BTF_KIND_PTR)
      return declare(btf, type->type, with(word, name), depth + 1);
    return fmt::format("{} {}", word, declare(btf, type->type, name, depth + 1));
  };
  switch (BTF_INFO_KIND(type->info)) {
    case BTF_KIND_STRUCT:
      return record("struct");
    case BTF_KIND_UNION:
      return record("union");
    case BTF_KIND_ENUM:
    case BTF_KIND_ENUM64:
      return record("enum");
    case BTF_KIND_FWD:
      return record(BTF_INFO_KFLAG(type->info) ? "union" : "struct");
    case BTF_KIND_CONST:
      return qualified("const");
    case BTF_KIND_VOLATILE:
      return qualified("volatile");
    case BTF_KIND_RESTRICT:
      return qualified("restrict");
    case BTF_KIND_TYPE_TAG:
      return declare(btf, type->type, name, depth + 1);
    case BTF_KIND_PTR: {
      auto to = kind_of(btf.plain(type->type, false));
      bool brackets = to == BTF_KIND_ARRAY || to == BTF_KIND_FUNC_PROTO;
      return declare(btf, type->type, brackets ? fmt::format("(*{})", name) : "*" + name,
                     depth + 1);
    }
    case BTF_KIND_ARRAY: {
      auto* array = reinterpret_cast<const btf_array*>(type + 1);
      return declare(btf, array->type, fmt::format("{}[{}]", name, array->nelems), depth + 1);
    }
    case BTF_KIND_FUNC:
      return declare(btf, type->type, own.empty() ? name : std::string(own), depth + 1);
    case BTF_KIND_FUNC_PROTO:
      return declare(btf, type->type,
                     fmt::format("{}({})", name, parameters(btf, *type, 0, depth + 1)), depth + 1);
    default:
      return with(own.empty() ? "?" : own, name);
  }
}

}  // namespace

std::string declaration(const Btf& btf, std::uint32_t type, std::string name) {
  return declare(btf, type, std::move(name), 0);
}

Prototypes::Prototypes(const Btf& btf) : btf_(btf) {
  for (auto id = btf.first(); id < btf.count(); id++) {
    auto* type = btf.type(id);
    auto name = btf.name(type->name_off);
    if (kind_of(type) == BTF_KIND_FUNC)
      functions_.emplace(name, id);
    else if (kind_of(type) == BTF_KIND_TYPEDEF && name.starts_with(kTracepoint))
      tracepoints_.emplace(name.substr(kTracepoint.size()), id);
  }
}

std::string Prototypes::function(std::string_view name) const {
  auto found = functions_.find(name);
  return found == functions_.end()
             ? std::string()
             : declaration(btf_, static_cast<std::uint32_t>(found->second), {});
}

std::string Prototypes::tracepoint(std::string_view name) const {
  auto found = tracepoints_.find(name);
  if (found == tracepoints_.end()) return {};
  // Its type is a pointer to a function whose parameters have no names. Newer kernels also have a
  // function with these parameters, with names.
  auto named = functions_.find(fmt::format("__probestub_{}", name));
  auto* type = btf_.type(
      static_cast<std::uint32_t>(named == functions_.end() ? found->second : named->second));
  type = btf_.type(type->type);
  if (kind_of(type) == BTF_KIND_PTR) type = btf_.type(type->type);
  // The first parameter is the tracepoint's private data.
  return kind_of(type) == BTF_KIND_FUNC_PROTO
             ? fmt::format("{}({})", name, parameters(btf_, *type, 1, 0))
             : std::string();
}

}  // namespace coretap
