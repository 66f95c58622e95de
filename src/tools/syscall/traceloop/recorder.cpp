#include "tools/syscall/traceloop/recorder.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/descriptors.hpp"

namespace coretap {

namespace {
/// The kernel program uses at most this many slots for a call.
constexpr std::uint64_t kMostSlots = 32;
}  // namespace

bool RecordSegment::copy(std::uint64_t at, record_slot& to) const {
  auto& from = slots_[at & (size_ - 1)];
  if (__atomic_load_n(&from.seq, __ATOMIC_ACQUIRE) != at + 1) return false;
  memcpy(&to, &from, sizeof to);
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  return __atomic_load_n(&from.seq, __ATOMIC_RELAXED) == at + 1;
}

void RecordSegment::read(const Visit& visit) {
  auto next = __atomic_load_n(&head_->next, __ATOMIC_ACQUIRE);
  if (next - at_ > size_) at_ = next - size_;
  std::vector<record_slot> record;
  while (at_ < next) {
    record.resize(1);
    auto begin = at_++;
    if (!copy(begin, record[0]) || record[0].kind != RECORD_CALL) continue;
    auto slots = std::clamp<std::uint64_t>(record[0].slots, 1, kMostSlots);
    bool whole = true;
    for (std::uint64_t i = 1; i < slots && whole; i++) {
      record_slot text;
      whole = copy(begin + i, text) && text.kind == RECORD_TEXT;
      record.push_back(text);
    }
    if (!whole) continue;
    at_ = begin + slots;
    // Call numbers have 32 bits: fewer calls than 2^32 occur between two readings.
    auto number = (calls_ & ~0xffffffffULL) | record[0].bytes;
    if (number < calls_) number += 1ULL << 32;
    overwritten_ += number - calls_;
    calls_ = number + 1;
    visit(record);
  }
}

namespace {

Error cannot_make(int error) {
  auto e = system_error("cannot create the recorder", error);
  if (error == ENOMEM) e.hint = "give a smaller --size";
  return e;
}

Result<Fd> make_map(std::uint32_t slots, std::uint32_t cpus) {
  LIBBPF_OPTS(bpf_map_create_opts, options);
  options.map_flags = BPF_F_MMAPABLE;
  Fd map(bpf_map_create(BPF_MAP_TYPE_ARRAY, "recorder", sizeof(__u32), sizeof(record_slot),
                        cpus * (slots + 1), &options));
  if (!map) return cannot_make(errno);
  return map;
}

}  // namespace

Result<Fd> Recorder::configure(bpf_map* recorders, std::size_t keys, std::uint32_t slots,
                               std::uint32_t cpus) {
  bpf_map__set_max_entries(recorders, static_cast<__u32>(keys));
  auto sample = make_map(slots, cpus);
  if (sample) bpf_map__set_inner_map_fd(recorders, sample->get());
  return sample;
}

Result<void> Recorder::open(bpf_map* recorders, std::uint64_t key, std::uint32_t slots,
                            std::uint32_t cpus) {
  auto map = make_map(slots, cpus);
  if (!map) return map.error();
  if (!memory_.open(map->get(), sizeof(record_slot) * cpus * (slots + 1), PROT_READ))
    return cannot_make(errno);
  auto* first = reinterpret_cast<const record_slot*>(memory_.data());
  for (std::uint32_t cpu = 0; cpu < cpus; cpu++)
    segments_.emplace_back(first + std::size_t{cpu} * slots, slots,
                           &first[std::size_t{cpus} * slots + cpu].head);
  int fd = map->get();
  if (bpf_map_update_elem(bpf_map__fd(recorders), &key, &fd, BPF_ANY)) return cannot_make(errno);
  return {};
}

std::uint64_t Recorder::overwritten() const {
  std::uint64_t n = 0;
  for (auto& s : segments_) n += s.overwritten();
  return n;
}

}  // namespace coretap
