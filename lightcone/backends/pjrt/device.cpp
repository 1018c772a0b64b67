#include "lightcone/backends/pjrt/device.h"

#include <algorithm>
#include <cstring>

#include "lightcone/backends/pjrt/kernel.h"
#include "lightcone/base/error.h"

namespace lc::backends::pjrt {

// ---- data -------------------------------------------------------------------------------------

std::vector<std::byte> Data::on_host() const {
  std::vector<std::byte> all(bytes_);
  array_->to_host(all.data(), bytes_);
  return all;
}

void Data::read(void* to, std::size_t offset, std::size_t bytes) const {
  if (!bytes) return;
  const std::lock_guard lock(mutex_);
  if (array_ && offset == 0 && bytes == bytes_) return array_->to_host(to, bytes);
  if (!array_) std::memcpy(to, host_.data() + offset, bytes);
  else std::memcpy(to, on_host().data() + offset, bytes);
}

std::shared_ptr<const Array> Data::array(const Client& client, int device, DType type,
                                         const std::vector<std::int64_t>& shape) const {
  const std::lock_guard lock(mutex_);
  if (array_ && array_->dtype() == type && array_->shape() == shape) return array_;
  const std::vector<std::byte> fetched = array_ ? on_host() : std::vector<std::byte>();
  array_ = std::make_shared<const Array>(client.to_device({type, shape, array_ ? fetched : host_}, device));
  host_ = {};
  return array_;
}

// ---- tables -----------------------------------------------------------------------------------

std::size_t Table::committed() const {
  const std::lock_guard lock(mutex_);
  std::size_t all = 0;
  for (const auto& [offset, data] : entries_) all += data->size();
  return all;
}

Table::Entries Table::entries_locked(std::size_t offset, std::size_t bytes) const {
  Entries found;
  const std::size_t end = offset + bytes;
  auto it = entries_.upper_bound(offset);
  if (it != entries_.begin()) --it;
  for (; it != entries_.end() && it->first < end; ++it) {
    const auto& [at, data] = *it;
    const std::size_t first = std::max(at, offset), last = std::min(at + data->size(), end);
    if (first >= last) continue;
    if (first == at && last == at + data->size()) {
      found.emplace_back(at - offset, data);
      continue;
    }
    std::vector<std::byte> piece(last - first);
    data->read(piece.data(), first - at, piece.size());
    found.emplace_back(first - offset, std::make_shared<const Data>(std::move(piece)));
  }
  return found;
}
Table::Entries Table::entries(std::size_t offset, std::size_t bytes) const {
  const std::lock_guard lock(mutex_);
  return entries_locked(offset, bytes);
}

void Table::clear_locked(std::size_t offset, std::size_t bytes) {
  if (!bytes) return;
  const std::size_t end = offset + bytes;
  Entries rest;  // remains of entries that are cleared in part
  auto it = entries_.upper_bound(offset);
  if (it != entries_.begin()) --it;
  const auto first = it;
  for (; it != entries_.end() && it->first < end; ++it) {
    const auto& [at, data] = *it;
    const std::size_t last = at + data->size();
    if (last <= offset) continue;
    const auto keep = [&, &data = data, at = at](std::size_t from, std::size_t to) {
      if (from >= to) return;
      std::vector<std::byte> piece(to - from);
      data->read(piece.data(), from - at, piece.size());
      rest.emplace_back(from, std::make_shared<const Data>(std::move(piece)));
    };
    keep(at, offset), keep(end, last);
  }
  for (auto k = first; k != it;) k = k->first + k->second->size() > offset ? entries_.erase(k) : std::next(k);
  for (auto& [at, data] : rest) entries_.emplace(at, std::move(data));
}
void Table::clear(std::size_t offset, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  clear_locked(offset, bytes);
}

void Table::put(std::size_t offset, std::shared_ptr<const Data> data) {
  if (!data->size()) return;
  const std::lock_guard lock(mutex_);
  clear_locked(offset, data->size());
  entries_.insert_or_assign(offset, std::move(data));
}

void Table::read(void* to, std::size_t offset, std::size_t bytes) const {
  if (!bytes) return;
  const Entries found = entries(offset, bytes);
  const bool whole = found.size() == 1 && found[0].first == 0 && found[0].second->size() == bytes;
  if (!whole) std::memset(to, 0, bytes);
  for (const auto& [at, data] : found) data->read(static_cast<std::byte*>(to) + at, 0, data->size());
}

std::shared_ptr<const Data> Table::value(std::size_t offset, std::size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    const auto it = entries_.find(offset);
    if (it != entries_.end() && it->second->size() == bytes) return it->second;
  }
  std::vector<std::byte> all(bytes);
  read(all.data(), offset, bytes);
  auto data = std::make_shared<const Data>(std::move(all));
  put(offset, data);  // the next call finds it there
  return data;
}

bool Table::owns(std::size_t offset, const std::shared_ptr<const Data>& data) const {
  const std::lock_guard lock(mutex_);
  const auto it = entries_.find(offset);
  return it != entries_.end() && it->second == data && data.use_count() == 2;
}

// ---- the device -------------------------------------------------------------------------------

namespace {

Table& table(BufferSlice p) { return static_cast<Table&>(*p.buffer); }

}  // namespace

PjrtDevice::PjrtDevice(std::shared_ptr<const Client> client, int index)
    : client_(std::move(client)), index_(index), name_(client_->device(index).text) {}

void PjrtDevice::copy_in(BufferSlice to, const void* from, std::size_t bytes) {
  const auto* first = static_cast<const std::byte*>(from);
  if (bytes) table(to).put(to.offset, std::make_shared<const Data>(std::vector<std::byte>(first, first + bytes)));
}
void PjrtDevice::copy_out(void* to, BufferSlice from, std::size_t bytes) { table(from).read(to, from.offset, bytes); }
void PjrtDevice::copy(BufferSlice to, BufferSlice from, std::size_t bytes) {
  const Table::Entries moved = table(from).entries(from.offset, bytes);
  table(to).clear(to.offset, bytes);
  for (const auto& [at, data] : moved) table(to).put(to.offset + at, data);
}
void PjrtDevice::zero(BufferSlice to, std::size_t bytes) { table(to).clear(to.offset, bytes); }

void PjrtDevice::launch(const Launch& l) {
  if (l.kernel->part()) {  // the operand's slice is wanted at another address
    const auto offset = static_cast<std::size_t>(l.sizes[1]);
    return copy(l.out, {l.in[0].buffer, l.in[0].offset + offset}, static_cast<std::size_t>(l.sizes[0]));
  }
  const auto* program = dynamic_cast<const ProgramKernel*>(l.kernel);
  if (!program) throw Error("device", str_cat("the kernel '", l.kernel->name(), "' is not for ", name()));
  program->run(l, *this);
}

void PjrtDevice::remember(Event running) {
  const std::lock_guard lock(mutex_);
  std::erase_if(running_, [](const Event& e) { return e.ready(); });
  running_.push_back(std::move(running));
}
void PjrtDevice::synchronise() {
  std::vector<Event> all;
  {
    const std::lock_guard lock(mutex_);
    all.swap(running_);
  }
  for (const Event& e : all) e.await();
}

}  // namespace lc::backends::pjrt
