#include "program/picture.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "coretap/parse.hpp"
#include "coretap/sanitize.hpp"
#include "kernel/kernel.hpp"

namespace coretap {

PictureTitle picture_title(const Session& s, std::uint64_t lasted_ns, std::string_view unit) {
  std::string text(s.tool.name);
  for (auto& [name, value] : s.config.given_options()) {
    if (name == "svg" || name == "pprof" || name == "heatmap" || name == "diff" || name == "record")
      continue;
    text += fmt::format(" --{}{}{}", name, value.empty() ? "" : " ", value);
  }
  // The command's arguments may be secret, and pictures are shared.
  if (!s.config.command.empty())
    text += fmt::format(" -- {}{}", s.config.command[0], s.config.command.size() > 1 ? " ..." : "");
  auto seconds = static_cast<double>(lasted_ns) / 1e9;
  PictureTitle words{fmt::format("{}, {:.1f} s, Linux {}", text, seconds, kernel_release()),
                     std::string(unit), s.ledger.losses()};
  words.notes.insert(words.notes.end(), s.plan.limits.begin(), s.plan.limits.end());
  return words;
}

void put_code(std::string& out, std::string_view code) {
  while (!code.empty()) {
    auto line = take_until(code, '\n');
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    if (line.empty() || line.starts_with("//")) continue;
    out += line;
    out += '\n';
  }
}

void begin_picture(std::string& out, const PictureTitle& title, int height,
                   std::string_view style) {
  out += fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\">\n<title>{2}</title>\n<style><![CDATA[",
      kPictureWidth, height, xml_text(title.title));
  put_code(out, kPictureStyle);
  out += style;
  out += "]]></style>\n<rect class=\"bg\" width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
}

namespace {
constexpr int kFirstNote = 28 + kPictureLine;
}  // namespace

int below_titles(const std::vector<std::string>& notes) {
  return kFirstNote + kPictureLine * static_cast<int>(notes.size());
}

void put_titles(std::string& out, const PictureTitle& title,
                const std::vector<std::string>& notes) {
  out += fmt::format("<text class=\"ink title\" x=\"{}\" y=\"24\">{}</text>\n", kPictureMargin,
                     xml_text(title.title));
  int y = kFirstNote;
  for (auto& note : notes) {
    out += fmt::format("<text class=\"dim note\" x=\"{}\" y=\"{}\">{}</text>\n", kPictureMargin, y,
                       xml_text(note));
    y += kPictureLine;
  }
}

void end_picture(std::string& out, std::string_view script) {
  out += "<script><![CDATA[";
  put_code(out, kPictureScript);
  put_code(out, script);
  out += "]]></script>\n</svg>\n";
}

std::string grouped(std::uint64_t value) {
  auto digits = std::to_string(value);
  for (auto i = static_cast<std::ptrdiff_t>(digits.size()) - 3; i > 0; i -= 3)
    digits.insert(static_cast<std::size_t>(i), 1, ',');
  return digits;
}

}  // namespace coretap
