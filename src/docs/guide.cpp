// `coretap guide` and coretap-guide(7).
#include "docs/guide.hpp"

#include <fmt/format.h>

#include "cli/help.hpp"
#include "coretap/json.hpp"
#include "coretap/parse.hpp"
#include "docs/man.hpp"
#include "docs/mdoc.hpp"
#include "text/errors.hpp"

namespace coretap {

namespace {

const GuidePage* find_page(std::string_view name) {
  for (auto& page : guide_pages())
    if (page.name == name) return &page;
  return nullptr;
}

std::string page_text(const GuidePage& page) {
  auto text = fmt::format("{}: {}\n\n{}", page.name, page.summary, wrap(page.about, 0));
  for (auto& part : page.parts) {
    text += fmt::format("\n{}\n", part.title);
    if (!part.about.empty()) text += wrap(part.about, 0);
    for (auto& step : part.steps) {
      text += fmt::format("\n  {}\n      coretap {}\n{}", step.question, step.command,
                          wrap(step.reading, 4));
      if (!step.next.empty()) text += wrap(fmt::format("Next: {}", step.next), 4);
    }
  }
  return text;
}

std::string page_json(const GuidePage& page) {
  std::string out;
  for (auto& part : page.parts)
    for (auto& step : part.steps) {
      JsonLine line;
      line.text("type", "step").text("page", page.name).text("part", part.title);
      line.text("question", step.question).text("command", fmt::format("coretap {}", step.command));
      line.text("reading", step.reading).text_if(!step.next.empty(), "next", step.next);
      out += fmt::format("{}\n", line.finish());
    }
  return out;
}

std::string pages_text() {
  std::string text = "Procedures, step by step: coretap guide PAGE\n\n";
  for (auto& page : guide_pages()) text += help_row(std::string(page.name), page.summary);
  return text + "\nAll in one: man coretap-guide\n";
}

std::string pages_json() {
  std::string out;
  for (auto& page : guide_pages()) {
    JsonLine line;
    line.text("type", "page").text("page", page.name).text("summary", page.summary);
    out += fmt::format("{}\n", line.finish());
  }
  return out;
}

}  // namespace

std::vector<Completion> guide_topics() {
  std::vector<Completion> all;
  for (auto& page : guide_pages())
    all.push_back({std::string(page.name), std::string(page.summary)});
  return all;
}

int run_guide(const Config& config, const std::vector<std::string>& words) {
  const bool json = config.given("json");
  if (words.empty()) return print_text(json ? pages_json() : pages_text());
  if (auto* page = find_page(words[0]))
    return print_text(json ? page_json(*page) : page_text(*page));
  std::string names;
  for (auto& page : guide_pages())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", page.name);
  return print_error("coretap",
                     {fmt::format("guide: there is no page '{}'", words[0]),
                      {},
                      fmt::format("there are: {}; coretap find searches all of them", names),
                      kUsage});
}

std::string guide_man_page() {
  Page p("coretap-guide", 7, "procedures for problems of performance, step by step");
  p.section("DESCRIPTION");
  p.prose(
      "Each page is a list of questions, with a command that answers each one, how to read its "
      "output, and what to do next. coretap guide PAGE prints one. The commands run for some "
      "seconds and end by themselves; most need root. A command that this kernel cannot run exits "
      "with status 3 and says why. Settings of the kernel that are named here last until the next "
      "boot, unless they are written to sysctl.conf(5); change one at a time, and measure again.");
  for (auto& page : guide_pages()) {
    p.section(upper_case(page.name));
    p.prose(sentence(page.summary));
    p.macro("Pp");
    p.prose(page.about);
    for (auto& part : page.parts) {
      p.macro(fmt::format("Ss {}", inline_words(part.title)));
      p.prose(part.about);
      p.begin("-tag -width Ds");
      for (auto& step : part.steps) {
        p.item(inline_words(step.question));
        p.example(fmt::format("coretap {}", step.command));
        p.prose(step.reading);
        if (!step.next.empty()) {
          p.macro("Pp");
          p.prose(fmt::format("Next: {}", step.next));
        }
      }
      p.end();
    }
  }
  return p.finish({"coretap-output 7", "coretap 8"});
}

}  // namespace coretap
