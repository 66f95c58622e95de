// Nested protobuf messages.
#pragma once
#include <protozero/pbf_writer.hpp>
#include <string>

namespace coretap {

/// Adds a message that `fill` writes.
template <class Fill>
void add_message(protozero::pbf_writer& to, protozero::pbf_tag_type tag, Fill fill) {
  std::string bytes;
  protozero::pbf_writer inner(bytes);
  fill(inner);
  to.add_message(tag, bytes);
}

}  // namespace coretap
