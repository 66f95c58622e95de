#include "fuzz.hpp"
#include "syscall/traceloop.h"
#include "tools/syscall/traceloop/call_formats.hpp"

using namespace coretap;

FUZZ(call_format, bytes) {
  const auto arguments = parse_call_format(bytes);
  MUST(arguments.size() <= CALL_ARGS);
  for (auto& a : arguments) {
    MUST(a.name.find_first_of(" ;\n") == a.name.npos && a.type.find_first_of(";\n") == a.type.npos);
    MUST(bytes.find(a.type + " " + a.name) != bytes.npos);
    MUST(!a.is_text() || a.is_pointer());
  }
}
