#include "runtimes/hotspot.hpp"

#include <bpf/bpf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "symbols/elf_symbols.hpp"

namespace coretap::runtimes {

std::optional<runtime_file> hotspot_in(int fd, std::uint64_t base) {
  constexpr std::array kNames = {kHotSpotMark, std::string_view("gHotSpotVMTypes")};
  const auto found = symbols::find_exported(fd, kNames);
  if (!found[0].address || !found[1].address) return {};
  runtime_file file{};
  file.kind = RUNTIME_HOTSPOT;
  file.runtime = found[0].address - base;
  file.other = found[1].address - base;
  return file;
}

namespace {

constexpr std::uint64_t kMostBlobBytes = RUNTIME_HOTSPOT_BLOB;
constexpr std::uint64_t kMostCodeCache = 1ULL << 32;
// Versions whose interpreter has the frames that the kernel program knows.
constexpr std::uint32_t kOldest = 11, kNewest = 25;

std::optional<hotspot_layout> layout_of(const HotSpotTables& tables) {
  HotSpotOffsets offsets(tables);
  const auto integer = [&](std::string_view name, __u16& at, __u16& bytes) {
    const auto found = offsets.integer(name);
    at = found.at;
    bytes = found.bytes;
  };
  // An address, or an offset in place of it.
  const auto either = [&](std::string_view address, std::string_view offset, __u16& at,
                          __u16& is_offset) {
    at = offsets.first_of(address, offset);
    is_offset = !offsets.has(address);
  };
  hotspot_layout to{};
  to.block = offsets.size("HeapBlock");
  to.nmethod = offsets.size("nmethod");
  integer("CodeBlob::_header_size", to.header_size, to.header_size_bytes);
  to.frame_size = offsets.of("CodeBlob::_frame_size");
  integer("CodeBlob::_frame_complete_offset", to.frame_complete, to.frame_complete_bytes);
  either("CodeBlob::_code_begin", "CodeBlob::_code_offset", to.code, to.code_is_offset);
  to.name = offsets.of("CodeBlob::_name");
  to.method = offsets.first_of("CompiledMethod::_method", "nmethod::_method");
  to.compile_id = offsets.of("nmethod::_compile_id");
  either("CompiledMethod::_deopt_handler_begin", "nmethod::_deopt_handler_offset", to.deopt,
         to.deopt_is_offset);
  to.original_pc = offsets.of("nmethod::_orig_pc_offset");
  to.const_method = offsets.of("Method::_constMethod");
  to.entry = offsets.of("Method::_i2i_entry");
  to.constants = offsets.of("ConstMethod::_constants");
  to.code_size = offsets.of("ConstMethod::_code_size");
  to.name_index = offsets.of("ConstMethod::_name_index");
  to.const_method_bytes = offsets.size("ConstMethod");
  to.const_method_size = offsets.of("ConstMethod::_constMethod_size");
  to.const_method_flags = offsets.first_of("ConstMethod::_flags", "ConstMethod::_flags._flags");
  if (offsets.has("ConstantPool::_source_file_name_index")) {
    to.source_file = offsets.of("ConstantPool::_source_file_name_index");
  } else if (offsets.has("InstanceKlass::_source_file_name_index")) {  // 11
    to.source_file = offsets.of("InstanceKlass::_source_file_name_index");
    to.source_in_class = 1;
  }
  to.pool_holder = offsets.of("ConstantPool::_pool_holder");
  to.pool_length = offsets.of("ConstantPool::_length");
  to.pool_bytes = offsets.size("ConstantPool");
  to.class_name = offsets.of("Klass::_name");
  to.class_constants = offsets.of("InstanceKlass::_constants");
  to.symbol_length = offsets.of("Symbol::_length");
  to.symbol_body = offsets.of("Symbol::_body");
  // The kernel program reads a blob's fields at once, and some words of a ConstMethod.
  const auto last = std::max({to.header_size, to.frame_size, to.frame_complete, to.code, to.name,
                              to.method, to.compile_id, to.deopt, to.original_pc});
  to.blob_bytes = static_cast<__u16>((last + 8U + 7U) & ~7U);
  offsets.fits &= to.blob_bytes <= kMostBlobBytes && to.code_size >= to.constants &&
                  to.code_size - to.constants < HOTSPOT_CONST_METHOD * 8;
  if (!offsets.fits) return {};
  return to;
}

/// Static variables and what they refer to.
class Variables {
 public:
  Variables(const Memory& memory, const HotSpotTables& tables) : memory_(memory), tables_(tables) {}

  std::uint64_t word(std::uint64_t address) { return number<std::uint64_t>(address); }
  std::uint64_t value_of(std::string_view name) { return word(known(tables_.address(name))); }
  std::uint32_t half_of(std::string_view name) {
    return number<std::uint32_t>(known(tables_.address(name)));
  }
  std::uint64_t member(std::uint64_t object, std::string_view name) {
    return word(object + offset(name));
  }
  std::uint32_t half(std::uint64_t object, std::string_view name) {
    return number<std::uint32_t>(object + offset(name));
  }
  std::uint64_t offset(std::string_view name) { return known(tables_.offset(name)); }

