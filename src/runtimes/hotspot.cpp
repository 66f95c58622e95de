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
  file.code_type = found[1].address - base;
  return file;
}

namespace {

/// Reads memory by pages, which it keeps: tables refer to thousands of short texts.
class Pages {
 public:
  static constexpr std::size_t kPage = 4096, kMostPages = 4096, kMostText = 200;

  explicit Pages(const Memory& memory) : memory_(memory) {}

  bool read(std::uint64_t address, void* to, std::size_t bytes) {
    auto* out = static_cast<char*>(to);
    while (bytes) {
      const auto* page = page_of(address);
      if (!page) return false;
      const auto at = address % kPage;
      const auto part = std::min(bytes, kPage - at);
      std::memcpy(out, page->data() + at, part);
      out += part;
      address += part;
      bytes -= part;
    }
    return true;
  }

  std::optional<std::string> text(std::uint64_t address) {
    std::string text;
    for (; text.size() < kMostText; address++) {
      const auto* page = page_of(address);
      if (!page) return {};
      const char c = (*page)[address % kPage];
      if (!c) return text;
      text += c;
    }
    return {};
  }

 private:
  const std::string* page_of(std::uint64_t address) {
    const auto start = address - address % kPage;
    auto [at, is_new] = pages_.try_emplace(start);
    if (is_new) {
      if (pages_.size() > kMostPages) return nullptr;
      at->second.resize(kPage);
      if (!memory_(start, at->second)) at->second.clear();
    }
    return at->second.empty() ? nullptr : &at->second;
  }

  const Memory& memory_;
  std::unordered_map<std::uint64_t, std::string> pages_;
};

/// Entries of the tables, whose form no version has changed.
struct StructEntry {
  std::uint64_t type, field, type_string;
  std::int32_t is_static, pad;
  std::uint64_t offset, address;
};
struct TypeEntry {
  std::uint64_t type, superclass;
  std::int32_t flags[3], pad;
  std::uint64_t size;
};

}  // namespace

std::optional<HotSpotTables> HotSpotTables::read(const Memory& memory, std::uint64_t structs,
                                                 std::uint64_t types) {
  Pages pages(memory);
  HotSpotTables tables;
  std::uint64_t at = 0;
  if (!pages.read(structs, &at, sizeof at) || !at) return {};
  for (std::size_t i = 0;; i++, at += sizeof(StructEntry)) {
    StructEntry entry{};
    if (i == kMostFields || !pages.read(at, &entry, sizeof entry)) return {};
    if (!entry.type) break;
    auto type = pages.text(entry.type), field = pages.text(entry.field);
    if (!type || !field) return {};
    Field made;
    made.is_static = entry.is_static != 0;
    made.at = made.is_static ? entry.address : entry.offset;
    if (entry.type_string) made.type = pages.text(entry.type_string).value_or("");
    tables.fields_.emplace(*type + "::" + *field, std::move(made));
  }
  if (!pages.read(types, &at, sizeof at) || !at) return {};
  for (std::size_t i = 0;; i++, at += sizeof(TypeEntry)) {
    TypeEntry entry{};
    if (i == kMostTypes || !pages.read(at, &entry, sizeof entry)) return {};
    if (!entry.type) break;
    auto type = pages.text(entry.type);
    if (!type) return {};
    tables.types_.emplace(std::move(*type), entry.size);
  }
  return tables;
}

const HotSpotTables::Field* HotSpotTables::field(std::string_view name) const {
  auto at = fields_.find(name);
  return at == fields_.end() ? nullptr : &at->second;
}

std::optional<std::uint64_t> HotSpotTables::offset(std::string_view name) const {
  const auto* known = field(name);
  if (!known || known->is_static || known->at >= kMostFieldOffset) return {};
  return known->at;
}

std::optional<std::uint64_t> HotSpotTables::address(std::string_view name) const {
  const auto* known = field(name);
  if (!known || !known->is_static) return {};
  return known->at;
}

std::optional<std::uint64_t> HotSpotTables::size_of(std::string_view type) const {
  auto at = types_.find(type);
  if (at == types_.end()) return {};
  return at->second;
}

namespace {

constexpr std::uint64_t kMostBlobBytes = RUNTIME_HOTSPOT_BLOB;
constexpr std::uint64_t kMostCodeCache = 1ULL << 32;
// Versions whose interpreter has the frames that the kernel program knows.
constexpr std::uint32_t kOldest = 11, kNewest = 25;

/// Collects offsets; one that is missing or too large makes all of them useless.
class Offsets {
 public:
  explicit Offsets(const HotSpotTables& tables) : tables_(tables) {}

