// One JSON object on one line.
#pragma once
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/sanitize.hpp"

namespace coretap {

class JsonLine {
 public:
  JsonLine() : writer_(buffer_) { writer_.StartObject(); }
  /// A line of a tool's data; a file may have lines of several tools.
  JsonLine(std::string_view type, std::string_view tool) : JsonLine() {
    text("type", type).text("tool", tool);
  }

  JsonLine& key(std::string_view k) {
    writer_.Key(k.data(), static_cast<unsigned>(k.size()));
    return *this;
  }
  JsonLine& text(std::string_view k, std::string_view v) { return key(k).text(v); }
  JsonLine& texts(const auto& all) {
    begin_array();
    for (auto& v : all) text(v);
    return end_array();
  }
  JsonLine& texts(std::string_view k, const auto& all) { return key(k).texts(all); }
  JsonLine& text(std::string_view v) {
    auto json = json_string(v);
    writer_.RawValue(json.data(), json.size(), rapidjson::kStringType);
    return *this;
  }
  JsonLine& number(std::string_view k, std::uint64_t v) { return key(k).number(v); }
  JsonLine& number(std::uint64_t v) {
    writer_.Uint64(v);
    return *this;
  }
  JsonLine& integer(std::int64_t v) {
    writer_.Int64(v);
    return *this;
  }
  JsonLine& real(double v) {
    if (std::isfinite(v))
      writer_.Double(v);
    else
      writer_.Null();
    return *this;
  }
  JsonLine& boolean(std::string_view k, bool v) { return key(k).boolean(v); }
  JsonLine& boolean(bool v) {
    writer_.Bool(v);
    return *this;
  }
  JsonLine& null() {
    writer_.Null();
    return *this;
  }
  /// null, unless it is known.
  JsonLine& text_if(bool known, std::string_view k, std::string_view v) {
    return known ? text(k, v) : key(k).null();
  }
  JsonLine& number_if(bool known, std::string_view k, std::uint64_t v) {
    return known ? number(k, v) : key(k).null();
  }
  JsonLine& begin_object() {
    writer_.StartObject();
    return *this;
  }
  JsonLine& end_object() {
    writer_.EndObject();
    return *this;
  }
  JsonLine& begin_array() {
    writer_.StartArray();
    return *this;
  }
  JsonLine& end_array() {
    writer_.EndArray();
    return *this;
  }
  /// Ends the object; the line has no newline.
  std::string_view finish() {
    writer_.EndObject();
    return {buffer_.GetString(), buffer_.GetSize()};
  }

 private:
  rapidjson::StringBuffer buffer_;
  rapidjson::Writer<rapidjson::StringBuffer> writer_;
};

}  // namespace coretap
