// A PJRT device as one of Lightcone's. Its arrays have a type and a shape and never change, where a Device has bytes
// at places; so a buffer here is a table: which array lies from which byte on. A copy of a whole value, a state's next
// one for instance, is an entry and moves nothing.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "lightcone/backends/pjrt/client.h"
#include "lightcone/core/graph.h"
#include "lightcone/device/device.h"

namespace lc::backends::pjrt {

// Bytes that never change: as the host brought them, until a kernel asks for an array of some type.
class Data {
 public:
  explicit Data(std::vector<std::byte> host) : bytes_(host.size()), host_(std::move(host)) {}
  Data(std::size_t bytes, std::shared_ptr<const Array> array) : bytes_(bytes), array_(std::move(array)) {}
  std::size_t size() const { return bytes_; }
  void read(void* to, std::size_t offset, std::size_t bytes) const;
  // The same bytes as an array of a device, which keeps them from then on.
  std::shared_ptr<const Array> array(const Client& client, int device, DType type,
                                     const std::vector<std::int64_t>& shape) const;

 private:
  std::vector<std::byte> on_host() const;  // of an array
  const std::size_t bytes_;
  mutable std::mutex mutex_;
  mutable std::vector<std::byte> host_;
  mutable std::shared_ptr<const Array> array_;
};

// What is in no entry is zero.
class Table final : public Buffer {
 public:
  explicit Table(std::size_t bytes) : Buffer(bytes) {}
  std::size_t committed() const override;

  using Entries = std::vector<std::pair<std::size_t, std::shared_ptr<const Data>>>;  // offset, what lies there
  void put(std::size_t offset, std::shared_ptr<const Data> data);
  void clear(std::size_t offset, std::size_t bytes);
  void read(void* to, std::size_t offset, std::size_t bytes) const;
  Entries entries(std::size_t offset, std::size_t bytes) const;  // in this range, cut to it; offsets from its start
  // The value that lies there, as one piece.
  std::shared_ptr<const Data> value(std::size_t offset, std::size_t bytes);
  // Has this table the only reference but one? Then nobody else will read the value.
  bool owns(std::size_t offset, const std::shared_ptr<const Data>& data) const;

 private:
  Entries entries_locked(std::size_t offset, std::size_t bytes) const;
  void clear_locked(std::size_t offset, std::size_t bytes);
  mutable std::mutex mutex_;
  std::map<std::size_t, std::shared_ptr<const Data>> entries_;
};

class PjrtDevice final : public Device {
 public:
  PjrtDevice(std::shared_ptr<const Client> client, int index);
  std::string name() const override { return name_; }
  const Client& client() const { return *client_; }
  int index() const { return index_; }

  std::unique_ptr<Buffer> allocate(std::size_t bytes) override { return std::make_unique<Table>(bytes); }
  void copy_in(BufferSlice to, const void* from, std::size_t bytes) override;
  void copy_out(void* to, BufferSlice from, std::size_t bytes) override;
  void copy(BufferSlice to, BufferSlice from, std::size_t bytes) override;
  void zero(BufferSlice to, std::size_t bytes) override;
  void launch(const Launch& l) override;
  void synchronise() override;

  void remember(Event running);  // for synchronise()

 private:
  std::shared_ptr<const Client> client_;
  int index_;
  std::string name_;
  std::mutex mutex_;
  std::vector<Event> running_;
};

}  // namespace lc::backends::pjrt
