// Memory that is used only while a process starts.
#pragma once

namespace coretap {

/// Returns free heap to the kernel, and pages of programs that were mapped by fault-around; the
/// kernel maps these again on access.
void give_memory_back();

}  // namespace coretap
