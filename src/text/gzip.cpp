#include "text/gzip.hpp"

#include <zlib.h>

#include <algorithm>

namespace coretap {

namespace {

bool begin(z_stream& z, Compression how) {
  constexpr int kGzip = 16, kMemory = 8;
  return deflateInit2(&z, how == Compression::fast ? Z_BEST_SPEED : Z_DEFAULT_COMPRESSION,
                      Z_DEFLATED, kGzip + MAX_WBITS, kMemory, Z_DEFAULT_STRATEGY) == Z_OK;
}

}  // namespace

struct GzipStream::State {
  z_stream z{};
};

GzipStream::GzipStream(Compression how) : state_(std::make_unique<State>()) {
  if (!begin(state_->z, how)) state_.reset();
}

GzipStream::~GzipStream() {
  if (state_) deflateEnd(&state_->z);
}

bool GzipStream::deflate(std::string_view bytes, int flush, std::string& out) {
  if (!state_) return false;
  auto& z = state_->z;
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  z.avail_in = static_cast<uInt>(bytes.size());
  char part[1 << 14];
  int status = Z_OK;
  do {
    z.next_out = reinterpret_cast<Bytef*>(part);
    z.avail_out = sizeof part;
    status = ::deflate(&z, flush);
    out.append(part, sizeof part - z.avail_out);
  } while (status == Z_OK && !z.avail_out);
  // Z_BUF_ERROR: there was nothing left to do.
  return status == (flush == Z_FINISH ? Z_STREAM_END : Z_OK) ||
         (flush != Z_FINISH && status == Z_BUF_ERROR);
}

bool GzipStream::add(std::string_view bytes, std::string& out) {
  return deflate(bytes, Z_NO_FLUSH, out);
}
bool GzipStream::finish(std::string& out) { return deflate({}, Z_FINISH, out); }

std::string gzip(std::string_view bytes, Compression how) {
  z_stream z{};
  if (!begin(z, how)) return {};
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

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

std::optional<std::string> gunzip(std::string_view bytes, std::size_t most) {
  constexpr int kGzip = 16;
  constexpr std::size_t kStep = 1 << 20;
  z_stream z{};
  if (bytes.size() > UINT32_MAX || inflateInit2(&z, kGzip + MAX_WBITS) != Z_OK) return {};
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  z.avail_in = static_cast<uInt>(bytes.size());
  std::string out;
  int status = Z_OK;
  while (status == Z_OK && out.size() <= most) {
    const auto have = out.size();
    out.resize(have + std::min(kStep, most - have + 1));
    z.next_out = reinterpret_cast<Bytef*>(out.data() + have);
    z.avail_out = static_cast<uInt>(out.size() - have);
    status = inflate(&z, Z_NO_FLUSH);
    out.resize(out.size() - z.avail_out);
  }
  inflateEnd(&z);
  if (status != Z_STREAM_END || z.avail_in || out.size() > most) return {};
  return out;
}

}  // namespace coretap
