// gethostlatency against programs that count their look-ups.
#include <sys/mount.h>

#include "shared.hpp"

namespace coretap::tooltest {
namespace {

constexpr const char* kFunctions[] = {"getaddrinfo", "gethostbyname", "gethostbyname2",
                                      "gethostbyname_r", "gethostbyname2_r"};

std::uint64_t calls_of(const Json& truth) {
  std::uint64_t all = 0;
  for (auto* function : kFunctions) all += truth[function].u64();
  return all;
}

std::string c_library() {
  for (auto& line : lines(slurp("/proc/self/maps")))
    if (line.ends_with("/libc.so.6")) return line.substr(line.find('/'));
  throw Skip("this machine's C library is not glibc");
}

TOOL_TEST(Gethostlatency, EveryCallWithItsName) {
  auto seen = observe_all({"gethostlatency --json -p {pid}", "gethostlatency --json -x -p {pid}"},
                          "resolver --count 7", {});
  auto report = seen.report(0), failed = seen.report(1);
  auto& truth = seen.truth;
  for (auto& event : report.body) {
    expect_fields(event, {{"pid", seen.pid}, {"tid", seen.pid}, {"comm", "resolver"}});
    EXPECT_GT(event["latency_ns"].u64(), 0u);
  }
  auto count = [&](const char* key, const Value& value) {
    return lines_with(report.body, {{key, value}}).size();
  };
  for (auto* function : kFunctions)
    EXPECT_EQ(count("function", function), truth[function].u64()) << function;
  EXPECT_EQ(count("host", nullptr), truth["nameless"].u64());
  EXPECT_EQ(count("host", "\x1b[31m\n\xef\xbf\xbd\"\\x.invalid"), 7u);
  EXPECT_EQ(count("host", std::string(256, 'a')), 7u) << "cut, and the ledger tells";
  for (auto& [host, error] :
       {std::pair("not-a-number.invalid", "EAI_NONAME"), std::pair("127.0.0.5", "ERANGE")})
    for (auto& event : lines_with(report.body, {{"host", host}}))
      expect_fields(event, {{"error", error}});
  EXPECT_GT(truth["name_hex"].str().size(), 1u);
  EXPECT_EQ(report.lost("truncated"), 7u);
  expect_all(report);
  EXPECT_LE(sum(lines_with(report.body, {{"function", "getaddrinfo"}}), "latency_ns"),
            truth["took_ns"].u64());

  EXPECT_EQ(report.body.size() - count("error", nullptr), truth["failures"].u64());
  EXPECT_EQ(failed.body.size(), truth["failures"].u64());
  EXPECT_EQ(failed.lost("filtered"), calls_of(truth) - truth["failures"].u64());
}

TOOL_TEST(Gethostlatency, ThreadsThatComeAndGo) {
  Workload other("resolver", "--count 2");
  Scene scene("resolver --count 30 --threads 8 --short-lived 40", {});
  for (auto* whose : {"-p {pid}", "-t {pid}", "--comm resolver"})
    scene.trace(Strings("gethostlatency --json --ring-size 1M") + whose);
  other.release();
  auto seen = scene.finish();
  auto others = calls_of(other.truth());
  EXPECT_EQ(seen.report(0).body.size(), calls_of(seen.truth));
  EXPECT_EQ(seen.report(1).body.size(), 30u * 11);
  auto all = seen.report(2);
  EXPECT_EQ(all.of_process(seen.pid).size(), calls_of(seen.truth));
  EXPECT_EQ(all.of_process(static_cast<std::uint64_t>(other.pid())).size(), others);
}

// As in a container: the path names another file on the system, and the library's name is gone.
TOOL_TEST(Gethostlatency, TheLibraryThatTheProcessHas) {
  TemporaryDirectory directory;
  auto copy = directory.path() + "/copy", path = c_library();
  std::filesystem::copy_file(path, copy);
  Workload inside("resolver", "--count 3", {.in_child = [&] {
                    if (::unshare(CLONE_NEWNS) || ::mount("", "/", "", MS_REC | MS_PRIVATE, "") ||
                        ::mount(copy.c_str(), path.c_str(), "", MS_BIND, ""))
                      ::_exit(77);
                  }});
  Workload outside("resolver", "--count 2");
  std::filesystem::remove(copy);
  Tracer own("gethostlatency", "--json -p " + inside.id());
  Tracer all("gethostlatency", "--json --comm resolver");
  Tracer system("gethostlatency", "--json --comm resolver -l " + path);
  inside.release();
  outside.release();
  auto wanted = calls_of(inside.truth()), others = calls_of(outside.truth());
  auto in = static_cast<std::uint64_t>(inside.pid());
  auto out = static_cast<std::uint64_t>(outside.pid());
  EXPECT_EQ(own.stop().body.size(), wanted);
  auto everybody = all.stop(), by_path = system.stop();
  EXPECT_EQ(everybody.of_process(in).size(), wanted);
  EXPECT_EQ(everybody.of_process(out).size(), others);
  EXPECT_EQ(by_path.of_process(in).size(), 0u);
  EXPECT_EQ(by_path.of_process(out).size(), others);
  EXPECT_EQ(by_path.header["hooks"].items().at(0)["files"].strings(), Strings{path});
}

TOOL_TEST(Gethostlatency, ProgramsWithoutASharedLibrary) {
  auto path = workload_path("resolver_static");
  if (!std::filesystem::exists(path)) throw Skip("built without a static C library");
  auto seen = observe_all(
      {"gethostlatency --json -p {pid}", "gethostlatency --json -m 600000 -l" + Strings{path}},
      "resolver_static --count 2", {});
  EXPECT_EQ(seen.report(0).body.size(), calls_of(seen.truth));
  EXPECT_TRUE(seen.report(1).body.empty());
  EXPECT_EQ(seen.report(1).lost("filtered"), calls_of(seen.truth));

  // Without section headers there are no symbol names.
  TemporaryDirectory scratch;
  auto image = slurp(path);
  for (int at : {0x28, 0x3c, 0x3e}) std::fill_n(image.begin() + at, at == 0x28 ? 8 : 2, '\0');
  auto bare = scratch.path() + "/stripped";
  std::ofstream(bare, std::ios::binary) << image;
  expect_refused({"gethostlatency", "--library", bare}, {"hint: ", "stripped"}, 3);
}

TOOL_TEST(Gethostlatency, RefusesWhatCannotBeProbed) {
  require_tool("gethostlatency");
  for (auto* library : {"/nowhere/\x1b[31mlibc.so.6", "/tmp", "/dev/zero"})
    expect_refused({"gethostlatency", "--library", library}, {"hint: "});
  for (auto& library :
       {std::string("/etc/passwd"), workload_path("sleeper"), std::string("libnosuch.so.1")})
    expect_refused({"gethostlatency", "--library", library}, {"hint: "}, 3);
}

TESTS_OF(
    gethostlatency, .events = {"-e", "resolver --count 2"},
    .stress = event_row("resolver --count {n}", 100,
                        "getaddrinfo+gethostbyname+gethostbyname2+gethostbyname_r+gethostbyname2_r")
                  .with_copies(6));

}  // namespace
}  // namespace coretap::tooltest
