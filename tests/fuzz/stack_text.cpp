#include <algorithm>
#include <array>

#include "fuzz.hpp"
#include "stacks/flamegraph.hpp"
#include "stacks/stack_layout.hpp"

using namespace coretap;

namespace {

Frames frames(fuzz::Input& input) {
  Frames all;
  for (int n = input.number<std::uint8_t>() % 8; n > 0; n--) all.emplace_back(input.text());
  return all;
}

}  // namespace

/// Names of tasks and functions in each output format of stacks.
FUZZ(stack_text, bytes) {
  fuzz::Input input(bytes);
  const auto how = input.number<std::uint8_t>();
  constexpr StackReport::Layout kLayouts[] = {StackReport::alone, StackReport::waker,
                                              StackReport::chain};
  const StackReport report{
      "microseconds", (how & 4) != 0 ? StackReport::samples : StackReport::time, kLayouts[how % 3]};
  const StackLayout layout(report, {.annotated = (how & 8) != 0, .delimited = (how & 16) != 0});
  FlameGraph graph(1, static_cast<FlameGraph::ColourBy>(how >> 5 & 3));
  do {
    std::vector<StackParty> parties;
    for (int n = report.layout == StackReport::alone ? 1 : 2; n > 0; n--) {
      auto& party = parties.emplace_back();
      party.who = input.number<stack_party>();
      party.kernel = frames(input);
      party.user = frames(input);
      if (input.number<std::uint8_t>() & 1) party.cut = "no frame pointers";
    }
    const auto sum = input.number<stack_sum>();
    const auto folded = layout.folded(parties);
    const auto path = layout.path(parties);
    MUST(fuzz::is_plain(folded));
    MUST(std::ranges::count(folded, ';') == static_cast<std::ptrdiff_t>(path.size()) - 1);
    for (auto& line : layout.lines(parties)) MUST(fuzz::is_plain(line));
    MUST(fuzz::is_json(layout.json(parties, sum)));
    MUST(fuzz::is_plain(layout.csv(parties, sum)));
    graph.add(path, layout.value(sum) >> 8);
  } while (!input.empty());

  const auto svg = graph.svg({"title " + std::string(bytes.substr(0, 64)), "samples", {}});
  auto rest =
      std::string_view(svg).substr(svg.rfind("</script>") == svg.npos ? 0 : svg.rfind("</script>"));
  for (auto line = rest.substr(0, rest.find('\n')); !rest.empty();
       line = rest.substr(0, rest.find('\n'))) {
    MUST(fuzz::is_plain(line));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  }
}
