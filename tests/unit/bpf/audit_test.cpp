// Data that each tool's kernel program passes to user space, checked by instructions and types.
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <gelf.h>

#include <algorithm>
#include <bitset>
#include <tuple>

#include "all_tools.hpp"
#include "lib/core/placeholders.h"
#include "program/section.hpp"

namespace coretap {
namespace {

/// One function of an object: its instructions and their relocations.
struct Code {
  std::string name;
  std::vector<bpf_insn> insns;
  std::map<std::size_t, std::int64_t> options = {};  ///< instructions that take an option's address
  std::set<std::string> maps = {};
  std::set<std::string> calls = {};  ///< functions of the object
};

std::vector<Code> functions_of(const Tool& tool) {
  std::vector<Code> all;
  auto bytes = tool.object.bytes();
  std::vector<std::uint64_t> copy((bytes.size() + 7) / 8);  // aligned and writable, for libelf
  std::memcpy(copy.data(), bytes.data(), bytes.size());
  elf_version(EV_CURRENT);
  std::unique_ptr<Elf, decltype(&elf_end)> elf(
      elf_memory(reinterpret_cast<char*>(copy.data()), bytes.size()), elf_end);
  std::size_t titles = 0, symbols = 0;
  elf_getshdrstrndx(elf.get(), &titles);
  std::vector<std::pair<std::size_t, Code>> found;  // by section; named by their symbols
  std::vector<std::uint64_t> begins;
  Elf_Data* table = nullptr;
  GElf_Shdr header;
  GElf_Sym symbol;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf.get(), section));) {
    if (!gelf_getshdr(section, &header) || header.sh_type != SHT_SYMTAB) continue;
    table = elf_getdata(section, nullptr);
    symbols = header.sh_link;
    for (int i = 0; gelf_getsym(table, i, &symbol); i++) {
      if (GELF_ST_TYPE(symbol.st_info) != STT_FUNC) continue;
      auto* text = elf_getdata(elf_getscn(elf.get(), symbol.st_shndx), nullptr);
      if (!text || symbol.st_value + symbol.st_size > text->d_size) continue;
      Code code{elf_strptr(elf.get(), header.sh_link, symbol.st_name), {}};
      code.insns.resize(symbol.st_size / sizeof(bpf_insn));
      std::memcpy(code.insns.data(), static_cast<char*>(text->d_buf) + symbol.st_value,
                  symbol.st_size);
      found.emplace_back(symbol.st_shndx, std::move(code));
      begins.push_back(symbol.st_value);
    }
  }
  auto name_at = [&](std::size_t section, std::uint64_t at) -> std::string {
    for (std::size_t f = 0; f < found.size(); f++)
      if (found[f].first == section && begins[f] == at) return found[f].second.name;
    return {};
  };
  auto is_call = [](const bpf_insn& i) {
    return i.code == (BPF_JMP | BPF_CALL) && i.src_reg == BPF_PSEUDO_CALL;
  };
  // Calls within a section have no relocation; for calls with one, this finds nothing.
  for (std::size_t f = 0; f < found.size(); f++) {
    auto& [section, code] = found[f];
    for (std::size_t at = 0; at < code.insns.size(); at++)
      if (auto& i = code.insns[at]; is_call(i) && i.imm != -1)
        code.calls.insert(
            name_at(section, begins[f] + (at + 1 + static_cast<std::uint64_t>(i.imm + 0L)) * 8));
  }
  // Variables that the loader sets are in .rodata and constant.
  for (Elf_Scn* section = nullptr; table && (section = elf_nextscn(elf.get(), section));) {
    if (!gelf_getshdr(section, &header) || header.sh_type != SHT_REL) continue;
    auto* relocations = elf_getdata(section, nullptr);
    GElf_Rel relocation;
    for (int i = 0; gelf_getrel(relocations, i, &relocation); i++) {
      GElf_Shdr data;
      if (!gelf_getsym(table, static_cast<int>(GELF_R_SYM(relocation.r_info)), &symbol) ||
          !gelf_getshdr(elf_getscn(elf.get(), symbol.st_shndx), &data))
        continue;
      std::string_view in = elf_strptr(elf.get(), titles, data.sh_name);
      for (std::size_t f = 0; f < found.size(); f++) {
        auto at = (relocation.r_offset - begins[f]) / sizeof(bpf_insn);
        auto& code = found[f].second;
        if (found[f].first != header.sh_info || relocation.r_offset < begins[f] ||
            at >= code.insns.size())
          continue;
        auto& insn = code.insns[at];
        if (in == ".rodata")
          code.options[at] = static_cast<std::int64_t>(symbol.st_value) + insn.imm;
        else if (in == ".maps")
          code.maps.insert(elf_strptr(elf.get(), symbols, symbol.st_name));
        else if (is_call(insn))
          code.calls.insert(name_at(
              symbol.st_shndx, symbol.st_value + static_cast<std::uint64_t>(insn.imm + 1) * 8));
      }
    }
  }
  for (auto& [section, code] : found) {
    code.calls.erase("");
    all.push_back(std::move(code));
  }
  return all;
}

