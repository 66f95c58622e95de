// gethostlatency against programs that count what they ask.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

constexpr const char* kFunctions[] = {"getaddrinfo", "gethostbyname", "gethostbyname2",
                                      "gethostbyname_r", "gethostbyname2_r"};

std::uint64_t calls_of(const Json& truth) {
  std::uint64_t all = 0;
  for (auto* function : kFunctions) all += truth[function].u64();
  return all;
}

/// A directory of our own with a copy of the C library.
struct OwnLibrary {
  std::string directory = "/tmp/coretap-libc-XXXXXX", file;
  static std::string system() {
    std::istringstream maps(slurp("/proc/self/maps"));
    for (std::string line; std::getline(maps, line);)
      if (line.ends_with("/libc.so.6")) return line.substr(line.find('/'));
    throw Skip("this machine's C library is not glibc");
  }
  OwnLibrary() {
    if (!::mkdtemp(directory.data())) throw std::runtime_error("mkdtemp");
    file = directory + "/copy";
    std::filesystem::copy_file(system(), file);
  }
  ~OwnLibrary() { remove(); }
  void remove() {
    std::error_code error;
    std::filesystem::remove_all(directory, error);
  }
};

TOOL_TEST(Gethostlatency, EveryCallWithItsName) {
  require_tool("gethostlatency");
  Workload workload("resolver", {"--count", "7"});
  Tracer tracer("gethostlatency", {"--json", "-p", workload.id()});
  Tracer failed("gethostlatency", {"--json", "-x", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  std::map<std::string, std::uint64_t> calls;
  std::uint64_t failures = 0, nameless = 0, hostile = 0, longest = 0, took = 0;
  auto bytes = truth["name_hex"].str().size() / 2;
  for (auto& event : report.body) {
    calls[event["function"].str()]++;
    failures += !event["error"].is_null();
    EXPECT_EQ(event["pid"].u64(), static_cast<std::uint64_t>(workload.pid()));
    EXPECT_EQ(event["tid"].u64(), event["pid"].u64());
    EXPECT_EQ(event["comm"].str(), "resolver");
    EXPECT_GT(event["latency_ns"].u64(), 0u);
    if (event["function"].str() == "getaddrinfo") took += event["latency_ns"].u64();
    if (event["host"].is_null()) {
      nameless++;
      continue;
    }
    auto host = event["host"].str();
    hostile += host == "\x1b[31m\n\xef\xbf\xbd\"\\x.invalid";
    longest += host == std::string(256, 'a');
    if (host == "not-a-number.invalid") {
      EXPECT_EQ(event["error"].str(), "EAI_NONAME");
    }
    if (host == "127.0.0.5") {
      EXPECT_EQ(event["error"].str(), "ERANGE");
    }
  }
  for (auto* function : kFunctions) EXPECT_EQ(calls[function], truth[function].u64()) << function;
  EXPECT_EQ(failures, truth["failures"].u64());
  EXPECT_EQ(nameless, truth["nameless"].u64());
  EXPECT_EQ(hostile, 7u);
  EXPECT_GT(bytes, 0u);
  EXPECT_EQ(longest, 7u) << "cut, and the ledger tells";
  EXPECT_EQ(report.lost("truncated"), 7u);
  EXPECT_EQ(report.lost("unmatched") + report.lost("lost") + report.lost("untracked"), 0u);
  EXPECT_LE(took, truth["took_ns"].u64());

  auto failures_only = failed.stop();
  EXPECT_EQ(failures_only.body.size(), failures);
  EXPECT_EQ(failures_only.lost("filtered"), calls_of(truth) - failures);
}

TOOL_TEST(Gethostlatency, ThreadsThatComeAndGo) {
  require_tool("gethostlatency");
  Workload workload("resolver", {"--count", "30", "--threads", "8", "--short-lived", "40"});
  Workload other("resolver", {"--count", "2"});
  Tracer own("gethostlatency", {"--json", "-p", workload.id(), "--ring-size", "1M"});
  Tracer main_thread("gethostlatency", {"--json", "-t", workload.id(), "--ring-size", "1M"});
  Tracer all("gethostlatency", {"--json", "--comm", "resolver", "--ring-size", "1M"});
  workload.release();
  other.release();
  auto truth = workload.truth();
  auto others = calls_of(other.truth());
  auto report = own.stop();
  EXPECT_EQ(report.body.size(), calls_of(truth));
  EXPECT_EQ(main_thread.stop().body.size(), 30u * 11);
  auto everybody = all.stop();
  EXPECT_EQ(everybody.of_process(static_cast<std::uint64_t>(workload.pid())).size(),
            calls_of(truth));
  EXPECT_EQ(everybody.of_process(static_cast<std::uint64_t>(other.pid())).size(), others);
}

// As in a container: under the system's path lies another file, whose name is gone here.
TOOL_TEST(Gethostlatency, TheLibraryThatTheProcessHas) {
  require_tool("gethostlatency");
  OwnLibrary copy;
  auto path = OwnLibrary::system();
  Workload inside("resolver", {"--count", "3"}, {.in_child = [&] {
                    if (::unshare(CLONE_NEWNS) || ::mount("", "/", "", MS_REC | MS_PRIVATE, "") ||
                        ::mount(copy.file.c_str(), path.c_str(), "", MS_BIND, ""))
                      ::_exit(77);
                  }});
  Workload outside("resolver", {"--count", "2"});
  copy.remove();
  Tracer own("gethostlatency", {"--json", "-p", inside.id()});
  Tracer all("gethostlatency", {"--json", "--comm", "resolver"});
  Tracer system("gethostlatency", {"--json", "--comm", "resolver", "-l", path});
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
  auto files = by_path.header["hooks"].items().at(0)["files"].strings();
  EXPECT_EQ(files, Strings{path});
}

TOOL_TEST(Gethostlatency, ProgramsWithoutASharedLibrary) {
  require_tool("gethostlatency");
  auto path = workload_path("resolver_static");
  if (!std::filesystem::exists(path)) throw Skip("built without a static C library");
  Workload workload("resolver_static", {"--count", "2"});
  Tracer tracer("gethostlatency", {"--json", "-p", workload.id()});
  Tracer slow("gethostlatency", {"--json", "-l", path, "-m", "600000"});
  workload.release();
  auto truth = workload.truth();
  EXPECT_EQ(tracer.stop().body.size(), calls_of(truth));
  auto nothing = slow.stop();
  EXPECT_TRUE(nothing.body.empty());
  EXPECT_EQ(nothing.lost("filtered"), calls_of(truth));

  // Without section headers there are no names.
  OwnLibrary scratch;
  auto image = slurp(path);
  for (int at : {0x28, 0x3c, 0x3e}) std::fill_n(image.begin() + at, at == 0x28 ? 8 : 2, '\0');
  auto bare = scratch.directory + "/stripped";
  std::ofstream(bare, std::ios::binary) << image;
  auto refused = run({tool_path("gethostlatency"), "-l", bare});
  EXPECT_EQ(refused.status, 3) << refused.err;
  EXPECT_EQ(refused.out, "");
  EXPECT_TRUE(contains(refused.err, "stripped")) << refused.err;
  EXPECT_TRUE(contains(refused.err, "hint: ")) << refused.err;
}

TOOL_TEST(Gethostlatency, RefusesWhatCannotBeProbed) {
  require_tool("gethostlatency");
  auto refused = [](const std::string& library) {
    auto result = run({tool_path("gethostlatency"), "--library", library});
    EXPECT_EQ(result.out, "");
    EXPECT_TRUE(contains(result.err, "hint: ")) << result.err;
    EXPECT_TRUE(safe_for_terminals(result.err)) << result.err;
    return result.status;
  };
  EXPECT_EQ(refused("/nowhere/\x1b[31mlibc.so.6"), 2);
  EXPECT_EQ(refused("/tmp"), 2);
  EXPECT_EQ(refused("/dev/zero"), 2);
  EXPECT_EQ(refused("/etc/passwd"), 3);
  EXPECT_EQ(refused(workload_path("sleeper")), 3);
  EXPECT_EQ(refused("libnosuch.so.1"), 3);
}

TOOL_TEST(Gethostlatency, ColumnsAndExplain) {
  require_tool("gethostlatency");
  EXPECT_EQ(header_of("gethostlatency", {"-e", "-U"}),
            (Strings{"TIME", "UID", "PID", "TID", "COMM", "LATms", "FUNCTION", "ERROR", "HOST"}));
  auto explained = run({tool_path("gethostlatency"), "--explain", "--libc", OwnLibrary::system()});
  EXPECT_EQ(explained.status, 0);
  EXPECT_TRUE(contains(explained.out, "      " + OwnLibrary::system() + ":getaddrinfo at 0x"))
      << explained.out;
}

const DeclareTests kGethostlatency{{
    .name = "gethostlatency",
    .events = {"-e", "resolver --count 2"},
    .stress = {.workload = "resolver --count {n}",
               .events = 100,
               .truth =
                   [](stress::Load& load) {
                     std::uint64_t calls = 0;
                     for (auto* function : {"getaddrinfo", "gethostbyname", "gethostbyname2",
                                            "gethostbyname_r", "gethostbyname2_r"})
                       calls += load.truth(function);
                     return calls;
                   },
               .tiny = "--ring-size 4096",
               .copies = 6},
}};

}  // namespace
}  // namespace coretap::tooltest
