// Function names of processes, by the addresses in records (struct user_code).
#pragma once
#include <map>
#include <string>

#include "coretap/symbols.hpp"
#include "lib/core/shared.h"
#include "program/session.hpp"

namespace coretap {

class UserFunctions {
 public:
  /// Before load. Sets FieldContext::user_function of this session.
  explicit UserFunctions(Session& s);

 private:
  std::string name(const user_code& code);

  UserSymbols symbols_;
  std::map<std::uint32_t, std::uint32_t> images_;  ///< of processes whose mappings are known
};

}  // namespace coretap
