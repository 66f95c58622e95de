#include "stacks/user_functions.hpp"

#include <fmt/format.h>

namespace coretap {

namespace {
constexpr std::size_t kManyProcesses = 4096;
}

UserFunctions::UserFunctions(Session& s) {
  s.retained.add(
      {Capability::sys_ptrace, Capability::dac_read_search, Capability::checkpoint_restore});
  s.names.context.user_function = [this](const user_code& code) { return name(code); };
}

std::string UserFunctions::name(const user_code& code) {
  auto pid = static_cast<pid_t>(code.pid);
  if (images_.size() > kManyProcesses) images_.clear();
  auto [known, is_new] = images_.try_emplace(code.pid, code.image);
  if (is_new || known->second != code.image) {
    known->second = code.image;
    symbols_.remember(pid, 0, code.image, code.stack_begin);
  }
  auto symbol = symbols_.find(pid, code.address, true, code.image);
  return symbol.known() ? symbol.name : fmt::format("{:#x}", code.address);
}

}  // namespace coretap
