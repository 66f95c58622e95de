// Errors as values: what failed, why, and what to do about it.
#pragma once
#include <string>
#include <utility>
#include <variant>

namespace coretap {

/// Exit statuses of every tool; scripts rely on them.
enum Status : int {
  kOk = 0,
  kFailed = 1,       ///< an error while running
  kUsage = 2,        ///< an error in the command line
  kUnsupported = 3,  ///< this kernel or these privileges do not support it
  kDataLost = 4,     ///< --strict was given and data was lost
  kCannotRun = 126,  ///< the command after -- is not executable
  kNotFound = 127,   ///< the command after -- does not exist
};

struct Error {
  std::string what;       ///< in the user's terms
  std::string why = {};   ///< the system's reason, decoded
  std::string hint = {};  ///< one thing to do
  int status = kFailed;   ///< resulting exit status
};

/// An error in the command line.
inline Error usage(std::string what, std::string hint = {}) {
  return {std::move(what), {}, std::move(hint), kUsage};
}

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : value_(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return value_.index() == 0; }
  T& operator*() { return std::get<0>(value_); }
  const T& operator*() const { return std::get<0>(value_); }
  T* operator->() { return &std::get<0>(value_); }
  const T* operator->() const { return &std::get<0>(value_); }
  Error& error() { return std::get<1>(value_); }
  const Error& error() const { return std::get<1>(value_); }

 private:
  std::variant<T, Error> value_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)), ok_(false) {}

  explicit operator bool() const { return ok_; }
  Error& error() { return error_; }
  const Error& error() const { return error_; }

 private:
  Error error_;
  bool ok_ = true;
};

}  // namespace coretap
