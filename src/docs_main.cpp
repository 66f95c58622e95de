// coretap-docs [--prefix PREFIX | --no-names] DIR: writes man pages, completion, help texts, keys
// and the README's table, for an installation that calls the tools so: PREFIXNAME, or `coretap
// NAME` only.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string_view>

#include <fmt/format.h>

#include "docs/documents.hpp"

int main(int argc, char** argv) {
  coretap::Naming naming;
  int at = 1;
  if (argc > 2 && argv[1] == std::string_view("--prefix")) {
    naming.prefix = argv[2];
    at = 3;
  } else if (argc > 1 && argv[1] == std::string_view("--no-names")) {
    naming.own_names = false;
    at = 2;
  }
  if (argc != at + 1 || argv[at][0] == '-') {
    fmt::print(stderr, "Usage: coretap-docs [--prefix PREFIX | --no-names] DIR\n");
    return 2;
  }
  try {
    for (auto& [path, content] : coretap::documents(naming)) {
      auto file = std::filesystem::path(argv[at]) / path;
      std::filesystem::create_directories(file.parent_path());
      std::ofstream out(file, std::ios::binary);
      out.exceptions(std::ios::failbit | std::ios::badbit);
      out << content;
      out.close();
    }
  } catch (const std::exception& e) {
    fmt::print(stderr, "coretap-docs: {}\n", e.what());
    return 1;
  }
  return 0;
}
