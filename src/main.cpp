// coretap: runs the tool named by argv[0] or by the first argument.
#include <cstdio>
#include <string>
#include <vector>

#include "cli/naming.hpp"
#include "coretap/result.hpp"
#include "coretap/small_files.hpp"
#include "coretap/tool.hpp"
#include "docs/commands.hpp"
#include "docs/complete.hpp"
#include "run/run.hpp"
#include "run/tool_links.hpp"
#include "text/errors.hpp"

int main(int argc, char** argv) {
  using namespace coretap;
  open_standard_files();
  std::vector<std::string> arguments(argv + (argc > 0), argv + argc);
  std::string name = argc > 0 ? argv[0] : "coretap";
  name.erase(0, name.rfind('/') + 1);

  auto call = tool_called(name);
  const bool completes = !arguments.empty() && arguments.front() == kCompleteCommand;
  if (!call.name.empty() && !call.tool)  // a command: insert its name as the first argument
    arguments.emplace(arguments.begin() + completes, call.name);
  if (completes) return run_complete(call.tool, {arguments.begin() + 1, arguments.end()});
  if (!call.name.empty()) started_by_link(name, call.name);
  if (auto own = name.substr(name.rfind('-') + 1); call.name.empty() && is_left_out(own)) {
    print_error("coretap", no_such_tool(own));
    return kUsage;
  }
  if (!call.tool) {
    if (arguments.empty()) {
      fputs(overview().c_str(), stderr);
      return kUsage;
    }
    if (auto status = run_command(arguments)) return *status;
    call = called(arguments.front());
    arguments.erase(arguments.begin());
  }
  return run_tool(build(call), arguments);
}
