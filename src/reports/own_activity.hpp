// What coretap itself does: not shown by tools that name processes, unless it is asked for.
#pragma once
#include <cstdint>
#include <vector>

#include "coretap/fields.hpp"
#include "program/session.hpp"

namespace coretap {

class OwnActivity {
 public:
  /// `fields`: of the records; the one with the key "pid" tells.
  void configure(const Session& s, const std::vector<Field>& fields);
  void configure(const Session& s);

  /// The record, or what this process did, is to be left out.
  bool is(const void* record, const FieldContext& context) const {
    if (!pid_.read) return false;
    auto value = pid_.read(record, context);
    auto* process = std::get_if<std::uint64_t>(&value);
    return process && is(*process);
  }
  bool is(std::uint64_t process) const { return own_ && process == own_; }

 private:
  Field pid_;
  std::uint64_t own_ = 0;  ///< 0: it is shown
};

}  // namespace coretap
