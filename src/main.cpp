// coretap: runs a tool by the name it is called with, or by its first argument.
#include <string>
#include <string_view>
#include <vector>

#include "text/errors.hpp"

#include "coretap/tool.hpp"
#include "program/session.hpp"
#include "run/commands.hpp"
#include "run/run.hpp"
#include "run/tool_links.hpp"

int main(int argc, char** argv) {
  using namespace coretap;
  std::vector<std::string> arguments(argv + (argc > 0), argv + argc);
  std::string name = argc > 0 ? argv[0] : "coretap";
  name.erase(0, name.rfind('/') + 1);

  auto* entry = tool_called(name);
  if (!entry && !arguments.empty()) {
    if (auto status = run_command(arguments)) return *status;
    name = arguments.front();
    entry = find_tool(name);
    if (!entry) {
      print_error("coretap", no_such_tool(name));
      return kUsage;
    }
    arguments.erase(arguments.begin());
  }
  if (!entry) return usage_without_tool();
  return run_tool(build(*entry), arguments);
}
