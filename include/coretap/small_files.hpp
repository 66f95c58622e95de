// Small files of /proc and /sys.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace coretap {

/// The first `limit` bytes of a file; nullopt if it cannot be read.
std::optional<std::string> read_file(const std::string& path, std::size_t limit = 1 << 20);
/// The same for a path relative to an open directory; sets errno on failure.
std::optional<std::string> read_file_at(int directory, const std::string& path,
                                        std::size_t limit = 1 << 20);

/// Reads from offset `at` until end of file, an error (errno; noted by ReadFailures) or `size`
/// bytes. -> bytes read
std::size_t read_bytes(int fd, std::uint64_t at, void* to, std::size_t size);

/// The number that is a file's only content, such as /proc/sys/kernel/pid_max.
std::optional<long long> read_number(const std::string& path);

/// The value after "Key:" in a file of such lines, such as /proc/meminfo (kB there).
std::optional<long long> read_keyed(const std::string& path, std::string_view key);
/// The same in the text of such a file.
std::optional<long long> keyed_number(std::string_view text, std::string_view key);

/// The number after "name " in a text of such lines, such as /proc/vmstat.
std::optional<std::uint64_t> named_number(std::string_view text, std::string_view name);

/// The fields in the text of a task's "stat" file by their numbers in proc(5); the first three,
/// which the task can choose in part, are empty. Nothing: the text is not of that form.
std::vector<std::string_view> stat_fields(std::string_view text);

/// A value of /proc/meminfo, in kB; 0 if there is no such line.
std::uint64_t memory_kb(std::string_view name);

/// Opens /dev/null where standard input, output or error is closed: a file or map that is opened
/// later must not get its number.
void open_standard_files();

}  // namespace coretap
