#include "runtimes/python.hpp"

#include <array>
#include <cstring>
#include <span>

#include "cfi/elf_code.hpp"
#include "symbols/elf_symbols.hpp"

namespace coretap::runtimes {

namespace {

constexpr unsigned kFirstKnown = 9;

/// Files of these versions do not contain the offsets: those of 3.9, and what changed since.
constexpr python_layout layout_before_offsets(unsigned minor) {
  python_layout at{.frames = PYTHON_OBJECTS,
                   .minor = static_cast<__u8>(minor),
                   .frame_bytes = 112,
                   .interpreters = 40,
                   .interpreter = 0,
                   .threads = 8,
                   .thread = 8,
                   .id = 176,
                   .current = 24,
                   .executable = 32,
                   .previous = 24,
                   .instruction = 104,
                   .type = 8,
                   .line = 40,
                   .file = 104,
                   .name = 112,
                   .lines = 120,
                   .ascii = 48,
                   .compact = 72};
  if (minor >= 10) {
    at.frames = PYTHON_COUNTED;
    at.frame_bytes = 104;
    at.current = 48, at.c_frame = 24, at.c_previous = 8;
    at.instruction = 96;
  }
  if (minor >= 11) {
    at.frames = PYTHON_INLINED;
    at.frame_bytes = 72;
    at.interpreters = 48, at.threads = 16, at.id = 152;
    at.current = 56, at.c_frame = 8, at.c_previous = 16;
    at.previous = 48, at.instruction = 56, at.first = 68, at.owner = 69;
    at.line = 72, at.file = 112, at.name = 128, at.lines = 136, at.code = 184;
  }
  if (minor >= 12) {
    at.frames = PYTHON_SHIMS;
    at.threads = 72, at.id = 136;
    at.c_frame = 0, at.c_previous = 8;
    at.executable = 0, at.previous = 8, at.first = 0, at.owner = 70;
    at.line = 68, at.version = 92, at.code = 192;
    at.ascii = 40, at.compact = 56;
  }
  return at;
}

constexpr unsigned kFirstWithOffsets = 13, kLastWithOffsets = 15;
constexpr char kCookie[] = "xdebugpy";
// The kernel program reads this many bytes of a frame, and words of a code object up to this one.
constexpr std::uint64_t kFrameBytes = 80, kMostCode = 144 - 8;

/// Words of _Py_DebugOffsets, whose sections have more members in later versions.
struct Members {
  // Sections begin at these words.
  unsigned interpreter, thread, frame, code, object, unicode;
  unsigned thread_id;  // within the section of threads
};
// 3.13: include/internal/pycore_runtime.h; 3.14 and 3.15: pycore_debug_offsets.h.
constexpr Members members_of(unsigned minor) {
  constexpr unsigned kRuntime = 3, kRuntimeMembers = 3;  // behind cookie, version, free_threaded
  const bool first = minor == 13, third = minor >= 15;
  Members m{};
  m.interpreter = kRuntime + kRuntimeMembers;
  m.thread = m.interpreter + (first ? 13 : 16);
  m.frame = m.thread + (third ? 17 : 9);
  m.code = m.frame + (first ? 6 : 8);
  m.object = m.code + (first ? 10 : 11);
  const unsigned type = third ? 6 + 2 : 4, tuple = 3, list = 3, set = first ? 0 : 4;
  const unsigned dict = 3, floating = 2, integer = 3, bytes = 3;
  m.unicode = m.object + 2 + type + tuple + list + set + dict + floating + integer + bytes;
  m.thread_id = third ? 8 : 5;
  return m;
}
constexpr std::size_t kOffsetWords = members_of(kLastWithOffsets).unicode + 5;

std::optional<python_layout> layout_by_offsets(std::span<const std::uint64_t> words,
                                               unsigned minor) {
  constexpr unsigned kFreeThreaded = 2, kInterpreters = 5;
  if (std::memcmp(words.data(), kCookie, sizeof(std::uint64_t)) != 0 ||
      (words[1] >> 16) != (0x300U | minor) || words[kFreeThreaded])
    return {};
  const auto m = members_of(minor);
  bool fits = true;
  auto at = [&](unsigned word, std::uint64_t most = UINT16_MAX) {
    fits &= words[word] <= most;
    return static_cast<__u16>(words[word]);
  };
  python_layout to{.frames = PYTHON_CURRENT, .minor = static_cast<__u8>(minor)};
  to.interpreters = at(kInterpreters);
  to.interpreter = at(m.interpreter + 2);
  to.threads = at(m.interpreter + 3);
  to.thread = at(m.thread + 2);
  to.current = at(m.thread + 4);
  to.id = at(m.thread + m.thread_id);
  to.previous = at(m.frame + 1, kFrameBytes - 8);
  to.executable = at(m.frame + 2, kFrameBytes - 8);
  to.instruction = at(m.frame + 3, kFrameBytes - 8);
  to.owner = at(m.frame + 5, kFrameBytes - 1);
  to.frame_bytes = kFrameBytes;
  to.file = at(m.code + 1, kMostCode);
  to.name = at(m.code + 3, kMostCode);
  to.lines = at(m.code + 4, kMostCode);
  to.line = at(m.code + 5, kMostCode);
  // co_version follows three other numbers (Include/cpython/code.h).
  to.version = to.line + 24;
  fits &= to.version <= kMostCode;
  to.code = at(m.code + 9);
  to.type = at(m.object + 1, kMostCode);
  to.ascii = at(m.unicode + 3);
  to.compact = to.ascii + 16;
  if (!fits) return {};
  return to;
}

}  // namespace

std::optional<runtime_file> python_in(int fd, std::uint64_t base) {
  enum { kRuntime, kCodeType, kVersion, kLoop, kNewIn9, kNewIn10, kNames };
  constexpr std::array<std::string_view, kNames> kExported = {
      kPythonMark,        "PyCode_Type", "Py_Version", "_PyEval_EvalFrameDefault",
      "PyModule_AddType", "PyIter_Send"};
  const auto found = symbols::find_exported(fd, kExported);
  auto& runtime = found[kRuntime];
  if (!runtime.address || !found[kCodeType].address) return {};
  auto read = [&](const symbols::ExportedSymbol& symbol, void* to, std::size_t bytes) {
    return symbol.offset && unwind::Image(fd).read(*symbol.offset, to, bytes);
  };
  runtime_file file{};
  file.kind = RUNTIME_PYTHON;
  file.runtime = runtime.address - base;
  file.other = found[kCodeType].address - base;
  file.eval_begin = found[kLoop].address - base;
  file.eval_end = file.eval_begin + found[kLoop].size;
  std::uint64_t version = 0;
  unsigned minor = 0;
  if (found[kVersion].address) {
    if (read(found[kVersion], &version, sizeof version) && version >> 24 == 3)
      minor = version >> 16 & 0xff;
  } else if (found[kNewIn9].address) {
    minor = found[kNewIn10].address ? 10 : 9;
  }
  std::array<std::uint64_t, kOffsetWords> offsets{};
  if (minor >= kFirstKnown && minor < kFirstWithOffsets)
    file.python = layout_before_offsets(minor);
  else if (minor >= kFirstWithOffsets && minor <= kLastWithOffsets &&
           read(runtime, offsets.data(), sizeof offsets))
    file.python = layout_by_offsets(offsets, minor).value_or(python_layout{});
  return file;
}

}  // namespace coretap::runtimes
