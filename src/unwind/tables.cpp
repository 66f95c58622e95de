#include "unwind/tables.hpp"

#include <bpf/bpf.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "runtimes/runtimes.hpp"
#include "unwind/kernel_maps.hpp"

namespace coretap::unwind {

namespace {

constexpr std::size_t kChunkBytes = UNWIND_CHUNK_ROWS * 4;
// Forgotten files are read again when needed; files in use are not forgotten.
constexpr std::size_t kMostIdentities = 1 << 14;

// A kernel has one or two; only malicious processes cause more.
constexpr std::size_t kMostImages = 8;

std::uint64_t hash_of(const Table& table) {
  return std::hash<std::string_view>{}(
      {reinterpret_cast<const char*>(table.rows.data()), table.rows.size() * 4});
}

}  // namespace

Tables::Tables(Maps maps, std::size_t budget)
    : maps_(maps), budget_(budget), chunks_(chunks_for(budget)) {}

std::uint32_t Tables::chunks_for(std::size_t budget) {
  return static_cast<std::uint32_t>(
      std::clamp<std::size_t>(budget / kChunkBytes + (budget % kChunkBytes != 0), 1, 1 << 16));
}

std::shared_ptr<File> Tables::known(const symbols::FileIdentity& id) {
  auto found = by_identity_.find(id);
  if (found == by_identity_.end()) return nullptr;
  found->second->used = ++clock_;
  return found->second;
}

std::shared_ptr<File> Tables::of_file(int fd, const symbols::FileIdentity& id) {
  auto file = known(id);
  if (file && !worth_trying(*file)) return file;
  file = build(Image(fd), file, fd);
  if (!by_identity_.contains(id) && by_identity_.size() >= kMostIdentities) forget_idle();
  by_identity_[id] = file;
  return file;
}

std::shared_ptr<File> Tables::of_image(const std::string& image) {
  auto found = by_image_.find(image);
  auto file = found != by_image_.end() ? found->second : nullptr;
  if (file && !worth_trying(*file)) return file;
  if (!file && by_image_.size() >= kMostImages) return std::make_shared<File>();
  file = build(Image({image.data(), image.size()}), file);
  by_image_[image] = file;
  return file;
}

bool Tables::fits(std::size_t bytes) { return bytes_ + bytes <= budget_ || make_room(bytes); }

bool Tables::worth_trying(const File& file) {
  if (file.state != File::no_memory) return false;
  if (bytes_ >= file.no_place_at) {  // free room may be fragmented
    drop_idle(file.lacking);
    settle(Clock::now());
  }
  return bytes_ < file.no_place_at && fits(file.lacking);
}

/// `file`: the object that had no room, or null; its owners then see the state change to ready.
std::shared_ptr<File> Tables::build(const Image& image, std::shared_ptr<File> file, int fd) {
  auto elf = read_elf_code(image);
  auto table = make_table(image, elf, rules_);
  const auto runtime = fd < 0 || table.pages.empty() ? std::uint8_t{0} : runtime_of(fd, table.base);
  // Claims in the file are not trusted: only an equal table makes two files the same.
  auto same = table.pages.empty() ? nullptr : equal_file(elf, table, runtime);
  if (same) file = same;
  if (!file) file = std::make_shared<File>();
  file->used = ++clock_;
  if (file->state == File::ready) return file;
  file->elf = std::move(elf);
  file->state = File::no_cfi;
  if (table.pages.empty()) return file;
  file->base = table.base;
  (is_hotspot(runtime) ? file->hotspot : file->runtime) = runtime;
  file->state = place(*file, table) ? File::ready : File::no_memory;
  if (file->state == File::ready) by_content_.emplace(hash_of(table), file);
  return file;
}

/// The index of what the kernel program has to know of an interpreter in the file; 0: none.
std::uint8_t Tables::runtime_of(int fd, std::uint64_t base) {
  if (maps_.runtimes < 0) return 0;
  const auto found = runtimes::runtime_in(fd, base);
  if (!found) return 0;
  auto same = std::ranges::find_if(
      runtimes_, [&](auto& known) { return std::memcmp(&known, &*found, sizeof known) == 0; });
  if (same != runtimes_.end()) return static_cast<std::uint8_t>(same - runtimes_.begin() + 1);
  const auto index = static_cast<std::uint32_t>(runtimes_.size() + 1);
  if (index >= RUNTIME_FILES) return 0;
  // HotSpot's frames have no file: the kernel program knows its processes.
  if (found->kind != RUNTIME_HOTSPOT &&
      bpf_map_update_elem(maps_.runtimes, &index, &*found, BPF_ANY) != 0)
    return 0;
  runtimes_.push_back(*found);
  return static_cast<std::uint8_t>(index);
}

std::shared_ptr<File> Tables::equal_file(const ElfCode& elf, const Table& table,
                                         std::uint8_t runtime) {
  auto [at, end] = by_content_.equal_range(hash_of(table));
  while (at != end) {
    auto file = at->second.lock();
    if (!file || file->state != File::ready) {
      at = by_content_.erase(at);
      continue;
    }
    if ((file->runtime | file->hotspot) == runtime && file->elf.segments == elf.segments &&
        file->base == table.base && holds(*file, table))
      return file;
    ++at;
  }
  return nullptr;
}

/// True if the kernel's maps hold this table.
bool Tables::holds(const File& file, const Table& table) const {
  std::vector<unwind_page> pages(file.pages);
  if (file.bytes != table.bytes() || file.pages != table.pages.size() ||
      !read_map(maps_.pages, file.page * sizeof(unwind_page), pages.data(),
                pages.size() * sizeof(unwind_page)) ||
      !std::equal(pages.begin(), pages.end(), table.pages.begin(),
                  [](auto& a, auto& b) { return a.rows == b.count; }))
    return false;
  std::vector<std::uint32_t> rows;
  std::size_t from = 0;
  for (auto& r : file.rows) {
    rows.resize(r.count);
    if (!read_map(chunks_[r.chunk]->map.get(), std::size_t{r.first} * 4, rows.data(),
                  std::size_t{r.count} * 4) ||
        memcmp(rows.data(), table.rows.data() + from, std::size_t{r.count} * 4) != 0)
      return false;
    from += r.count;
  }
  return true;
}

bool Tables::place(File& file, const Table& table) {
  file.lacking = table.bytes();
  file.no_place_at = SIZE_MAX;
  if (!fits(table.bytes())) return false;
  file.no_place_at = bytes_;
  auto pages = static_cast<std::uint32_t>(table.pages.size());
  auto page = page_room_.take(pages);
  if (!page) return false;
  std::vector<unwind_page> directory;
  if (!write_rules() || !place_rows(file, table, directory) ||
      !write_map(maps_.pages, *page * sizeof(unwind_page), directory.data(),
                 directory.size() * sizeof(unwind_page))) {
    page_room_.give(*page, pages);
    give_rows(file.rows);
    file.rows.clear();
    drop_idle(file.lacking);  // for the next attempt
    return false;
  }
  file.page = *page;
  file.pages = pages;
  file.bytes = table.bytes();
  file.lacking = 0;
  bytes_ += file.bytes;
  return true;
}

bool Tables::write_rules() {
  auto& all = rules_.all();
  auto at = rules_written_ * sizeof(unwind_rule);
  auto bytes = (all.size() - rules_written_) * sizeof(unwind_rule);
  if (!write_map(maps_.rules, at, all.data() + rules_written_, bytes)) return false;
  rules_written_ = all.size();
  return true;
}

/// Writes adjacent pages at once.
bool Tables::place_rows(File& file, const Table& table, std::vector<unwind_page>& directory) {
  auto written = [&](const File::Rows& rows, std::uint32_t from) {
    return write_map(chunks_[rows.chunk]->map.get(), std::size_t{rows.first} * 4,
                     table.rows.data() + from, std::size_t{rows.count} * 4);
  };
  std::uint32_t from = 0;  // start of the last range, in the table's rows
  for (auto& page : table.pages) {
    std::uint32_t chunk = 0, first = 0;
    if (!take_rows(page.count, chunk, first)) return false;
    directory.push_back(
        {static_cast<__u16>(chunk), static_cast<__u16>(first), static_cast<__u32>(page.count)});
    auto* last = file.rows.empty() ? nullptr : &file.rows.back();
    if (last && last->chunk == chunk && last->first + last->count == first) {
      last->count += page.count;
      continue;
    }
    bool done = !last || written(*last, from);
    file.rows.push_back({chunk, first, page.count});  // before failing: these must be freed, too
    from = page.first;
    if (!done) return false;
  }
  return file.rows.empty() || written(file.rows.back(), from);
}

bool Tables::take_rows(std::uint32_t count, std::uint32_t& chunk, std::uint32_t& first) {
  for (chunk = 0; chunk < chunks_.size(); chunk++) {
    auto& c = chunks_[chunk];
    if (!c) {
      LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);
      Fd map(bpf_map_create(BPF_MAP_TYPE_ARRAY, "unwind_chunk", 4, kChunkBytes, 1, &options));
      int fd = map.get();
      if (fd < 0 || bpf_map_update_elem(maps_.rows, &chunk, &fd, BPF_ANY)) return false;
      c = std::make_unique<Chunk>();
      c->map = std::move(map);
    }
    if (c->room.free() < count) continue;
    if (auto at = c->room.take(count)) {
      first = *at;
      return true;
    }
  }
  return false;
}

