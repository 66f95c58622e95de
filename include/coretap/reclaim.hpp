// Words for causes of reclaim (bpf/lib/mm/reclaim.h).
#pragma once
#include <iterator>
#include <string_view>

#include "lib/mm/reclaim.h"

namespace coretap {

inline constexpr std::string_view kReclaimCauses[] = {"direct", "kswapd", "memcg", "other"};
static_assert(std::size(kReclaimCauses) == RECLAIM_CAUSES);

}  // namespace coretap
