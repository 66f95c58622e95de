#include "runtimes/hotspot_scopes.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "made_memory.hpp"
#include "runtimes/code_names.hpp"

namespace coretap::runtimes {
namespace {

/// Memory of a process that has one nmethod, with methods m1, m2, ...
class CompiledCode {
 public:
  static constexpr std::uint64_t kNmethod = 0x7000000, kImmutable = 0x8000000, kMutable = 0x9000000,
                                 kMethods = 0xa000000, kMethodBytes = 0x1000;
  static constexpr std::uint32_t kId = 77;

  struct Call {
    std::uint32_t caller;  // offset of its description
    std::uint32_t method;
    std::int32_t bytecode;
  };

  hotspot_layout layout{};
  HotSpotScopes scopes;
  hotspot_code code{};
  std::string descriptions = "\x01";  // none is at 0
  std::vector<std::pair<std::int32_t, std::uint32_t>> places;
  std::uint64_t methods = 3;
  std::uint64_t asked = 0, most = 1 << 30;

  explicit CompiledCode(HotSpotScopes::Place place = HotSpotScopes::Place::with_code,
                        std::uint16_t version = 17) {
    layout.version = version;
    layout.method = 112;
    layout.compile_id = 304;
    layout.const_method = 8;
    layout.constants = 8;
    layout.code_size = 32;
    layout.name_index = 34;
    layout.const_method_flags = 28;
    layout.const_method_size = 24;
    layout.const_method_bytes = 48;
    layout.pool_holder = 24;
    layout.pool_length = 60;
    layout.source_file = 54;
    layout.pool_bytes = 72;
    layout.class_constants = 232;
    layout.class_name = 24;
    layout.symbol_length = 4;
    layout.symbol_body = 6;
    scopes.place = place;
    scopes.pc = 0;
    scopes.scope = 4;
    scopes.pc_bytes = 16;
    scopes.pcs = {320, 4};
    scopes.pcs_end = {324, 4};
    scopes.other = 328;
    scopes.immutable = 336;
    scopes.immutable_bytes = {344, 4};
    scopes.data = {348, 4};
    scopes.metadata = {352, 2};
    code.nmethod = kNmethod;
    code.method = kMethods;
    code.compile_id = kId;
  }

  /// Adds a description; returns its offset.
  std::uint32_t describe(const Call& call) {
    const auto at = static_cast<std::uint32_t>(descriptions.size());
    number(call.caller);
    number(call.method);
    number(static_cast<std::uint32_t>(call.bytecode + 1));
    return at;
  }

  std::shared_ptr<const InlinedMethods> read() {
    write_all();
    return InlinedMethods::read(
        [this](std::uint64_t address, std::span<char> to) {
          if (!memory_.read(address, to)) return false;
          if (address / 4096 == kNmethod / 4096 && ++reads == replaced)
            put(kNmethod + layout.compile_id, kId + 1, 4);
          return true;
        },
        layout, scopes, code,
        [this](std::size_t bytes) {
          asked = bytes;
          return bytes <= most;
        });
  }

  /// Other code takes its place after this many readings.
  int replaced = 0, reads = 0;

 private:
  void number(std::uint32_t value) {
    const std::uint32_t least = layout.version >= 20 ? 1 : 0;
    for (int i = 0; i < 4 && value >= 192 - least; i++) {
      const auto byte = 192 + ((value - (192 - least)) & 63);
      descriptions += static_cast<char>(byte);
      value = (value - (byte - least)) >> 6;
    }
    descriptions += static_cast<char>(value + least);
  }

  void write_all() {
    const bool with_code = scopes.place == HotSpotScopes::Place::with_code;
    const auto base = with_code ? kNmethod : kImmutable;
    put(kNmethod + layout.method, code.method, 8);
    put(kNmethod + layout.compile_id, kId, 4);
    put(kNmethod + scopes.immutable, kImmutable, 8);
    const std::uint64_t pcs = with_code ? 0x4000 : 0x100;
    std::uint64_t at = base + pcs;
    for (auto& [pc, scope] : places) {
      put(at, static_cast<std::uint32_t>(pc), 4);
      put(at + 4, scope, 4);
      at += 16;
    }
    put(kNmethod + scopes.pcs.at, pcs, 4);
    put(kNmethod + scopes.pcs_end.at, at - base, 4);
    if (with_code) {
      put(kNmethod + scopes.other, kNmethod + pcs - descriptions.size(), 8);
      memory_.write(kNmethod + pcs - descriptions.size(), descriptions.data(), descriptions.size());
    } else {
      memory_.write(at, descriptions.data(), descriptions.size());
      put(kNmethod + scopes.immutable_bytes.at, at - base + descriptions.size(), 4);
    }
    std::uint64_t metadata = kNmethod + 0x400;
    if (scopes.place == HotSpotScopes::Place::with_metadata) {
      put(kNmethod + scopes.data.at, 0x300, 4);
      put(kNmethod + scopes.metadata.at, 0x100, 2);
    } else if (scopes.place == HotSpotScopes::Place::apart) {
      put(kNmethod + scopes.other, kMutable, 8);
      put(kNmethod + scopes.metadata.at, 0x40, 2);
      metadata = kMutable + 0x40;
    } else {
      put(kNmethod + scopes.metadata.at, 0x400, 2);
    }
    for (std::uint64_t i = 0; i < methods; i++) {
      put(metadata + i * 8, kMethods + i * kMethodBytes, 8);
      write_method(kMethods + i * kMethodBytes, "m" + std::to_string(i + 1));
    }
  }