/// " 3 4": the indices of false elements.
template <class Bits>
std::string unset(const Bits& bits, std::size_t size) {
  std::string all;
  for (std::size_t i = 0; i < size; i++)
    if (!bits[i]) all += " " + std::to_string(i);
  return all;
}

constexpr std::size_t kMostBytes = 16384;
using Bytes = std::bitset<kMostBytes>;

/// Relevant value of a register or stack slot.
struct Held {
  enum { other, number, record, stack, address, option } kind = other;
  /// The number; the offset in the record or on the stack; the option.
  std::int64_t value = 0;
  auto operator<=>(const Held&) const = default;
};

bool is_helper(const bpf_insn& i) {
  return i.code == (BPF_JMP | BPF_CALL) && i.src_reg != BPF_PSEUDO_CALL;
}

template <class See>
void each_helper(const Code& code, See see) {
  for (std::size_t at = 0; at < code.insns.size(); at++) {
    if (is_helper(code.insns[at])) see(at, code.insns[at].imm);
    if (code.insns[at].code == (BPF_LD | BPF_IMM | BPF_DW)) at++;
  }
}

struct State {
  std::array<Held, 11> registers;
  std::map<std::int64_t, Held> stack;   ///< records, by distance from the frame's end
  std::size_t size = 0;                 ///< of the record; 0: none
  bool open = false;                    ///< the loader sets the record's length
  Bytes written;                        ///< of the record
  std::map<std::int64_t, bool> chosen;  ///< options that the path depends on: non-zero?
};

/**
 * Follows all paths through a function, and checks that each byte of a ring buffer record, padding
 * included, has been written on all of them when it is submitted. The ring's memory is zeroed at
 * first, but holds older records.
 */
class RecordAudit {
 public:
  explicit RecordAudit(const Code& code) : code_(code) { look_ahead(); }

  /// The error; empty: none.
  std::string run() {
    State start;
    start.registers[BPF_REG_10] = {Held::stack, 0};
    waiting_.emplace_back(0, start);
    while (!waiting_.empty() && wrong_.empty()) {
      auto [at, state] = std::move(waiting_.back());
      waiting_.pop_back();
      walk(at, std::move(state));
      if (seen_ > kMostWays) blame(at, "too many ways");
    }
    return wrong_;
  }
  /// Instructions that reserve a record, and that submit one.
  const std::set<std::size_t>& reserved() const { return reserved_; }
  const std::set<std::size_t>& submitted() const { return submitted_; }

 private:
  static constexpr std::size_t kMostWays = 1'000'000;

  /// Successors of an instruction.
  std::vector<std::size_t> after(std::size_t at) const {
    auto& i = code_.insns[at];
    auto kind = BPF_CLASS(i.code);
    std::vector<std::size_t> next;
    if (kind == BPF_JMP && BPF_OP(i.code) == BPF_EXIT) return next;
    bool jumps = (kind == BPF_JMP || kind == BPF_JMP32) && BPF_OP(i.code) != BPF_CALL;
    if (jumps) next.push_back(static_cast<std::size_t>(static_cast<std::int64_t>(at) + 1 + i.off));
    if (!jumps || BPF_OP(i.code) != BPF_JA) next.push_back(at + (kind == BPF_LD ? 2 : 1));
    return next;
  }

