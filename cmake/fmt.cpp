// The formatting library fmt, compiled once. Its headers alone would be compiled with every file,
// which takes half of the time of a build, and distributions have it only as a shared library,
// which the executable would have to find. Without locales, which coretap never asks for and which
// would bring 460 kB of the C++ library with them.
#define FMT_STATIC_THOUSANDS_SEPARATOR ','
#include <fmt/format-inl.h>

// The templates that fmt's headers leave to its library, as far as char needs them.
FMT_BEGIN_NAMESPACE
namespace detail {
template auto dragonbox::to_decimal(float) noexcept -> dragonbox::decimal_fp<float>;
template auto dragonbox::to_decimal(double) noexcept -> dragonbox::decimal_fp<double>;
template auto thousands_sep_impl(locale_ref) -> thousands_sep_result<char>;
template auto decimal_point_impl(locale_ref) -> char;
template void buffer<char>::append(const char*, const char*);
#if FMT_VERSION < 110000
template void vformat_to(buffer<char>&, string_view, basic_format_args<buffer_context<char>>,
                         locale_ref);
#endif
}  // namespace detail
FMT_END_NAMESPACE
