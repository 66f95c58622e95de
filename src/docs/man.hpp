// Manual pages in mdoc, from the tools' tables and the kernel programs in the executable.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cli/config.hpp"
#include "coretap/tool.hpp"

namespace coretap {

std::string man_page(const Tool& tool);
std::string coretap_man_page();
/// coretap-output(7): what all tools have in common.
std::string output_man_page();
/// coretap-migrate(7): what differs from bcc and libbpf-tools.
std::string migrate_man_page();

/// All pages, by their paths below a directory of manual pages: "man8/coretap-runqlat.8".
std::map<std::string, std::string> man_pages();

/// `coretap man`.
int run_man(const Config& config, const std::vector<std::string>& words);
std::vector<Option> man_options();
std::vector<Completion> man_topics();

}  // namespace coretap
