#include "json.hpp"

#include <rapidjson/document.h>
#include <rapidjson/error/en.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <stdexcept>

namespace coretap::tooltest {

namespace {

// The values of one line, in little more memory than they need: there may be 100,000 lines.
struct Parsed {
  explicit Parsed(const std::string& text) : pool(2 * text.size() + 256), document(&pool) {}
  rapidjson::MemoryPoolAllocator<> pool;
  rapidjson::Document document;
};

const rapidjson::Value& at(const void* value) {
  return *static_cast<const rapidjson::Value*>(value);
}

}  // namespace

Json Json::parse(const std::string& text) {
  auto parsed = std::make_shared<Parsed>(text);
  auto& document = parsed->document;
  document.Parse<rapidjson::kParseValidateEncodingFlag | rapidjson::kParseFullPrecisionFlag>(
      text.data(), text.size());
  if (document.HasParseError())
    throw std::runtime_error(std::string("not JSON: ") +
                             rapidjson::GetParseError_En(document.GetParseError()) + ": " + text);
  Json json;
  json.value_ = static_cast<const rapidjson::Value*>(&document);
  json.document_ = std::move(parsed);
  return json;
}

std::string Json::text() const {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  at(value_).Accept(writer);
  return buffer.GetString();
}
void Json::wrong(const std::string& what) const {
  throw std::runtime_error(what + " in " + text());
}

bool Json::has(const char* key) const { return at(value_).IsObject() && at(value_).HasMember(key); }

Json Json::operator[](const char* key) const {
  if (!has(key)) wrong(std::string("no ") + key);
  Json member = *this;
  member.value_ = &at(value_)[key];
  return member;
}

bool Json::is_null() const { return at(value_).IsNull(); }
bool Json::is_string() const { return at(value_).IsString(); }

std::vector<Json> Json::items() const {
  if (!at(value_).IsArray()) wrong("not an array");
  std::vector<Json> all;
  each_member([&](Json item) { all.push_back(std::move(item)); });
  return all;
}

std::vector<std::string> Json::keys() const {
  std::vector<std::string> all;
  auto& value = at(value_);
  if (value.IsObject())
    for (auto& member : value.GetObject()) all.emplace_back(member.name.GetString());
  return all;
}

bool Json::is_count() const { return at(value_).IsUint64(); }

void Json::each_member(const std::function<void(Json)>& visit) const {
  auto one = [&](const rapidjson::Value& value) {
    Json member = *this;
    member.value_ = &value;
    visit(std::move(member));
  };
  auto& value = at(value_);
  if (value.IsArray())
    for (auto& item : value.GetArray()) one(item);
  if (value.IsObject())
    for (auto& member : value.GetObject()) one(member.value);
}

std::vector<std::string> Json::strings() const {
  std::vector<std::string> all;
  for (auto& item : items()) all.push_back(item.str());
  return all;
}

std::uint64_t Json::u64() const {
  if (!at(value_).IsUint64()) wrong("not an unsigned number");
  return at(value_).GetUint64();
}
std::int64_t Json::i64() const {
  if (!at(value_).IsInt64()) wrong("not a number");
  return at(value_).GetInt64();
}
double Json::real() const {
  if (!at(value_).IsNumber()) wrong("not a number");
  return at(value_).GetDouble();
}
bool Json::boolean() const {
  if (!at(value_).IsBool()) wrong("not a boolean");
  return at(value_).GetBool();
}
std::string Json::str() const {
  if (!is_string()) wrong("not a string");
  return {at(value_).GetString(), at(value_).GetStringLength()};
}

}  // namespace coretap::tooltest
