// The report of funcslower --tree: calls of the targets within each other.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "coretap/fields.hpp"
#include "general/funcslower.h"

namespace coretap {

class ReportKind;

struct TreeReport {
  std::vector<Field> fields;  ///< of a TreeCall
  std::string (*arguments)(const funcslower_event& call, const FieldContext& context) = nullptr;
  std::string (*result)(const funcslower_event& call) = nullptr;
};

std::shared_ptr<const ReportKind> make_kind(TreeReport report);

}  // namespace coretap
