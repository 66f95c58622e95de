#include "docs/completion.hpp"

#include <array>
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/parser.hpp"
#include "coretap/tool.hpp"

namespace coretap {

namespace {

struct Command {
  std::string_view name, doc;
  bool tool = false;  ///< takes the name of a tool
};
constexpr std::array kCommands = {Command{"list", "all tools"},
                                  Command{"help", "what a tool does and its options", true},
                                  Command{"find", "questions, tools and options by words"},
                                  Command{"doctor", "what this kernel and these rights can run"},
                                  Command{"link", "make the tools' own names, as links"}};

std::vector<Tool> all_tools() {
  std::vector<Tool> tools;
  for (auto& entry : registry()) tools.push_back(build(entry));
  return tools;
}

/// The names that the scripts complete, each after a space.
std::string called(const Naming& naming) {
  std::string names = " coretap";
  if (naming.own_names)
    for (auto& entry : registry()) names += " " + naming.command(entry.name);
  return names;
}

/// Text within single quotes of a shell.
std::string quote(std::string_view text, std::string_view quoted_quote) {
  std::string out = "'";
  for (char c : text) {
    if (c == '\'')
      out += quoted_quote;
    else
      out += c;
  }
  return out + '\'';
}

// --- bash ----------------------------------------------------------------------------------------

constexpr std::string_view kind_word(Complete kind) {
  switch (kind) {
    case Complete::file:
      return "file";
    case Complete::directory:
      return "directory";
    case Complete::pid:
      return "pid";
    case Complete::user:
      return "user";
    case Complete::disk:
      return "disk";
    case Complete::command:
      return "command";
    case Complete::nothing:
      break;
  }
  return "nothing";
}

constexpr char kBashBody[] = R"sh(
# Fills COMPREPLY with values of a kind for the word $2.
_coretap_values() {
    local kind=$1 cur=$2 done=
    case $kind in
        file) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
        directory) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
        user) mapfile -t COMPREPLY < <(compgen -u -- "$cur") ;;
        command) mapfile -t COMPREPLY < <(compgen -c -- "$cur") ;;
        disk) mapfile -t COMPREPLY < <(compgen -W "$(cd /sys/block 2>/dev/null && echo *)" -- "$cur") ;;
        pid)
            # A list: only the number behind the last comma is still open.
            [[ $cur == *,* ]] && done=${cur%,*},
            mapfile -t COMPREPLY < <(compgen -P "$done" -W "$(cd /proc && echo [0-9]*)" -- "${cur##*,}")
            ;;
    esac
}

# What follows -- is a command line of its own, beginning at word $1.
_coretap_command() {
    local helper
    for helper in _comp_command_offset _command_offset; do
        if declare -F "$helper" >/dev/null; then
            "$helper" "$1"
            return
        fi
    done
    if ((COMP_CWORD == $1)); then
        _coretap_values command "${COMP_WORDS[COMP_CWORD]}"
    else
        _coretap_values file "${COMP_WORDS[COMP_CWORD]}"
    fi
}

# Completes the options of tool $1, whose arguments begin at word $2.
_coretap_tool() {
    local tool=$1 cur=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]} i kind
    for ((i = $2; i < COMP_CWORD; i++)); do
        if [[ ${COMP_WORDS[i]} == -- ]]; then
            _coretap_command $((i + 1))
            return
        fi
    done
    # bash makes words of --name=value: the name, the sign and the value.
    if [[ $cur == = ]]; then
        cur=
    elif [[ $option == = ]]; then
        option=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    kind=$(_coretap_kind "$tool" "$option")
    if [[ -n $kind ]]; then
        _coretap_values "$kind" "$cur"
    elif [[ $cur == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_coretap_options "$tool")" -- "$cur")
    fi
}

_coretap() {
    local name=${COMP_WORDS[0]##*/} cur=${COMP_WORDS[COMP_CWORD]}
    COMPREPLY=()
    if [[ $name != coretap ]]; then
        _coretap_tool "${name##*-}" 1
    elif ((COMP_CWORD == 1)); then
        mapfile -t COMPREPLY < <(compgen -W "$_coretap_commands --help --version $_coretap_tools" -- "$cur")
    else
        case ${COMP_WORDS[1]} in
            help) ((COMP_CWORD == 2)) && mapfile -t COMPREPLY < <(compgen -W "$_coretap_tools" -- "$cur") ;;
            find) ;;
            list | doctor) mapfile -t COMPREPLY < <(compgen -W --json -- "$cur") ;;
            link)
                if [[ $cur == -* ]]; then
                    mapfile -t COMPREPLY < <(compgen -W "--prefix --remove --help" -- "$cur")
                else
                    _coretap_values directory "$cur"
                fi
                ;;
            *) _coretap_tool "${COMP_WORDS[1]}" 2 ;;
        esac
    fi
}

