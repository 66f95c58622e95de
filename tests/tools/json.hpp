// A value of a JSON document. Only json.cpp includes RapidJSON: it takes longer to compile than a
// test.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace coretap::tooltest {

/// Keeps its document alive. Access to a missing member throws.
class Json {
 public:
  static Json parse(const std::string& text);

  bool has(const char* key) const;
  Json operator[](const char* key) const;
  bool is_null() const;
  bool is_string() const;
  std::vector<Json> items() const;                                 ///< of an array
  void each_member(const std::function<void(Json)>& visit) const;  ///< of an array or an object
  std::vector<std::string> keys() const;                           ///< of an object
  bool is_count() const;                                           ///< a non-negative integer
  std::vector<std::string> strings() const;
  std::uint64_t u64() const;
  std::int64_t i64() const;
  double real() const;
  bool boolean() const;
  std::string str() const;
  std::string text() const;  ///< this value as JSON

 private:
  [[noreturn]] void wrong(const std::string& what) const;

  std::shared_ptr<const void> document_;
  const void* value_ = nullptr;
};

}  // namespace coretap::tooltest
