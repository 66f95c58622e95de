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
  for (auto& key : keys)
    p.item(fmt::format("Li {} = Ar {}", key.name, inline_words(key.value)), key.about);
  p.end();
}

}  // namespace

std::string exporter_man_page() {
  Page p("coretap-exporter.toml", 5, "which tools coretap serve runs, and what it exports");
  p.section("DESCRIPTION");
  p.prose(
      "The TOML file that coretap-serve(8) reads; the package coretap-exporter installs it as "
      "/etc/coretap/exporter.toml. It has a table [serve], which may be omitted, a table "
      "[[tool]] for each tool, a table [otlp] if metrics are also to be pushed, and a table "
      "[hindsight] if recordings of the last minutes are to be kept. Keys that "
      "are not described here are errors: nothing starts or, on SIGHUP, the previous "
      "configuration stays in effect. coretap serve --check FILE shows what a file produces and "
      "whether its tools run here.");
  p.section("THE TABLE SERVE");
  key_list(p, serve::kServeKeys);
  p.section("EACH TOOL");
  key_list(p, serve::kToolKeys);
  p.section("EVENTS");
  p.prose("The keys of events:");
  key_list(p, serve::kEventKeys);
  p.section("THE TABLE HINDSIGHT");
  p.prose(
      "With this table, coretap serve is a flight recorder, as coretap record --last: tools with "
      "hindsight = true are also recorded, in segments of some seconds, of which the last minutes "
      "stay. A trigger, SIGUSR1 or a request POST /dump saves them in a dump, a directory of links "
      "that coretap show prints. A tool that ends and is started again records into the same "
      "ring. SIGHUP does not change this table.");
  key_list(p, serve::kHindsightKeys);
  p.macro("Pp");
  p.prose(
      "A condition on a metric is METRIC{LABEL=\"VALUE\", ...} MEASURE > LIMIT for TIME, or with <. "
      "METRIC is one of a tool that is kept, as --check lists them; labels may be left out, and the "
      "label entry chooses one of several entries. For a histogram, MEASURE is a percentile of the "
      "last second, as p99 or p99.9, and LIMIT a value with its unit: coretap_runqlat_seconds p99 > "
      "20ms. For a counter, LIMIT is a rate: coretap_execsnoop_events_total > 500/s. A gauge is "
      "compared as it is: coretap_loads{state=\"D\"} > 8. Series that match are added up; gauges are "
      "compared one by one. Units are ns, us, ms, s, m and h, or K, M, G and T. With for TIME (1s to "
      "1h) the condition must hold in each second of that time; a second without events interrupts "
      "it for a percentile. It is judged each second, and makes one dump until it no longer "
      "holds.\n\n"
      "POST /dump answers 200 and a line of JSON with the path of the dump. POST /dump?last=2m "
      "saves only the last two minutes of what is kept; the status is 400 if that is not a time. While a dump goes on "
      "(after), it is that one, and new is false. Without a dump the status is 503, with the reason; "
      "it is 409 if nothing is recorded. Requests must come from this machine, without headers "
      "Origin, Forwarded and X-Forwarded-For, or have the token; otherwise the status is 403. Those "
      "from this machine count for at_most, unless they come by a Unix socket from root or the "
      "user of the service.");
  p.section("THE TABLE OTLP");
  p.prose(
      "With this table, coretap serve also pushes data by OTLP over HTTP (protobuf, "
      "gzip-compressed) to an OpenTelemetry Collector or another receiver. --once and --textfile "
      "push nothing.");
  key_list(p, serve::kOtlpKeys);
  p.macro("Pp");
  p.prose(
      "Metrics are those of the page, cumulative. Their names have dots and no units "
      "(coretap.biolatency in s is coretap_biolatency_seconds), so that a receiver that converts "
      "them to Prometheus names gets those of the page; attributes have the names of the labels. "
      "An event is a log record: its event name is coretap.TOOL, its time is that of the event, "
      "its body is the JSON line, and its fields are attributes. Fields that have a name in "
      "OpenTelemetry use it (process.pid, thread.name), others start with coretap. The resource "
      "has service.name, service.version, host.name and service.instance.id, which is also the "
      "host name.\n\n"
      "Pushing delays nothing else. Pending requests can use 1 MiB, compressed; above that, the "
      "oldest are dropped. After status 429, 502, 503 or 504, or without a response, a request "
      "is retried: after the time that the receiver specifies, or after 1 s and then after twice "
      "the previous time, 5 min at most. If only the response was lost, the receiver gets the "
      "request twice. On any other failure, the content of the request is dropped. When the "
      "service stops, it has 2 s to push what is left. coretap_otlp_dropped_total counts what "
      "was dropped, and coretap_otlp_requests_total the requests by outcome. An event for which "
      "the tool's buffer has no room is counted as limited in the ledger, and is neither written "
      "nor pushed.");
  p.section("FILES");
  p.begin("-tag -width 4n");
  p.item("Pa /etc/coretap/exporter.toml",
         "The file that the service of the package coretap-exporter reads.");
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
  return p.finish({"coretap-output 7", "coretap 8", "coretap-serve 8"});
}

}  // namespace coretap