  /// Excludes paths that reach no record, and options that no record depends on.
  void look_ahead() {
    auto size = code_.insns.size();
    std::vector<std::vector<std::size_t>> before(size);
    std::vector<std::size_t> reserves;
    for (std::size_t at = 0; at < size; at += BPF_CLASS(code_.insns[at].code) == BPF_LD ? 2 : 1) {
      for (auto next : after(at))
        if (next < size) before[next].push_back(at);
      if (calls(at, BPF_FUNC_ringbuf_reserve)) reserves.push_back(at);
    }
    to_record_ = reached(reserves, [&](std::size_t at) { return before[at]; });
    const auto seen = reached(reserves, [&](std::size_t at) {
      bool ends = calls(at, BPF_FUNC_ringbuf_submit) || calls(at, BPF_FUNC_ringbuf_discard);
      return ends ? std::vector<std::size_t>() : after(at);
    });
    for (auto& [at, option] : code_.options)
      if (seen[at]) deciding_.insert(option);
  }
  /// All instructions that `next` reaches from these.
  template <class Next>
  std::vector<bool> reached(std::vector<std::size_t> waiting, Next next) const {
    std::vector<bool> seen(code_.insns.size());
    while (!waiting.empty()) {
      auto at = waiting.back();
      waiting.pop_back();
      if (at >= seen.size() || seen[at]) continue;
      seen[at] = true;
      for (auto other : next(at)) waiting.push_back(other);
    }
    return seen;
  }

  bool calls(std::size_t at, int helper) const {
    return is_helper(code_.insns[at]) && code_.insns[at].imm == helper;
  }

  void blame(std::size_t at, const std::string& what) {
    if (wrong_.empty()) wrong_ = where(at) + ": " + what;
  }
  std::string where(std::size_t at) const { return code_.name + " at " + std::to_string(at); }

  bool known(std::size_t at, const State& s) {
    if (!s.size && !to_record_[at]) return true;
    auto& here = known_[at][{s.registers, s.stack, s.chosen, s.size}];
    // A path that has written at least as much as an earlier one adds nothing.
    for (auto& before : here)
      if ((before & s.written) == before) return true;
    here.push_back(s.written);
    seen_++;
    return false;
  }

  void write(State& s, const Held& to, std::int64_t offset, std::int64_t bytes) {
    auto at = to.value + offset;
    if (to.kind == Held::record)
      for (auto i = at; i < at + bytes && i >= 0 && i < static_cast<std::int64_t>(s.size); i++)
        s.written.set(static_cast<std::size_t>(i));
    if (to.kind != Held::stack) return;
    for (auto i = at - 7; i < at + bytes; i++) s.stack.erase(i);
  }

  static std::int64_t width(const bpf_insn& i) {
    constexpr std::int64_t kBytes[] = {4, 2, 1, 8};  // BPF_W, BPF_H, BPF_B, BPF_DW
    return kBytes[BPF_SIZE(i.code) >> 3];
  }

  static void forget_record(State& s) {
    s.size = 0;
    s.written.reset();
    for (auto& held : s.registers)
      if (held.kind == Held::record) held = {};
    std::erase_if(s.stack, [](auto& place) { return place.second.kind == Held::record; });
  }

