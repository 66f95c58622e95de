#include "text/gzip.hpp"

#include <zlib.h>

namespace coretap {

std::string gzip(std::string_view bytes, Compression how) {
  constexpr int kGzip = 16, kMemory = 8;
  z_stream z{};
  if (deflateInit2(&z, how == Compression::fast ? Z_BEST_SPEED : Z_DEFAULT_COMPRESSION, Z_DEFLATED,
                   kGzip + MAX_WBITS, kMemory, Z_DEFAULT_STRATEGY) != Z_OK)
    return {};
  std::string out(deflateBound(&z, bytes.size()), '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  z.avail_in = static_cast<uInt>(bytes.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  bool whole = deflate(&z, Z_FINISH) == Z_STREAM_END;
  out.resize(z.total_out);
  deflateEnd(&z);
  return whole ? out : std::string();
}

}  // namespace coretap
