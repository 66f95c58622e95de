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
      "/etc/coretap/exporter.toml. It has a table [serve], which may be left out, a table "
      "[[tool]] for each tool, and a table [otlp] where metrics are also to be pushed. Keys that are not described here are errors: nothing starts, or, on "
      "SIGHUP, the configuration before it stays. coretap serve --check FILE says what a file makes "
      "and whether it runs here.");
  p.section("THE TABLE SERVE");
  key_list(p, serve::kServeKeys);
  p.section("EACH TOOL");
  key_list(p, serve::kToolKeys);
  p.section("EVENTS");
  p.prose("The keys of events:");
  key_list(p, serve::kEventKeys);
  p.section("THE TABLE OTLP");
  p.prose(
      "With it coretap serve also pushes, by OTLP over HTTP (protobuf, compressed by gzip), to an "
      "OpenTelemetry Collector or another receiver. --once and --textfile push nothing.");
  key_list(p, serve::kOtlpKeys);
  p.macro("Pp");
  p.prose(
      "Metrics are those of the page, cumulative. Their names have dots and no units "
      "(coretap.biolatency in s is coretap_biolatency_seconds), so that a receiver that makes "
      "Prometheus' names gets those of the page; attributes have the names of the labels. An event "
      "is a log record: its event name is coretap.TOOL, its time is that of the event, its body is the "
      "line of JSON, and its fields are attributes. Those that OpenTelemetry has a name for have that "
      "one (process.pid, thread.name), others begin with coretap. The resource has service.name, "
      "service.version, host.name and service.instance.id, which is the name of the host too.");
  p.macro("Pp");
  p.prose(
      "Pushing holds nothing up. Requests that wait have 1 MiB, compressed; above it the oldest are "
      "dropped. After the status 429, 502, 503 or 504, or without an answer, a request is made again: "
      "after the time that the receiver says, or after 1 s and then after twice the time before, "
      "5 min at most. If only the answer was lost, the receiver gets it twice. Any other failure drops what the request holds. At the end of the service what is left "
      "has 2 s. coretap_otlp_dropped_total counts what was dropped, and coretap_otlp_requests_total "
      "the requests by what became of them. An event for which the buffer of the tool has no room is "
      "limited in the ledger, neither written nor pushed.");
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
      "[otlp]\n"
      "endpoint = \"unix:/run/otelcol/otlp.sock\"\n"
      "\n"
      "[[tool]]\n"
      "run = \"biolatency -D\"\n"
      "max_series = 300\n"
      "\n"
      "[[tool]]\n"
      "run = \"execsnoop\"\n"
      "labels = [\"comm\"]\n"
      "events = { file = \"/var/log/coretap/exec.jsonl\", otlp = true, per_second = 200 }\n"
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
