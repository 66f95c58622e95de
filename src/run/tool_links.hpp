// The tools' own names: what one means, and links of these names to the executable.
#pragma once
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/config.hpp"
#include "cli/naming.hpp"
#include "coretap/result.hpp"
#include "coretap/tool.hpp"

namespace coretap {

/// The tool that a program of this name is: by the whole name, else by what follows its last '-'.
/// A command that has links (lists/lists.hpp) is a name without a tool.
Called tool_called(std::string_view name);

/// All names that have links: of tools, and of those commands.
std::vector<std::string_view> link_names();

struct LinkCounts {
  std::size_t made = 0, there = 0;  ///< there: were before, and lead to the executable
};
/// Makes a relative link for each of link_names(). Where one of the names is anything else, none is
/// made.
Result<LinkCounts> make_links(const std::filesystem::path& executable,
                              const std::filesystem::path& directory, std::string_view prefix);

/// Removes the links to the executable that are called after tools, with this prefix or any.
Result<std::size_t> remove_links(const std::filesystem::path& executable,
                                 const std::filesystem::path& directory,
                                 std::optional<std::string_view> prefix);

/// Where the directories with links are kept, one on each line. Packages create its directory:
/// without a package nothing removes links, and nothing is recorded.
inline constexpr char kLinkRecord[] = "/var/lib/coretap/links";

/// Adds a directory to the record, where the record's own directory is.
Result<void> record_directory(const std::filesystem::path& record,
                              const std::filesystem::path& directory);

/// Removes the links to the executable from these directories and from those of the record, and the
/// record. A record that another user could have written is refused.
Result<std::size_t> remove_all_links(const std::filesystem::path& executable,
                                     std::vector<std::filesystem::path> directories,
                                     const std::filesystem::path& record);

/// Links to the executable that are called after tools, in the directories of a PATH.
std::vector<std::filesystem::path> links_on_path(const std::filesystem::path& executable,
                                                 std::string_view path);

/// `coretap link`.
int run_link(const Config& config, const std::vector<std::string>& words);
std::vector<Option> link_options();

}  // namespace coretap