  void call(std::size_t at, const bpf_insn& i, State& s) {
    auto& r = s.registers;
    if (i.src_reg == BPF_PSEUDO_CALL) {
      for (int n = BPF_REG_1; n <= BPF_REG_5; n++)
        if (r[n].kind == Held::record) blame(at, "another function gets the record");
    } else if (i.imm == BPF_FUNC_ringbuf_reserve) {
      forget_record(s);
      reserved_.insert(at);
      auto& size = r[BPF_REG_2];
      // If the loader sets the length, generated instructions write the bytes after the known part
      // (tests/unit/expression).
      s.open = size.kind == Held::option;
      if (s.open) {
        s.size = kMostBytes;
        r[BPF_REG_0] = {};
      } else if (size.kind != Held::number || size.value <= 0 ||
                 size.value > static_cast<std::int64_t>(kMostBytes))
        return blame(at, "the size of a record is not known");
      if (!s.open) s.size = static_cast<std::size_t>(size.value);
    } else if (i.imm == BPF_FUNC_ringbuf_submit) {
      submitted_.insert(at);
      if (r[BPF_REG_1].kind != Held::record || r[BPF_REG_1].value)
        return blame(at, "not known what is submitted");
      std::size_t end = s.size;
      while (s.open && end > 0 && !s.written[end - 1]) end--;
      if (end == 0) blame(at, "nothing is written into the record");
      if (auto holes = unset(s.written, end); !holes.empty())
        blame(at, "of " + std::to_string(s.size) + " bytes nothing has written" + holes);
      forget_record(s);
    } else if (i.imm == BPF_FUNC_ringbuf_discard) {
      forget_record(s);
    } else {
      // These helpers fill their output, with zeros on failure. After a text's terminator may be
      // bytes of older texts of the ring, which the reader has seen.
      static const std::map<int, std::pair<int, int>> outputs{
          {BPF_FUNC_probe_read, {1, 2}},
          {BPF_FUNC_probe_read_user, {1, 2}},
          {BPF_FUNC_probe_read_kernel, {1, 2}},
          {BPF_FUNC_probe_read_user_str, {1, 2}},
          {BPF_FUNC_probe_read_kernel_str, {1, 2}},
          {BPF_FUNC_get_current_comm, {1, 2}},
          {BPF_FUNC_get_stack, {2, 3}},
          {BPF_FUNC_get_task_stack, {2, 3}},
          {BPF_FUNC_get_ns_current_pid_tgid, {3, 4}}};
      if (auto known = outputs.find(i.imm); known != outputs.end()) {
        auto& size = r[known->second.second];
        if (size.kind == Held::number) write(s, r[known->second.first], 0, size.value);
      }
    }
    for (int n = BPF_REG_0; n <= BPF_REG_5; n++) r[n] = {};
    if (is_helper(i) && i.imm == BPF_FUNC_ringbuf_reserve) r[BPF_REG_0] = {Held::record, 0};
  }

  /// Whether a jump is taken, if its option has already decided an earlier one.
  static std::optional<bool> decided(const bpf_insn& i, const State& s) {
    auto& held = s.registers[i.dst_reg];
    if (!on_option(i, held)) return {};
    auto found = s.chosen.find(held.value);
    if (found == s.chosen.end()) return {};
    return found->second == (BPF_OP(i.code) == BPF_JNE);
  }
  static bool on_option(const bpf_insn& i, const Held& held) {
    return held.kind == Held::option && BPF_SRC(i.code) == BPF_K && i.imm == 0 &&
           (BPF_OP(i.code) == BPF_JEQ || BPF_OP(i.code) == BPF_JNE);
  }

  void walk(std::size_t at, State s) {
    for (; at < code_.insns.size(); at++) {
      auto& i = code_.insns[at];
      auto& r = s.registers;
      auto kind = BPF_CLASS(i.code);
      auto source = [&] {
        return BPF_SRC(i.code) == BPF_X ? r[i.src_reg] : Held{Held::number, i.imm};
      };
      if (kind == BPF_JMP || kind == BPF_JMP32) {
        auto op = BPF_OP(i.code);
        if (op == BPF_EXIT) return;
        if (op == BPF_CALL) {
          call(at, i, s);
          continue;
        }
        auto target = static_cast<std::size_t>(static_cast<std::int64_t>(at) + 1 + i.off);
        if (op == BPF_JA) {
          if (target <= at && known(at, s)) return;
          at = target - 1;
          continue;
        }
        if (auto taken = decided(i, s)) {
          if (*taken) at = target - 1;
          continue;
        }
        if (known(at, s)) return;
        auto other = s;
        if (on_option(i, r[i.dst_reg]) && deciding_.contains(r[i.dst_reg].value)) {
          auto which = r[i.dst_reg].value;
          other.chosen[which] = op == BPF_JNE;
          s.chosen[which] = op != BPF_JNE;
        }
        waiting_.emplace_back(target, std::move(other));
      } else if (kind == BPF_ALU64 || kind == BPF_ALU) {
        auto& to = r[i.dst_reg];
        auto from = source();
        auto op = BPF_OP(i.code);
        if (op == BPF_MOV)
          to = kind == BPF_ALU64 || from.kind == Held::number ? from : Held{};
        else if (op == BPF_ADD && kind == BPF_ALU64 && from.kind == Held::number &&
                 (to.kind == Held::record || to.kind == Held::stack))
          to.value += from.value;
        else if (!(op == BPF_AND && to.kind == Held::option && from == Held{Held::number, 1}))
          to = {};
      } else if (kind == BPF_LDX) {
        auto& from = r[i.src_reg];
        auto place = s.stack.find(from.value + i.off);
        if (from.kind == Held::address) {
          r[i.dst_reg] = {Held::option, from.value + i.off};
          continue;
        }
        bool spilled = from.kind == Held::stack && width(i) == 8 && place != s.stack.end();
        r[i.dst_reg] = spilled ? place->second : Held{};
      } else if (kind == BPF_STX || kind == BPF_ST) {
        if (BPF_MODE(i.code) != BPF_MEM) continue;  // atomic: on bytes already written
        auto& to = r[i.dst_reg];
        auto what = kind == BPF_STX ? r[i.src_reg] : Held{Held::number, i.imm};
        write(s, to, i.off, width(i));
        if (to.kind == Held::stack && width(i) == 8 && what.kind == Held::record)
          s.stack[to.value + i.off] = what;
      } else if (kind == BPF_LD) {
        auto option = code_.options.find(at);
        r[i.dst_reg] = option == code_.options.end() ? Held{} : Held{Held::address, option->second};
        at++;  // a 64-bit constant takes two
      }
    }
  }

