// Type information for tests.
#pragma once
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "kernel/btf.hpp"

namespace coretap {

/// Type information, type by type.
class Made {
 public:
  Made() = default;
  /// Types of a module, with `base` as the kernel's, which is complete and must stay valid.
  explicit Made(Made& base)
      : base_(&base.open()), last_(base.last_), first_text_(base.strings_.size()) {}

  std::uint32_t add(const char* name, unsigned kind, unsigned count, std::uint32_t type,
                    const std::vector<std::uint32_t>& tail = {}) {
    for (auto word : {text(name), kind << 24 | count, type}) types_.push_back(word);
    types_.insert(types_.end(), tail.begin(), tail.end());
    return ++last_;
  }
  std::uint32_t text(const char* name) {
    if (!*name) return 0;
    auto at = static_cast<std::uint32_t>(first_text_ + strings_.size());
    strings_.append(name, strlen(name) + 1);
    return at;
  }
  const Btf& open() {
    auto bytes = static_cast<std::uint32_t>(4 * types_.size());
    btf_header header{};
    header.magic = BTF_MAGIC;
    header.version = BTF_VERSION;
    header.hdr_len = sizeof header;
    header.type_len = header.str_off = bytes;
    header.str_len = static_cast<std::uint32_t>(strings_.size());
    data_.assign(sizeof header / 4, 0);
    memcpy(data_.data(), &header, sizeof header);
    data_.insert(data_.end(), types_.begin(), types_.end());
    auto at = data_.size();
    data_.resize(at + strings_.size() / 4 + 1);
    memcpy(data_.data() + at, strings_.data(), strings_.size());
    EXPECT_TRUE(btf_.view(data_.data(), 4 * data_.size(), base_));
    return btf_;
  }

 private:
  std::vector<std::uint32_t> types_, data_;
  std::string strings_ = std::string(1, '\0');
  const Btf* base_ = nullptr;
  std::uint32_t last_ = 0;
  std::size_t first_text_ = 0;
  Btf btf_;
};

}  // namespace coretap
