// Converts lines of JSON to log records.
#include <rapidjson/document.h>

#include <ctime>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "coretap/clock.hpp"
#include "coretap/parse.hpp"
#include "metrics/otlp.hpp"
#include "metrics/otlp_parts.hpp"

namespace coretap::metrics {

namespace {

namespace record {
enum : protozero::pbf_tag_type {
  time = 1,
  body = 5,
  attributes = 6,
  dropped_attributes = 7,
  observed_time = 11,
  event_name = 12,
};
}

constexpr std::size_t kMostAttributes = 128, kMostItems = 1024;
constexpr int kDeepest = 8;

using Json = rapidjson::Value;

/// The parser accepts a lone second half of a surrogate pair.
std::string text_of(const Json& value) {
  return valid_utf8({value.GetString(), value.GetStringLength()});
}

/// OpenTelemetry's names for keys of the suite.
struct Convention {
  std::string_view key, name;
  bool is_text = false;  ///< a string in the convention
};
constexpr Convention kConventions[] = {
    {"pid", "process.pid"},
    {"ppid", "process.parent_pid"},
    {"tid", "thread.id"},
    {"comm", "thread.name"},
    {"uid", "user.id", true},
    {"cpu", "cpu.logical_number"},
    {"disk", "system.device"},
    {"error", "error.type"},
    {"path", "file.path"},
    {"local_address", "network.local.address"},
    {"local_port", "network.local.port"},
    {"remote_address", "network.peer.address"},
    {"remote_port", "network.peer.port"},
    {"container", "container.name"},
    {"container_id", "container.id"},
    {"pod", "k8s.pod.uid"},
};

const Convention* convention_of(std::string_view key) {
  for (auto& c : kConventions)
    if (c.key == key) return &c;
  return nullptr;
}

/// False: null, or too many levels or items.
bool put(protozero::pbf_writer& any, const Json& value, int depth) {
  if (value.IsNull() || depth > kDeepest) return false;
  if (value.IsString()) {
    any.add_string(any_value::string_value, text_of(value));
  } else if (value.IsBool()) {
    any.add_bool(any_value::bool_value, value.GetBool());
  } else if (value.IsInt64()) {
    any.add_int64(any_value::int_value, value.GetInt64());
  } else if (value.IsUint64()) {
    // OTLP has no larger integers, and a double would not be exact.
    any.add_string(any_value::string_value, fmt::format("{}", value.GetUint64()));
  } else if (value.IsDouble()) {
    any.add_double(any_value::double_value, value.GetDouble());
  } else if (value.IsArray()) {
    if (value.Size() > kMostItems) return false;
    bool all = true;
    add_message(any, any_value::array_value, [&](auto& items) {
      for (auto& item : value.GetArray())
        add_message(items, list::values,
                    [&](auto& one) { all &= item.IsNull() || put(one, item, depth + 1); });
    });
    return all;
  } else {
    if (value.MemberCount() > kMostItems) return false;
    bool all = true;
    add_message(any, any_value::kvlist_value, [&](auto& members) {
      for (auto& member : value.GetObject())
        add_message(members, list::values, [&](auto& pair) {
          pair.add_string(key_value::key, text_of(member.name));
          add_message(pair, key_value::value, [&](auto& one) {
            all &= member.value.IsNull() || put(one, member.value, depth + 1);
          });
        });
    });
    return all;
  }
  return true;
}

/// An attribute; empty: the value cannot be converted.
std::string attribute_of(std::string_view key, const Json& value) {
  auto* known = convention_of(key);
  std::string pair, any;
  protozero::pbf_writer to(pair), to_any(any);
  if (known && known->is_text && value.IsUint64())
    to_any.add_string(any_value::string_value, fmt::format("{}", value.GetUint64()));
  else if (!put(to_any, value, 0))
    return {};
  to.add_string(key_value::key, known ? std::string(known->name) : fmt::format("coretap.{}", key));
  to.add_message(key_value::value, any);
  return pair;
}

}  // namespace

bool OtlpLogs::add(std::string_view line, std::string_view entry, std::uint64_t now_ns) {
  // The parser stops at a NUL; receivers reject the whole request if a text is not UTF-8.
  if (line.size() > kLongestLine || line.find('\0') != line.npos || valid_utf8(line) != line)
    return false;
  rapidjson::Document event;
  event.Parse<rapidjson::kParseIterativeFlag>(line.data(), line.size());
  if (event.HasParseError() || !event.IsObject()) return false;
  auto text = [&](const char* key) {
    auto found = event.FindMember(key);
    return found != event.MemberEnd() && found->value.IsString() ? text_of(found->value)
                                                                 : std::string();
  };
  auto time = time_in_iso(text("time"));
  auto tool = text("tool");
  if (text("type") != "event" || tool.empty() || !time) return false;
  std::uint32_t attributes = 0, dropped = 0;
  protozero::pbf_writer to(text_);
  add_message(to, of_scope::items, [&](auto& r) {
    r.add_fixed64(record::time, *time);
    r.add_fixed64(record::observed_time, now_ns);
    add_message(r, record::body, [&](auto& any) {
      any.add_string(any_value::string_value, line.data(), line.size());
    });
    for (auto& member : event.GetObject()) {
      auto key = text_of(member.name);
      if (key == "type" || key == "tool" || key == "time" || member.value.IsNull()) continue;
      auto attribute = attributes < kMostAttributes ? attribute_of(key, member.value) : "";
      if (attribute.empty()) {
        dropped++;
        continue;
      }
      r.add_message(record::attributes, attribute);
      attributes++;
    }
    if (!entry.empty()) add_attribute(r, record::attributes, "coretap.entry", entry);
    if (dropped) r.add_uint32(record::dropped_attributes, dropped);
    r.add_string(record::event_name, fmt::format("coretap.{}", tool));
  });
  records_++;
  return true;
}

std::string OtlpLogs::take() {
  records_ = 0;
  return otlp_request(resource_, std::exchange(text_, {}));
}

}  // namespace coretap::metrics