  /// Bytecodes 0, 5 and 12 are at lines 10, 12 and 14.
  void write_method(std::uint64_t method, const std::string& name) {
    const auto const_method = method + 0x100, constants = method + 0x200, of_class = method + 0x300;
    put(method + layout.const_method, const_method, 8);
    put(const_method + layout.constants, constants, 8);
    put(const_method + layout.code_size, 16, 2);
    put(const_method + layout.name_index, 1, 2);
    put(const_method + layout.const_method_flags, 1, 2);
    put(const_method + layout.const_method_size, 10, 4);
    const std::string lines = layout.version >= 20 ? std::string("\xff\x01\x15\x2a\x3a\0", 6)
                                                   : std::string("\xff\x00\x14\x2a\x3a\0", 6);
    memory_.write(const_method + 48 + 16, lines.data(), lines.size());
    put(constants + layout.pool_holder, of_class, 8);
    put(constants + layout.pool_length, 3, 4);
    put(constants + layout.source_file, 2, 2);
    put(constants + 72 + 8, symbol(method + 0x500, name), 8);
    put(constants + 72 + 16, symbol(method + 0x600, "Main.java"), 8);
    put(of_class + layout.class_constants, constants, 8);
    put(of_class + layout.class_name, symbol(method + 0x700, "a/Main"), 8);
  }
  std::uint64_t symbol(std::uint64_t at, const std::string& text) {
    put(at + 4, text.size(), 2);
    memory_.write(at + 6, text.data(), text.size());
    return at;
  }
  void put(std::uint64_t address, std::uint64_t value, std::size_t size) {
    memory_.put(address, value, size);
  }

