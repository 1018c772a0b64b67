// A PJRT device as a Device. PJRT's arrays have a type and a shape and never change, but a Device has buffers of bytes.
// A buffer here is therefore a table of the arrays at its offsets. A copy of a whole value, a state's next one for
// instance, adds an entry and moves no bytes.
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

// Bytes that never change. They are kept on the host until a kernel needs them as an array of some type.
class Data {
 public:
  explicit Data(std::vector<std::byte> host) : bytes_(host.size()), host_(std::move(host)) {}
  Data(std::size_t bytes, std::shared_ptr<const Array> array) : bytes_(bytes), array_(std::move(array)) {}
  std::size_t size() const { return bytes_; }
  void read(void* to, std::size_t offset, std::size_t bytes) const;
  // Returns the same bytes as an array of a device, which holds them from then on.
  std::shared_ptr<const Array> array(const Client& client, int device, DType type,
                                     const std::vector<std::int64_t>& shape) const;

 private:
  std::vector<std::byte> on_host() const;  // bytes of the array
  const std::size_t bytes_;
  mutable std::mutex mutex_;
  mutable std::vector<std::byte> host_;
  mutable std::shared_ptr<const Array> array_;
};

// Bytes without an entry are zero.
class Table final : public Buffer {
 public:
  explicit Table(std::size_t bytes) : Buffer(bytes) {}
  std::size_t committed() const override;

  using Entries = std::vector<std::pair<std::size_t, std::shared_ptr<const Data>>>;  // offset, the value there
  void put(std::size_t offset, std::shared_ptr<const Data> data);
  void clear(std::size_t offset, std::size_t bytes);
  void read(void* to, std::size_t offset, std::size_t bytes) const;
  Entries entries(std::size_t offset, std::size_t bytes) const;  // clipped to the range; offsets from its start
  // Returns the value of the range as one piece.
  std::shared_ptr<const Data> value(std::size_t offset, std::size_t bytes);
  // Returns true if the table and the caller have the only references, so that nothing else will read the value.
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
