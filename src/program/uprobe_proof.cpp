#include "program/uprobe_proof.hpp"

#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/figures.hpp"
#include "coretap/clock.hpp"
#include "coretap/fd.hpp"
#include "kernel/capabilities.hpp"
#include "kernel/kernel.hpp"

namespace coretap {

namespace {

using symbols::CodeBytes;

/// Executable code, with a probe at `offset`. The kernel (seen with 6.18) keeps a removed probe for
/// a while under the address of its file's inode, which a new file may get, and then treats a probe
/// at the same place as the old instruction: each code has another place in its file.
class ProbedCode {
 public:
  ProbedCode(CodeBytes code, std::uint64_t offset)
      : file_(memfd_create("coretap", MFD_CLOEXEC)), begin_(place_of(code)) {
    if (!file_ || pwrite(file_.get(), code.data(), code.size(), static_cast<off_t>(begin_)) < 0)
      return;
    auto* memory = mmap(nullptr, kBytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, file_.get(), 0);
    if (memory == MAP_FAILED) return;
    memory_ = memory;
    auto type = probe_event_type("uprobe");
    if (!type) return;
    const auto path = fmt::format("/proc/self/fd/{}", file_.get());
    perf_event_attr attr{};
    attr.size = sizeof attr;
    attr.type = *type;
    attr.uprobe_path = reinterpret_cast<std::uintptr_t>(path.c_str());
    attr.probe_offset = begin_ + offset;
    event_ =
        Fd(static_cast<int>(syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC)));
    error_ = event_ ? 0 : errno;
  }
  ProbedCode(const ProbedCode&) = delete;
  ProbedCode& operator=(const ProbedCode&) = delete;
  ~ProbedCode() {
    close_aside(std::move(event_));
    if (memory_) munmap(memory_, kBytes);
  }

  bool probed() const { return static_cast<bool>(event_); }
  int error() const { return error_; }
  template <class Function>
  Function as() const {
    return reinterpret_cast<Function>(static_cast<char*>(memory_) + begin_);
  }

 private:
  static std::size_t place_of(CodeBytes code) {
    return fnv1a(code) / kRoom % (kBytes / kRoom) * kRoom;
  }