  MadeMemory memory_;
};

std::string text_of(const std::vector<InlinedMethods::Frame>& frames) {
  std::string text;
  for (auto& frame : frames)
    text += (text.empty() ? "" : " ") + frame.method->function + ":" + std::to_string(frame.line);
  return text;
}

/// m1 calls m2, which calls m3, at 0x40; between 0x40 and 0x50, m2 is common.
void add_calls(CompiledCode& code) {
  const auto outer = code.describe({0, 1, 5}), middle = code.describe({outer, 2, 12}),
             inner = code.describe({middle, 3, 0}), later = code.describe({outer, 2, 0}),
             start = code.describe({0, 1, -1});
  code.places = {{-1, 0},       {0x10, start}, {0x40, inner},
                 {0x50, later}, {0x60, outer}, {0x7fffffff, 0}};
}

TEST(HotSpotScopes, CallersInEachForm) {
  for (auto place : {HotSpotScopes::Place::with_code, HotSpotScopes::Place::with_metadata,
                     HotSpotScopes::Place::apart})
    for (std::uint16_t version : {11, 17, 20, 25}) {
      SCOPED_TRACE(version);
      CompiledCode code(place, version);
      add_calls(code);
      const auto found = code.read();
      ASSERT_TRUE(found);
      EXPECT_EQ(text_of(found->at(0x40, false)), "a.Main.m3:10 a.Main.m2:14 a.Main.m1:12");
      EXPECT_EQ(text_of(found->at(0x10, false)), "a.Main.m1:10");
      EXPECT_EQ(found->at(0x40, false)[0].method->file, "Main.java");
      // No call returns there.
      EXPECT_EQ(text_of(found->at(0x41, false)), "");
      EXPECT_EQ(code.asked, 6 * 16 + code.descriptions.size());
      EXPECT_GT(found->bytes(), code.descriptions.size());
    }
}

TEST(HotSpotScopes, BetweenTwoPlaces) {
  CompiledCode code;
  add_calls(code);
  const auto found = code.read();
  ASSERT_TRUE(found);
  EXPECT_EQ(text_of(found->at(0x40, true)), "a.Main.m3:10 a.Main.m2:14 a.Main.m1:12");
  EXPECT_EQ(text_of(found->at(0x48, true)), "a.Main.m2:0 a.Main.m1:12");
  EXPECT_EQ(text_of(found->at(0x5f, true)), "a.Main.m1:12");
  EXPECT_EQ(text_of(found->at(0x20, true)), "a.Main.m1:0");
  EXPECT_EQ(text_of(found->at(0x08, true)), "");
  EXPECT_EQ(text_of(found->at(0x61, true)), "");
  EXPECT_EQ(text_of(found->at(0xfffff, true)), "");
}

TEST(HotSpotScopes, LargeNumbers) {
  for (std::uint16_t version : {17, 25}) {
    CompiledCode code(HotSpotScopes::Place::with_code, version);
    code.descriptions.append(5000, '\x02');
    const auto outer = code.describe({0, 1, 60'000}), inner = code.describe({outer, 2, 300});
    code.places = {{0x10, inner}};
    const auto found = code.read();
    ASSERT_TRUE(found);
    EXPECT_EQ(text_of(found->at(0x10, false)), "a.Main.m2:14 a.Main.m1:14");
  }
}

/// Other code at its address, before and while it is read.
TEST(HotSpotScopes, CodeThatWasFreed) {
  CompiledCode code;
  add_calls(code);
  code.code.compile_id++;
  EXPECT_FALSE(code.read());
  code.code.compile_id--;
  EXPECT_TRUE(code.read());
  code.code.method += 8;
  EXPECT_TRUE(code.read());  // the writer follows
  CompiledCode freed;
  add_calls(freed);
  freed.replaced = 1;
  EXPECT_FALSE(freed.read());
}

TEST(HotSpotScopes, HostileTables) {
  const auto with = [](auto change) {
    CompiledCode code;
    add_calls(code);
    change(code);
    return code.read();
  };
  EXPECT_FALSE(with([](auto& code) { code.most = 10; }));
  EXPECT_FALSE(with([](auto& code) { code.places.clear(); }));
  EXPECT_FALSE(with([](auto& code) { code.places[2].first = 0x10; }));  // not sorted
  EXPECT_FALSE(with([](auto& code) { code.places.resize(InlinedMethods::kMostPlaces + 1); }));
  EXPECT_FALSE(with([](auto& code) { code.methods = 2; }));
  EXPECT_FALSE(with([](auto& code) { code.places[2].second = code.describe({0, 0, 0}); }));
  EXPECT_FALSE(with([](auto& code) { code.places[2].second = code.describe({0, 1 << 30, 0}); }));
  // Descriptions that lead to later ones, themselves, or out of the table.
  EXPECT_TRUE(with([](auto& code) {
                const auto at = static_cast<std::uint32_t>(code.descriptions.size());
                code.places[2].second = code.describe({at, 1, 0});
              })
                  ->at(0x40, false)
                  .empty());
  EXPECT_TRUE(with([](auto& code) { code.places[2].second = 1 << 20; })->at(0x40, false).empty());
  EXPECT_TRUE(with([](auto& code) {
                code.descriptions += "\xff\xff";
                code.places[2].second = static_cast<std::uint32_t>(code.descriptions.size() - 1);
              })
                  ->at(0x40, false)
                  .empty());
  EXPECT_TRUE(with([](auto& code) {
                std::uint32_t at = 0;
                for (std::size_t i = 0; i <= InlinedMethods::kMostDepth; i++)
                  at = code.describe({at, 1, 0});
                code.places[2].second = at;
              })
                  ->at(0x40, false)
                  .empty());
}

TEST(HotSpotScopes, FramesOfCompiledCode) {
  constexpr auto kHead = offsetof(runtime_code, lines);
  CompiledCode made;
  add_calls(made);
  CodeNames names;
  names.inlined = [&](pid_t pid, const hotspot_code& code) {
    EXPECT_EQ(pid, 42);
    EXPECT_EQ(code.compile_id, CompiledCode::kId);
    return made.read();
  };
  runtime_code code{};
  code.mark = RUNTIME_CODE;
  code.number = 1 << RUNTIME_KIND_BITS | RUNTIME_HOTSPOT;
  code.minor = 17;
  code.tgid = 42;
  code.hotspot = made.code;
  put_text(code.name, code.name_text, "m1");
  EXPECT_TRUE(names.take(&code, kHead));
  const auto word = STACK_RUNTIME | code.number << RUNTIME_PLACE_BITS | 0x40;
  const auto frame = names.find(word);
  EXPECT_EQ(frame.function, "m1");
  EXPECT_EQ(frame.line, 12u);
  ASSERT_EQ(frame.inlined.size(), 2u);
  EXPECT_EQ(frame.inlined[0].function, "a.Main.m3");
  EXPECT_EQ(frame.inlined[1].function, "a.Main.m2");
  EXPECT_EQ(frame.inlined[1].file, "Main.java");
  EXPECT_EQ(frame.inlined[1].line, 14u);
  EXPECT_TRUE(frame.inlined[1].inlined);
  EXPECT_TRUE(names.find(word + 1).inlined.empty());
  EXPECT_EQ(names.find(word + 8, true).inlined.size(), 1u);
}

}  // namespace
}  // namespace coretap::runtimes
