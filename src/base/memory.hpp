// Memory that only the start of a process has touched.
#pragma once

namespace coretap {

/// Gives back heap that is free, and pages of programs that were mapped with their neighbours and
/// come back by themselves.
void give_memory_back();

}  // namespace coretap
