#include "runtimes/hotspot.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>

#include "coretap/fd.hpp"
#include "made_memory.hpp"
#include "runtimes/code_names.hpp"
#include "runtimes/runtimes.hpp"

namespace coretap::runtimes {
namespace {

/// The machine's libjvm.so; empty: none.
std::string hotspot_file() {
  std::error_code error;
  auto java = std::filesystem::canonical("/usr/bin/java", error);
  if (error) return {};
  auto path = java.parent_path().parent_path() / "lib/server/libjvm.so";
  return std::filesystem::exists(path, error) ? path.string() : std::string();
}

TEST(HotSpot, AProgramWithoutItHasNone) {
  Fd fd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(hotspot_in(fd.get(), 0));
  Fd text(::open("/proc/self/maps", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(hotspot_in(text.get(), 0));
}

TEST(HotSpot, TheMachinesOwnIsFound) {
  const auto path = hotspot_file();
  if (path.empty()) GTEST_SKIP() << "no Java virtual machine here";
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto file = runtime_in(fd.get(), 0x1000);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->kind, RUNTIME_HOTSPOT);
  const auto other = runtime_in(fd.get(), 0x2000);
  EXPECT_EQ(file->runtime, other->runtime + 0x1000);
  EXPECT_EQ(file->other, other->other + 0x1000);
}

/// Memory of a process whose virtual machine has these tables and variables.
class Machine {
 public:
  static constexpr std::uint64_t kStructs = 0x10000, kTypes = 0x10008, kCode = 0x7000000000;

  struct Field {
    std::string name, type;
    bool is_static;
    std::uint64_t at;
  };
  std::vector<Field> fields = {
      {"CodeBlob::_header_size", "int", false, 16},
      {"CodeBlob::_frame_complete_offset", "int", false, 20},
      {"CodeBlob::_frame_size", "int", false, 28},
      {"CodeBlob::_code_begin", "address", false, 32},
      {"CodeBlob::_name", "const char*", false, 96},
      {"CompiledMethod::_method", "Method*", false, 112},
      {"CompiledMethod::_deopt_handler_begin", "address", false, 128},
      {"nmethod::_compile_id", "int", false, 304},
      {"nmethod::_orig_pc_offset", "int", false, 300},
      {"Method::_constMethod", "ConstMethod*", false, 8},
      {"Method::_i2i_entry", "address", false, 56},
      {"ConstMethod::_constants", "ConstantPool*", false, 8},
      {"ConstMethod::_constMethod_size", "int", false, 24},
      {"ConstMethod::_flags", "u2", false, 28},
      {"ConstMethod::_code_size", "u2", false, 32},
      {"ConstMethod::_name_index", "u2", false, 34},
      {"ConstantPool::_pool_holder", "InstanceKlass*", false, 24},
      {"ConstantPool::_length", "int", false, 60},
      {"ConstantPool::_source_file_name_index", "u2", false, 54},
      {"Klass::_name", "Symbol*", false, 24},
      {"InstanceKlass::_constants", "ConstantPool*", false, 232},
      {"Symbol::_length", "u2", false, 4},
      {"Symbol::_body", "", false, 6},
      {"GrowableArrayBase::_len", "int", false, 0},
      {"GrowableArray<int>::_data", "int*", false, 8},
      {"CodeHeap::_memory", "VirtualSpace", false, 8},
      {"CodeHeap::_segmap", "VirtualSpace", false, 120},
      {"CodeHeap::_log2_segment_size", "int", false, 256},
      {"VirtualSpace::_low", "char*", false, 16},
      {"VirtualSpace::_high_boundary", "char*", false, 8},
      {"StubQueue::_stub_buffer", "address", false, 8},
      {"StubQueue::_buffer_limit", "int", false, 20},
      {"CodeCache::_low_bound", "address", true, 0x20000},
      {"CodeCache::_high_bound", "address", true, 0x20008},
      {"CodeCache::_heaps", "GrowableArray<CodeHeap*>*", true, 0x20010},
      {"AbstractInterpreter::_code", "StubQueue*", true, 0x20018},
      {"StubRoutines::_call_stub_return_address", "address", true, 0x20020},
      {"Abstract_VM_Version::_vm_major_version", "int", true, 0x20028},
  };
  std::map<std::string, std::uint64_t> sizes = {
      {"HeapBlock", 16}, {"nmethod", 352}, {"ConstMethod", 48}, {"ConstantPool", 72}};
  std::uint64_t version = 17, heaps = 2, interpreter = 0x30000, shift = 7;
  bool endless = false;

  /// Writes all of it.
  Memory memory() {
    memory_.clear();
    texts_ = 0x80000;
    put(kStructs, 0x40000);
    put(kTypes, 0x60000);
    std::uint64_t at = 0x40000;
    for (auto& field : fields) {
      const auto colon = field.name.find("::");
      put(at, text(field.name.substr(0, colon)));
      put(at + 8, text(field.name.substr(colon + 2)));
      put(at + 16, field.type.empty() ? 0 : text(field.type));
      put(at + 24, field.is_static);
      put(at + 32, field.is_static ? 0 : field.at);
      put(at + 40, field.is_static ? field.at : 0);
      at += 48;
    }
    put(at, 0);
    at = 0x60000;
    for (auto& [type, size] : sizes) {
      put(at, text(type));
      put(at + 32, size);
      at += 40;
    }
    put(at, 0);
    put(0x20000, kCode);
    put(0x20008, kCode + 0x400000);
    put(0x20010, 0x31000);
    put(0x20018, interpreter);
    put(0x20020, kCode + 0x500);
    put(0x20028, version);
    put(0x30008, kCode + 0x1000);
    put(0x30010, 0x8000ULL << 32);
    put(0x31000, heaps);
    put(0x31008, 0x32000);
    for (std::uint64_t i = 0; i < 4; i++) {
      const auto heap = 0x33000 + i * 0x1000;
      put(0x32000 + i * 8, heap);
      put(heap + 8 + 16, kCode + i * 0x100000);
      put(heap + 8 + 8, kCode + (i + 1) * 0x100000);
      put(heap + 120 + 16, 0x50000000 + i * 0x10000);
      put(heap + 256, shift);
    }
    return [this](std::uint64_t address, std::span<char> to) {
      return memory_.read(address, to, endless ? '\x11' : 0);
    };
  }

  std::optional<hotspot_process> process() {
    const auto from = memory();
    const auto tables = HotSpotTables::read(from, kStructs, kTypes);
    if (!tables) return {};
    const auto found = hotspot_process_of(from, *tables, 0x1000, 0x2000);
    if (const auto* why = std::get_if<HotSpotState>(&found)) {
      state = *why;
      return {};
    }
    return std::get<hotspot_process>(found);
  }

  HotSpotState state{};  ///< without a process

 private:
  void put(std::uint64_t address, std::uint64_t word) { memory_.put(address, word); }
  std::uint64_t text(const std::string& text) {
    const auto at = texts_;
    memory_.write(at, text.c_str(), text.size() + 1);
    texts_ += text.size() + 1;
    return at;
  }
  MadeMemory memory_;
  std::uint64_t texts_ = 0;
};

TEST(HotSpot, AProcess) {
  Machine machine;
  const auto found = machine.process();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->begin, Machine::kCode);
  EXPECT_EQ(found->end, Machine::kCode + 0x400000);
  EXPECT_EQ(found->interpreter, Machine::kCode + 0x1000);
  EXPECT_EQ(found->interpreter_end, Machine::kCode + 0x9000);
  EXPECT_EQ(found->entry_return, Machine::kCode + 0x500);
  EXPECT_EQ(found->library, 0x1000u);
  EXPECT_EQ(found->library_end, 0x2000u);
  EXPECT_EQ(found->heaps[1].begin, Machine::kCode + 0x100000);
  EXPECT_EQ(found->heaps[1].end, Machine::kCode + 0x200000);
  EXPECT_EQ(found->heaps[1].segments, 0x50010000u);
  EXPECT_EQ(found->heaps[1].shift, 7u);
  EXPECT_EQ(found->heaps[2].end, 0u);
  EXPECT_EQ(found->layout.nmethod, 352);
  EXPECT_EQ(found->layout.blob_bytes, 312);
  EXPECT_EQ(found->layout.header_size_bytes, 4);
  EXPECT_FALSE(found->layout.code_is_offset);
  EXPECT_EQ(found->layout.source_file, 54);
  EXPECT_EQ(found->layout.version, 17);
}

/// As from version 25 on.
TEST(HotSpot, OffsetsInPlaceOfAddresses) {
  Machine machine;
  machine.version = 25;
  for (auto& field : machine.fields) {
    if (field.name == "CodeBlob::_header_size") field = {field.name, "u2", false, 50};
    if (field.name == "CodeBlob::_frame_complete_offset")
      field = {field.name, "int16_t", false, 48};
    if (field.name == "CodeBlob::_code_begin") field = {"CodeBlob::_code_offset", "int", false, 40};
    if (field.name == "CompiledMethod::_method") field = {"nmethod::_method", "Method*", false, 72};
    if (field.name == "CompiledMethod::_deopt_handler_begin")
      field = {"nmethod::_deopt_handler_offset", "int", false, 160};
    if (field.name == "ConstMethod::_flags") field.name = "ConstMethod::_flags._flags";
  }
  const auto found = machine.process();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->layout.header_size_bytes, 2);
  EXPECT_EQ(found->layout.frame_complete_bytes, 2);
  EXPECT_TRUE(found->layout.code_is_offset);
  EXPECT_EQ(found->layout.code, 40);
  EXPECT_EQ(found->layout.method, 72);
  EXPECT_TRUE(found->layout.deopt_is_offset);
}

/// As in version 11.
TEST(HotSpot, FieldsWithOtherNames) {
  Machine machine;
  machine.version = 11;
  for (auto& field : machine.fields) {
    if (field.name == "GrowableArrayBase::_len") field.name = "GenericGrowableArray::_len";
    if (field.name == "ConstantPool::_source_file_name_index")
      field = {"InstanceKlass::_source_file_name_index", "u2", false, 298};
    if (field.name == "ConstMethod::_code_size") field.at = 40;
  }
  const auto found = machine.process();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->layout.source_file, 298);
  EXPECT_EQ(found->layout.source_in_class, 1);
  // Too far from the others.
  for (auto& field : machine.fields)
    if (field.name == "ConstMethod::_code_size") field.at = 48;
  EXPECT_FALSE(machine.process());
}

