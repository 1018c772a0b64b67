// The objects of lightcone_pjrt.so's handles. Everything is done when a call returns, so events are ready from the
// beginning. No object points to its client, so objects may be destroyed in any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lightcone/backends/pjrt/api.h"
#include "lightcone/base/error.h"
#include "lightcone/core/dtype.h"
#include "lightcone/runtime/program.h"

namespace lc::backends::pjrt::api {

// An exception of a function of the plugin, which becomes an Error with this code.
class Failure : public std::runtime_error {
 public:
  Failure(ErrorCode code, const std::string& sentence) : std::runtime_error(sentence), code_(code) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};
[[noreturn]] inline void invalid(const std::string& sentence) { throw Failure(ErrorCode::InvalidArgument, sentence); }
[[noreturn]] inline void unimplemented(const std::string& sentence) {
  throw Failure(ErrorCode::Unimplemented, sentence);
}

struct Error {
  ErrorCode code;
  std::string message;
};
struct Event {};

// ---- the one device: this machine's processor ---------------------------------------------------

struct DeviceDescription {
  static constexpr std::string_view kind = "cpu", text = "LightconeDevice(id=0)";
};
struct Memory {
  static constexpr std::string_view kind = "device", text = "LightconeMemory(id=0)";
};
struct Device {
  DeviceDescription description;
};
struct Topology {};
struct Machine {
  Device device;
  Memory memory;
  Topology topology;
  Device* devices[1] = {&device};
  Memory* memories[1] = {&memory};
  DeviceDescription* descriptions[1] = {&device.description};
};
Machine& machine();
inline constexpr std::string_view kPlatform = "lightcone";

struct Client {
  int threads = 0;
};

// ---- buffers ------------------------------------------------------------------------------------

class Bytes {
 public:
  explicit Bytes(std::size_t size)
      : size_(size), data_(static_cast<std::byte*>(::operator new(size ? size : 1, std::align_val_t(64)))) {}
  // Memory of the client, which is notified when it is no longer read.
  Bytes(void* data, std::size_t size, void (*on_delete)(void*, void*), void* user)
      : size_(size), data_(static_cast<std::byte*>(data)), is_own_(false), on_delete_(on_delete), user_(user) {}
  ~Bytes() {
    if (is_own_) ::operator delete(data_, std::align_val_t(64));
    else if (on_delete_) on_delete_(data_, user_);
  }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool is_own() const { return is_own_; }

 private:
  std::size_t size_;
  std::byte* data_;
  bool is_own_ = true;
  void (*on_delete_)(void*, void*) = nullptr;
  void* user_ = nullptr;
};

// An array's type and the sizes that follow from it. Throws Failure for a type that Lightcone lacks.
struct ArrayType {
  ArrayType(BufferType type, std::vector<std::int64_t> dims);
  BufferType type;
  std::vector<std::int64_t> dims;
  std::size_t element, bytes;
  std::string str() const;
  friend bool operator==(const ArrayType& a, const ArrayType& b) { return a.type == b.type && a.dims == b.dims; }
};

struct Buffer {
  Buffer(ArrayType t, std::shared_ptr<Bytes> b);
  const ArrayType type;
  std::vector<std::int64_t> minor_to_major;

  std::shared_ptr<Bytes> bytes() const;  // throws Failure if it was deleted
  std::shared_ptr<Bytes> release();      // deletes it; returns its memory, or null
  bool is_deleted() const;
  void hold();  // for a caller that has the address of its bytes
  void let_go();

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<Bytes> bytes_;
  std::vector<std::shared_ptr<Bytes>> held_;
};

// ---- programs -----------------------------------------------------------------------------------

struct Compiled {
  std::string name, fingerprint;
  lc::Program program;
  std::vector<std::string> inputs, outputs;
  std::vector<ArrayType> arguments, results;
  std::vector<int> takes_memory_of;  // by result: the argument that is donated to it, or -1
  bool passes_inputs_on = false;     // a result is an unchanged argument

  std::mutex mutex;
  std::vector<std::unique_ptr<lc::Context>> idle;  // concurrent runs have one each
};

struct Executable {
  explicit Executable(std::shared_ptr<Compiled> c);
  std::shared_ptr<Compiled> compiled;
  std::vector<BufferType> types;
  std::vector<std::int64_t> dims;
  std::vector<std::size_t> ranks;
  std::vector<const char*> memory_kinds;
  std::vector<std::size_t> memory_kind_sizes;
  std::vector<NamedValue> cost;
};
struct LoadedExecutable {
  explicit LoadedExecutable(std::shared_ptr<Compiled> c) : compiled_(std::move(c)) {}
  std::shared_ptr<Compiled> compiled() const;  // throws Failure if it was deleted
  void release();
  bool is_deleted() const;

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<Compiled> compiled_;
};

// ---- functions ----------------------------------------------------------------------------------

// The table of GetPjrtApi(). Each file adds its functions.
void add_client_functions(Api& table);
void add_buffer_functions(Api& table);
void add_program_functions(Api& table);

Error* make_error(ErrorCode code, std::string_view message) noexcept;

// Runs a function and returns its exception as an Error.
template <class F>
Error* guarded(const F& body) noexcept {
  try {
    body();
    return nullptr;
  } catch (const Failure& f) {
    return make_error(f.code(), f.what());
  } catch (const std::bad_alloc&) {
    return make_error(ErrorCode::ResourceExhausted, "there is not enough memory");
  } catch (const lc::Error& e) {
    return make_error(e.op() == "memory" ? ErrorCode::ResourceExhausted : ErrorCode::Internal, e.what());
  } catch (const std::exception& e) {
    return make_error(ErrorCode::Internal, e.what());
  } catch (...) {
    return make_error(ErrorCode::Internal, "something was thrown that is no std::exception");
  }
}

template <class Args>
void check_size(const Args* args) {
  if (!args || args->head.size < known_size<Args>())
    invalid(str_cat("the arguments of function ", static_cast<int>(Args::function), " have ",
                    args ? args->head.size : 0, " bytes, fewer than the ", known_size<Args>(), " of version 0.58"));
}

// Checks that a structure, to which another one points, is as large as the fields that are read.
template <class Part>
void check_part(const Part* part, std::size_t known, std::string_view what) {
  if (part->head.size < known)
    invalid(str_cat(what, " has ", part->head.size, " bytes, fewer than the ", known, " of version 0.58"));
}

// Adds a function of the table that calls `Body`, which takes its arguments by reference and may throw.
template <class Args, void (*Body)(Args&)>
void add(Api& table) {
  constexpr Error* (*kFunction)(Args*) = [](Args* args) {
    return guarded([&] {
      check_size(args);
      if constexpr (requires { args->of; })
        if (!args->of) invalid(str_cat("function ", static_cast<int>(Args::function), " was given no object"));
      Body(*args);
    });
  };
  table.functions[static_cast<int>(Args::function)] = reinterpret_cast<AnyFunction>(kFunction);
}
// Adds a function that destroys an object, if there is one.
template <class Args>
void add_destroy(Api& table) {
  constexpr Error* (*kFunction)(Args*) = [](Args* args) {
    return guarded([&] {
      check_size(args);
      delete args->of;
    });
  };
  table.functions[static_cast<int>(Args::function)] = reinterpret_cast<AnyFunction>(kFunction);
}

// Returns an event that is ready.
inline Event* done() { return new Event; }

}  // namespace lc::backends::pjrt::api
