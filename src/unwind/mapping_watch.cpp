#include "unwind/mapping_watch.hpp"

#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>

#include <fmt/format.h>

#include "base/descriptors.hpp"
#include "kernel/kernel.hpp"

namespace coretap::unwind {

namespace {

constexpr std::size_t kMostData = 64 << 10;  // per CPU: some hundred mappings
constexpr std::size_t kMostOfAll = 4 << 20;

// The largest mapping record (its name is at most PATH_MAX), with the lost record before it.
constexpr std::uint64_t kLargest = sizeof(perf_event_header) + 2 * sizeof(std::uint32_t) +
                                   3 * sizeof(std::uint64_t) + PATH_MAX +
                                   sizeof(perf_event_header) + 2 * sizeof(std::uint64_t);

Fd open_event(int cpu, std::size_t data) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_DUMMY;
  attr.mmap = 1;  // without mmap_data: executable mappings only
  attr.watermark = 1;
  // A wake-up for each mapping would cost the process ten microseconds.
  attr.wakeup_watermark = static_cast<__u32>(data / 4);
  return Fd(
      static_cast<int>(::syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC)));
}

Error open_error(int cpu, int error) {
  auto result = system_error(fmt::format("cannot watch mappings on CPU {} (perf_event_open)", cpu),
                             error, kUnsupported);
  if (error == EACCES || error == EPERM)
    result.hint = "run as root (sudo), or give CAP_PERFMON (CAP_SYS_ADMIN before Linux 5.8)";
  return result;
}

Error map_error(int cpu, int error, std::size_t bytes) {
  Error result{fmt::format("cannot map {} KiB for mappings on CPU {}", bytes >> 10, cpu),
               strerror(error)};
  if (error == EPERM)
    result.hint =
        "run as root, or allow more locked memory (sysctl kernel.perf_event_mlock_kb, ulimit -l)";
  return result;
}

}  // namespace

Result<void> MappingWatch::open() {
  rings_.clear();
  descriptors_.clear();
  page_ = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto cpus = online_cpus();
  data_ = std::max(2 * page_, std::bit_floor(std::min(kMostData, kMostOfAll / cpus.size())));
  std::vector<Ring> rings;
  for (const int cpu : cpus) {
    Ring ring{open_event(cpu, data_), {}};
    if (!ring.event) {
      if (errno == ENODEV) continue;  // the CPU went offline
      return open_error(cpu, errno);
    }
    if (!ring.memory.open(ring.event.get(), page_ + data_, PROT_READ | PROT_WRITE))
      return map_error(cpu, errno, page_ + data_);
    rings.push_back(std::move(ring));
  }
  if (rings.empty()) return open_error(cpus.front(), ENODEV);
  for (const Ring& ring : rings) descriptors_.push_back(ring.event.get());
  rings_ = std::move(rings);
  return {};
}

bool MappingWatch::drain(const Ring& ring) {
  auto& numbers = *reinterpret_cast<perf_event_mmap_page*>(ring.memory.data());
  const char* data = ring.memory.data() + page_;
  // Records are aligned to 8 bytes, and so is their size: 8 bytes read at once never wrap.
  const auto word = [&](std::uint64_t at, auto& value) {
    static_assert(sizeof value == sizeof(std::uint64_t));
    std::memcpy(&value, data + at % data_, sizeof value);
  };
  std::atomic_ref published(numbers.data_head);
  std::atomic_ref consumed(numbers.data_tail);

  const std::uint64_t tail = numbers.data_tail;
  const std::uint64_t head = published.load(std::memory_order_acquire);
  bool complete = true;
  for (std::uint64_t at = tail; at != head;) {
    perf_event_header header;
    word(at, header);
    if (header.size < sizeof header || header.size > head - at) {
      complete = false;
      break;
    }
    if (header.type == PERF_RECORD_MMAP) {
      struct {
        std::int32_t tgid, thread;
      } who;
      word(at + sizeof header, who);
      // 0: of another pid namespace; -1: exiting.
      if (who.tgid > 0) processes_.push_back(who.tgid);
    } else if (header.type == PERF_RECORD_LOST) {
      complete = false;
    }
    at += header.size;
  }
  // In this order the head read below reveals records that did not fit before the tail was seen.
  consumed.store(head, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  // PERF_RECORD_LOST comes only with the next record on this CPU, perhaps much later.
  return complete && published.load(std::memory_order_relaxed) - tail + kLargest < data_;
}

bool MappingWatch::drain(const std::function<void(pid_t tgid)>& mapped) {
  processes_.clear();
  bool complete = true;
  for (const Ring& ring : rings_)
    if (!drain(ring)) complete = false;
  std::sort(processes_.begin(), processes_.end());
  processes_.erase(std::unique(processes_.begin(), processes_.end()), processes_.end());
  for (const pid_t tgid : processes_) mapped(tgid);
  return complete;
}

}  // namespace coretap::unwind
