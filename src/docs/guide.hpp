// `coretap guide`: procedures for problems of performance, step by step.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "coretap/config.hpp"
#include "coretap/options.hpp"

namespace coretap {

struct GuideStep {
  std::string_view question;
  std::string_view command;  ///< without coretap; ends by itself
  std::string_view reading;  ///< how to read its output
  std::string_view next;     ///< what to do next; empty: the next step
};

struct GuidePart {
  std::string_view title;
  std::string_view about;  ///< may be empty
  std::vector<GuideStep> steps;
};

struct GuidePage {
  std::string_view name;
  std::string_view summary;
  std::string_view about;
  std::vector<GuidePart> parts;
};

/// The only place of the text: for the command, coretap-guide(7) and `coretap find`.
const std::vector<GuidePage>& guide_pages();

/// `coretap guide`.
int run_guide(const Config& config, const std::vector<std::string>& words);
/// Names of the pages.
std::vector<Completion> guide_topics();

}  // namespace coretap
