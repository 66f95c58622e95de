// Members of a JSON object that may be missing, or of another type: then nothing, 0 or false.
#pragma once
#include <rapidjson/document.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace coretap::why {

/// A line that a tool printed, or of a file of any user: nesting does not use up the stack. False:
/// it is not an object.
inline bool read_object(rapidjson::Document& to, std::string_view line) {
  to.Parse<rapidjson::kParseIterativeFlag>(line.data(), line.size());
  return !to.HasParseError() && to.IsObject();
}

inline const rapidjson::Value* member(const rapidjson::Value& object, const char* key) {
  auto found = object.FindMember(key);
  return found == object.MemberEnd() ? nullptr : &found->value;
}

inline std::string text_of(const rapidjson::Value& object, const char* key) {
  auto* value = member(object, key);
  return value && value->IsString() ? value->GetString() : "";
}

inline std::uint64_t number_of(const rapidjson::Value& object, const char* key) {
  auto* value = member(object, key);
  return value && value->IsUint64() ? value->GetUint64() : 0;
}

inline double real_of(const rapidjson::Value& object, const char* key) {
  auto* value = member(object, key);
  return value && value->IsNumber() ? value->GetDouble() : 0;
}

inline bool flag_of(const rapidjson::Value& object, const char* key) {
  auto* value = member(object, key);
  return value && value->IsBool() && value->GetBool();
}

}  // namespace coretap::why
