#include "core/commands.hpp"

#include <fmt/format.h>

#include "core/link.hpp"
#include "core/session.hpp"
#include "coretap/version.hpp"
#include "docs/help.hpp"
#include "output/json.hpp"

namespace coretap {

namespace {

int list(const std::vector<std::string>& arguments) {
  bool json = arguments.size() == 1 && arguments[0] == "--json";
  if (!arguments.empty() && !json) {
    print_error("coretap",
                {fmt::format("list: unexpected '{}'", arguments[0]), {}, "coretap list [--json]"});
    return kUsage;
  }
  Sink out;
  std::string_view subsystem;
  for (auto& entry : registry()) {
    auto tool = build(entry);
    if (json) {
      JsonLine line;
      line.text("tool", tool.name).text("subsystem", tool.subsystem).text("summary", tool.summary);
      out.line(line.finish());
      continue;
    }
    if (tool.subsystem != subsystem) {
      out.line(fmt::format("{}{}:", subsystem.empty() ? "" : "\n", tool.subsystem));
      subsystem = tool.subsystem;
    }
    out.line(fmt::format("  {:<16} {}", tool.name, tool.summary));
  }
  return end_of(out);
}

std::string usage() {
  return "coretap: CO-RE BPF tracers for Linux in one executable\n\n"
         "Usage: coretap TOOL [OPTIONS]    run a tool (TOOL alone does the same where it is linked)\n"
         "       coretap list [--json]     all tools\n"
         "       coretap help TOOL         what a tool does and its options\n"
         "       coretap doctor [--json]   what this kernel and these rights can run\n"
         "       coretap link [DIRECTORY]  make the tools' own names, as links\n"
         "       coretap --version\n";
}

int help(const std::vector<std::string>& arguments) {
  Sink out;
  if (arguments.empty()) {
    out.write(usage());
  } else if (auto* entry = find_tool(arguments[0])) {
    out.write(help_text(build(*entry)));
  } else {
    print_error(
        "coretap",
        {fmt::format("there is no tool '{}'", arguments[0]), {}, "coretap list shows them all"});
    return kUsage;
  }
  return end_of(out);
}

}  // namespace

int end_of(Sink& out) {
  out.flush();
  if (!out.failed()) return kOk;
  print_error("coretap", out.error());
  return kFailed;
}

int usage_without_tool() {
  fputs(usage().c_str(), stderr);
  return kUsage;
}

std::optional<int> run_command(const std::vector<std::string>& arguments) {
  auto& command = arguments[0];
  std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  if (command == "list") return list(rest);
  if (command == "help" || command == "--help" || command == "-h") return help(rest);
  if (command == "doctor") return doctor(rest);
  if (command == "link") return link_command(rest);
  if (command == "--version" || command == "-V") {
    Sink out;
    out.line(fmt::format("coretap {}", kVersion));
    return end_of(out);
  }
  return std::nullopt;
}

}  // namespace coretap