  __u16 of(std::string_view name) {
    const auto offset = tables_.offset(name);
    fits &= offset.has_value();
    return static_cast<__u16>(offset.value_or(0));
  }
  __u16 size(std::string_view type) {
    const auto size = tables_.size_of(type).value_or(0);
    fits &= size && size < HotSpotTables::kMostFieldOffset;
    return static_cast<__u16>(size);
  }
  /// The size of an integer field; `of`: its offset.
  __u16 number(std::string_view name, __u16& of) {
    of = this->of(name);
    const auto* field = tables_.field(name);
    if (field && field->type == "int") return 4;
    if (field && (field->type == "u2" || field->type == "uint16_t" || field->type == "int16_t"))
      return 2;
    fits = false;
    return 0;
  }
  /// An address, or an offset in place of it; true: the latter.
  bool either(std::string_view address, std::string_view offset, __u16& of) {
    of = first_of(address, offset);
    return !has(address);
  }
  __u16 first_of(std::string_view name, std::string_view other) {
    return of(has(name) ? name : other);
  }
  bool has(std::string_view name) const { return tables_.field(name) != nullptr; }

  bool fits = true;

 private:
  const HotSpotTables& tables_;
};

std::optional<hotspot_layout> layout_of(const HotSpotTables& tables) {
  Offsets offsets(tables);
  hotspot_layout to{};
  to.block = offsets.size("HeapBlock");
  to.nmethod = offsets.size("nmethod");
  to.header_size_bytes = offsets.number("CodeBlob::_header_size", to.header_size);
  to.frame_size = offsets.of("CodeBlob::_frame_size");
  to.frame_complete_bytes = offsets.number("CodeBlob::_frame_complete_offset", to.frame_complete);
  to.code_is_offset = offsets.either("CodeBlob::_code_begin", "CodeBlob::_code_offset", to.code);
  to.name = offsets.of("CodeBlob::_name");
  to.method = offsets.first_of("CompiledMethod::_method", "nmethod::_method");
  to.compile_id = offsets.of("nmethod::_compile_id");
  to.deopt_is_offset = offsets.either("CompiledMethod::_deopt_handler_begin",
                                      "nmethod::_deopt_handler_offset", to.deopt);
  to.original_pc = offsets.of("nmethod::_orig_pc_offset");
  to.const_method = offsets.of("Method::_constMethod");
  to.entry = offsets.of("Method::_i2i_entry");
  to.constants = offsets.of("ConstMethod::_constants");
  to.code_size = offsets.of("ConstMethod::_code_size");
  to.name_index = offsets.of("ConstMethod::_name_index");
  to.const_method_bytes = offsets.size("ConstMethod");
  to.const_method_size = offsets.of("ConstMethod::_constMethod_size");
  to.const_method_flags = offsets.first_of("ConstMethod::_flags", "ConstMethod::_flags._flags");
  if (offsets.has("ConstantPool::_source_file_name_index"))
    to.source_file = offsets.of("ConstantPool::_source_file_name_index");
  to.pool_holder = offsets.of("ConstantPool::_pool_holder");
  to.pool_length = offsets.of("ConstantPool::_length");
  to.pool_bytes = offsets.size("ConstantPool");
  to.class_name = offsets.of("Klass::_name");
  to.class_constants = offsets.of("InstanceKlass::_constants");
  to.symbol_length = offsets.of("Symbol::_length");
  to.symbol_body = offsets.of("Symbol::_body");
  // The kernel program reads a blob's fields at once, and four words of a ConstMethod.
  const auto last = std::max({to.header_size, to.frame_size, to.frame_complete, to.code, to.name,
                              to.method, to.compile_id, to.deopt, to.original_pc});
  to.blob_bytes = static_cast<__u16>((last + 8U + 7U) & ~7U);
  offsets.fits &= to.blob_bytes <= kMostBlobBytes && to.code_size >= to.constants &&
                  to.code_size - to.constants < 32;
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

std::optional<hotspot_process> hotspot_process_of(const Memory& memory, const HotSpotTables& tables,
                                                  std::uint64_t library,
                                                  std::uint64_t library_end) {
  const auto layout = layout_of(tables);
  if (!layout) return {};
  hotspot_process to{};
  to.layout = *layout;
  Variables of(memory, tables);
  const auto version = of.half_of("Abstract_VM_Version::_vm_major_version");
  if (version < kOldest || version > kNewest) return {};
  to.layout.version = static_cast<__u16>(version);
  to.library = library;
  to.library_end = library_end;
  to.begin = of.value_of("CodeCache::_low_bound");
  to.end = of.value_of("CodeCache::_high_bound");
  to.entry_return = of.value_of("StubRoutines::_call_stub_return_address");
  const auto interpreter = of.value_of("AbstractInterpreter::_code");
  const auto heaps = of.value_of("CodeCache::_heaps");
  // Set one after the other when the virtual machine starts.
  if (!of.readable || !interpreter || !heaps || !to.entry_return) return {};
  to.interpreter = of.member(interpreter, "StubQueue::_stub_buffer");
  to.interpreter_end = to.interpreter + of.half(interpreter, "StubQueue::_buffer_limit");
  const auto* length = "GrowableArrayBase::_len";
  const auto count =
      of.half(heaps, tables.field(length) ? length : "GenericGrowableArray::_len");  // 11
  const auto data = of.member(heaps, "GrowableArray<int>::_data");
  if (!of.readable || !count || count > HOTSPOT_HEAPS) return {};
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
  if (!of.readable || !fits) return {};
  return to;
}

std::shared_ptr<const HotSpots::Process> HotSpots::add(pid_t pid, const runtime_file& file,
                                                       const Library& library) {
  const Memory memory = [&](std::uint64_t address, std::span<char> to) {
    return read_(pid, address, to);
  };
  const auto tables =
      HotSpotTables::read(memory, library.bias + file.runtime, library.bias + file.code_type);
  const auto found =
      tables ? hotspot_process_of(memory, *tables, library.begin, library.end) : std::nullopt;
  if (!found) return nullptr;
  for (std::uint32_t i = 1; i < HOTSPOT_PROCESSES; i++) {
    if ((*used_)[i]) continue;
    if (bpf_map_update_elem(map_, &i, &*found, BPF_ANY) != 0) return nullptr;
    (*used_)[i] = true;
    auto made = std::make_shared<Process>();
    made->index = i;
    made->used = used_;
    return made;
  }
  return nullptr;
}

namespace {

/// Numbers of one to five bytes (UNSIGNED5): all but the last of one are 192 or more.
class Numbers {
 public:
  Numbers(unsigned version, std::string_view bytes)
      : least_(version >= kWithoutZero ? 1 : 0), bytes_(bytes) {}
  std::optional<std::uint8_t> byte() {
    if (bytes_.empty()) return {};
    const auto value = static_cast<std::uint8_t>(bytes_[0]);
    bytes_.remove_prefix(1);
    return value;
  }
  std::optional<std::int32_t> number() {
    constexpr std::uint32_t kLow = 192;
    constexpr int kMostBytes = 5, kBits = 6;
    std::uint32_t sum = 0;
    for (int i = 0; i < kMostBytes; i++) {
      const auto next = byte();
      if (!next) return {};
      sum += (std::uint32_t{*next} - least_) << (i * kBits);
      if (*next < kLow) break;
    }
    return static_cast<std::int32_t>(sum >> 1 ^ (0U - (sum & 1)));  // the sign is the lowest bit
  }

 private:
  static constexpr unsigned kWithoutZero = 20;  // from this version on no byte is 0

  std::uint32_t least_;
  std::string_view bytes_;
};

}  // namespace

std::uint32_t hotspot_line(unsigned version, std::string_view table, std::uint32_t bytecode) {
  constexpr std::uint8_t kEnd = 0, kNumbers = 0xff, kLineBits = 3, kLineMask = 7;
  constexpr std::int64_t kMostLine = 1 << 16;           // two bytes in a class file
  constexpr unsigned kLastKnown = 17, kNextKnown = 20;  // between them, numbers have changed
  if (version > kLastKnown && version < kNextKnown) return 0;
  Numbers in(version, table);
  std::int64_t at = 0, line = 0, found = 0;
  while (const auto next = in.byte()) {
    if (*next == kEnd) return static_cast<std::uint32_t>(found);
    if (*next == kNumbers) {
      const auto forward = in.number(), lines = in.number();
      if (!forward || !lines) break;
      at += *forward;
      line += *lines;
    } else {
      at += *next >> kLineBits;
      line += *next & kLineMask;
    }
    if (at < 0 || line < 0 || line >= kMostLine) return 0;
    if (at <= bytecode) found = line;
  }
  return static_cast<std::uint32_t>(found);  // the rest was not sent
}

std::string class_name(std::string_view internal) {
  // "+0x0000000800c03000": a class that was made at run time, here.
  if (auto at = internal.rfind("+0x"); at != std::string_view::npos)
    internal = internal.substr(0, at);
  std::string name(internal);
  std::replace(name.begin(), name.end(), '/', '.');
  return name;
}

}  // namespace coretap::runtimes
