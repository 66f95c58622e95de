// symbolize with a workload, whose debug information has its functions and lines.
#include <filesystem>
#include <thread>

#include "harness.hpp"

namespace coretap::tooltest {
namespace {

using namespace std::chrono_literals;

Result symbolize(const Strings& arguments) { return result_of("coretap" + arguments); }

/// The address of a function; a linker places code of shared objects at its offset in the file.
std::uint64_t address_in(const std::string& file, const std::string& function) {
  auto found = symbolize(Strings("tplist -f --json") + Strings{"-l", file, function});
  EXPECT_EQ(found.status, 0) << found.err;
  return Json::parse(found.out)["offset_bytes"].u64();
}

std::string hexadecimal(std::uint64_t number) {
  char text[32];
  snprintf(text, sizeof text, "0x%lx", number);
  return text;
}

TOOL_TEST(Symbolize, HasTheLineOfAFunction) {
  const auto file = workload_path("probes");
  const auto address = address_in(file, "main");
  auto found = symbolize(Strings{"symbolize", file, hexadecimal(address).substr(2)});
  EXPECT_EQ(found.status, 0) << found.err;
  EXPECT_TRUE(found.out.starts_with(hexadecimal(address) + " main at /")) << found.out;
  expect_contains(found.out, {"/workload.h:"});

  found = symbolize(Strings{"symbolize", "--json", file, hexadecimal(address), "0x1"});
  EXPECT_EQ(found.status, 0) << found.err;
  auto all = lines(found.out);
  ASSERT_EQ(all.size(), 2u) << found.out;
  auto known = Json::parse(all[0]), unknown = Json::parse(all[1]);
  EXPECT_EQ(known["type"].str(), "symbol");
  EXPECT_EQ(known["address"].u64(), address);
  EXPECT_EQ(known["frames"].items().at(0)["function"].str(), "main");
  EXPECT_GT(known["frames"].items().at(0)["line"].u64(), 0u);
  EXPECT_TRUE(unknown["frames"].items().empty());
}

/// A debuginfod with the debug file of a workload, which is stripped, in a directory.
struct DebugServer {
  TemporaryDirectory directory;
  std::string program = directory.path() + "/probes",
              port = std::to_string(20000 + getpid() % 20000);
  Process server;

  DebugServer() : server(serve()) {}
  Spawn serve() {
    const auto served = directory.path() + "/served";
    std::filesystem::create_directory(served);
    std::filesystem::permissions(directory.path(), std::filesystem::perms(0755));
    const auto whole = workload_path("probes");
    EXPECT_EQ(run({"objcopy", "--only-keep-debug", whole, served + "/probes.debug"}).status, 0);
    EXPECT_EQ(run({"objcopy", "--strip-debug", whole, program}).status, 0);
    return Spawn{.argv = {"debuginfod", "-p", port, "-d", ":memory:", "-F", served}};
  }
};

TOOL_TEST(Symbolize, DebugFilesOfServers) {
  if (run({"/bin/sh", "-c", "command -v debuginfod debuginfod-find"}).status)
    throw Skip("debuginfod is not installed");
  const auto address = hexadecimal(address_in(workload_path("probes"), "main"));
  DebugServer from;
  const auto urls = "DEBUGINFOD_URLS=http://127.0.0.1:" + from.port;
  auto asked = [&](const std::string& setting, const Strings& more = {}) {
    return run(Strings{"env", "-u", "DEBUGINFOD_URLS", setting, tool_path("coretap"), "symbolize",
                       from.program, address} +
               more);
  };
  EXPECT_EQ(asked(urls).out, address + " main+0x0\n") << "not asked for";
  Result found;
  // The server looks at its files first.
  EXPECT_TRUE(until([&] {
    found = asked(urls, {"--debuginfod"});
    return found.out.find("/workload.h:") != found.out.npos;
  })) << found.err;
  EXPECT_EQ(found.status, 0);
  expect_contains(found.err, {"Asking http://127.0.0.1:"});
  found = asked("A=b", {"--debuginfod"});
  EXPECT_EQ(found.status, 2);
  expect_contains(found.err, {"DEBUGINFOD_URLS is not set"});
  from.server.signal(SIGSTOP);  // it no longer answers
  const auto began = std::chrono::steady_clock::now();
  Process waits(Spawn{.argv = {"env", urls, tool_path("coretap"), "symbolize", from.program,
                               address, "--debuginfod"}});
  std::this_thread::sleep_for(500ms);
  waits.signal(SIGINT);
  waits.wait();
  EXPECT_LT(std::chrono::steady_clock::now() - began, 5s * slowness());
  from.server.signal(SIGCONT);
  for (auto& entry : std::filesystem::directory_iterator(std::filesystem::temp_directory_path()))
    EXPECT_EQ(entry.path().filename().string().find("coretap-debug-"), std::string::npos);
}

TOOL_TEST(Symbolize, SaysWhatIsWrong) {
  const auto file = workload_path("probes");
  auto expect = [](const Strings& arguments, int status, const std::string& words) {
    auto found = symbolize(arguments);
    EXPECT_EQ(found.status, status) << found.err;
    expect_contains(found.err, {words});
  };
  expect({"symbolize", file, "main"}, 2, "'main' is no address");
  expect({"symbolize", file, "0x"}, 2, "is no address");
  expect({"symbolize", file, "11111111111111111"}, 2, "is no address");
  expect({"symbolize", "/nonexistent", "1"}, 1, "No such file");
  expect({"symbolize", "/proc/self/maps", "1"}, 1, "is no program or library");
  EXPECT_EQ(symbolize({"symbolize", file, "0x1"}).status, 1);
}

}  // namespace
}  // namespace coretap::tooltest
