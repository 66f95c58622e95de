#include "text.hpp"

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <set>
#include <sstream>

namespace coretap::tooltest {

Strings complete_lines(const std::string& text) {
  Strings lines;
  std::size_t at = 0;
  for (auto end = text.find('\n'); end != std::string::npos; end = text.find('\n', at)) {
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::string join(const Strings& words) {
  std::string text;
  for (auto& w : words) text += (text.empty() ? "" : " ") + w;
  return text;
}

bool contains(std::string_view text, std::string_view what) {
  return text.find(what) != std::string_view::npos;
}

::testing::AssertionResult safe_for_terminals(const std::string& text) {
  char before = '\n';
  for (char byte : text) {
    auto c = static_cast<unsigned char>(byte);
    bool indents = c == '\t' && (before == '\n' || before == '\t');
    if ((c < 0x20 && c != '\n' && !indents) || c == 0x7f)
      return ::testing::AssertionFailure() << "a raw byte " << int(c) << " in: " << text;
    before = byte;
  }
  // RapidJSON's decoder checks the encoding.
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer, rapidjson::UTF8<>, rapidjson::UTF8<>,
                    rapidjson::CrtAllocator, rapidjson::kWriteValidateEncodingFlag>
      writer(buffer);
  if (!writer.String(text.data(), static_cast<unsigned>(text.size())))
    return ::testing::AssertionFailure() << "not UTF-8: " << text;
  // C1 controls act like ESC [ on some terminals.
  for (std::size_t i = 0; i + 1 < text.size(); i++)
    if (text[i] == '\xc2' && static_cast<unsigned char>(text[i + 1]) < 0xa0)
      return ::testing::AssertionFailure() << "a C1 control in: " << text;
  return ::testing::AssertionSuccess();
}

Strings lines(const std::string& text) {
  EXPECT_TRUE(text.empty() || text.ends_with('\n')) << "the last line is not complete: " << text;
  return complete_lines(text);
}

Strings csv_fields(const std::string& line) {
  Strings fields{""};
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); i++) {
    if (quoted && line[i] == '"' && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += line[i++];
    } else if (line[i] == '"') {
      quoted = !quoted;
    } else if (line[i] == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += line[i];
    }
  }
  EXPECT_FALSE(quoted) << "a quote is open: " << line;
  return fields;
}

std::size_t check_csv(const std::string& text) {
  EXPECT_TRUE(safe_for_terminals(text));
  auto all = lines(text);
  if (all.empty()) {
    ADD_FAILURE() << "no header line";
    return 0;
  }
  auto header = csv_fields(all[0]);
  std::set<std::string> names(header.begin(), header.end());
  EXPECT_EQ(names.size(), header.size()) << all[0];
  EXPECT_FALSE(names.contains("")) << all[0];
  for (auto& row : all) EXPECT_EQ(csv_fields(row).size(), header.size()) << all[0] << '\n' << row;
  return all.size() - 1;
}

void check_histogram(const Json& histogram, std::uint64_t unit_ns) {
  std::uint64_t count = 0, least = 0, last = 0;
  double most = 0;
  for (auto& slot : histogram["histogram"].items()) {
    auto from = slot["from_ns"].u64(), below = slot["below_ns"].u64(), n = slot["count"].u64();
    EXPECT_LT(from, below);
    EXPECT_GE(from, last) << "slots overlap or are not in order";
    EXPECT_EQ(from % unit_ns, 0u);
    EXPECT_EQ(below % unit_ns, 0u);
    EXPECT_GT(n, 0u) << "empty slots are left out";
    last = below;
    count += n;
    least += n * from;
    most += static_cast<double>(n) * static_cast<double>(below);
  }
  EXPECT_EQ(histogram["count"].u64(), count);
  // The sum is within the bounds of the slots.
  EXPECT_GE(histogram["total_ns"].u64(), least);
  EXPECT_LE(static_cast<double>(histogram["total_ns"].u64()), most);
}

Strings words(const std::string& text) {
  std::istringstream in(text.substr(0, text.find('\n')));
  Strings all;
  for (std::string word; in >> word;) all.push_back(word);
  return all;
}

std::string in_json(std::string text) {
  for (auto c : {"\xff", "\xc3"})
    for (auto at = text.find(c); at != text.npos; at = text.find(c))
      text.replace(at, 1, "\xef\xbf\xbd");
  return text;
}

std::string unhex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

}  // namespace coretap::tooltest
