// Errors on stderr.
#pragma once
#include <string_view>

#include "coretap/result.hpp"
#include "text/sink.hpp"

namespace coretap {

/// Errors and their parts as the user sees them.
void print_error(std::string_view program, const Error& error);
/// Flushes; the exit status of a command once all is written.
int end_of(Sink& out);

}  // namespace coretap
