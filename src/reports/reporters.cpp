#include "reports/reporters.hpp"

namespace coretap {

std::unique_ptr<Reporter> make_reporter(const Tool& tool) {
  return std::visit([](auto& report) { return make(report); }, tool.report);
}

}  // namespace coretap
