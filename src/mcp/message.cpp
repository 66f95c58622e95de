#include "mcp/message.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "why/members.hpp"

namespace coretap::mcp {

namespace {

/// Arrays and objects in each other, at most; text in strings does not count.
std::size_t depth_of(std::string_view text) {
  std::size_t depth = 0, most = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); i++) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\')
        i++;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      most = std::max(most, ++depth);
    } else if ((c == '}' || c == ']') && depth) {
      depth--;
    }
  }
  return most;
}

}  // namespace

const rapidjson::Value* member(const rapidjson::Value* object, const char* name) {
  return object && object->IsObject() ? why::member(*object, name) : nullptr;
}

const rapidjson::Value* Request::params() const { return member(message.get(), "params"); }

Id id_in(const rapidjson::Value* value) {
  if (value && value->IsInt64()) return value->GetInt64();
  if (value && value->IsString() && value->GetStringLength() <= kLongestId)
    return std::string(value->GetString(), value->GetStringLength());
  return {};
}

Message message_in(std::string_view line) {
  if (line.size() > kMostBytes)
    return Failure{{}, kParseError, fmt::format("a message has at most {} bytes", kMostBytes)};
  if (depth_of(line) > kMostDepth)
    return Failure{{}, kParseError, fmt::format("a message is at most {} deep", kMostDepth)};
  auto document = std::make_shared<rapidjson::Document>();
  document->Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag>(
      line.data(), line.size());
  if (document->HasParseError())
    return Failure{
        {}, kParseError, fmt::format("not JSON, from byte {} on", document->GetErrorOffset())};
  if (document->IsArray())
    return Failure{{}, kInvalidRequest, "batches are not supported: one message per line"};
  const rapidjson::Value* object = document.get();
  auto* id = member(object, "id");
  const auto known = id_in(id);
  auto invalid = [&](std::string words) {
    return Failure{known, kInvalidRequest, std::move(words)};
  };
  auto* version = member(object, "jsonrpc");
  if (!version || !version->IsString() || version->GetString() != std::string_view("2.0"))
    return invalid("not a message of JSON-RPC 2.0");
  auto* method = member(object, "method");
  if (!method && (member(object, "result") || member(object, "error"))) return {};
  if (!method || !method->IsString()) return invalid("there is no method");
  if (id && std::holds_alternative<std::monostate>(known))
    return invalid(fmt::format("an id is an integer, or a string of at most {} bytes", kLongestId));
  return Request{known, {method->GetString(), method->GetStringLength()}, std::move(document)};
}

void begin_answer(JsonLine& line, const Id& id) {
  line.text("jsonrpc", "2.0").key("id");
  if (auto* number = std::get_if<std::int64_t>(&id))
    line.integer(*number);
  else if (auto* text = std::get_if<std::string>(&id))
    line.text(*text);
  else
    line.null();
}

std::string failure(const Failure& failure) {
  JsonLine line;
  begin_answer(line, failure.id);
  line.key("error").begin_object().key("code").integer(failure.code);
  line.text("message", failure.words).end_object();
  return std::string(line.finish());
}

}  // namespace coretap::mcp