  const Code& code_;
  std::size_t seen_ = 0;
  std::set<std::size_t> reserved_, submitted_;
  std::vector<bool> to_record_;      ///< instructions from which a path reaches a record
  std::set<std::int64_t> deciding_;  ///< options that are read while a record is reserved
  std::string wrong_;
  std::vector<std::pair<std::size_t, State>> waiting_;
  using Way = std::tuple<decltype(State::registers), decltype(State::stack),
                         decltype(State::chosen), std::size_t>;
  std::map<std::size_t, std::map<Way, std::vector<Bytes>>> known_;
};

class EveryKernelProgram : public testing::TestWithParam<const Registered*> {
 protected:
  Tool tool = build(*GetParam());
  std::string bytes{tool.object.bytes()};
  std::unique_ptr<bpf_object, decltype(&bpf_object__close)> object{
      bpf_object__open_mem(bytes.data(), bytes.size(), nullptr), bpf_object__close};
};

TEST_P(EveryKernelProgram, RecordsAreWrittenToTheLastByte) {
  auto functions = functions_of(tool);
  ASSERT_FALSE(functions.empty());
  for (auto& code : functions) {
    std::set<std::size_t> reserves;
    each_helper(code, [&](std::size_t at, int helper) {
      if (helper == BPF_FUNC_ringbuf_reserve) reserves.insert(at);
    });
    if (reserves.empty()) continue;
    RecordAudit audit(code);
    EXPECT_EQ(audit.run(), "");
    EXPECT_EQ(audit.reserved(), reserves) << code.name << ": places that no way leads to";
    EXPECT_FALSE(audit.submitted().empty()) << code.name << ": nothing is ever submitted";
  }
}

// No writes to other processes' memory, no logs for others, no records of unknown size.
TEST_P(EveryKernelProgram, CallsNothingThatLeavesTracesElsewhere) {
  for (auto& code : functions_of(tool))
    each_helper(code, [&](std::size_t at, int helper) {
      for (auto id : {BPF_FUNC_probe_write_user, BPF_FUNC_trace_printk, BPF_FUNC_trace_vprintk,
                      BPF_FUNC_override_return, BPF_FUNC_send_signal, BPF_FUNC_send_signal_thread,
                      BPF_FUNC_perf_event_output, BPF_FUNC_ringbuf_reserve_dynptr})
        EXPECT_NE(helper, id) << code.name << " at " << at;
    });
}

