// Sizes of maps: from the machine or an option, never a constant that silently drops.
#pragma once
#include "coretap/result.hpp"

namespace coretap {

struct Session;

void size_maps(Session& session);

}  // namespace coretap
