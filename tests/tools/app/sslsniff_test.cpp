// sslsniff with real clients of OpenSSL, GnuTLS and NSS, and an OpenSSL server, on loopback.
#include "shared.hpp"

namespace coretap::tooltest {
namespace {

std::string program(const std::string& name) {
  return first_program({"/usr/bin/" + name, "/usr/local/bin/" + name, "/bin/" + name}, name);
}

/// Answers each request with a page about the connection.
class TlsServer {
 public:
  TlsServer() {
    auto openssl = program("openssl");
    auto key = directory_.path() + "/key", certificate = directory_.path() + "/certificate";
    auto made = run(Strings{openssl, "req", "-keyout", key, "-out", certificate} +
                    "-x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=localhost "
                    "-days 1");
    if (made.status) throw std::runtime_error("openssl req: " + made.err);
    server_ = std::make_unique<Process>(
        Spawn{.argv = Strings{openssl, "s_server", "-key", key, "-cert", certificate} +
                      "-accept 127.0.0.1:0 -www"});
    constexpr std::string_view kAccepts = "ACCEPT 127.0.0.1:";
    if (!server_->await([&](auto& out, auto&) {
          auto at = out.find(kAccepts);
          return at != out.npos && out.find('\n', at) != out.npos;
        }))
      throw Skip("openssl s_server does not say its port: " + server_->out() + server_->err());
    auto out = server_->out();
    port_ = std::to_string(std::stoul(out.substr(out.find(kAccepts) + kAccepts.size())));
  }
  const std::string& port() const { return port_; }

 private:
  TemporaryDirectory directory_;
  std::unique_ptr<Process> server_;
  std::string port_;
};

struct Sums {
  std::uint64_t read = 0, written = 0, shakes = 0;
  bool secret = false;
};

Sums sums_of(const Report& report, const char* comm, const char* functions) {
  Sums sums;
  for (auto& event : lines_with(report.body, {{"comm", comm}})) {
    if (!event["function"].str().starts_with(functions)) continue;
    auto direction = event["direction"].str();
    (direction == "read" ? sums.read : sums.written) += event["size_bytes"].u64();
    sums.shakes += direction == "handshake";
    EXPECT_GT(event["latency_ns"].u64(), 0u);
    if (event.has("data")) sums.secret |= contains(event["data"].str(), "/secret-path");
  }
  return sums;
}

TOOL_TEST(Sslsniff, RealClientOfOpenssl) {
  auto curl = program("curl");
  if (!contains(run({curl, "--version"}).out, "OpenSSL")) throw Skip("curl has no OpenSSL");
  TlsServer server;
  Tracer tracer("sslsniff", "--json --handshake --return-trampoline -c curl");
  Tracer data("sslsniff", "--json -c curl --show-data");
  Tracer text("sslsniff", "-c curl");
  auto client = run({curl, "-sk", "--http1.1", "-o", "/dev/null", "-w",
                     "%{size_request} %{size_header} %{size_download}",
                     "https://127.0.0.1:" + server.port() + "/secret-path"});
  ASSERT_EQ(client.status, 0) << client.err;
  std::uint64_t request = 0, header = 0, body = 0;
  std::istringstream(client.out) >> request >> header >> body;
  auto report = tracer.stop();
  auto sums = sums_of(report, "curl", "SSL_");
  EXPECT_EQ(sums.written, request);
  EXPECT_EQ(sums.read, header + body);
  EXPECT_GE(sums.shakes, 1u);
  for (auto& event : report.body) EXPECT_FALSE(event.has("data"));
  auto shown = data.stop();
  EXPECT_TRUE(sums_of(shown, "curl", "SSL_").secret);
  expect_fields(shown.ledger, {{"truncated", 0}, {"lost", 0}});
  auto lines = text.stop_text();
  expect_contains(lines, {"SSL_write"});
  EXPECT_FALSE(contains(lines, "secret")) << lines;
}

TOOL_TEST(Sslsniff, RealClientsOfGnutlsAndNss) {
  Strings gnutls = program("gnutls-cli"), nss = program("tstclnt");
  TlsServer server;
  gnutls = gnutls + "--insecure --no-ocsp -p" + server.port() + "127.0.0.1";
  nss = nss + "-D -o -h 127.0.0.1 -p" + server.port();
  Tracer tracer("sslsniff", "--json -o --return-trampoline");
  const std::string request = "GET /secret-path HTTP/1.0\r\n\r\n";
  for (auto& argv : {gnutls, nss}) {
    Process client(Spawn{.argv = argv, .stdin_pipe = true});
    client.write_stdin(request);
    EXPECT_TRUE(client.await([](auto& out, auto&) {
      return contains(out, "</HTML>") || contains(out, "</html>");
    })) << client.out()
        << client.err();
    client.signal(SIGKILL);  // clients may wait for the server
    client.wait();
  }
  auto report = tracer.stop();
  for (auto& sums : {sums_of(report, "gnutls-cli", "gnutls_"), sums_of(report, "tstclnt", "PR_")}) {
    EXPECT_EQ(sums.written, request.size());
    EXPECT_GT(sums.read, 100u);
  }
}

TOOL_TEST(Sslsniff, BytesAndDataOfAProgramThatCounts) {
  // The program contains the functions itself.
  auto seen = observe_all({"sslsniff --json -p {pid}",
                           "sslsniff --json -o --show-data --hexdump --max-buffer-size 1000 "
                           "-c served --extra-lib" +
                               Strings{"openssl:" + workload_path("served")}},
                          "served --kind tls --count 3", {});
  EXPECT_EQ(seen.report().body.size(), seen.truth["tls_calls"].u64());
  expect_sums(seen.report(), seen.truth, {{"size_bytes", "tls_bytes"}});
  auto shown = seen.report(1);
  ASSERT_EQ(shown.body.size(), seen.truth["tls_calls"].u64());
  for (auto& event : shown.body) {
    auto bytes = std::min<std::uint64_t>(event["size_bytes"].u64(), 1000);
    EXPECT_EQ(event["data"].str().size(), 2 * bytes);
    if (event["function"].str() == "SSL_write") {
      EXPECT_TRUE(event["data"].str().starts_with("474554202f736563726574")) << "GET /secret";
    }
  }
  EXPECT_EQ(shown.lost("truncated"), 3u);
}

TESTS_OF(sslsniff,
         .events = {{"-x", "--library", workload_path("served")},
                    {"served", "--kind", "tls", "--count", "2"}},
         .stress = event_row("served --kind tls --count {n/3+1}", 1000, "tls_calls",
                             {"--library", workload_path("served")})
                       .with_copies(6));

}  // namespace
}  // namespace coretap::tooltest