/// Marks the bytes of a type that belong to named members.
void cover(const btf* types, __u32 id, std::size_t at, std::vector<bool>& bytes) {
  auto resolved = btf__resolve_type(types, id);
  ASSERT_GE(resolved, 0);
  auto* t = btf__type_by_id(types, static_cast<__u32>(resolved));
  if (btf_is_composite(t)) {
    for (int i = 0; i < btf_vlen(t); i++)
      cover(types, btf_members(t)[i].type, at + btf_member_bit_offset(t, static_cast<__u32>(i)) / 8,
            bytes);
  } else if (btf_is_array(t)) {
    auto each = btf__resolve_size(types, btf_array(t)->type);
    for (__u32 i = 0; i < btf_array(t)->nelems; i++)
      cover(types, btf_array(t)->type, at + i * static_cast<std::size_t>(each), bytes);
  } else {
    auto size = btf__resolve_size(types, static_cast<__u32>(resolved));
    for (std::size_t i = at; i < at + static_cast<std::size_t>(size) && i < bytes.size(); i++)
      bytes[i] = true;
  }
}

std::string holes(const btf* types, __u32 id, std::size_t size) {
  std::vector<bool> bytes(size);
  if (id) cover(types, id, 0, bytes);
  return id ? unset(bytes, size) : "";
}

/// A cached row (KEPT), up to the end of its key.
std::pair<__u32, std::size_t> row_of(const btf* types, __u32 id) {
  auto* t = btf__type_by_id(types, id);
  auto size = static_cast<std::size_t>(btf__resolve_size(types, id));
  if (!btf_is_struct(t) ||
      !std::string_view(btf__name_by_offset(types, t->name_off)).ends_with("_kept_rows"))
    return {id, size};
  id = btf_array(btf__type_by_id(types, btf_members(t)->type))->type;
  auto* row = btf__type_by_id(types, id);
  auto* key = btf_members(row) + btf_vlen(row) - 1;
  return {id, key->offset / 8 + static_cast<std::size_t>(btf__resolve_size(types, key->type))};
}

/// The value of a map; for CPU_SLOTS without the padding to cache lines, which programs do not
/// access.
std::pair<__u32, std::size_t> value_of(const btf* types, const bpf_map* map) {
  auto id = bpf_map__btf_value_type_id(map);
  auto* t = id ? btf__type_by_id(types, id) : nullptr;
  if (!t || !(bpf_map__map_flags(map) & BPF_F_MMAPABLE) || !btf_is_struct(t) || btf_vlen(t) != 1 ||
      std::string_view(btf__name_by_offset(types, btf_members(t)->name_off)) != "of_cpu")
    return {id, bpf_map__value_size(map)};
  return row_of(types, btf_members(t)->type);
}

// Keys and values without padding are copied whole. Verifiers before 6.3 require that programs
// write those on their stack completely (relaxed by 6715df8d5d24).
TEST_P(EveryKernelProgram, MapsArePrivateAndHaveNoPadding) {
  ASSERT_TRUE(object);
  auto* types = bpf_object__btf(object.get());
  ASSERT_TRUE(types);
  std::size_t maps = 0;
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, object.get()) {
    SCOPED_TRACE(bpf_map__name(map));
    maps++;
    EXPECT_EQ(bpf_map__pin_path(map), nullptr);
    EXPECT_FALSE(bpf_map__is_pinned(map));
    if (bpf_map__is_internal(map)) continue;  // variables, not records
    EXPECT_EQ(holes(types, bpf_map__btf_key_type_id(map), bpf_map__key_size(map)), "");
    auto [value, size] = value_of(types, map);
    EXPECT_EQ(holes(types, value, size), "");
    // Lookups in these copy multiples of 8 bytes.
    auto type = bpf_map__type(map);
    if (type == BPF_MAP_TYPE_PERCPU_ARRAY || type == BPF_MAP_TYPE_PERCPU_HASH ||
        type == BPF_MAP_TYPE_LRU_PERCPU_HASH) {
      EXPECT_EQ(bpf_map__value_size(map) % 8, 0u);
    }
  }
  EXPECT_GT(maps, 0u);
}

/// Per-CPU memory that a program uses for longer than an atomic step.
bool is_scratch(const btf* types, const bpf_map* map) {
  std::string_view name = bpf_map__name(map);
  if (bpf_map__type(map) == BPF_MAP_TYPE_PERCPU_ARRAY) return true;
  auto id = bpf_map__btf_value_type_id(map);
  // CPU_SLOTS except counters.
  return id && (bpf_map__map_flags(map) & BPF_F_MMAPABLE) && name != "ledger" &&
         !name.ends_with("_cpus") &&
         std::string_view(btf__name_by_offset(types, btf__type_by_id(types, id)->name_off))
             .ends_with("_line");
}

