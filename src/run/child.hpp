// Processes of this program that run a tool or answer requests.
#pragma once
#include <sys/types.h>

#include <functional>
#include <initializer_list>

#include "coretap/fd.hpp"

namespace coretap {

/// A child process, and a descriptor that is readable when it has ended.
struct Child {
  pid_t pid = -1;  ///< -1: failed, with errno
  Fd end = {};
};

/// Forks a child that runs `work`, which never returns. The child ends with this process.
/// `output`: it has the same standard output; otherwise none.
Child start_child(const std::function<void()>& work, bool output = false);

/// Closes all descriptors except the standard ones and `kept`, which are renumbered from 3; empty
/// members of `kept` stay empty.
void close_others(std::initializer_list<Fd*> kept);

}  // namespace coretap
