// The keys of coretap-exporter.toml(5), and their text in its manual page.
#pragma once
#include <string_view>

namespace coretap::serve {

struct ConfigKey {
  std::string_view name;
  std::string_view value;  ///< placeholder for its value in a manual page
  std::string_view about;  ///< sentences
};

inline constexpr ConfigKey kServeKeys[] = {
    {"listen", "ADDRESS:PORT",
     "Where requests are answered: an address of this machine and a port, as 127.0.0.1:9961 (the "
     "default) or [::1]:9961, or unix:PATH, a socket that its group may use. A socket that the "
     "service manager passes comes first. An address that is not of this machine alone shows the "
     "metrics to everyone who can reach it."},
    {"max_series", "NUMBER", "Lines of all tools together (default: 5000)."},
};

inline constexpr ConfigKey kHindsightKeys[] = {
    {"directory", "PATH",
     "Where ring and dumps are, a directory of the service's user (default: /run/coretap/hindsight, "
     "which is lost at a reboot)."},
    {"last", "TIME", "What of each tool is kept, as 5m (the default)."},
    {"after", "TIME", "How long a dump goes on after its trigger (default: 30s; 0s: not)."},
    {"most", "SIZE",
     "Limit of ring and dumps together (default: 256M). The oldest dump goes first; then what is kept "
     "is shorter."},
    {"keep", "NUMBER", "Dumps that stay (default: 20)."},
    {"at_most", "NUMBER/TIME", "Dumps that triggers may make in TIME (default: 1/10m)."},
    {"free", "SIZE",
     "Space that stays free in the file system (default: 64M, or a twentieth of it)."},
    {"on", "[TRIGGER, ...]",
     "When a dump is made: \"psi memory some 150ms/1s\", \"load > 4/cpu\", \"TOOL\" (each event of "
     "it), \"TOOL > 500/s\", or a condition on a metric; see below. "
     "The tool needs hindsight = true."},
    {"token_file", "PATH",
     "A file with a word of 16 to 256 characters. Requests for a dump that have it in a header "
     "Authorization: Bearer come from any address, and at_most does not limit them."},
};

inline constexpr ConfigKey kOtlpKeys[] = {
    {"endpoint", "URL",
     "Where it is pushed to: http://ADDRESS:PORT, perhaps with a path, to which /v1/metrics and "
     "/v1/logs are added, or unix:PATH, a socket. ADDRESS is a number, as 127.0.0.1 or [::1], or "
     "localhost; other names are not resolved. There is no https: an OpenTelemetry Collector on this "
     "machine can encrypt what it sends on. Required."},
    {"every", "SECONDS",
     "How often metrics are pushed (default: 60). Events are pushed within a second."},
    {"headers", "{ NAME = VALUE, ... }",
     "Headers that each request has, as { X-Scope-OrgID = \"ops\" }. Nothing of it is encrypted."},
};

inline constexpr ConfigKey kToolKeys[] = {
    {"run", "COMMAND",
     "The tool and its options, as typed after coretap. Words are divided as a shell does; nothing "
     "is expanded. Options that end tracing or that are about printing have no effect. Required."},
    {"name", "NAME",
     "Value of the label tool, and NAME of /debug/pprof/NAME (default: the tool). Needed where a "
     "tool is there twice; the tool's own metrics then have it as the label entry."},
    {"labels", "[KEY, ...]",
     "Keys of the tool's JSON that become labels besides those that have few values: comm, cgroup, "
     "uid and others whose values any user can make. Each new value is a new set of series; see "
     "max_series."},
    {"max_series", "NUMBER",
     "Lines of the tool's own metrics (default: 500, or an equal part of what is left of the sum). "
     "What has no series of its own is counted in one whose label is other."},
    {"max_events_per_second", "NUMBER",
     "Above this number, for longer than some seconds, the tool ends for ten minutes (default: 20000 "
     "for tools that show each event; 0: no limit)."},
    {"hindsight", "true",
     "The tool is recorded, and the last minutes stay as the table [hindsight] says (default: "
     "false). Its name is that of its files: letters, digits, - and _."},
    {"events", "{ ... }",
     "Each event is also written to a file, as a line of JSON, or pushed, or both. For tools that "
     "show each event."},
};

inline constexpr ConfigKey kEventKeys[] = {
    {"file", "PATH", "The file; lines are appended. Required, unless events are pushed."},
    {"otlp", "true", "Events are pushed to where the table [otlp] says (default: false)."},
    {"max_bytes", "SIZE", "A file of this size is renamed and a new one begun (default: 50M)."},
    {"keep", "NUMBER", "Files that were renamed and stay, FILE.1 the youngest (default: 3)."},
    {"per_second", "NUMBER",
     "Events that are written or pushed in a second; others are limited in the ledger (default: "
     "all)."},
};

}  // namespace coretap::serve