/// How many tasks can be in a program on one CPU at once; 0: the kernel does not preempt it.
std::size_t runs_at_once(std::string_view section) {
  for (auto once : {"fentry/", "fexit/", "iter/"})
    if (section.starts_with(once)) return 1;
  for (auto often : {"uprobe/", "uretprobe/", "target/user", "target/usdt"})
    if (section.starts_with(often)) return 2;
  return 0;
}

// Kernels that allocate storage with kmalloc_nolock() (7.3) have at most two pages for a value and
// its header; they accept the map, and then refuse each value.
TEST_P(EveryKernelProgram, StorageIsSmall) {
  ASSERT_TRUE(object);
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, object.get()) {
    if (bpf_map__type(map) != BPF_MAP_TYPE_TASK_STORAGE &&
        bpf_map__type(map) != BPF_MAP_TYPE_SK_STORAGE)
      continue;
    EXPECT_LE(bpf_map__value_size(map), 2 * 4096u - 192u) << bpf_map__name(map);
  }
}

// Otherwise another program can change the CPU's memory in their middle (UNPREEMPTED).
TEST_P(EveryKernelProgram, ProgramsThatTheKernelPreemptsTurnThatOff) {
  ASSERT_TRUE(object);
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, object.get()) {
    const auto [kind, target] = section_of(program);
    if (kind != "tp_btf" && kind != "raw_tp" && kind != "fentry" && kind != "fexit" &&
        !(kind == "tracepoint" && target.starts_with("syscalls/")) &&
        !(kind == "target" && target == "tracepoint"))
      continue;
    std::vector<std::int32_t> calls;
    auto* first = bpf_program__insns(program);
    for (auto* insn = first; insn != first + bpf_program__insn_cnt(program); insn++)
      if (insn->code == (BPF_JMP | BPF_CALL) && !insn->src_reg) calls.push_back(insn->imm);
    ASSERT_GE(calls.size(), 2u) << bpf_program__name(program);
    EXPECT_EQ(calls.front(), PREEMPT_DISABLE_CALL) << bpf_program__name(program);
    EXPECT_EQ(std::ranges::count(calls, PREEMPT_ENABLE_CALL), 1) << bpf_program__name(program);
  }
}

