// Calls as workloads of system calls print them, and as other tracers see them.
#pragma once
#include "../harness.hpp"

namespace coretap::tooltest {

/// A call of the scene of `filecalls`, as two tools show it; `path`: their key for its file.
inline void expect_file_call(const Json& event, const Json& call, const char* path) {
  expect_same(event, call, {"call"});
  EXPECT_GT(event["latency_ns"].u64(), 0u);
  auto ret = call["ret"].i64();
  expect_fields(event, {{"error", error_name(ret < 0 ? -ret : 0)}});
  ASSERT_EQ(event[path].is_null(), !call["known"].boolean());
  if (!call["known"].boolean()) return;
  auto known = unhex(call["path_hex"].str());
  EXPECT_EQ(event[path].str(),
            known.size() > 4095 ? known.substr(0, 4095) + "..." : in_json(known));
}

inline Result strace(const Strings& options, const Strings& command) {
  try {
    return run("strace -f" + options + "--" + command);
  } catch (const std::exception& e) {
    throw Skip(std::string("strace: ") + e.what());
  }
}

}  // namespace coretap::tooltest
