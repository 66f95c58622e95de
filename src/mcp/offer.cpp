#include "mcp/offer.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "cli/parser.hpp"
#include "coretap/sanitize.hpp"
#include "coretap/tool.hpp"
#include "why/why.hpp"

namespace coretap::mcp {

namespace {

constexpr std::size_t kLongestValue = 4096;  // bytes
constexpr std::size_t kMostWords = 32;
constexpr std::size_t kMostChoices = 24;  // in a description

// About the form of the output, the length of the run, or the run as a process.
constexpr std::string_view kNotOffered[] = {"append",
                                            "color",
                                            "csv",
                                            "duration",
                                            "exit-status",
                                            "explain",
                                            "fail",
                                            "folded",
                                            "from",
                                            "help",
                                            "heatmap",
                                            "json",
                                            "list",
                                            "noclear",
                                            "raw",
                                            "rotate",
                                            "return-trampoline",
                                            "rules",
                                            "strict",
                                            "verbose",
                                            "version",
                                            "output-format",
                                            "keep-screen",
                                            "dump-signal",
                                            "offset",
                                            "delimited",
                                            "timestamp",
                                            "utc",
                                            "time",
                                            "debug"};

bool is_path(Complete complete) {
  return complete == Complete::file || complete == Complete::directory ||
         complete == Complete::command;
}

std::string doc_of(const Option& option) {
  std::string doc(option.doc);
  if (!option.metavar.empty()) doc += fmt::format(" ({})", option.metavar);
  if (!option.words) return doc;
  auto words = option.words();
  if (words.empty() || words.size() > kMostChoices) return doc;
  std::string all;
  for (auto& w : words) all += (all.empty() ? "" : ", ") + w.word;
  return doc + "; one of: " + all;
}

/// The value of an option as text; nothing: it is of another type.
std::optional<std::string> text_in(const rapidjson::Value& value) {
  if (value.IsString()) return std::string(value.GetString(), value.GetStringLength());
  if (value.IsInt64()) return std::to_string(value.GetInt64());
  if (value.IsUint64()) return std::to_string(value.GetUint64());
  if (value.IsDouble()) return fmt::format("{}", value.GetDouble());
  return {};
}

Result<void> check_text(std::string_view of, std::string_view text) {
  if (text.size() > kLongestValue)
    return usage(fmt::format("{}: a value has at most {} bytes", of, kLongestValue));
  if (text.find('\0') != text.npos) return usage(fmt::format("{}: a value has a zero", of));
  return {};
}

Result<void> add_option(Call& call, const Option& option, const rapidjson::Value& value) {
  const auto name = std::string(option.name);
  if (value.IsBool() && (option.metavar.empty() || option.value_may_be_omitted())) {
    if (value.GetBool()) call.words.push_back("--" + name);
    return {};
  }
  if (option.metavar.empty()) return usage(name + ": true or false");
  auto text = text_in(value);
  if (!text) return usage(name + ": a string or a number");
  if (auto r = check_text(name, *text); !r) return r;
  // In one word: the value cannot be taken for an option.
  call.words.push_back(fmt::format("--{}={}", name, *text));
  return {};
}

Result<void> add_words(Call& call, const Offer& offer, const rapidjson::Value& value) {
  if (!value.IsArray() || value.Size() > kMostWords)
    return usage(fmt::format("words: an array of at most {} strings", kMostWords));
  const bool any = !offer.positionals.empty() && offer.positionals.back().repeats();
  if (!any && value.Size() > offer.positionals.size())
    return usage(fmt::format("words: at most {}", offer.positionals.size()));
  for (auto& word : value.GetArray()) {
    auto text = text_in(word);
    if (!text || text->empty()) return usage("words: a string is empty, or is no string");
    if (auto r = check_text("words", *text); !r) return r;
    if (text->front() == '-')
      return usage(fmt::format("words: '{}' begins with '-'", printable(*text)),
                   "options have separate parameters");
    call.words.push_back(*text);
  }
  return {};
}

}  // namespace

bool only_chooses(const Option& option) {
  return !is_path(option.complete) &&
         std::ranges::find(kNotOffered, option.name) == std::end(kNotOffered);
}

Offer offer_of(std::string_view name) {
  Offer offer;
  offer.name = name;
  std::vector<Option> options;
  if (name == kWhyTool) {
    offer.description =
        "What costs a process, a cgroup or the whole machine time: the causes in words, with "
        "evidence and the next command. Begin with this one.";
    options = why_options();
    offer.seconds_are_word = true;
    offer.least_seconds = 1;
  } else {
    auto tool = build(*find_tool(name));
    offer.description = std::string(tool.summary) + '.';
    for (auto& q : tool.questions) offer.description += fmt::format(" {}", q.question);
    options = all_options(tool);
    for (auto& p : tool.positionals) {
      // INTERVAL, COUNT and what options say, too.
      if (!p.option.empty() || p.metavar == "COUNT" || is_path(p.complete)) break;
      offer.positionals.push_back(p);
    }
  }
  for (auto& o : options)
    if (only_chooses(o)) offer.options.push_back(std::move(o));
  return offer;
}

void describe(JsonLine& line, const Offer& offer) {
  line.begin_object().text("name", offer.name).text("description", offer.description);
  line.key("inputSchema").begin_object().text("type", "object");
  line.key("properties").begin_object();
  line.key("seconds").begin_object().text("type", "number");
  line.text("description", "how long it observes");
  line.key("minimum").real(offer.least_seconds).key("maximum").real(kMostSeconds);
  line.key("default").real(kUsualSeconds).end_object();
  if (!offer.positionals.empty()) {
    std::string doc;
    for (auto& p : offer.positionals)
      doc += fmt::format("{}{}{}: {}", doc.empty() ? "" : "; ", p.metavar,
                         p.needed() ? " (required)" : "", p.doc);
    line.key("words").begin_object().text("type", "array").key("items").begin_object();
    line.text("type", "string").end_object().text("description", doc).end_object();
  }
  for (auto& o : offer.options) {
    line.key(o.name).begin_object();
    if (o.metavar.empty())
      line.text("type", "boolean");
    else if (o.value_may_be_omitted())
      line.texts("type", std::vector<std::string_view>{"string", "number", "boolean"});
    else
      line.texts("type", std::vector<std::string_view>{"string", "number"});
    line.text("description", doc_of(o)).end_object();
  }
  line.end_object().boolean("additionalProperties", false);
  if (std::ranges::any_of(offer.positionals, [](auto& p) { return p.needed(); }))
    line.texts("required", std::vector<std::string_view>{"words"});
  line.end_object();
  line.key("annotations").begin_object().boolean("readOnlyHint", true).end_object();
  line.end_object();
}

Result<Call> call_of(const Offer& offer, const rapidjson::Value* arguments) {
  Call call{{"coretap", offer.name, "--json"}};
  const rapidjson::Value* words = nullptr;
  if (arguments && !arguments->IsObject()) return usage("arguments: not an object");
  if (arguments)
    for (auto& entry : arguments->GetObject()) {
      const std::string_view name(entry.name.GetString(), entry.name.GetStringLength());
      if (name == "seconds") {
        const bool number = entry.value.IsNumber();
        call.seconds = number ? entry.value.GetDouble() : 0;
        if (!(call.seconds >= offer.least_seconds && call.seconds <= kMostSeconds))
          return usage(fmt::format("seconds: a number from {:g} to {:g}", offer.least_seconds,
                                   kMostSeconds));
        continue;
      }
      if (name == "words" && !offer.positionals.empty()) {
        words = &entry.value;
        continue;
      }
      auto option = std::ranges::find(offer.options, name, &Option::name);
      if (option == offer.options.end())
        return usage(fmt::format("{} has no parameter '{}'", offer.name, printable(name)));
      if (auto r = add_option(call, *option, entry.value); !r) return r.error();
    }
  const auto seconds = fmt::format("{:.3f}", call.seconds);
  call.words.push_back(offer.seconds_are_word ? seconds : "--duration=" + seconds);
  if (words)
    if (auto r = add_words(call, offer, *words); !r) return r.error();
  return call;
}

}  // namespace coretap::mcp
