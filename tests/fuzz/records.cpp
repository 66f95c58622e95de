#include <algorithm>
#include <map>

#include "coretap/tool.hpp"
#include "fuzz.hpp"
#include "text/columns.hpp"

using namespace coretap;

namespace {

struct Shape {
  std::vector<Field> fields;
  std::size_t size = 0;
};

Shape shape_of(const Report& report) { return {report->fields(), report->record_size()}; }

const std::vector<Shape>& shapes() {
  static const auto all = [] {
    std::vector<Shape> found;
    for (auto& entry : registry()) {
      const auto tool = build(entry);
      found.push_back(shape_of(tool.report));
      for (auto& other : tool.other_reports) found.push_back(shape_of(other.report));
    }
    std::erase_if(found, [](auto& shape) { return shape.size == 0; });
    return found;
  }();
  return all;
}

}  // namespace

/// The first byte chooses a report. Its record and the texts after it may hold anything; only their
/// offsets are from the kernel program, so the buffer has room for each possible offset.
FUZZ(records, bytes) {
  constexpr std::size_t kRoom = 2 << 16;
  fuzz::Input input(bytes);
  const auto& shape = shapes()[input.number<std::uint8_t>() % shapes().size()];
  std::vector<char> record(shape.size + kRoom);
  const auto content = input.text(record.size());
  std::copy(content.begin(), content.end(), record.begin());

  const Names names;
  for (auto format : {OutputFormat::text, OutputFormat::csv, OutputFormat::json}) {
    Config config;
    config.format = format;
    Columns columns;
    columns.choose(config, shape.fields);
    MUST(fuzz::is_plain(columns.row(record.data(), names)));
    MUST(fuzz::is_plain(columns.csv(record.data(), names)));
    JsonLine line;
    columns.json(line, record.data(), names);
    MUST(fuzz::is_json(line.finish()));
  }
}