TEST(HotSpot, AFieldThatIsMissingOrWrong) {
  const Machine right;
  for (std::size_t i = 0; i < right.fields.size(); i++) {
    Machine machine;
    machine.fields.erase(machine.fields.begin() + static_cast<std::ptrdiff_t>(i));
    const bool may_lack = right.fields[i].name == "ConstantPool::_source_file_name_index";
    EXPECT_EQ(machine.process().has_value(), may_lack) << right.fields[i].name;
    machine = Machine();
    auto& field = machine.fields[i];
    field.at = field.is_static ? 0x7fff00000000 : 1 << 20;
    EXPECT_FALSE(machine.process()) << field.name;
  }
  for (auto& [type, size] : right.sizes) {
    Machine machine;
    machine.sizes[type] = 0;
    EXPECT_FALSE(machine.process()) << type;
    machine.sizes[type] = 1 << 16;
    EXPECT_FALSE(machine.process()) << type;
    machine.sizes.erase(type);
    EXPECT_FALSE(machine.process()) << type;
  }
}

TEST(HotSpot, AMachineThatHasNotStarted) {
  Machine machine;
  machine.interpreter = 0;
  EXPECT_FALSE(machine.process());
  for (std::uint64_t heaps : {0, 4, -1}) {
    machine = Machine();
    machine.heaps = heaps;
    EXPECT_FALSE(machine.process()) << heaps;
  }
  for (std::uint64_t shift : {0, 2, 16, 64}) {
    machine = Machine();
    machine.shift = shift;
    EXPECT_FALSE(machine.process()) << shift;
    EXPECT_EQ(machine.state, HotSpotState::starting);
  }
  // Another version is not asked again.
  for (std::uint64_t version : {0, 8, 10, 26, 1000}) {
    machine = Machine();
    machine.version = version;
    EXPECT_FALSE(machine.process()) << version;
    EXPECT_EQ(machine.state, version ? HotSpotState::unknown : HotSpotState::starting) << version;
  }
}