void Tables::give_rows(const std::vector<File::Rows>& rows) {
  for (auto& r : rows) {
    auto& chunk = chunks_[r.chunk];
    if (!chunk) continue;
    chunk->room.give(r.first, r.count);
    if (!chunk->room.empty()) continue;
    bpf_map_delete_elem(maps_.rows, &r.chunk);
    chunk.reset();
  }
}

/// Files that no process has mapped, the least recently used first.
std::vector<File*> Tables::idle() const {
  std::map<std::shared_ptr<File>, long> listed;  // number of references in this object
  for (auto& [id, file] : by_identity_) listed[file]++;
  for (auto& [image, file] : by_image_) listed[file]++;
  std::vector<File*> idle;
  for (auto& [file, times] : listed)
    if (file.use_count() == times + 1) idle.push_back(file.get());
  std::sort(idle.begin(), idle.end(), [](auto* a, auto* b) { return a->used < b->used; });
  return idle;
}

/// Drops idle files until this many bytes are being freed; none if they do not suffice.
void Tables::drop_idle(std::size_t bytes) {
  std::size_t coming = 0, there = 0;
  for (auto& d : dropped_) coming += d.bytes;
  auto idle = this->idle();
  for (auto* file : idle) there += file->bytes;
  if (coming + there < bytes) return;
  for (auto* file : idle) {
    if (coming >= bytes) break;
    coming += file->bytes;
    drop(*file);
  }
}