  /// The kernel removes a probe after grace periods of RCU, which take 100 ms: another thread
  /// waits.
  static void close_aside(Fd event) {
    if (!event) return;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // the thread inherits the mask
    try {
      std::thread([fd = std::move(event)]() mutable { fd.reset(); }).detach();
    } catch (const std::system_error&) {  // no thread could start, and the event is closed
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  static constexpr std::size_t kBytes = 4096, kRoom = 32;
  Fd file_;
  std::size_t begin_ = 0;
  Fd event_;
  void* memory_ = nullptr;
  int error_ = 0;
};

}  // namespace

#if defined(__x86_64__)

namespace {

constexpr std::uint8_t kNop5[] = {0x0f, 0x1f, 0x44, 0x00, 0x00};

bool keeps_red_zone() {
  constexpr long kUprobeCall = 336;  // the system call that the kernel then places there
  if (syscall(kUprobeCall) < 0 && errno == ENOSYS) return true;
  std::vector<std::uint8_t> code = {0x48, 0x89, 0x7c, 0x24, 0xf8};  // mov %rdi,-8(%rsp)
  const auto place = code.size();
  code.insert(code.end(), std::begin(kNop5), std::end(kNop5));
  for (std::uint8_t byte : {0x48, 0x8b, 0x44, 0x24, 0xf8, 0xc3})  // mov -8(%rsp),%rax; ret
    code.push_back(byte);
  ProbedCode probed(code, place);
  if (!probed.probed()) return false;
  constexpr std::uint64_t kValue = 0x5ca1ab1e;
  for (int i = 0; i < 4; i++)  // the first hit replaces the nop by the call
    if (probed.as<std::uint64_t (*)(std::uint64_t)>()(kValue) != kValue) return false;
  return true;
}

/// Legacy prefixes that the kernel accepts.
bool is_plain_prefix(std::uint8_t byte) {
  constexpr std::string_view kPrefixes = "\x64\x65\x66\x67\xf2\xf3";
  return kPrefixes.find(static_cast<char>(byte)) != std::string_view::npos;
}

bool is_exchange_with_r8(CodeBytes code) {
  while (!code.empty() && is_plain_prefix(code[0])) code = code.subspan(1);
  return code.size() > 1 && (code[0] & 0xf1) == 0x41 && code[1] == 0x90;  // REX.B, nop
}

/// branch_setup_xol_ops() in arch/x86/kernel/uprobes.c treats 0x90 as a nop with any prefix.
bool exchanges_with_r8() {
  constexpr std::uint8_t kCode[] = {0x48, 0x89, 0xf8,  // mov %rdi,%rax
                                    0x49, 0x89, 0xf0,  // mov %rsi,%r8
                                    0x49, 0x90,        // xchg %rax,%r8
                                    0xc3};
  ProbedCode probed(kCode, 6);
  return probed.probed() && probed.as<std::uint64_t (*)(std::uint64_t, std::uint64_t)>()(1, 2) == 2;
}

/// Same check as is_prefix_bad() in arch/x86/kernel/uprobes.c.
bool has_doubtful_prefix(CodeBytes code) {
  using namespace std::string_view_literals;
  for (auto byte : code) {
    if ("\x26\x2e\x36\x3e\xf0"sv.find(static_cast<char>(byte)) != std::string_view::npos)
      return true;
    if (!is_plain_prefix(byte)) return false;
  }
  return false;
}

}  // namespace

std::string place_refusal(CodeBytes instruction, bool function_begins) {
  if (!function_begins && std::ranges::equal(instruction, kNop5)) {
    static const bool harmless = keeps_red_zone();
    if (!harmless)
      return "a probe on a nop of 5 bytes would overwrite data of the program (the red zone) on "
             "this kernel";
  }
  if (is_exchange_with_r8(instruction)) {
    static const bool harmless = exchanges_with_r8();
    if (!harmless) return "this kernel takes the instruction (xchg with %r8) for a nop";
  }
  if (!has_doubtful_prefix(instruction)) return {};
  static std::map<std::vector<std::uint8_t>, bool> known;
  std::vector<std::uint8_t> bytes(instruction.begin(), instruction.end());
  auto [taken, fresh] = known.try_emplace(bytes, true);
  constexpr int kNotSupported = 524;  // ENOTSUPP, which user-space headers lack
  if (fresh) taken->second = ProbedCode(bytes, 0).error() != kNotSupported;
  return taken->second ? "" : "the kernel cannot probe this instruction";
}

#else

std::string place_refusal(CodeBytes, bool) { return {}; }

#endif

namespace {

int refused_with = 0;  // errno

/// The shortest of several calls with a probe at the first instruction; 0: it cannot be probed.
double time_of_probe(CodeBytes code) {
  constexpr int kCalls = 12;  // the first ones make the page present
  if (code.empty()) return 0;
  ProbedCode probed(code, 0);
  refused_with = probed.error();
  if (!probed.probed()) return 0;
  auto* call = probed.as<std::uint64_t (*)(std::uint64_t)>();
  std::uint64_t least = UINT64_MAX;
  for (int i = 0; i < kCalls; i++) {
    const auto begin = monotonic_ns();
    call(0);
    least = std::min(least, monotonic_ns() - begin);
  }
  return static_cast<double>(least);
}

}  // namespace

double probe_ns(symbols::EntryStep::Form form) {
#if defined(__x86_64__)
  static constexpr std::uint8_t kStepped[] = {0x48, 0x89, 0xf8, 0xc3},  // mov %rdi,%rax; ret
      kPush[] = {0x57, 0x58, 0xc3},                                     // push %rdi; pop %rax; ret
      kNop[] = {0x90, 0xc3}, kBranch[] = {0xeb, 0x00, 0xc3};            // jmp to the next
  static constexpr CodeBytes kCode[] = {kStepped, kPush, kNop, kBranch, {}, {}};
#else
  // Each is followed by ret: mov x0, x1; stp x29, x30, [sp, #-16]! and
  // ldp x29, x30, [sp], #16; nop; b to the next; adr x0, .; bti c.
  static constexpr std::uint8_t kStepped[] = {0xe0, 0x03, 0x01, 0xaa, 0xc0, 0x03, 0x5f, 0xd6};
  static constexpr std::uint8_t kPush[] = {0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x7b,
                                           0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6};
  static constexpr std::uint8_t kNop[] = {0x1f, 0x20, 0x03, 0xd5, 0xc0, 0x03, 0x5f, 0xd6};
  static constexpr std::uint8_t kBranch[] = {0x01, 0x00, 0x00, 0x14, 0xc0, 0x03, 0x5f, 0xd6};
  static constexpr std::uint8_t kAddress[] = {0x00, 0x00, 0x00, 0x10, 0xc0, 0x03, 0x5f, 0xd6};
  static constexpr std::uint8_t kTarget[] = {0x5f, 0x24, 0x03, 0xd5, 0xc0, 0x03, 0x5f, 0xd6};
  static constexpr CodeBytes kCode[] = {kStepped, kPush, kNop, kBranch, kAddress, kTarget};
#endif
  static_assert(std::size(kCode) == symbols::EntryStep::forms);
  static std::array<std::optional<double>, std::size(kCode)> known;
  auto& ns = known.at(form);
  if (!ns) ns = time_of_probe(kCode[form]);
  return *ns;
}

std::string probes_refused() {
  if (probe_ns(symbols::EntryStep::stepped) > 0) return {};
  return std::system_category().message(refused_with) + perf_capability_missing(refused_with, true);
}

bool emulates(symbols::EntryStep::Form form) {
  if (form == symbols::EntryStep::stepped) return false;
  const auto stepped = probe_ns(symbols::EntryStep::stepped), own = probe_ns(form);
  return own > 0 && own < stepped * 0.7;
}

bool is_stepped(symbols::EntryStep::Form form) {
  return form == symbols::EntryStep::stepped || (probe_ns(form) > 0 && !emulates(form));
}

}  // namespace coretap
