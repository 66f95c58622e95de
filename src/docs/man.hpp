// Manual pages in mdoc, from the tools' tables and the BPF objects in the executable.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/config.hpp"
#include "coretap/fields.hpp"
#include "coretap/tool.hpp"

namespace coretap {

struct OwnCommand;

/// `sample`: a command line followed by its output; empty: there is none.
std::string man_page(const Tool& tool, std::string_view sample = {});
std::string coretap_man_page();
/// Manual page of a command that has a separate page.
std::string command_man_page(const OwnCommand& command);
/// coretap-output(7): what all tools have in common.
std::string output_man_page();
/// coretap-exporter.toml(5): the configuration of `coretap serve`.
std::string exporter_man_page();
/// coretap-guide(7): procedures, step by step.
std::string guide_man_page();
/// coretap-migrate(7): what differs from bcc and libbpf-tools.
std::string migrate_man_page();

/// All pages, by path below a manual directory: "man8/coretap-runqlat.8". `samples`: a directory
/// with files TOOL.txt; the executable contains none, to be small.
std::map<std::string, std::string> man_pages(const std::string& samples = {});

/// The columns in a sample of a report's text, for this command line.
std::vector<Field> columns_of(const Tool& tool, std::string_view command_line);

/// `coretap man`.
int run_man(const Config& config, const std::vector<std::string>& words);
std::vector<Option> man_options();
std::vector<Completion> man_topics();

}  // namespace coretap
