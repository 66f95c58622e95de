// Messages of JSON-RPC 2.0, one per line, as the Model Context Protocol has them. They come from
// another program: bounded in size and depth. Pure: text in, requests out.
#pragma once
#include <rapidjson/document.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "coretap/json.hpp"

namespace coretap::mcp {

inline constexpr std::size_t kMostBytes = 1 << 20;  ///< of a message
inline constexpr std::size_t kMostDepth = 64;       ///< of arrays and objects in each other
inline constexpr std::size_t kLongestId = 256;

enum Code : int {
  kParseError = -32700,
  kInvalidRequest = -32600,
  kNoMethod = -32601,
  kInvalidParams = -32602,
  kBusy = -32000,
};

/// Of a request; nothing: a notification.
using Id = std::variant<std::monostate, std::int64_t, std::string>;

struct Request {
  Id id;
  std::string method;
  std::shared_ptr<rapidjson::Document> message = {};
  /// The parameters; null: there are none.
  const rapidjson::Value* params() const;
  bool is_notification() const { return std::holds_alternative<std::monostate>(id); }
};

struct Failure {
  Id id;  ///< if it is known
  int code = kInvalidRequest;
  std::string words;
};

/// Nothing: an answer, which is ignored.
using Message = std::variant<std::monostate, Request, Failure>;
Message message_in(std::string_view line);

/// A member of an object; null: there is none, or it is no object.
const rapidjson::Value* member(const rapidjson::Value* object, const char* name);
/// The id in a value; nothing: it is not one.
Id id_in(const rapidjson::Value* value);

/// The start of an answer; the result follows, and an end of the object.
void begin_answer(JsonLine& line, const Id& id);
std::string failure(const Failure& failure);

}  // namespace coretap::mcp
