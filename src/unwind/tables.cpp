#include "unwind/tables.hpp"

#include <bpf/bpf.h>

#include <algorithm>
#include <utility>

#include "unwind/kernel_maps.hpp"

namespace coretap::unwind {

namespace {

constexpr std::size_t kChunkBytes = UNWIND_CHUNK_ROWS * 4;
// Forgotten files are read again when they are met again; those in use are not forgotten.
constexpr std::size_t kMostIdentities = 1 << 14;

}  // namespace

Tables::Tables(Maps maps, std::size_t budget)
    : maps_(maps), budget_(budget), chunks_(chunks_for(budget)) {}

std::uint32_t Tables::chunks_for(std::size_t budget) {
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(budget / kChunkBytes, 1, 1 << 16));
}

std::shared_ptr<File> Tables::known(const symbols::FileIdentity& id) {
  auto found = by_identity_.find(id);
  if (found == by_identity_.end()) return nullptr;
  found->second->used = ++clock_;
  return found->second;
}

std::shared_ptr<File> Tables::of_file(int fd, const symbols::FileIdentity& id) {
  if (auto file = known(id); file && file->state != File::no_memory) return file;
  FileImage image(fd);
  auto elf = read_elf_code(image);
  std::string key;
  if (!elf.build_id.empty()) key = elf.build_id + "/" + std::to_string(elf.size);
  std::shared_ptr<File> file;
  if (auto same = by_key_.find(key); !key.empty() && same != by_key_.end()) file = same->second;
  if (file && file->state == File::no_memory && !fits(file->lacking)) {
    by_identity_[id] = file;
    return file;
  }
  if (!file || file->state == File::no_memory) {
    auto built = build(image, std::move(elf));
    // Who has it already sees that it is ready now.
    if (file)
      *file = std::move(*built);
    else
      file = std::move(built);
    if (!key.empty()) by_key_[key] = file;
  }
  if (by_identity_.size() >= kMostIdentities)
    std::erase_if(by_identity_, [](auto& entry) {
      return entry.second.use_count() <= 2 && entry.second->state != File::ready;
    });
  by_identity_[id] = file;
  file->used = ++clock_;
  return file;
}

bool Tables::fits(std::size_t bytes) { return bytes_ + bytes <= budget_ || make_room(bytes); }

std::shared_ptr<File> Tables::of_image(const std::string& image) {
  auto key = "image " + image;
  auto known = by_key_.find(key);
  auto file = known != by_key_.end() ? known->second : nullptr;
  if (!file || file->state == File::no_memory) {
    MemoryImage memory({image.data(), image.size()});
    auto built = build(memory, read_elf_code(memory));
    if (file)
      *file = std::move(*built);
    else
      by_key_[key] = file = std::move(built);
  }
  file->used = ++clock_;
  return file;
}

std::shared_ptr<File> Tables::build(const Image& image, ElfCode elf) {
  auto file = std::make_shared<File>();
  file->elf = std::move(elf);
  auto table = make_table(image, file->elf, rules_);
  if (table.pages.empty()) return file;
  file->base = table.base;
  file->state = place(*file, table) ? File::ready : File::no_memory;
  return file;
}

bool Tables::place(File& file, const Table& table) {
  file.lacking = table.bytes();
  if (!fits(table.bytes())) return false;
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

/// Pages that come to lie behind each other are written at once.
bool Tables::place_rows(File& file, const Table& table, std::vector<unwind_page>& directory) {
  auto written = [&](const File::Rows& rows, std::uint32_t from) {
    return write_map(chunks_[rows.chunk]->map.get(), std::size_t{rows.first} * 4,
                     table.rows.data() + from, std::size_t{rows.count} * 4);
  };
  std::uint32_t from = 0;  // of the last range, in the table's rows
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
    if (last && !written(*last, from)) return false;
    file.rows.push_back({chunk, first, page.count});
    from = page.first;
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

bool Tables::make_room(std::size_t bytes) {
  std::map<std::shared_ptr<File>, long> listed;  // how often we have it ourselves
  for (auto& [key, file] : by_key_) listed[file]++;
  for (auto& [id, file] : by_identity_) listed[file]++;
  std::vector<File*> idle;
  for (auto& [file, times] : listed)
    if (file->state == File::ready && file.use_count() == times + 1) idle.push_back(file.get());
  std::sort(idle.begin(), idle.end(), [](auto* a, auto* b) { return a->used < b->used; });
  auto after = bytes_ + bytes;
  for (auto& d : dropped_) after -= d.bytes;
  std::size_t idle_bytes = 0;
  for (auto* file : idle) idle_bytes += file->bytes;
  if (after > budget_ + idle_bytes) idle.clear();  // nothing is dropped in vain
  for (auto* file : idle) {
    if (after <= budget_) break;
    after -= file->bytes;
    drop(*file);
  }
  settle(Clock::now());
  return bytes_ + bytes <= budget_;
}

void Tables::drop(File& file) {
  if (file.state != File::ready) return;
  dropped_.push_back({Clock::now(), file.page, file.pages, std::move(file.rows), file.bytes});
  file.rows.clear();
  file.pages = 0;
  file.lacking = std::exchange(file.bytes, 0);
  file.wanted = false;
  file.state = File::no_memory;
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
