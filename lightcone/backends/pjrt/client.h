// A client of a PJRT plugin: devices, arrays in their memory, and programs compiled for them.
//
//   auto client = pjrt::Client::create(pjrt::Plugin::load("/usr/lib/lightcone_pjrt.so"));
//   pjrt::Executable program = client->compile(text);  // StableHLO
//   pjrt::Array x = client->to_device({DType::F32, {2, 3}, bytes});
//   std::vector<pjrt::Array> y = program.execute({{&x}});
//
// Objects may be destroyed in any order, because each keeps alive what it depends on. All of them may be used from
// several threads, but an object may be changed or moved by one thread at a time only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lightcone/backends/pjrt/plugin.h"
#include "lightcone/core/array_view.h"

namespace lc::backends::pjrt {

class Client;

// Returns PJRT's name of a type.
api::BufferType type_of(DType t);
// Returns Lightcone's name of a type, or nullopt if it has none.
std::optional<DType> dtype_of(api::BufferType t);

// An object of the plugin, destroyed with this one.
template <class T, class Destroy>
class Handle {
 public:
  Handle(std::shared_ptr<const Client> client, T* object) : client_(std::move(client)), object_(object) {}
  Handle(Handle&& other) noexcept : client_(std::move(other.client_)), object_(std::exchange(other.object_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(client_, other.client_), std::swap(object_, other.object_);
    return *this;
  }
  ~Handle();
  T* get() const { return object_; }
  const std::shared_ptr<const Client>& client() const { return client_; }

 private:
  std::shared_ptr<const Client> client_;
  T* object_;
};

// A future event of the plugin.
class Event {
 public:
  Event(std::shared_ptr<const Client> client, api::Event* e) : handle_(std::move(client), e) {}
  void await() const;  // throws Error if it failed
  bool ready() const;

 private:
  Handle<api::Event, api::EventDestroy> handle_;
};

// An array on a device, row-major for all readers. It never changes.
class Array {
 public:
  Array(std::shared_ptr<const Client> client, api::Buffer* b) : handle_(std::move(client), b) {}
  // Throws Error if Lightcone has no such type.
  DType dtype() const;
  std::vector<std::int64_t> shape() const;
  std::size_t bytes() const;  // on the host
  // Waits for the array and copies it to `to`. Throws Error unless `bytes` is bytes(), or if its computation failed.
  void to_host(void* to, std::size_t bytes) const;
  Event ready() const;      // carries an Error of the computation of this array
  bool is_deleted() const;  // a program that it was donated to took its memory
  api::Buffer* get() const { return handle_.get(); }

 private:
  const Plugin& plugin() const;
  Handle<api::Buffer, api::BufferDestroy> handle_;
};

// A program that is compiled for one device.
class Executable {
 public:
  Executable(std::shared_ptr<const Client> client, api::LoadedExecutable* e, int device);
  std::size_t results() const { return results_; }
  // Returns what the plugin counted ("flops", "bytes accessed"). Throws Error if the plugin does not provide it.
  Attributes cost() const;
  // The program after the plugin's optimisations, in a format that the plugin names.
  struct Optimised {
    std::string format, code;
  };
  // Throws Error if the plugin does not provide it.
  Optimised optimised() const;

  // Starts a run, which may end later; to_host() of a result waits for it. An argument that the text marks as donated
  // ("tf.aliasing_output") is deleted by the run, unless its index is in `kept`. `done` becomes the event of the whole
  // run's end.
  std::vector<Array> execute(std::span<const Array* const> arguments, std::span<const std::int64_t> kept = {},
                             std::optional<Event>* done = nullptr) const;

 private:
  const Plugin& plugin() const;
  Handle<api::LoadedExecutable, api::LoadedExecutableDestroy> handle_;
  int device_;
  std::size_t results_ = 0;
};

// A device of a client: its id, its kind, and the plugin's description.
struct DeviceInfo {
  int id = 0;
  std::string kind, text;
};

// A plugin's devices in this process. Arrays and programs keep it alive.
class Client : public std::enable_shared_from_this<Client> {
 public:
  // Starts the plugin with its own options. Throws Error if it finds no device.
  static std::shared_ptr<const Client> create(std::shared_ptr<const Plugin> plugin, const Attributes& options = {});
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  const Plugin& plugin() const { return *plugin_; }
  std::string platform() const;
  std::string platform_version() const;
  std::size_t devices() const { return devices_.size(); }
  DeviceInfo device(int index) const;

  // Compiles a program, given as StableHLO text, for one of the devices.
  Executable compile(std::string_view text, int device = 0) const;
  // Copies an array to a device. The host's bytes may be changed after it returns.
  Array to_device(const ArrayView& array, int device = 0) const;

 private:
  friend class Executable;
  explicit Client(std::shared_ptr<const Plugin> plugin) : plugin_(std::move(plugin)) {}
  api::Device* device_at(int index) const;

  std::shared_ptr<const Plugin> plugin_;
  api::Client* client_ = nullptr;
  std::vector<api::Device*> devices_;  // devices of this process
};

template <class T, class Destroy>
Handle<T, Destroy>::~Handle() {
  if (!object_) return;
  Destroy args{{}, object_, {}};
  client_->plugin().call_quietly(args);
}

}  // namespace lc::backends::pjrt
