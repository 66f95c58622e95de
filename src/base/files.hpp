// Small files of /proc and /sys.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace coretap {

/// The first `limit` bytes of a file; nothing if it cannot be read.
std::optional<std::string> read_file(const std::string& path, std::size_t limit = 1 << 20);
/// The same by a path below an open directory; where it fails, errno says why.
std::optional<std::string> read_file_at(int directory, const std::string& path,
                                        std::size_t limit = 1 << 20);

/// Reads from this place on until the end, an error (errno) or `size` bytes. -> how many
std::size_t read_bytes(int fd, std::uint64_t at, void* to, std::size_t size);

/// A number alone in a file, such as /proc/sys/kernel/pid_max.
std::optional<long long> read_number(const std::string& path);

/// The value behind "Key:" in a file of such lines, such as /proc/meminfo (kB there).
std::optional<long long> read_keyed(const std::string& path, std::string_view key);

/// A line of /proc/meminfo, in kB; 0 if there is none of that name.
std::uint64_t memory_kb(std::string_view name);

/// Opens /dev/null where standard input, output or error is closed: a file or map that is opened
/// later must not get its number.
void open_standard_files();

}  // namespace coretap
