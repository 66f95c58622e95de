// Kernel definitions for BPF links that older headers lack (include/uapi/linux/bpf.h).
#pragma once
#include <linux/bpf.h>

#include <cstdint>

namespace coretap {

/// BPF_TRACE_KPROBE_MULTI (0dcac2725406 in 5.18).
inline constexpr auto kKprobeMulti = static_cast<bpf_attach_type>(42);
inline constexpr std::uint32_t kKprobeMultiReturn = 1;  // BPF_F_KPROBE_MULTI_RETURN
/// bpf_attr's link_create for that attach type.
struct KprobeMulti {
  std::uint32_t program, target, attach_type, link_flags;
  std::uint32_t flags, count;
  std::uint64_t symbols, addresses, cookies;
};

/// BPF_TRACE_UPROBE_MULTI (89ae89f53d20 in 6.6).
inline constexpr auto kUprobeMulti = static_cast<bpf_attach_type>(48);
inline constexpr std::uint32_t kUprobeMultiReturn = 1;  // BPF_F_UPROBE_MULTI_RETURN
struct UprobeMulti {
  std::uint32_t program, target, attach_type, link_flags;
  std::uint64_t path, offsets, reference_counters, cookies;
  std::uint32_t count, flags, pid, unused;
};

/// BPF_PERF_EVENT (b89fbfbb854c in 5.15).
inline constexpr auto kPerfEventAttach = static_cast<bpf_attach_type>(41);

/// bpf_attr's raw_tracepoint; the cookie exists since 6.10 (68ca5d4eebb8).
struct RawTracepoint {
  std::uint64_t name;
  std::uint32_t program, unused;
  std::uint64_t cookie;
};

/// Part of bpf_link_info: where a link is attached (for perf events since 6.6, 1b715e1b0ec5) and
/// the number of missed hits (6.7, dd8657894c11 and 3acf8ace6823).
struct LinkInfo {
  std::uint32_t type, id, program, unused;
  union {
    struct {
      std::uint64_t addresses;
      std::uint32_t count, flags;
      std::uint64_t missed;
    } kprobe_multi;
    struct {
      std::uint32_t type, unused;
      std::uint64_t function;
      std::uint32_t function_bytes, offset;
      std::uint64_t address, missed;
    } perf_event;
    struct {
      std::uint64_t text;  ///< the caller's buffer
      std::uint32_t bytes;
    } name;  ///< the raw tracepoint, or the target of an iterator
    struct {
      std::uint32_t attach_type, object, type;
    } tracing;
    struct {
      std::uint64_t id;
      std::uint32_t attach_type;
    } cgroup;
    std::uint32_t number;  ///< network device or namespace, map of struct_ops
    struct {
      std::uint64_t path, offsets, counters, cookies;
      std::uint32_t path_bytes, count, flags, pid;
    } uprobe_multi;
    std::uint64_t room[16];
  } of;
};
// enum bpf_link_type
inline constexpr std::uint32_t kLinkPerfEvent = 7, kLinkKprobeMulti = 8, kLinkTcx = 11,
                               kLinkUprobeMulti = 12, kLinkNetkit = 13;
inline constexpr std::uint32_t kPerfKprobe = 3, kPerfKretprobe = 4;  // enum bpf_perf_event_type

}  // namespace coretap
