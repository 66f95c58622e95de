// The activity of coretap itself: tools that name processes hide it, unless it is requested.
#pragma once
#include <cstdint>
#include <vector>

#include "coretap/fields.hpp"
#include "program/session.hpp"

namespace coretap {

class OwnActivity {
 public:
  /// `fields`: of the records; the field with the key "pid" identifies the process.
  void configure(const Session& s, const std::vector<Field>& fields);
  void configure(const Session& s);

  /// True if the record, or the activity of this process, is to be hidden.
  bool is(const void* record, const FieldContext& context) const {
    if (!pid_.read) return false;
    auto value = pid_.read(record, context);
    auto* process = std::get_if<std::uint64_t>(&value);
    return process && is(*process);
  }
  bool is(std::uint64_t process) const { return own_ && process == own_; }

 private:
  Field pid_;
  std::uint64_t own_ = 0;  ///< 0: not hidden
};

}  // namespace coretap
