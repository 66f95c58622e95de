// Common parts of OTLP messages for metrics and logs. Field numbers as in
// opentelemetry-proto.
#pragma once
#include <string>
#include <string_view>

#include "coretap/sanitize.hpp"
#include "text/protobuf.hpp"

namespace coretap::metrics {

namespace any_value {
enum : protozero::pbf_tag_type {
  string_value = 1,
  bool_value = 2,
  int_value = 3,
  double_value = 4,
  array_value = 5,
  kvlist_value = 6,
};
}
namespace list {  // ArrayValue, KeyValueList
enum : protozero::pbf_tag_type { values = 1 };
}
namespace key_value {
enum : protozero::pbf_tag_type { key = 1, value = 2 };
}
namespace resource {
enum : protozero::pbf_tag_type { attributes = 1 };
}
// ExportMetricsServiceRequest and ExportLogsServiceRequest, down to metrics and records.
namespace request {
enum : protozero::pbf_tag_type { of_resource = 1 };
}
namespace of_resource {
enum : protozero::pbf_tag_type { resource = 1, of_scope = 2 };
}
namespace of_scope {
enum : protozero::pbf_tag_type { items = 2 };
}
namespace response {
enum : protozero::pbf_tag_type { partial_success = 1 };
}
namespace partial_success {
enum : protozero::pbf_tag_type { rejected = 1 };
}

inline void add_attribute(protozero::pbf_writer& to, protozero::pbf_tag_type tag,
                          std::string_view key, std::string_view value) {
  add_message(to, tag, [&](auto& pair) {
    pair.add_string(key_value::key, valid_utf8(key));
    add_message(pair, key_value::value,
                [&](auto& any) { any.add_string(any_value::string_value, valid_utf8(value)); });
  });
}

struct OtlpResource;
/// `items`: metrics or records with their tags.
std::string otlp_request(const OtlpResource& resource, std::string_view items);

}  // namespace coretap::metrics
