// coretap-docs DIR [SAMPLES]: writes the files that are generated for the tree and its checks:
// golden/ (tests/golden), man/ (all pages), tools-table.md and rules.yml (packaging/exporter).
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>

#include <fmt/format.h>

#include "docs/documents.hpp"
#include "docs/man.hpp"
#include "metrics/printed.hpp"

namespace {

void write(const std::filesystem::path& file, const std::string& content) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream out(file, std::ios::binary);
  out.exceptions(std::ios::failbit | std::ios::badbit);
  out << content;
  out.close();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3 || argv[1][0] == '-') {
    fmt::print(stderr, "Usage: coretap-docs DIR [SAMPLES]\n");
    return 2;
  }
  try {
    const std::filesystem::path directory = argv[1];
    for (auto& [path, content] : coretap::golden_documents())
      write(directory / "golden" / path, content);
    for (auto& [path, content] : coretap::man_pages(argc == 3 ? argv[2] : ""))
      write(directory / "man" / path, content);
    write(directory / "tools-table.md", coretap::tool_table());
    write(directory / "rules.yml", coretap::metrics::rules());
  } catch (const std::exception& e) {
    fmt::print(stderr, "coretap-docs: {}\n", e.what());
    return 1;
  }
  return 0;
}
