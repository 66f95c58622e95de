#include "docs/commands.hpp"

#include <algorithm>
#include <climits>

#include <fmt/format.h>

#include "base/nearest.hpp"
#include "cli/help.hpp"
#include "cli/naming.hpp"
#include "cli/parser.hpp"
#include "coretap/tool.hpp"
#include "coretap/version.hpp"
#include "docs/completion_scripts.hpp"
#include "docs/man.hpp"
#include "run/commands.hpp"
#include "run/run.hpp"
#include "run/tool_links.hpp"
#include "text/errors.hpp"

namespace coretap {

namespace {

using Words = std::vector<std::string>;

int no_such(std::string_view what) {
  std::vector<std::string_view> known;
  for (auto& command : commands()) known.push_back(command.name);
  for (auto& call : all_names()) known.push_back(call.name);
  auto meant = did_you_mean(what, known);
  print_error("coretap",
              {fmt::format("there is no tool or command '{}'", what),
               {},
               fmt::format("{}{}coretap list shows all tools, coretap --help all commands", meant,
                           meant.empty() ? "" : " ")});
  return kUsage;
}

int run_help(const Config&, const Words& words) {
  Sink out;
  if (words.empty())
    out.write(overview());
  else if (auto call = called(words[0]); call.tool)
    out.write(help_text(build(*call.tool)));
  else if (auto* command = find_command(words[0]))
    out.write(help_text(*command));
  else
    return no_such(words[0]);
  return end_of(out);
}

int run_version(const Config&, const Words&) {
  Sink out;
  out.line(fmt::format("coretap {}", kVersion));
  out.line(build_words());
  return end_of(out);
}

int run_completion(const Config&, const Words& words) {
  auto script = completion_script(words[0]);
  if (script.empty()) {
    print_error("coretap", {fmt::format("completion: there is no script for '{}'", words[0]),
                            {},
                            "there are: bash, zsh, fish"});
    return kUsage;
  }
  Sink out;
  out.write(script);
  return end_of(out);
}

Option json() { return flag(0, "json", "one JSON object per line"); }

int failed(const Command& command, Error error) {
  error.what = fmt::format("{}: {}", command.name, error.what);
  print_error("coretap", error);
  return error.status;
}

int run(const Command& command, const Words& arguments) {
  auto name = fmt::format("coretap {}", command.name);
  auto see = fmt::format("see {} --help", name);
  Invocation invocation;
  auto words = take_options(invocation, name, options_of(command), arguments);
  if (!words) return failed(command, words.error());
  if (invocation.what != Invocation::run) {
    Sink out;
    out.write(help_text(command));
    return end_of(out);
  }
  words->insert(words->end(), invocation.config.command.begin(), invocation.config.command.end());
  if (words->size() > command.most)
    return failed(
        command,
        {fmt::format("unexpected argument '{}'", (*words)[command.most]), {}, see, kUsage});
  if (words->size() < command.least)
    return failed(command, {fmt::format("needs {}", command.arguments), {}, see, kUsage});
  for (auto& word : *words)
    if (word.empty()) return failed(command, {"an argument is empty", {}, see, kUsage});
  return command.run(invocation.config, *words);
}

}  // namespace

const std::vector<Command>& commands() {
  static const std::vector<Command> all = {
      {.name = "list",
       .summary = "list all tools",
       .description = "By subsystem, each with one line about what it shows.",
       .options = {json()},
       .run = run_list},
      {.name = "find",
       .arguments = "WORD...",
       .least = 1,
       .most = SIZE_MAX,
       .summary = "search questions, tools and options",
       .description =
           "Prints every question with the command line that answers it, every tool and every "
           "option that has words starting with all of these. Exit status 1: nothing was found.",
       .options = {json()},
       .run = run_find},
      {.name = "doctor",
       .summary = "check which tools this kernel and these rights can run",
       .description =
           "Tries what the kernel offers, loads the programs of every tool without attaching "
           "them, and prints what is missing.",
       .options = {json()},
       .run = run_doctor},
      {.name = "link",
       .arguments = "[DIRECTORY]",
       .most = 1,
       .summary = "create a link for each tool, so that it runs by its own name",
       .description =
           "The links lead to this executable and are created in DIRECTORY, by default the "
           "directory of the executable. With a prefix, the part after the last hyphen of the name "
           "is the tool. Nothing is overwritten: if one of the names exists and is not such a "
           "link, no link is created. Where a package installed this executable, the directory is "
           "recorded in /var/lib/coretap/links, and the links are removed with the package.",
       .options = link_options(),
       .complete = Complete::directory,
       .run = run_link},
      {.name = "help",
       .arguments = "[TOOL|COMMAND]",
       .most = 1,
       .summary = "print what a tool or command does, and its options",
       .complete = Complete::topic,
       .run = run_help},
      {.name = "man",
       .arguments = "[TOOL|output]",
       .most = 1,
       .summary = "show the manual page of a tool, or of coretap",
       .description =
           "On a terminal the page is shown by man(1) or mandoc(1); to a pipe or a file it is "
           "written as mdoc, for man -l - or groff -mdoc.",
       .options = man_options(),
       .words = man_topics,
       .run = run_man},
      {.name = "completion",
       .arguments = "SHELL",
       .least = 1,
       .most = 1,
       .summary = "print the completion script for bash, zsh or fish",
       .description =
           "The script calls coretap for the candidates, and also completes links to it that are "
           "on PATH.",
       .words = completion_shells,
       .run = run_completion},
      {.name = "version", .summary = "print the version", .run = run_version},
  };
  return all;
}

const Command* find_command(std::string_view name) {
  for (auto& command : commands())
    if (command.name == name) return &command;
  return nullptr;
}

std::vector<Option> options_of(const Command& command) {
  auto all = command.options;
  all.push_back(flag('h', "help", "print this help"));
  return all;
}

std::string overview() {
  auto text = std::string(
      "coretap: CO-RE BPF tracers for Linux in one executable\n\n"
      "Usage: coretap TOOL [OPTIONS]     run a tool; with --help, print its options\n"
      "       coretap COMMAND [OPTIONS]  one of the commands below\n\nCommands:\n");
  for (auto& c : commands())
    text += help_row(fmt::format("{}{}{}", c.name, c.arguments.empty() ? "" : " ", c.arguments),
                     c.summary);
  return text + "\nMore: coretap COMMAND --help; man coretap\n";
}

std::string help_text(const Command& command) {
  auto text = fmt::format("coretap {}: {}\n\nUsage: coretap {} [OPTIONS]{}{}\n", command.name,
                          command.summary, command.name, command.arguments.empty() ? "" : " ",
                          command.arguments);
  if (!command.description.empty()) text += '\n' + wrap(command.description, 0);
  text += "\nOptions:\n";
  for (auto& o : options_of(command)) text += help_row(option_words(o), o.doc);
  return text + "\nMore: man coretap\n";
}

std::optional<int> run_command(const Words& arguments) {
  Words rest(arguments.begin() + 1, arguments.end());
  auto name = arguments[0];
  if (name == "--help" || name == "-h") name = "help";
  if (name == "--version" || name == "-V") name = "version";
  if (auto* command = find_command(name)) return run(*command, rest);
  if (called(name).tool) return std::nullopt;
  return no_such(name);
}

}  // namespace coretap
