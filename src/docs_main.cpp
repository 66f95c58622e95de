// coretap-docs DIR: writes man pages, completion, help texts, keys and the README's table.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "docs/documents.hpp"

int main(int argc, char** argv) {
  if (argc != 2 || argv[1][0] == '-') {
    fmt::print(stderr, "Usage: coretap-docs DIR\n");
    return 2;
  }
  try {
    for (auto& [path, content] : coretap::documents()) {
      auto file = std::filesystem::path(argv[1]) / path;
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
