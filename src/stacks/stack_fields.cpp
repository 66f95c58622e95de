#include "stacks/stack_fields.hpp"

#include <algorithm>
#include <memory>

#include "program/session.hpp"
#include "program/variables.hpp"
#include "stacks/stack_names.hpp"
#include "stacks/stacks.hpp"

namespace coretap {

bool has_stacks(const std::vector<Field>& fields) {
  return std::any_of(fields.begin(), fields.end(),
                     [](auto& f) { return f.format.kind == Format::stack; });
}

void name_kernel_stacks(Session& s) {
  set_variable(s, "stack_depth", s.stack_depth());
  // Opens the kernel's symbols now, while this process still has its capabilities.
  auto stacks = std::make_shared<Stacks>(Stacks::Style{.offsets = true});
  s.names.context.kernel_frames = [&s, stacks](const stack& found) {
    return kernel_frames(s, *stacks, found);
  };
}

void read_kernel_symbols(const Session& s) { s.names.context.frames_of(stack{}); }

}  // namespace coretap
