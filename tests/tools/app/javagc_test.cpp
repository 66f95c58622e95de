// javagc against a program that counts, and against what a real virtual machine logs.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

TOOL_TEST(Javagc, FunctionsWithoutProbes) {
  auto path = workload_path("served");
  Workload workload("served", {"--kind", "java", "--count", "5", "--ms", "4"});
  Tracer tracer("javagc", {"--json", "-p", workload.id(), "--library", path});
  Tracer above("javagc", {"--json", "-t", "60000000", "-p", workload.id(), "--library", path});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  EXPECT_EQ(report.body.size(), truth["pauses"].u64());
  for (auto& event : report.body) {
    EXPECT_EQ(event["kind"].str(), "pause");
    EXPECT_GE(event["gc_ns"].u64(), 4'000'000u);
  }
  EXPECT_EQ(above.stop().lost("filtered"), truth["pauses"].u64());
}

std::string java() {
  std::error_code error;
  for (std::filesystem::directory_iterator i("/usr/lib/jvm", error), end; !error && i != end;
       i.increment(error))
    if (auto path = i->path().string();
        ::access((path + "/bin/java").c_str(), X_OK) == 0 &&
        ::access((path + "/lib/server/libjvm.so").c_str(), R_OK) == 0)
      return path;
  throw Skip("there is no Java here");
}

TOOL_TEST(Javagc, WhatTheVirtualMachineLogs) {
  require_tool("javagc");
  auto home = java();
  TemporaryDirectory directory;
  auto log = directory.path() + "/gc";
  Tracer tracer("javagc",
                {"--json",
                 "-t",
                 "0",
                 "--library",
                 home + "/lib/server/libjvm.so",
                 "--",
                 home + "/bin/java",
                 "-XX:+UseSerialGC",
                 "-Xmx32m",
                 "-Xmn1m",
                 "-XX:TieredStopAtLevel=1",
                 "-Xlog:gc:file=" + log,
                 "-m",
                 "java.base/sun.security.tools.keytool.Main",
                 "-genkeypair",
                 "-alias",
                 "a",
                 "-keyalg",
                 "RSA",
                 "-keysize",
                 "1024",
                 "-dname",
                 "CN=x",
                 "-keystore",
                 directory.path() + "/keys",
                 "-storepass",
                 "abcdef"},
                {.attached = false});
  auto report = tracer.finish();
  std::uint64_t logged = 0;
  std::ifstream lines(log);
  for (std::string line; std::getline(lines, line);) logged += contains(line, "Pause ");
  ASSERT_GE(logged, 1u);
  std::uint64_t pauses = 0;
  for (auto& event : report.body) {
    if (event["kind"].str() == "pause") pauses++;
    EXPECT_GT(event["gc_ns"].u64(), 0u);
  }
  EXPECT_EQ(pauses, logged);
}

const DeclareTests kJavagc{{
    .name = "javagc",
    .events = {{"-e", "-t", "0", "--library", workload_path("served")},
               {"served", "--kind", "java", "--count", "2"}},
    .stress = {.workload = "served --kind java --count {n}",
               .events = 1000,
               .options = {"-t", "0", "--library", workload_path("served")},
               .truth = "pauses",
               .tiny = "--ring-size 4096",
               .copies = 6},
    .long_run = {{.arguments = {"--library", workload_path("served")}}},
}};

}  // namespace
}  // namespace coretap::tooltest
