// javagc against a program that counts, and against the log of a real virtual machine.
#include "shared.hpp"

namespace coretap::tooltest {
namespace {

TOOL_TEST(Javagc, FunctionsWithoutProbes) {
  auto tool = "javagc --json -p {pid} --library" + Strings{workload_path("served")};
  auto seen = observe_with({tool, tool + "-t 60000000"}, "served --kind java --count 5 --ms 4");
  auto report = seen.report();
  EXPECT_EQ(report.body.size(), seen.truth["pauses"].u64());
  for (auto& event : report.body) {
    expect_fields(event, {{"kind", "pause"}});
    EXPECT_GE(event["gc_ns"].u64(), 4'000'000u);
  }
  EXPECT_EQ(seen.report(1).lost("filtered"), seen.truth["pauses"].u64());
}

/// The path of a Java virtual machine.
std::string java() {
  std::error_code none;
  for (auto& entry : std::filesystem::directory_iterator("/usr/lib/jvm", none))
    if (auto home = entry.path().string();
        ::access((home + "/bin/java").c_str(), X_OK) == 0 &&
        ::access((home + "/lib/server/libjvm.so").c_str(), R_OK) == 0)
      return home;
  throw Skip("there is no Java here");
}

TOOL_TEST(Javagc, WhatTheVirtualMachineLogs) {
  auto home = java();
  TemporaryDirectory directory;
  auto log = directory.path() + "/gc";
  Tracer tracer("javagc",
                "--json -t 0 --library " + home + "/lib/server/libjvm.so -- " + home +
                    "/bin/java -XX:+UseSerialGC -Xmx32m -Xmn1m -XX:TieredStopAtLevel=1 "
                    "-Xlog:gc:file=" +
                    log +
                    " -m java.base/sun.security.tools.keytool.Main "
                    "-genkeypair -alias a -keyalg RSA -keysize 1024 -dname CN=x -keystore " +
                    directory.path() + "/keys -storepass abcdef",
                {.attached = false});
  auto report = tracer.finish();
  auto logged =
      std::ranges::count_if(lines(slurp(log)), [](auto& line) { return contains(line, "Pause "); });
  ASSERT_GE(logged, 1);
  EXPECT_EQ(std::ssize(lines_with(report.body, {{"kind", "pause"}})), logged);
  EXPECT_EQ(std::ssize(report.body), logged) << "pools within pauses are no collections";
}

TESTS_OF(javagc,
         .events = {{"-e", "-t", "0", "--library", workload_path("served")},
                    {"served", "--kind", "java", "--count", "2"}},
         .stress = event_row("served --kind java --count {n}", 1000, "pauses",
                             {"-t", "0", "--library", workload_path("served")})
                       .with_copies(6),
         .long_run = {{.arguments = {"--library", workload_path("served")}}});

}  // namespace
}  // namespace coretap::tooltest
