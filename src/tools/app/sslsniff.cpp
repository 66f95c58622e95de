// sslsniff: data that programs read and write through TLS libraries.
#include "app/sslsniff.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "coretap/config.hpp"
#include "coretap/known_functions.hpp"
#include "coretap/sanitize.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "sslsniff.skel.h"

using namespace coretap;
using Event = sslsniff_event;
using Opt = rodata_of<sslsniff_bpf>;

namespace {

constexpr std::string_view kFunctions[] = {
    "SSL_read",           "SSL_write",        "SSL_read_ex",
    "SSL_write_ex",       "SSL_do_handshake", "gnutls_record_recv",
    "gnutls_record_send", "gnutls_handshake", "PR_Read",
    "PR_Write",           "PR_Recv",          "PR_Send"};
static_assert(std::size(kFunctions) == SSL_FUNCTIONS);
constexpr std::string_view kShakes = "handshake";
constexpr std::string_view kDirections[] = {"read",  "write", "read", "write", kShakes, "read",
                                            "write", kShakes, "read", "write", "read",  "write"};
static_assert(std::size(kDirections) == SSL_FUNCTIONS);

struct Kind {
  std::string_view name, library, unwanted;
  int first, end;  // range of the functions
};
constexpr Kind kKinds[] = {{"openssl", "libssl.so", "no-openssl", SSL_READ, TLS_RECV},
                           {"gnutls", "libgnutls.so", "no-gnutls", TLS_RECV, NSS_READ},
                           {"nss", "libnspr4.so", "no-nss", NSS_READ, SSL_FUNCTIONS}};

struct Own {
  std::vector<std::pair<std::string, std::string>> extra;  // kind, path
};

Value failed(const Event& e) { return e.failed != 0; }

Value data(const Event& e, const FieldContext& context) {
  auto bytes = text_of(e, e.data);
  bool hex = context.config && context.config->given("hexdump");
  return hex ? hexadecimal(bytes) : std::string(bytes);
}

std::vector<std::string> words(const Config& config) {
  std::vector<KnownFunction> all;
  auto add = [&](const Kind& kind, std::string_view file) {
    for (int i = kind.first; i < kind.end; i++)
      if (kDirections[i] != kShakes || config.given("handshake"))
        all.push_back({file, kFunctions[i], static_cast<std::uint8_t>(i + 1)});
  };
  for (auto& kind : kKinds)
    if (!config.given(kind.unwanted)) add(kind, kind.library);
  auto found = words_for(config, all, true);
  all.clear();
  auto& extra = config.own<Own>().extra;
  for (auto& [name, path] : extra)
    for (auto& kind : kKinds)
      if (kind.name == name) add(kind, path);
  for (auto& word : words_for(config, all))
    if (std::find(found.begin(), found.end(), word) == found.end()) found.push_back(word);
  return found;
}

std::uint8_t role(std::string_view name) {
  auto* at = std::find(std::begin(kFunctions), std::end(kFunctions), name);
  return at == std::end(kFunctions) ? 0 : static_cast<std::uint8_t>(at - kFunctions + 1);
}

Option extra_library() {
  return value(
      0, "extra-lib", "TYPE:PATH",
      "another library or program; TYPE: openssl (BoringSSL, too), gnutls, nss",
      [](Config& config, std::string_view text) -> Result<void> {
        auto colon = text.find(':');
        auto name = text.substr(0, colon);
        bool known = std::any_of(std::begin(kKinds), std::end(kKinds),
                                 [&](auto& kind) { return kind.name == name; });
        if (!known || colon == text.npos || text.substr(colon + 1).find('/') == text.npos)
          return usage("--extra-lib: '" + printable(std::string(text)) + "' is not TYPE:PATH",
                       "such as openssl:/opt/app/server");
        std::string path(text.substr(colon + 1));
        config.own<Own>().extra.emplace_back(name, path);
        return {};
      },
      Complete::file);
}

Result<void> look_up(Config& config) {
  for (auto& [kind, path] : config.own<Own>().extra)
    if (access(path.c_str(), R_OK))
      return usage(fmt::format("--extra-lib: {}: {}", printable(path), strerror(errno)),
                   "give the path of a library or program");
  return set_roles(config, words, role, setting(&Opt::target_roles));
}

}  // namespace

