#include "metrics/otlp_parts.hpp"

namespace coretap::metrics {

std::string otlp_request(std::string_view version, std::string_view host, std::string_view items) {
  std::string bytes;
  protozero::pbf_writer to(bytes);
  add_message(to, request::of_resource, [&](auto& one) {
    add_message(one, of_resource::resource, [&](auto& r) {
      add_attribute(r, resource::attributes, "service.name", "coretap");
      add_attribute(r, resource::attributes, "service.version", version);
      add_attribute(r, resource::attributes, "host.name", host);
      // Prometheus uses only this for the label "instance".
      add_attribute(r, resource::attributes, "service.instance.id", host);
    });
    one.add_message(of_resource::of_scope, items.data(), items.size());
  });
  return bytes;
}

}  // namespace coretap::metrics
