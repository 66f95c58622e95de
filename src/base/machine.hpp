// Facts of the processor for which this program is built. bpf/lib/arch has those of kernel
// programs.
#pragma once
#include <array>
#include <cstdint>

#include <elf.h>

namespace coretap::machine {

#if defined(__x86_64__)
inline constexpr std::uint16_t kElf = EM_X86_64;
inline constexpr const char* kTriplet = "x86_64-linux-gnu";  ///< in Debian's directories
/// The kernel's O_LARGEFILE; the C library defines it as 0.
inline constexpr std::uint64_t kLargeFile = 0100000;
/// DWARF numbers of the registers that arguments are in.
inline constexpr std::array<std::uint64_t, 6> kArguments = {5, 4, 1, 2, 8, 9};
/// True if the first of these has the address of a result that does not fit into registers.
inline constexpr bool kResultIsArgument = true;
#elif defined(__aarch64__)
inline constexpr std::uint16_t kElf = EM_AARCH64;
inline constexpr const char* kTriplet = "aarch64-linux-gnu";
inline constexpr std::uint64_t kLargeFile = 0400000;
inline constexpr std::array<std::uint64_t, 6> kArguments = {0, 1, 2, 3, 4, 5};
inline constexpr bool kResultIsArgument = false;
#else
#error "this processor is not known here"
#endif

}  // namespace coretap::machine