complete -F _coretap)sh";

}  // namespace

std::string bash_completion(const Naming& naming) {
  auto tools = all_tools();
  std::string names, commands, options;
  // Values: a long name means the same in every tool, a letter does not.
  std::map<std::string_view, std::set<std::string>> kinds;
  for (auto& tool : tools) {
    names += fmt::format("{}{}", names.empty() ? "" : " ", tool.name);
    options += fmt::format("        {})\n            echo", tool.name);
    for (auto& o : all_options(tool)) {
      if (o.letter) options += fmt::format(" -{}", o.letter);
      options += fmt::format(" --{}", o.name);
      if (o.metavar.empty()) continue;
      auto& words = kinds[kind_word(o.complete)];
      if (o.letter) words.insert(fmt::format("\"{} -{}\"", tool.name, o.letter));
      words.insert(fmt::format("*' --{}'", o.name));
    }
    options += " ;;\n";
  }
  for (auto& c : kCommands) commands += fmt::format("{}{}", commands.empty() ? "" : " ", c.name);
  auto text = fmt::format(
      "# bash completion for coretap and its tools; generated, do not edit.\n\n"
      "_coretap_commands=\"{}\"\n_coretap_tools=\"{}\"\n\n"
      "# All options of a tool.\n_coretap_options() {{\n    case $1 in\n{}    esac\n}}\n\n"
      "# What the value of an option of a tool is; nothing for a flag.\n"
      "_coretap_kind() {{\n    case \"$1 $2\" in\n",
      commands, names, options);
  for (auto& [kind, words] : kinds)
    text += fmt::format("        {}) echo {} ;;\n", fmt::join(words, " | "), kind);
  return text + "    esac\n}\n" + kBashBody + called(naming) + "\n";
}

// --- zsh -----------------------------------------------------------------------------------------

namespace {

std::string_view zsh_action(Complete kind) {
  switch (kind) {
    case Complete::file:
      return "_files";
    case Complete::directory:
      return "_directories";
    case Complete::pid:
      return "_sequence _pids";
    case Complete::user:
      return "_users";
    case Complete::disk:
      return "_coretap_disks";
    case Complete::command:
      return "_command_names -e";
    case Complete::nothing:
      break;
  }
  return " ";
}

/// Text in a specification of _arguments or _describe: brackets and colons mean something there.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_spec(const Option& o) {
  auto doc = zsh_text(o.doc);
  std::string value;
  if (!o.metavar.empty())
    value = fmt::format(":{}:{}", zsh_text(o.metavar), zsh_action(o.complete));
  // Lists and filters may be given again; a flag need not.
  if (!o.letter) {
    return quote(fmt::format("--{}{}[{}]{}", o.name, value.empty() ? "" : "=", doc, value),
                 "'\\''");
  }
  return fmt::format("'(-{0} --{1})'{{-{0}{2},--{1}{3}}}{4}", o.letter, o.name,
                     value.empty() ? "" : "+", value.empty() ? "" : "=",
                     quote(fmt::format("[{}]{}", doc, value), "'\\''"));
}

