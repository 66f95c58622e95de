// `coretap man`: shows a page, prints its source, or writes all pages to files.
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "cli/naming.hpp"
#include "coretap/fd.hpp"
#include "coretap/option_parts.hpp"
#include "coretap/sanitize.hpp"
#include "coretap/small_files.hpp"
#include "docs/commands.hpp"
#include "docs/man.hpp"
#include "lists/verbosity.hpp"
#include "text/errors.hpp"

namespace coretap {

namespace {

/// Pages that do not belong to a tool or command.
struct Topic {
  std::string_view name, about;
  int section;
  std::string (*page)();
};
constexpr Topic kTopics[] = {
    {"exporter.toml", "the configuration of coretap serve", 5, exporter_man_page},
    {"guide", "procedures for problems of performance, step by step", 7, guide_man_page},
    {"migrate", "what differs from bcc and libbpf-tools", 7, migrate_man_page},
    {"output", "options and formats of all tools", 7, output_man_page},
};

/// Without bold letters that are printed twice, with a backspace between.
std::string without_overstrikes(std::string_view text) {
  std::string plain;
  for (char c : text) {
    if (c != '\b') {
      plain += c;
      continue;
    }
    while (!plain.empty() && (plain.back() & 0xc0) == 0x80) plain.pop_back();  // UTF-8
    if (!plain.empty()) plain.pop_back();
  }
  return plain;
}

/// Runs a program that reads the page from standard input. On a terminal it shows the page itself;
/// else what it writes is printed here, where failures are seen. -> status; nullopt: it failed.
std::optional<int> shown_by(std::vector<std::string> command, const std::string& page) {
  Fd file(memfd_create("page", MFD_CLOEXEC)), formatted;
  if (!file || write(file.get(), page.data(), page.size()) != static_cast<ssize_t>(page.size()) ||
      lseek(file.get(), 0, SEEK_SET) != 0)
    return {};
  if (!isatty(STDOUT_FILENO) && !(formatted = Fd(memfd_create("formatted", MFD_CLOEXEC))))
    return {};
  std::vector<char*> argv;
  argv.reserve(command.size() + 1);
  for (auto& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, file.get(), STDIN_FILENO);
  if (formatted) posix_spawn_file_actions_adddup2(&actions, formatted.get(), STDOUT_FILENO);
  pid_t pid = 0;
  int error = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error) return {};
  int status = 0;
  while (waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return {};
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return {};
  if (!formatted) return kOk;
  auto text = read_file(fmt::format("/proc/self/fd/{}", formatted.get())).value_or("");
  if (text.empty()) return {};
  return print_text(without_overstrikes(text));
}

int show(const std::string& page, bool source) {
  if (source) return print_text(page);
  for (auto& command : {std::vector<std::string>{"man", "-l", "-"}, {"mandoc", "-a"}})
    if (auto status = shown_by(command, page)) return *status;
  fmt::print(stderr,
             "coretap: note: man: neither man nor mandoc can show the page: this is its source\n");
  return print_text(page);
}

int cannot(std::string_view action, const std::filesystem::path& path, std::string why) {
  return print_error("coretap", {fmt::format("man: cannot {} {}", action, printable(path.native())),
                                 std::move(why)});
}

int write_all(const std::filesystem::path& directory, const std::string& samples) {
  for (auto& [path, text] : man_pages(samples)) {
    auto file = directory / path;
    std::error_code error;
    std::filesystem::create_directories(file.parent_path(), error);
    if (error) return cannot("create", file.parent_path(), error.message());
    Fd fd(open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!fd) return cannot("create", file, strerror(errno));
    Sink out(fd.get());
    out.write(text);
    out.flush();
    if (out.failed()) return cannot("write", file, out.error().why);
  }
  return kOk;
}

}  // namespace

std::map<std::string, std::string> man_pages(const std::string& samples) {
  std::map<std::string, std::string> all{{"man8/coretap.8", coretap_man_page()}};
  for (auto& topic : kTopics)
    all.emplace(fmt::format("man{0}/coretap-{1}.{0}", topic.section, topic.name), topic.page());
  for (auto& call : all_names())
    all.emplace(
        fmt::format("man8/{}.8", page_of(call.name)),
        !call.option.empty()
            ? fmt::format(".so man8/{}.8\n", page_of(call.tool->name))
            : man_page(build(*call.tool),
                       samples.empty()
                           ? ""
                           : read_file(fmt::format("{}/{}.txt", samples, call.name)).value_or("")));
  for (auto& command : commands())
    if (!command.output.empty())
      all.emplace(fmt::format("man8/{}.8", page_of(command.name)), command_man_page(command));
  return all;
}

std::vector<Option> man_options() {
  return {flag(0, "source", "print the page as mdoc, for man -l - or groff -mdoc"),
          text(0, "write", "DIRECTORY",
               "write all pages below this directory instead, such as /usr/local/share/man",
               "a directory", {}, Complete::directory),
          text(0, "samples", "DIRECTORY",
               "with --write: add the sample output in this directory (docs/samples of the source)",
               {}, {}, Complete::directory)};
}

std::vector<Completion> man_topics() {
  std::vector<Completion> all;
  for (auto& topic : kTopics) all.push_back({std::string(topic.name), std::string(topic.about)});
  for (auto& call : all_names()) all.push_back({std::string(call.name), meaning_of(call)});
  for (auto& command : commands())
    if (!command.output.empty())
      all.push_back({std::string(command.name), std::string(command.summary)});
  return all;
}

int run_man(const Config& config, const std::vector<std::string>& words) {
  if (auto directory = config.text("write"); !directory.empty()) {
    if (words.empty()) return write_all(directory, std::string(config.text("samples")));
    return print_error("coretap", usage("man: --write writes all pages", "leave out the page"));
  }
  const bool source = config.given("source");
  std::string_view name = words.empty() ? "coretap" : std::string_view(words[0]);
  if (name.starts_with("coretap-")) name.remove_prefix(strlen("coretap-"));
  if (name == "coretap") return show(coretap_man_page(), source);
  for (auto& topic : kTopics)
    if (name == topic.name) return show(topic.page(), source);
  if (auto call = called(name); call.tool) return show(man_page(build(*call.tool)), source);
  if (auto* command = find_command(name); command && !command->output.empty())
    return show(command_man_page(*command), source);
  return print_error(
      "coretap",
      is_left_out(name)
          ? no_such_tool(name)
          : usage(
                fmt::format("man: there is no page '{}'", words[0]),
                "name a tool, exporter.toml, guide, migrate or output; coretap list shows all tools"));
}

}  // namespace coretap
