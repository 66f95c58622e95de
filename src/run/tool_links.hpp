// Names of tools: finds the tool for a name, and links these names to the executable.
#pragma once
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/naming.hpp"
#include "coretap/config.hpp"
#include "coretap/result.hpp"
#include "coretap/tool.hpp"

namespace coretap {

/// The tool for a program of this name: by the whole name, else by the part after its last '-'.
/// For a command that has links (lists/lists.hpp) the result is a name without a tool.
Called tool_called(std::string_view name);

/// All names that have links: of tools, and of these commands.
std::vector<std::string_view> link_names();

struct LinkCounts {
  std::size_t made = 0, there = 0;  ///< there: existed, and lead to the executable
};
/// Makes a relative link for each of link_names(). If one of the names is in use by anything else,
/// makes none.
Result<LinkCounts> make_links(const std::filesystem::path& executable,
                              const std::filesystem::path& directory, std::string_view prefix);

/// Removes links to the executable that have names of tools, with this prefix, or with any.
Result<std::size_t> remove_links(const std::filesystem::path& executable,
                                 const std::filesystem::path& directory,
                                 std::optional<std::string_view> prefix);

/// Lists the directories with links, one on each line. Packages create its directory:
/// without a package nothing removes links, and nothing is recorded.
inline constexpr char kLinkRecord[] = "/var/lib/coretap/links";

/// Adds a directory to the record, if the record's own directory exists.
Result<void> record_directory(const std::filesystem::path& record,
                              const std::filesystem::path& directory);

/// Removes links to the executable from these directories and those in the record, then the
/// record. Refuses a record that another user may have written.
Result<std::size_t> remove_all_links(const std::filesystem::path& executable,
                                     std::vector<std::filesystem::path> directories,
                                     const std::filesystem::path& record);

/// Links to the executable that have names of tools, in the directories of a PATH.
std::vector<std::filesystem::path> links_on_path(const std::filesystem::path& executable,
                                                 std::string_view path);

/// `coretap link`.
int run_link(const Config& config, const std::vector<std::string>& words);
std::vector<Option> link_options();

}  // namespace coretap