constexpr char kZshBody[] = R"sh(
_coretap_disks() {
  local -a disks
  disks=(/sys/block/*(N:t))
  compadd -a disks
}

# What follows -- is a command line of its own.
_coretap_command() {
  local -i at=${words[(i)--]}
  (( at < CURRENT )) || return 1
  shift $at words
  (( CURRENT -= at ))
  _normal
}

_coretap() {
  if [[ $service != coretap ]]; then
    _coretap_tool ${service##*-}
    return
  fi
  if (( CURRENT == 2 )); then
    _coretap_commands
    _coretap_tools
    return
  fi
  shift words
  (( CURRENT-- ))
  case $words[1] in
    help) (( CURRENT == 2 )) && _coretap_tools ;;
    find) ;;
    list|doctor) _arguments '--json[one JSON object per line]' ;;
    link) _arguments '--prefix=[names begin with this, which ends in -]:PREFIX: ' '--remove[remove such links instead]' ':directory:_directories' ;;
    *) _coretap_tool $words[1] ;;
  esac
}

_coretap "$@"
)sh";

}  // namespace

std::string zsh_completion(const Naming& naming) {
  auto tools = all_tools();
  std::string described, cases;
  for (auto& tool : tools) {
    described += fmt::format(
        "    {}\n", quote(fmt::format("{}:{}", tool.name, zsh_text(tool.summary)), "'\\''"));
    cases += fmt::format("    {})\n      _arguments -s -S", tool.name);
    for (auto& o : all_options(tool)) cases += fmt::format(" \\\n        {}", zsh_spec(o));
    for (auto& p : tool.positionals)
      cases += " \\\n        " + quote(fmt::format("{}:{}:{}",
                                                   p.repeats()  ? "*"
                                                   : p.needed() ? ""
                                                                : ":",
                                                   zsh_text(p.metavar), zsh_action(p.complete)),
                                       "'\\''");
    cases += "\n      ;;\n";
  }
  std::string commands;
  for (auto& c : kCommands)
    commands +=
        fmt::format("    {}\n", quote(fmt::format("{}:{}", c.name, zsh_text(c.doc)), "'\\''"));
  return fmt::format(
             "#compdef{}\n# zsh completion for coretap and its tools; generated, do not "
             "edit.\n\n"
             "_coretap_commands() {{\n  local -a commands=(\n{}    '--version:the version'\n  )\n"
             "  _describe -t commands command commands\n}}\n\n"
             "_coretap_tools() {{\n  local -a tools=(\n{}  )\n  _describe -t tools tool "
             "tools\n}}\n\n"
             "_coretap_tool() {{\n  _coretap_command && return\n  case $1 in\n{}  esac\n}}\n",
             called(naming), commands, described, cases) +
         kZshBody;
}

// --- fish ----------------------------------------------------------------------------------------

namespace {

std::string_view fish_values(Complete kind) {
  switch (kind) {
    case Complete::file:
      return " -r -F";
    case Complete::directory:
      return " -x -a '(__fish_complete_directories)'";
    case Complete::pid:
      return " -x -a '(__fish_append , (__fish_complete_pids))'";
    case Complete::user:
      return " -x -a '(__fish_complete_users)'";
    case Complete::disk:
      return " -x -a '(string replace /sys/block/ \"\" /sys/block/*)'";
    case Complete::command:
      return " -x -a '(__fish_complete_command)'";
    case Complete::nothing:
      break;
  }
  return " -x";
}

constexpr char kFishHead[] =
    R"sh(# fish completion for coretap and its tools; generated, do not edit.

# Is the word at the cursor behind -- ?
function __coretap_in_command
    contains -- -- (commandline -opc)
end

# Completes what follows -- as a command line of its own.
function __coretap_command
    set -l words (commandline -opc) (commandline -ct)
    set -l at (contains --index -- -- $words)
    set -e words[1..$at]
    complete --do-complete (string join ' ' -- $words)
end

function __coretap_wants_command
    test (count (commandline -opc)) -eq 1
end

complete -c coretap -f
complete -c coretap -n __coretap_in_command -x -a '(__coretap_command)'
complete -c coretap -n __coretap_wants_command -l version -d 'the version'
)sh";

}  // namespace

std::string fish_completion(const Naming& naming) {
  std::string text = kFishHead;
  auto tools = all_tools();
  auto quoted = [](std::string_view s) { return quote(s, "\\'"); };
  for (auto& c : kCommands)
    text += fmt::format("complete -c coretap -n __coretap_wants_command -a {} -d {}\n", c.name,
                        quoted(c.doc));
  text +=
      "complete -c coretap -n '__fish_seen_subcommand_from list doctor' -l json -d 'one JSON "
      "object per line'\n"
      "complete -c coretap -n '__fish_seen_subcommand_from link' -x -a "
      "'(__fish_complete_directories)'\n"
      "complete -c coretap -n '__fish_seen_subcommand_from link' -l prefix -x -d 'names begin with "
      "this, which ends in -'\n"
      "complete -c coretap -n '__fish_seen_subcommand_from link' -l remove -d 'remove such links "
      "instead'\n";
  text += fmt::format(
      "\n# Adds an option or argument to a tool{}\n"
      "function __coretap_add --argument-names tool\n    set -e argv[1]\n",
      naming.own_names ? " under its own name and behind coretap." : ".");
  if (naming.own_names)
    text +=
        fmt::format("    complete -c {}$tool -n 'not __coretap_in_command' $argv\n", naming.prefix);
  text +=
      "    complete -c coretap -n \"not __coretap_in_command; and __fish_seen_subcommand_from "
      "$tool\" $argv\nend\n";
  for (auto& tool : tools) {
    text += fmt::format("\n# {}\n", tool.name);
    for (auto* when : {"__coretap_wants_command", "'__fish_seen_subcommand_from help'"})
      text += fmt::format("complete -c coretap -n {} -a {} -d {}\n", when, tool.name,
                          quoted(tool.summary));
    if (naming.own_names)
      text += fmt::format(
          "complete -c {0} -f\n"
          "complete -c {0} -n __coretap_in_command -x -a '(__coretap_command)'\n",
          naming.command(tool.name));
    for (auto& o : all_options(tool)) {
      text += fmt::format("__coretap_add {}", tool.name);
      if (o.letter) text += fmt::format(" -s {}", o.letter);
      text += fmt::format(" -l {}{} -d {}\n", o.name,
                          o.metavar.empty() ? "" : fish_values(o.complete), quoted(o.doc));
    }
  }
  return text;
}

}  // namespace coretap
