// Compiles expressions to BPF instructions. The generated code has r6 = struct expression_in, r7 =
// the pad's output (bpf/lib/targets/expression.bpf.h), r8 = 1 after a failed read, and the whole
// stack; r9 is the target's number and is preserved. The code never exits the program, and all its
// jumps go forward.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/result.hpp"
#include "expression/code.hpp"
#include "expression/syntax.hpp"
#include "expression/types.hpp"

namespace coretap::expression {

/// The value that a name refers to.
struct Variable {
  TypePtr type;
  std::uint32_t at = 0;    ///< offset in struct expression_in
  bool in_place = false;   ///< the text itself is stored there
  std::uint64_t uses = 0;  ///< enum expression_use
};

/// The names at one probe.
struct Scope {
  const Types* types = nullptr;
  std::map<std::string, Variable, std::less<>> names = {};
  std::map<std::string, std::string, std::less<>> missing = {};  ///< unavailable names, and why
  std::map<std::string, Variable, std::less<>> entries = {};     ///< for $entry(NAME), at returns
  bool record_at_hand = false;  ///< plain loads can read args: its program has no other place
  bool user = false;            ///< untyped addresses are user addresses
  std::shared_ptr<const NamedTypes> program = {};  ///< types of the user program, searched first
  std::string no_program = {};                     ///< why the program's names are not known
  std::string no_module = {};                      ///< why the module's names are not known
};

/// One value of a record.
struct Output {
  enum Form {
    number,  ///< in values[]
    text,    ///< with a terminator, at `at`
    bytes,   ///< `room` bytes, at `at`; with Wanted::whole, values[] has the pointer, too
  } form = number;
  TypePtr type;
  std::uint32_t at = 0;    ///< offset from the start of struct expression_out
  std::uint32_t room = 0;  ///< of text: maximum bytes read
};

/// The requested form. `whole`: a number; for a pointer, also the text, struct or union that it
/// points to.
enum class Wanted { number, text, address, whole };

class Compiler {
 public:
  /// `text`: the complete text in which the nodes' offsets are.
  Compiler(std::string_view text, const Scope& scope, Code& code)
      : text_(text), scope_(scope), code_(code) {}

  /// Returns an enum expression_verdict in r0.
  Result<void> filter(const Node& node);
  /// Writes value `index` of a record; `next` is the offset for text and is advanced.
  Result<Output> output(const Node& node, Wanted wanted, std::uint32_t index,
                        std::uint32_t text_bytes, std::uint32_t& next);
  /// Evaluates an integer or pointer into r0.
  Result<TypePtr> value(const Node& node);
  /// Context data that the used names require (enum expression_use).
  std::uint64_t uses() const { return uses_; }

 private:
  /// An object in memory at the address in r0, or in the input.
  struct Place {
    TypePtr type;
    bool input = false;
    std::uint32_t at = 0;
    bool in_place = false;
    bool user = false;
    std::uint32_t bit = 0, bits = 0;  ///< of a bit field, relative to the address
  };

  Error wrong(const Node& node, std::string_view what, std::string_view hint = {}) const {
    return error_at(text_, node.at, what, hint);
  }
  /// The error for an unknown name or type.
  Error unknown(const Node& node, std::string_view what, std::string_view hint) const;
  /// "did you mean ...?" for "struct NAME"; empty: no similar name.
  std::string record_like(const std::string& name) const;
  Result<Place> place(const Node& node);
  Result<Place> name(const Node& node);
  Result<Place> member(const Node& node);
  /// Loads a field of the tracepoint's record if a plain load can; else returns null and emits
  /// nothing.
  TypePtr field_at_hand(const Node& node);
  Result<Place> member_at(const Node& node, const Type& record, bool user);
  Result<Place> element(const Node& node);
  Result<TypePtr> take(const Node& node, const Place& place);
  Result<TypePtr> any(const Node& node);
  Result<TypePtr> unary(const Node& node);
  Result<TypePtr> binary(const Node& node);
  Result<TypePtr> both(const Node& node);
  Result<TypePtr> choice(const Node& node);
  Result<TypePtr> cast(const Node& node);
  Result<TypePtr> size_of(const Node& node);
  Result<TypePtr> call(const Node& node);
  Result<TypePtr> entry(const Node& node);
  Result<TypePtr> compare_text(const Node& node, const Node& value, const std::string& text,
                               bool whole);
  Result<TypePtr> type_of(const Node& node);
  Result<TypePtr> named_type(const Node& node) const;
  Result<TypePtr> arithmetic(const Node& node, const TypePtr& left, const TypePtr& right);
  Result<TypePtr> pointers(const Node& node, const TypePtr& left, const TypePtr& right);
  void divide(bool is_signed, bool rest);
  void compare(const std::string& word, bool is_signed);
  /// Copies memory at r0 to the stack; a failure sets the fault flag.
  void fetch(std::uint32_t bytes, bool user);
  /// Reads memory at r0 into r0.
  void read(std::uint32_t bytes, bool user);
  /// Truncates or extends the register to the width of `type`; a _Bool becomes 0 or 1.
  void normalise(int reg, const Type& type);
  void set_fault();
  int spill();
  void unspill() { depth_--; }

  std::string_view text_;
  const Scope& scope_;
  Code& code_;
  int depth_ = 0;
  std::uint64_t uses_ = 0;
};

/// The names that every probe has: $pid, $tgid, $uid, $gid, $cpu, $task, $comm.
void add_common_names(Scope& scope);
/// arg1 to arg6, and the parameters' names where they are known.
void add_arguments(Scope& scope, const std::vector<Parameter>& parameters);

}  // namespace coretap::expression
