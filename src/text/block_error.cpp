#include <cerrno>
#include <iterator>

#include <fmt/format.h>

#include "coretap/block.hpp"

namespace coretap {

// Since 5.16 (8a7d267b4a2d) tracepoints have a blk_status_t, whose values up to 13 have never
// changed; before, a negative errno.
Value block_error(std::int32_t status) {
  static constexpr int kErrors[] = {0,         EOPNOTSUPP, ETIMEDOUT, ENOSPC, ENOLINK,
                                    EREMOTEIO, EBADE,      ENODATA,   EILSEQ, ENOMEM,
                                    EIO,       EREMCHG,    EAGAIN,    EBUSY};
  if (!status) return {};
  if (status < 0) return std::int64_t{-status};
  if (static_cast<std::size_t>(status) < std::size(kErrors)) return std::int64_t{kErrors[status]};
  return fmt::format("status {}", status);
}

}  // namespace coretap
