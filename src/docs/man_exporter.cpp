// coretap-exporter.toml(5): the configuration of `coretap serve`.
#include <span>

#include <fmt/format.h>

#include "docs/man.hpp"
#include "docs/man_parts.hpp"
#include "serve/config_keys.hpp"

namespace coretap {

namespace {

void key_list(Page& p, std::span<const serve::ConfigKey> keys) {
  p.begin("-tag -width 4n");
  for (auto& key : keys) {
    p.item(fmt::format("Li {} = Ar {}", key.name, inline_words(key.value)));
    p.prose(key.about);
  }
  p.end();
}

}  // namespace

std::string exporter_man_page() {
  Page p("coretap-exporter.toml", 5, "which tools coretap serve runs, and what it shows of them");
  p.section("DESCRIPTION");
  p.prose(
      "The file that coretap-serve(8) reads, in TOML; the package coretap-exporter has it as "
      "/etc/coretap/exporter.toml. It has a table [serve], which may be left out, and a table "
      "[[tool]] for each tool. Keys that are not described here are errors: nothing starts, or, on "
      "SIGHUP, the configuration before it stays. coretap serve --check FILE says what a file makes "
      "and whether it runs here.");
  p.section("THE TABLE SERVE");
  key_list(p, serve::kServeKeys);
  p.section("EACH TOOL");
  key_list(p, serve::kToolKeys);
  p.section("EVENT FILES");
  p.prose("The keys of events:");
  key_list(p, serve::kEventKeys);
  p.section("FILES");
  p.begin("-tag -width 4n");
  p.item("Pa /etc/coretap/exporter.toml");
  p.prose("What the service of the package coretap-exporter reads.");
  p.end();
  p.section("EXAMPLES");
  p.prose("Latency of block I/O by disk, executed programs with their names, and profiles:");
  p.literal(
      "[serve]\n"
      "listen = \"127.0.0.1:9961\"\n"
      "\n"
      "[[tool]]\n"
      "run = \"biolatency -D\"\n"
      "max_series = 300\n"
      "\n"
      "[[tool]]\n"
      "run = \"execsnoop\"\n"
      "labels = [\"comm\"]\n"
      "events = { file = \"/var/log/coretap/exec.jsonl\", per_second = 200 }\n"
      "\n"
      "[[tool]]\n"
      "run = \"profile -F 19\"\n"
      "name = \"cpu\"");
  p.section("SEE ALSO");
  p.macro("Xr coretap-output 7 ,");
  p.macro("Xr coretap 8 ,");
  p.macro("Xr coretap-serve 8");
  return p.finish();
}

}  // namespace coretap
