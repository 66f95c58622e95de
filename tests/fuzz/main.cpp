// All fuzzers in one program for libFuzzer; the environment variable FUZZER chooses one.
#include <cstdio>
#include <cstdlib>

#include "fuzz.hpp"

namespace {
const coretap::fuzz::Fuzzer* chosen;
}

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  const char* name = std::getenv("FUZZER");
  for (auto& fuzzer : coretap::fuzz::fuzzers())
    if (name && fuzzer.name == name) chosen = &fuzzer;
  if (!chosen) {
    for (auto& fuzzer : coretap::fuzz::fuzzers()) std::puts(fuzzer.name.data());
    std::exit(2);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  chosen->run({reinterpret_cast<const char*>(data), size});
  return 0;
}
