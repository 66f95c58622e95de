// This executable as a child process, with other arguments.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

#include "coretap/result.hpp"

namespace coretap {

/// Starts it with these descriptors as standard output and standard error; standard input is empty.
/// It is in a separate process group: Ctrl-C comes to this process only.
Result<pid_t> start_own_process(std::vector<std::string> words, int output, int errors);

/// The beginning of a file in memory that a child has written to, without the last line's end.
std::string text_of_child(int fd);

}  // namespace coretap
