// Errors on stderr.
#pragma once
#include <string_view>

#include "coretap/result.hpp"
#include "text/sink.hpp"

namespace coretap {

/// Prints an error and its parts to the user; returns its exit status.
int print_error(std::string_view program, const Error& error);
/// Flushes; returns the exit status of a command.
int end_of(Sink& out);
/// Writes text to standard output; returns the exit status of a command.
int print_text(std::string_view text);

}  // namespace coretap