TOOL(sslsniff) {
  return {
      .name = "sslsniff",
      .summary = "reads and writes of programs through TLS libraries",
      .description =
          "One line for each call that reads or writes through OpenSSL (SSL_read, SSL_write and "
          "their _ex forms), GnuTLS (gnutls_record_recv, gnutls_record_send) or NSS (PR_Read, "
          "PR_Recv, PR_Write, PR_Send on descriptors with a layer), when it returns: the process, "
          "the function, the bytes of plain text and the time of the call.\n\n"
          "The plain text itself is shown only with --show-data. It is what TLS keeps secret: "
          "passwords, keys, cookies and other users' contents. Use that option only where you are "
          "allowed to read all of it, and take care where you store the output.\n\n"
          "The tool traces the system's libraries and all others that a process has mapped at the "
          "start, also in containers. Programs that are linked statically with OpenSSL or "
          "BoringSSL are traced if --pid, --library or --extra-lib names them and they have "
          "symbols. Not seen: other implementations (Go, Java, rustls), SSL_sendfile, and early "
          "data.",
      .overhead =
          "two breakpoints per call, and with --show-data a copy of what is read or written",
      .examples = {{"sslsniff", "all programs, without contents"},
                   {"sslsniff -p 181 --handshake", "process 181, with its handshakes"},
                   {"sslsniff -c curl --show-data", "what curl reads and writes, in plain text"},
                   {"sslsniff --show-data --hexdump --max-buffer-size 64",
                    "the first 64 bytes of each, in hexadecimal"},
                   {"sslsniff --extra-lib openssl:/opt/app/server",
                    "also a program that contains BoringSSL"}},
      .questions = {{"Which programs speak TLS, and how much?", "sslsniff"},
                    {"How long do TLS handshakes take?", "sslsniff --handshake"},
                    {"What does a program send through TLS?", "sslsniff -p 1234 --show-data"}},
      .differs = {{Difference::bcc,
                   "Contents are shown only with --show-data, in a column of the line. There they "
                   "are always shown, below each line."},
                  {Difference::bcc,
                   "FUNC is the name of the function. There it is READ/RECV, WRITE/SEND or "
                   "HANDSHAKE, as DIRECTION is here."},
                  {Difference::bcc,
                   "SSL_read_ex and SSL_write_ex are traced, and every library that a process has "
                   "mapped at the start. LAT(ms) is shown without an option, and failed calls are "
                   "shown. --handshake needs no other option."}},
      .object = skeleton<sslsniff_bpf>(),
      .options = joined(
          {{shared::pid(), shared::tid(0), shared::uid(), shared::comm('c'), shared::cgroup(0),
            flag('x', "extra", "also user and thread"), flag('o', "no-openssl", "exclude OpenSSL"),
            flag('g', "no-gnutls", "exclude GnuTLS"), flag('n', "no-nss", "exclude NSS"),
            flag(0, "handshake", "also handshakes"), shared::library(0),
            shared::return_trampoline(), extra_library(),
            flag(0, "show-data", "show the plain text that is read and written",
                 setting(&Opt::show_data)),
            flag(0, "no-data", "without contents, and without the note that says so")},
           belonging_to("show-data",
                        {flag(0, "hexdump", "data in hexadecimal"),
                         number(0, "max-buffer-size", "BYTES",
                                "bytes of each call that are shown, at most 32000 (default: 8192)",
                                Range{1, SSL_DATA_MOST}, setting(&Opt::data_most))})}),
      .other_meanings = {{0, "",
                          "contents are not shown; --show-data shows them as in bcc (--no-data: "
                          "without this note)",
                          "show-data|no-data"}},
      .elsewhere = {{'l', "latency", "nothing: LAT(ms) is always shown"},
                    {'d', "debug", "use --verbose"}},
      .hooks = {known_functions("calls of TLS libraries",
                                {progs::target_user, progs::target_user_return}, words,
                                "give the path of a library or program with --library")},
      .report =
          events<Event>(
              {who<&Event::who>(id::uid.with("extra"), id::comm, id::pid, id::tid.with("extra")),
               named<&Event::function, kDirections>(
                   "direction", "DIRECTION", as::wide(as::text, -9), "read, write or handshake"),
               field<&Event::bytes>("size_bytes", "LEN", as::wide(as::number, 7),
                                    "bytes of plain text"),
               field<&Event::latency_ns>("latency_ns", "LAT(ms)", as::precise(as::milliseconds, 3),
                                         "time from call to return"),
               derived<Event, failed>("call_failed", "", as::text,
                                      "whether the call failed, or has to be repeated")
                   .with("json"),
               named<&Event::function, kFunctions>("function", "FUNC", as::wide(as::text, -18),
                                                   "the function that was called"),
               derived<Event, data>("data", "DATA", as::rest,
                                    "plain text, with --hexdump in hexadecimal")
                   .only("show-data"),
               who<&Event::who>(id::cgroup)})
              .timed_at_begin()
              .timed({{TimeColumn::since_start, "TIME(s)", 14, ""}}, 1)
              .columns({{"function,comm,pid,size_bytes,uid,tid,latency_ns"}})
              .high_rate(),  // long records
      .announce = "Tracing calls of TLS libraries",
      .look_up = look_up,
  };
}
