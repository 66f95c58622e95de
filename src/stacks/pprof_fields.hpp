// Field numbers of profile.proto, for the writer and the reader of profiles.
#pragma once
#include <protozero/types.hpp>
#include <string_view>

namespace coretap {

/// The file name of the kernel's functions.
inline constexpr std::string_view kKernelImage = "[kernel.kallsyms]";

namespace pprof {

namespace profile {
enum : protozero::pbf_tag_type {
  sample_type = 1,
  sample = 2,
  mapping = 3,
  location = 4,
  function = 5,
  string_table = 6,
  time_nanos = 9,
  duration_nanos = 10,
  period_type = 11,
  period = 12,
  comment = 13,
  default_sample_type = 14,
};
}
namespace value_type {
enum : protozero::pbf_tag_type { type = 1, unit = 2 };
}
namespace sample {
enum : protozero::pbf_tag_type { location_id = 1, value = 2, label = 3 };
}
namespace label {
enum : protozero::pbf_tag_type { key = 1, str = 2, num = 3 };
}
namespace mapping {
enum : protozero::pbf_tag_type {
  id = 1,
  memory_start = 2,
  memory_limit = 3,
  file_offset = 4,
  filename = 5,
  build_id = 6,
  has_functions = 7,
};
}
namespace location {
enum : protozero::pbf_tag_type { id = 1, mapping_id = 2, address = 3, line = 4 };
}
namespace line {
enum : protozero::pbf_tag_type { function_id = 1, line = 2 };
}
namespace function {
enum : protozero::pbf_tag_type { id = 1, name = 2, system_name = 3, filename = 4 };
}

}  // namespace pprof
}  // namespace coretap
