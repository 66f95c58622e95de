#include "core/commands.hpp"
namespace coretap {
int doctor(const std::vector<std::string>&) { return 0; }
}  // namespace coretap