TEST(HotSpot, TablesWithoutAnEnd) {
  Machine machine;
  machine.endless = true;
  const auto memory = machine.memory();
  EXPECT_FALSE(HotSpotTables::read(memory, 0x900000, Machine::kTypes));
  EXPECT_FALSE(HotSpotTables::read(memory, Machine::kStructs, 0x900000));
  const Memory none = [](std::uint64_t, std::span<char>) { return false; };
  EXPECT_FALSE(HotSpotTables::read(none, Machine::kStructs, Machine::kTypes));
}

/// Places 0, 5, 12 and 300 at lines 10, 12, 11 and 2000.
TEST(HotSpot, Lines) {
  using namespace std::string_literals;
  // The first entry, steps back and large ones are numbers; up to 19 without 1 for each byte.
  const auto old = "\xff\x00\x14\x2a"s;
  const auto table = [](unsigned version) {
    const char add = version >= 20 ? 1 : 0;
    auto number = [&](std::int32_t value) {
      auto left = static_cast<std::uint32_t>(value) << 1 ^ (value < 0 ? ~0U : 0U);
      std::string bytes;
      for (; left >= (add ? 191U : 192U) && bytes.size() < 4;) {
        const auto low = (add ? 191U : 192U) + (left - (add ? 191U : 192U)) % 64;
        bytes += static_cast<char>(low + static_cast<unsigned>(add));
        left = (left - low) / 64;
      }
      return bytes + static_cast<char>(left + static_cast<unsigned>(add));
    };
    return "\xff"s + number(0) + number(10) + "\x2a" + "\xff" + number(7) + number(-1) + "\xff" +
           number(288) + number(1989) + "\0"s;
  };
  for (unsigned version : {11U, 17U, 21U, 25U}) {
    const auto bytes = table(version);
    EXPECT_EQ(hotspot_line(version, bytes, 0), 10u) << version;
    EXPECT_EQ(hotspot_line(version, bytes, 4), 10u);
    EXPECT_EQ(hotspot_line(version, bytes, 5), 12u);
    EXPECT_EQ(hotspot_line(version, bytes, 299), 11u);
    EXPECT_EQ(hotspot_line(version, bytes, 300), 2000u);
    EXPECT_EQ(hotspot_line(version, bytes, 65535), 2000u);
  }
  EXPECT_EQ(hotspot_line(17, old, 5), 12u);
  EXPECT_EQ(hotspot_line(18, old, 5), 0u);
  EXPECT_EQ(hotspot_line(17, "", 0), 0u);
  EXPECT_EQ(hotspot_line(17, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 0), 0u);
  EXPECT_EQ(hotspot_line(17, std::string(5000, '\xfe'), 9), 0u);
}

