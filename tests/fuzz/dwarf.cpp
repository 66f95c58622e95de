// Debug information of user programs. The reader is instrumented; the system's libdw, which it
// calls, is not, so new code is found by the results of libdw.
#include "expression/dwarf.hpp"

#include <algorithm>
#include <set>

#include "expression/code.hpp"
#include "expression/compile.hpp"
#include "fuzz.hpp"
#include "made_sections.hpp"
#include "symbols/elf_symbols.hpp"

using namespace coretap;
using expression::Type;
using expression::TypePtr;

namespace {

constexpr const char* kNoDebugRoot = "/nonexistent";

/// Follows types from member to member, as deep as expressions of limited length can.
class Walk {
 public:
  void type(const TypePtr& type, int depth = 0) {
    MUST(type);
    if (left_ == 0 || depth > 100) return;
    left_--;
    MUST(type->name.size() <= (1U << 14));
    switch (type->kind) {
      case Type::integer:
        MUST(type->bytes >= 1 && type->bytes <= 8);
        break;
      case Type::pointer:
        MUST(type->user && type->bytes == 8);
        this->type(type->to, depth + 1);
        break;
      case Type::array:
        MUST(type->bytes <= 1U << 30 && type->count < 1U << 30);
        this->type(type->to, depth + 1);
        break;
      case Type::record:
        MUST(type->members && type->bytes <= INT32_MAX);
        members(*type, depth);
        break;
      case Type::nothing:
        break;
    }
  }

 private:
  void members(const Type& record, int depth) {
    const auto names = record.members->names();
    MUST(names.size() <= 4096);
    for (std::size_t i = 0; i < std::min<std::size_t>(names.size(), 16); i++) {
      const auto member = record.members->find(names[i]);
      if (!member) continue;  // its offset is unknown
      MUST(member->place == expression::Member::memory);
      MUST(member->bit <= 1U << 30 && member->bits <= 64);
      type(member->type, depth + 1);
    }
    MUST(!record.members->find("no such member"));
  }

  std::size_t left_ = 64;
};

/// Compiles the expression: checks the error if it does not fit the function, the code if it does.
void compile(const expression::UserFunction& function, const std::string& text) {
  expression::Types kernel;
  expression::Scope scope{&kernel};
  add_arguments(scope, function.parameters);
  for (auto& [name, why] : function.elsewhere) scope.missing[name] = why;
  scope.user = true;
  scope.program = function.types;
  expression::Parser parser(text, 0, [](std::string_view word) { return word == "struct"; });
  auto node = parser.expression();
  if (!node) return;
  expression::Code code;
  expression::Compiler compiler(text, scope, code);
  if (auto type = compiler.value(**node); !type) {
    MUST(fuzz::is_plain(type.error().what) && fuzz::is_plain(type.error().hint));
    MUST(type.error().what.size() + type.error().hint.size() <= 1U << 20);
  }
}

void check(int fd, std::uint64_t offset) {
  auto function = expression::user_function(fd, offset, kNoDebugRoot);
  if (!function) {
    MUST(!function.error().what.empty());
    return;
  }
  MUST(function->parameters.size() <= 6 && function->elsewhere.size() <= 256);
  for (auto& p : function->parameters) {
    MUST(p.type && p.type->kind != Type::record && p.type->kind != Type::nothing);
    MUST(!function->elsewhere.contains(p.name) || p.name.empty());
    Walk().type(p.type);
  }
  for (auto& [name, why] : function->elsewhere) MUST(!name.empty() && !why.empty());
  MUST(function->result && function->types);
  Walk().type(function->result);

  auto& types = *function->types;
  const auto records = types.records();
  MUST(records.size() <= 4096);
  for (std::size_t i = 0; i < std::min<std::size_t>(records.size(), 8); i++)
    if (auto type = types.named(records[i])) Walk().type(type);
  for (auto* name : {"word", "enum state", "union either"})
    if (auto type = types.named(name)) Walk().type(type);
  types.enumerator("BUSY");
  for (auto* text : {"arg1->none", "arg1->next->next->number", "(struct none *)arg1", "arg2[3]",
                     "absent", "r->inner.a + count", "*arg1", "((struct request *)arg1)->flags"})
    compile(*function, text);
}

constexpr const char* kDwarfSections[] = {
    ".debug_info",   ".debug_types",   ".debug_abbrev",     ".debug_aranges",
    ".debug_addr",   ".debug_str",     ".debug_line_str",   ".debug_str_offsets",
    ".debug_ranges", ".debug_loc",     ".debug_rnglists",   ".debug_loclists",
    ".zdebug_info",  ".gnu_debuglink", ".gnu_debugaltlink", ".note.gnu.build-id",
};

}  // namespace

/// An ELF file, or a function's address and debug sections, each after its number (with 0x80:
/// compressed) and a length of 16 bits.
FUZZ(dwarf, bytes) {
  if (bytes.starts_with(ELFMAG)) {
    const fuzz::MemoryFile file(bytes);
    const auto elf = symbols::ElfSymbols::read(file.fd());
    if (!elf) return;
    std::size_t left = 4;
    for (auto& function : elf->functions())
      if (left > 0 && left--) check(file.fd(), function.start);
    return;
  }
  fuzz::Input input(bytes);
  const auto address = input.number<std::uint64_t>();
  const fuzz::MemoryFile file(fuzz::with_sections(input, kDwarfSections));
  check(file.fd(), address);
}
