#include "program/kept_rows.hpp"

#include <bpf/libbpf.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>

#include "program/maps.hpp"
#include "program/variables.hpp"

namespace coretap {

namespace {

constexpr std::size_t kTold = 2 * sizeof(std::uint64_t);  // slot number and pointer, before the key
/// Much longer than the time between the stores of a key and of its pointer.
constexpr std::chrono::microseconds kStored(50);

std::uint64_t word(const char* at) {
  return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(at), __ATOMIC_ACQUIRE);
}

}  // namespace

void KeptRows::configure(Session& s, std::string_view table, bool owners) {
  set_variable(s, fmt::format("{}_keeps", table), s.config.rows.max_keys == 0 && !owners);
}

Result<void> KeptRows::open(Session& s, std::string_view table, std::size_t key_size,
                            std::size_t value_size) {
  auto* map = s.map_named(fmt::format("{}_rows", table).c_str());
  if (!map) return {};
  key_size_ = key_size;
  value_size_ = value_size;
  stride_ = (value_size + kTold + key_size + kCacheLine - 1) / kCacheLine * kCacheLine;
  per_cpu_ = bpf_map__value_size(map) / stride_;
  if (auto opened = slots_.open(map); !opened) return opened;
  known_.resize(per_cpu_ * slots_.cpus());
  return {};
}

const char* KeptRows::row(std::size_t number) const {
  return slots_.of_cpu(static_cast<std::uint32_t>(number / per_cpu_)) + number % per_cpu_ * stride_;
}

void KeptRows::each(const std::function<void(const std::string& key, const char* value)>& visit) {
  bool fresh = false;
  for (std::size_t i = 0; i < known_.size(); i++)
    if (!known_[i] && word(row(i) + value_size_)) fresh = known_[i] = true;
  if (fresh) std::this_thread::sleep_for(kStored);
  std::string value(value_size_, '\0');
  for (std::size_t i = 0; i < known_.size(); i++) {
    if (!known_[i]) continue;
    const auto* at = row(i);
    for (std::size_t n = 0; n < value_size_; n += sizeof(std::uint64_t)) {
      auto counter = word(at + n);
      memcpy(value.data() + n, &counter, sizeof counter);
    }
    visit(*keys_.emplace(at + value_size_ + kTold, key_size_).first, value.data());
  }
}

}  // namespace coretap