  bool readable = true;

 private:
  std::uint64_t known(std::optional<std::uint64_t> place) {
    readable &= place.has_value();
    return place.value_or(0);
  }
  template <class Number>
  Number number(std::uint64_t address) {
    Number value{};
    if (!readable || !memory_(address, {reinterpret_cast<char*>(&value), sizeof value}))
      readable = false;
    return value;
  }

  const Memory& memory_;
  const HotSpotTables& tables_;
};

}  // namespace

std::variant<hotspot_process, HotSpotState> hotspot_process_of(const Memory& memory,
                                                               const HotSpotTables& tables,
                                                               std::uint64_t library,
                                                               std::uint64_t library_end) {
  const auto layout = layout_of(tables);
  if (!layout) return HotSpotState::unknown;
  hotspot_process to{};
  to.layout = *layout;
  Variables of(memory, tables);
  const auto version = of.half_of("Abstract_VM_Version::_vm_major_version");
  if (!of.readable || !version) return HotSpotState::starting;
  if (version < kOldest || version > kNewest) return HotSpotState::unknown;
  to.layout.version = static_cast<__u16>(version);
  to.library = library;
  to.library_end = library_end;
  to.begin = of.value_of("CodeCache::_low_bound");
  to.end = of.value_of("CodeCache::_high_bound");
  to.entry_return = of.value_of("StubRoutines::_call_stub_return_address");
  const auto interpreter = of.value_of("AbstractInterpreter::_code");
  const auto heaps = of.value_of("CodeCache::_heaps");
  // Set one after the other when the virtual machine starts.
  if (!of.readable || !interpreter || !heaps || !to.entry_return) return HotSpotState::starting;
  to.interpreter = of.member(interpreter, "StubQueue::_stub_buffer");
  to.interpreter_end = to.interpreter + of.half(interpreter, "StubQueue::_buffer_limit");
  const auto* length = "GrowableArrayBase::_len";
  const auto count =
      of.half(heaps, tables.field(length) ? length : "GenericGrowableArray::_len");  // 11
  const auto data = of.member(heaps, "GrowableArray<int>::_data");
  if (!of.readable || !count || count > HOTSPOT_HEAPS) return HotSpotState::starting;
  const auto inside = [&](std::uint64_t begin, std::uint64_t end) {
    return begin >= to.begin && begin < end && end <= to.end;
  };
  bool fits = to.begin && to.begin < to.end && to.end - to.begin < kMostCodeCache &&
              inside(to.interpreter, to.interpreter_end) &&
              inside(to.entry_return, to.entry_return + 1);
  for (std::uint32_t i = 0; i < count; i++) {
    const auto heap = of.word(data + i * sizeof(std::uint64_t));
    const auto space = heap + of.offset("CodeHeap::_memory");
    auto& made = to.heaps[i];
    made.begin = of.member(space, "VirtualSpace::_low");
    made.end = of.member(space, "VirtualSpace::_high_boundary");
    made.segments = of.member(heap + of.offset("CodeHeap::_segmap"), "VirtualSpace::_low");
    made.shift = of.half(heap, "CodeHeap::_log2_segment_size");
    fits &= inside(made.begin, made.end) && made.segments && made.shift >= 3 && made.shift < 16;
  }
  if (!of.readable || !fits) return HotSpotState::starting;
  return to;
}

std::variant<std::shared_ptr<const HotSpots::Process>, HotSpotState> HotSpots::add(
    pid_t pid, const runtime_file& file, const Library& library) {
  const Memory memory = [&](std::uint64_t address, std::span<char> to) {
    return read_(pid, address, to);
  };
  const auto tables =
      HotSpotTables::read(memory, library.bias + file.runtime, library.bias + file.other);
  if (!tables) return HotSpotState::starting;
  const auto found = hotspot_process_of(memory, *tables, library.begin, library.end);
  if (const auto* state = std::get_if<HotSpotState>(&found)) return *state;
  const auto& process = std::get<hotspot_process>(found);
  std::uint32_t index = 1;
  while (index < HOTSPOT_PROCESSES && known_.contains(index)) index++;
  if (index == HOTSPOT_PROCESSES || bpf_map_update_elem(map_, &index, &process, BPF_ANY) != 0)
    return HotSpotState::unknown;
  known_[index] = {pid, process.layout, HotSpotScopes::in(*tables)};
  return std::make_shared<const Process>(*this, index);
}

std::shared_ptr<const InlinedMethods> HotSpots::inlined(pid_t pid, const hotspot_code& code) {
  // Not by index: the process may have got another one since the record was made.
  const auto known = std::ranges::find_if(known_, [&](auto& one) { return one.second.pid == pid; });
  if (known == known_.end() || !known->second.scopes) return nullptr;
  return InlinedMethods::read(
      [&](std::uint64_t address, std::span<char> to) { return read_(pid, address, to); },
      known->second.layout, *known->second.scopes, code,
      [&](std::size_t bytes) { return budget_.take(bytes); });
}

}  // namespace coretap::runtimes