bool Tables::make_room(std::size_t bytes) {
  if (bytes_ + bytes > budget_) drop_idle(bytes_ + bytes - budget_);
  settle(Clock::now());
  return bytes_ + bytes <= budget_;
}

/// Forgets the least recently used half of the idle files.
void Tables::forget_idle() {
  auto idle = this->idle();
  std::set<const File*> gone(idle.begin(),
                             idle.begin() + static_cast<std::ptrdiff_t>(idle.size() / 2));
  for (auto* file : idle) {
    if (!gone.contains(file)) continue;
    drop(*file);
    if (forgotten) forgotten(*file);
  }
  std::erase_if(by_identity_, [&](auto& entry) { return gone.contains(entry.second.get()); });
}

void Tables::drop(File& file) {
  if (file.state != File::ready) return;
  dropped_.push_back({Clock::now(), file.page, file.pages, std::move(file.rows), file.bytes});
  file.rows.clear();
  file.pages = 0;
  file.lacking = std::exchange(file.bytes, 0);
  file.wanted = false;
  file.state = File::no_memory;
  if (dropped) dropped(file);
}

bool Tables::settle(Clock::time_point now) {
  bool any = false;
  while (!dropped_.empty() && now - dropped_.front().since >= kGrace) {
    auto& d = dropped_.front();
    page_room_.give(d.page, d.pages);
    give_rows(d.rows);
    bytes_ -= d.bytes;
    dropped_.pop_front();
    any = true;
  }
  return any;
}

}  // namespace coretap::unwind