TEST(HotSpot, NamesOfClasses) {
  EXPECT_EQ(class_name("java/util/HashMap$Node"), "java.util.HashMap$Node");
  EXPECT_EQ(class_name("Main$$Lambda$14+0x0000000800c03000"), "Main$$Lambda$14");
  EXPECT_EQ(class_name(""), "");
}

constexpr std::size_t kHead = offsetof(runtime_code, lines);

/// A method of Main, whose line is 10 from its first bytecode on.
runtime_code method(std::uint64_t number, std::uint64_t nmethod) {
  runtime_code code{};
  code.mark = RUNTIME_CODE;
  code.number = number << RUNTIME_KIND_BITS | RUNTIME_HOTSPOT;
  code.minor = 17;
  code.hotspot.nmethod = nmethod;
  put_text(code.file, code.file_text, "a/Main");
  put_text(code.name, code.name_text, "été");
  std::memcpy(code.lines, "Main.java", 9);
  std::memcpy(code.lines + HOTSPOT_SOURCE, "\xff\x00\x14\x2a\x00", 5);
  code.line_bytes = HOTSPOT_SOURCE + 5;
  return code;
}

TEST(HotSpot, NamesOfMethods) {
  CodeNames names;
  auto word = [](std::uint64_t number, std::uint64_t place) {
    return STACK_RUNTIME | (number << RUNTIME_KIND_BITS | RUNTIME_HOTSPOT) << RUNTIME_PLACE_BITS |
           place;
  };
  const auto interpreted = method(1, 0), compiled = method(2, 0x7000);
  EXPECT_TRUE(names.take(&interpreted, kHead + interpreted.line_bytes));
  EXPECT_TRUE(names.take(&compiled, kHead + compiled.line_bytes));
  const auto cut = method(3, 0);
  EXPECT_TRUE(names.take(&cut, kHead));
  auto frame = names.find(word(1, 6));  // the bytecode at 5
  EXPECT_EQ(frame.function, "a.Main.été");
  EXPECT_EQ(frame.file, "Main.java");
  EXPECT_EQ(frame.line, 12u);
  EXPECT_EQ(names.find(word(1, 0)).line, 10u);
  EXPECT_EQ(names.find(word(2, 6)).line, 0u);
  EXPECT_EQ(names.find(word(3, 6)).function, "a.Main.été");
  EXPECT_EQ(names.find(word(3, 6)).line, 0u);
  EXPECT_EQ(names.find(word(4, 6)).function, "");
  EXPECT_EQ(names.find(STACK_RUNTIME | RUNTIME_HOTSPOT << RUNTIME_MARK_BITS | RUNTIME_MARK_FRAME)
                .function,
            "[java: frame not readable]");
}

}  // namespace
}  // namespace coretap::runtimes
