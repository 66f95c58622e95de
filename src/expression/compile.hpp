// From expressions to instructions. The generated code has r6 = struct expression_in, r7 = what the
// pad says (bpf/lib/expression.bpf.h), r8 = has a read failed?, and its stack to itself; r9 is the
// number of the target and stays. The code never ends the program, and all its jumps lead forward.
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

/// What a name stands for.
struct Variable {
  TypePtr type;
  std::uint32_t at = 0;    ///< in struct expression_in
  bool in_place = false;   ///< text that lies there itself
  std::uint64_t uses = 0;  ///< enum expression_use
};

/// The names at one place that is traced.
struct Scope {
  const Types* types = nullptr;
  std::map<std::string, Variable, std::less<>> names = {};
  std::map<std::string, std::string, std::less<>> missing = {};  ///< why there is none here
  std::map<std::string, Variable, std::less<>> entries = {};     ///< for $entry(NAME), at returns
  bool record_at_hand = false;  ///< args can be read by plain loads: its program has no other place
  bool user = false;            ///< addresses without a type are of the process
  std::shared_ptr<const NamedTypes> program = {};  ///< types of the user program, which go first
  std::string no_program = {};                     ///< why its names are not known
  std::string no_module = {};                      ///< why those of the kernel module are not
};

/// One value of a record.
struct Output {
  enum Form {
    number,  ///< in values[]
    text,    ///< with a terminator, at `at`
    bytes,   ///< `room` of them, at `at`; with Wanted::whole a pointer is a number, too
  } form = number;
  TypePtr type;
  std::uint32_t at = 0;    ///< from struct expression_out on
  std::uint32_t room = 0;  ///< of text: what is read at most
};

/// How the value is wanted. `whole`: a number, or of a pointer also the text, struct or union that
/// it leads to.
enum class Wanted { number, text, address, whole };

class Compiler {
 public:
  /// `text`: the whole of which the nodes' places are.
  Compiler(std::string_view text, const Scope& scope, Code& code)
      : text_(text), scope_(scope), code_(code) {}

  /// Leaves an enum expression_verdict in r0.
  Result<void> filter(const Node& node);
  /// Writes the value number `index` of a record; `next` is where text goes, and moves on.
  Result<Output> output(const Node& node, Wanted wanted, std::uint32_t index,
                        std::uint32_t text_bytes, std::uint32_t& next);
  /// The value of an integer or a pointer in r0.
  Result<TypePtr> value(const Node& node);
  /// What names cost that were used (enum expression_use).
  std::uint64_t uses() const { return uses_; }

 private:
  /// Something that lies somewhere: at the address in r0, or in the input.
  struct Place {
    TypePtr type;
    bool input = false;
    std::uint32_t at = 0;
    bool in_place = false;
    bool user = false;
    std::uint32_t bit = 0, bits = 0;  ///< of a bit field, from the address on
  };

  Error wrong(const Node& node, std::string_view what, std::string_view hint = {}) const {
    return error_at(text_, node.at, what, hint);
  }
  /// A name or type that is not known.
  Error unknown(const Node& node, std::string_view what, std::string_view hint) const;
  Result<Place> place(const Node& node);
  Result<Place> name(const Node& node);
  Result<Place> member(const Node& node);
  /// A field of the tracepoint's record, if a plain load can have it; else null, and nothing is
  /// done.
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
  /// Copies memory at r0 to where it can be loaded from; a failure is a fault.
  void fetch(std::uint32_t bytes, bool user);
  /// Reads memory at r0 into r0.
  void read(std::uint32_t bytes, bool user);
  /// The register holds a value of `type`, as far as its bits go.
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

/// The names that every place has: $pid, $tgid, $uid, $gid, $cpu, $task, $comm.
void add_common_names(Scope& scope);
/// arg1 to arg6, and the parameters' own names where they are known.
void add_arguments(Scope& scope, const std::vector<Parameter>& parameters);

}  // namespace coretap::expression