// The kernel preempts programs at functions: another one using the same per-CPU memory would
// overwrite the first one's data.
TEST_P(EveryKernelProgram, ProgramsThatPreemptEachOtherShareNoScratch) {
  // Maps that may be shared, and the map that must be in the same object, if any.
  static const std::map<std::string_view, std::string_view> kShared{
      {"unwind_unread", ""},   // claimed by one atomic step
      {"runtime_record", ""},  // likewise
      {"timeline_cpus", ""},   // written by switches, and by atomic steps: interrupts have it, too
      {"stack_scratch", "scratch_user"},  // shows whether another program has used it
      {"scratch_user", ""},
      {"walk_scratch", "task_walks"},  // replaces it where programs are preempted
      {"latencies_rows", ""},          // each program has separate rows (enum fs_end)
      {"spins", ""},                   // one entry per waiting task, not preempted
  };
  auto may_be_shared = [&](std::string_view name) {
    auto found = kShared.find(name);
    return found != kShared.end() &&
           (found->second.empty() ||
            bpf_object__find_map_by_name(object.get(), found->second.data()));
  };
  ASSERT_TRUE(object);
  std::map<std::string, Code> functions;
  for (auto& code : functions_of(tool)) functions[code.name] = code;
  std::map<std::string, std::size_t> users;
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, object.get()) {
    std::set<std::string> reached, maps;
    std::vector<std::string> waiting{bpf_program__name(program)};
    while (!waiting.empty()) {
      auto name = waiting.back();
      waiting.pop_back();
      if (!reached.insert(name).second) continue;
      ASSERT_TRUE(functions.contains(name)) << name;
      auto& code = functions[name];
      maps.insert(code.maps.begin(), code.maps.end());
      waiting.insert(waiting.end(), code.calls.begin(), code.calls.end());
    }
    for (auto& map : maps) users[map] += runs_at_once(bpf_program__section_name(program));
  }
  bpf_map* map = nullptr;
  bpf_object__for_each_map(map, object.get()) {
    auto* name = bpf_map__name(map);
    if (is_scratch(bpf_object__btf(object.get()), map) && !may_be_shared(name)) {
      EXPECT_LE(users[name], bpf_map__max_entries(map)) << name << " is used by more programs";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tools, EveryKernelProgram, each_with_program(), name_of_registered);

// ---- tests of the audit itself ----

bpf_insn insn(int code, int dst = 0, int src = 0, int off = 0, int imm = 0) {
  bpf_insn i{};
  i.code = static_cast<__u8>(code);
  i.dst_reg = static_cast<__u8>(dst) & 15;
  i.src_reg = static_cast<__u8>(src) & 15;
  i.off = static_cast<__s16>(off);
  i.imm = imm;
  return i;
}

/// Audits a program that reserves 16 bytes, makes `writes`, and submits.
std::string audit(const std::vector<bpf_insn>& writes) {
  Code code{"made",
            {insn(BPF_ALU64 | BPF_MOV | BPF_K, 2, 0, 0, 16),
             insn(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_ringbuf_reserve),
             insn(BPF_ALU64 | BPF_MOV | BPF_X, 6, 0)}};
  code.insns.insert(code.insns.end(), writes.begin(), writes.end());
  code.insns.insert(code.insns.end(), {insn(BPF_ALU64 | BPF_MOV | BPF_X, 1, 6),
                                       insn(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_ringbuf_submit),
                                       insn(BPF_JMP | BPF_EXIT)});
  return RecordAudit(code).run();
}

const bpf_insn kFirst = insn(BPF_ST | BPF_MEM | BPF_DW, 6, 0, 0),
               kSecond = insn(BPF_ST | BPF_MEM | BPF_DW, 6, 0, 8),
               kHalf = insn(BPF_ST | BPF_MEM | BPF_W, 6, 0, 8),
               kSkipOne = insn(BPF_JMP | BPF_JEQ | BPF_K, 7, 0, 1, 0),
               kAsArgument = insn(BPF_ALU64 | BPF_MOV | BPF_X, 1, 6);

TEST(KernelAudit, FindsWhatIsNotWrittenOnEveryWay) {
  for (auto& good : {std::vector{kFirst, kSecond},
                     {kSecond, kHalf, kFirst},
                     {kFirst, kSecond, kSkipOne, kHalf},
                     {kFirst, kSkipOne, kHalf, kSecond}})
    EXPECT_EQ(audit(good), "");
  EXPECT_EQ(audit({kFirst, kHalf}), "made at 6: of 16 bytes nothing has written 12 13 14 15");
  EXPECT_EQ(audit({kFirst, kSkipOne, kSecond}),
            "made at 7: of 16 bytes nothing has written 8 9 10 11 12 13 14 15");
  // Nothing is written, half of it, and another function gets the record.
  for (auto& bad : {std::vector<bpf_insn>{},
                    {kFirst},
                    {kFirst, kSecond, kAsArgument, insn(BPF_JMP | BPF_CALL, 0, BPF_PSEUDO_CALL)}})
    EXPECT_NE(audit(bad), "");
}

TEST(KernelAudit, FollowsCopiesOfThePointerAndHelpers) {
  for (int by : {0, 1}) {
    EXPECT_EQ(audit({kFirst, insn(BPF_ALU64 | BPF_MOV | BPF_X, 8, 6),
                     insn(BPF_ALU64 | BPF_ADD | BPF_K, 8, 0, 0, 4 + by),
                     insn(BPF_STX | BPF_MEM | BPF_DW, 10, 8, -16),
                     insn(BPF_LDX | BPF_MEM | BPF_DW, 9, 10, -16),
                     insn(BPF_ST | BPF_MEM | BPF_DW, 9, 0, 4)})
                  .empty(),
              by == 0);
    EXPECT_EQ(audit({kFirst, kAsArgument, insn(BPF_ALU64 | BPF_ADD | BPF_K, 1, 0, 0, 8),
                     insn(BPF_ALU64 | BPF_MOV | BPF_K, 2, 0, 0, 8 - by),
                     insn(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_get_current_comm)})
                  .empty(),
              by == 0);
  }
}

}  // namespace
}  // namespace coretap
