// coretap(8): the commands, and an index of the tools by question and by name.
#include <fmt/format.h>

#include "cli/naming.hpp"
#include "docs/commands.hpp"
#include "docs/man.hpp"
#include "docs/man_parts.hpp"

namespace coretap {

namespace {

/// Writes items of all tools, in one list per subsystem.
template <class Write>
void each_by_subsystem(Page& p, Write write) {
  std::string_view subsystem;
  for (auto& entry : registry()) {
    auto tool = build(entry);
    if (tool.subsystem != subsystem) {
      if (!subsystem.empty()) p.end();
      subsystem = tool.subsystem;
      p.macro(fmt::format("Ss {}", inline_words(subsystem)));
      p.begin("-tag -width Ds -compact");
    }
    write(tool);
  }
  if (!subsystem.empty()) p.end();
}

std::string synopsis(const OwnCommand& command) {
  auto line = fmt::format("Cm {}", command.name);
  for (auto& o : command.options)
    line += o.metavar.empty() ? fmt::format(" Oo Fl -{} Oc", o.name)
                              : fmt::format(" Oo Fl -{} Ar {} Oc", o.name, o.metavar);
  std::string_view words = command.arguments;
  bool optional = words.starts_with('[');
  if (optional) words = words.substr(1, words.size() - 2);
  if (words.empty()) return line;
  bool several = words.ends_with("...");
  if (several) words.remove_suffix(3);
  return line + (optional ? " Op Ar " : " Ar ") + std::string(words) + (several ? " ..." : "");
}

void commands_section(Page& p) {
  p.section("COMMANDS");
  p.begin("-tag -width Ds");
  p.item("Ar TOOL Op Ar OPTIONS", "Runs a tool. The pages of the tools are called coretap-TOOL.");
  for (auto& c : commands()) {
    p.item(synopsis(c), c.summary);
    p.prose(c.description);
    if (!c.output.empty()) p.prose(fmt::format("See {}(8).", page_of(c.name)));
    if (!c.options.empty()) p.options(c.options, "-tag -width Ds -compact");
  }
  p.end();
  p.prose("With --help, each command and each tool prints its usage.");
}

}  // namespace

std::string command_man_page(const OwnCommand& command) {
  Page p(page_of(command.name), 8, command.summary);
  p.section("SYNOPSIS");
  p.macro("Nm coretap");
  p.macro(synopsis(command));
  p.section("DESCRIPTION");
  p.prose(command.description);
  p.section("OPTIONS");
  p.options(options_of(command));
  p.section("OUTPUT");
  p.prose(command.output);
  if (!command.json.empty()) {
    p.macro("Ss JSON");
    p.prose(command.json);
  }
  p.section("RIGHTS");
  p.prose(command.rights);
  p.section("EXIT STATUS");
  p.prose("As described in coretap-output(7).");
  example_section(p, command.name, command.examples);
  return p.finish({"coretap-output 7", "coretap 8"});
}

std::string coretap_man_page() {
  Page p("coretap", 8, "CO-RE BPF tracers for Linux in one executable");
  p.section("SYNOPSIS");
  p.macro("Nm coretap");
  p.macro("Ar TOOL Op Ar OPTIONS");
  for (auto& c : commands()) {
    p.macro("Nm coretap");
    p.macro(synopsis(c));
  }
  p.section("DESCRIPTION");
  p.macro("Nm");
  p.prose(
      "holds a suite of tracers in one executable. Its first argument is the name of a tool or a "
      "command. A link to it that is named after a tool, with or without a prefix that ends in a "
      "hyphen, runs that tool. There is nothing else to install: no compiler, no kernel headers. "
      "Options, output formats and exit statuses that all tools share are described in "
      "coretap-output(7).");
  commands_section(p);
  p.section("WHICH TOOL");
  p.prose("Each question is followed by a command line that answers it.");
  each_by_subsystem(p, [&](const Tool& tool) { question_items(p, tool); });
  p.section("TOOLS");
  each_by_subsystem(p, [&](const Tool& tool) {
    p.item(fmt::format("Xr {} 8", page_of(tool.name)), tool.summary);
    if (!tool.other_names.empty()) p.prose(fmt::format("Other names: {}.", other_names_of(tool)));
  });
  p.section("COMPLETION");
  p.example(
      "Packages install completion for bash(1), zsh and fish. Elsewhere, and for links made by "
      "coretap link, a line in the start-up file of the shell adds it",
      "source <(coretap completion bash)");
  p.example("source <(coretap completion zsh)");
  p.example("coretap completion fish | source");
  p.section("RIGHTS");
  p.prose(
      "Tools need root, or the capabilities(7) CAP_BPF and CAP_PERFMON (CAP_SYS_ADMIN includes "
      "both); some tools need others, which their own pages and coretap doctor list. Once a tool "
      "is attached, it drops the capabilities that it no longer needs, even when run by root; -v "
      "prints which ones it keeps. A command after -- keeps the privileges of the caller.");
  p.macro("Pp");
  p.example(
      "Capabilities can be given to the file. Any user who can execute it then sees what all users "
      "of the machine do, so allow only a trusted group to execute it",
      "setcap cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_read_search,cap_syslog+ep coretap");
  p.macro("Pp");
  p.prose(
      "The kernel must be Linux 5.10 or newer and have its type information in "
      "/sys/kernel/btf/vmlinux (CONFIG_DEBUG_INFO_BTF). Kernel lockdown in confidentiality mode "
      "forbids tracing. A tool that cannot run exits with status 3 and prints what is missing; "
      "--explain prints which attach points it would use.");
  p.section("EXIT STATUS");
  p.prose("As described in coretap-output(7).");
  p.section("EXAMPLES");
  p.example("Which tools there are, and which of them run here", "coretap list");
  p.example("coretap find slow disk");
  p.example("sudo coretap doctor");
  p.macro("Pp");
  p.example("Links to the tools, with a prefix because another suite has tools with these names",
            "sudo coretap link --prefix ct- /usr/local/sbin");
  return p.finish({"coretap-guide 7", "coretap-migrate 7", "coretap-output 7"});
}

}  // namespace coretap
