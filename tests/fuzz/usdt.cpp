#include "symbols/usdt.hpp"

#include "fuzz.hpp"

using namespace coretap;
using namespace coretap::symbols;

namespace {

void check(std::string_view text) {
  const auto arguments = parse_usdt_arguments(text);
  if (!arguments) return;
  MUST(arguments->size() <= 12);
  for (const auto& a : *arguments) {
    MUST(a.size == 1 || a.size == 2 || a.size == 4 || a.size == 8);
    MUST(a.scale == 1 || a.scale == 2 || a.scale == 4 || a.scale == 8);
    MUST((a.where == UsdtArgument::constant) == (a.base.empty() && a.index.empty()));
    MUST(fuzz::is_plain(a.base) && fuzz::is_plain(a.index));
  }
}

}  // namespace

/// Specifications of a probe's arguments.
FUZZ(usdt_arguments, bytes) { check(bytes); }

/// A file with notes.
FUZZ(usdt, bytes) {
  const fuzz::MemoryFile file(bytes);
  const auto found = read_usdt(file.fd());
  MUST(found.readable || found.probes.empty());
  for (const auto& probe : found.probes) {
    MUST(!probe.name.empty());
    MUST(probe.offset < bytes.size() && probe.semaphore < bytes.size());
    check(probe.arguments);
  }
}
