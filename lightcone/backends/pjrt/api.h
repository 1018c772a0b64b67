// The part of the PJRT C API that the client and Lightcone's own plugin use: a binary interface, as plain structures.
// https://github.com/openxla/xla/blob/main/xla/pjrt/c/pjrt_c_api.h documents the calls.
//
// A plugin is a shared library with one function, GetPjrtApi(), which returns a table of functions. Each function takes
// one structure that begins with its own size. The interface grows at the end of the table and at the ends of the
// structures. A plugin may refuse a structure smaller than its own version of it, so ours end in zeros, which their
// size includes.
#pragma once

#include "lightcone/macros_off.h"

#include <cstddef>
#include <cstdint>

namespace lc::backends::pjrt::api {

struct Head {
  std::size_t size = 0;
  void* extensions = nullptr;
};
// Room for fields that newer versions append to a structure.
struct Tail {
  std::byte zeros[128] = {};
};

// Opaque types of the plugin.
struct Error;
struct Event;
struct Client;
struct Device;
struct DeviceDescription;
struct Memory;
struct Executable;
struct LoadedExecutable;
struct Buffer;
struct Topology;

// clang-format off
enum class ErrorCode : int {
  Ok, Cancelled, Unknown, InvalidArgument, DeadlineExceeded, NotFound, AlreadyExists, PermissionDenied,
  ResourceExhausted, FailedPrecondition, Aborted, OutOfRange, Unimplemented, Internal, Unavailable, DataLoss,
  Unauthenticated
};
enum class BufferType : int { Invalid, Pred, S8, S16, S32, S64, U8, U16, U32, U64, F16, F32, F64, BF16, C64, C128,
                              F8E5M2, F8E4M3FN };
enum class HostSemantics : int { OnlyDuringCall, UntilTransferCompletes, ImmutableZeroCopy, MutableZeroCopy };
enum class ValueKind : int { String, Int64, Int64List, Float, Bool };
enum class LayoutKind : int { Tiled, Strides };

// Indices in the table of functions.
enum class Function : int {
  ErrorDestroy = 0, ErrorMessage, ErrorGetCode, PluginInitialize, PluginAttributes,
  EventDestroy, EventIsReady, EventError, EventAwait, EventOnReady,
  ClientCreate = 10, ClientDestroy, ClientPlatformName, ClientProcessIndex, ClientPlatformVersion, ClientDevices,
  ClientAddressableDevices, ClientLookupDevice, ClientLookupAddressableDevice, ClientAddressableMemories,
  ClientCompile = 20, ClientDefaultDeviceAssignment, ClientBufferFromHostBuffer,
  DeviceDescriptionId = 23, DeviceDescriptionProcessIndex, DeviceDescriptionAttributes, DeviceDescriptionKind,
  DeviceDescriptionDebugString, DeviceDescriptionToString,
  DeviceGetDescription = 29, DeviceIsAddressable, DeviceLocalHardwareId, DeviceAddressableMemories,
  DeviceDefaultMemory, DeviceMemoryStats,
  MemoryId = 35, MemoryKind, MemoryDebugString, MemoryToString, MemoryAddressableByDevices,
  ExecutableDestroy = 40, ExecutableName, ExecutableNumReplicas, ExecutableNumPartitions, ExecutableNumOutputs,
  ExecutableSizeOfGeneratedCode, ExecutableGetCostAnalysis, ExecutableOutputMemoryKinds, ExecutableOptimizedProgram,
  ExecutableSerialize,
  LoadedExecutableDestroy = 50, LoadedExecutableGetExecutable, LoadedExecutableAddressableDevices,
  LoadedExecutableDelete, LoadedExecutableIsDeleted, LoadedExecutableExecute, ExecutableDeserializeAndLoad,
  LoadedExecutableFingerprint,
  BufferDestroy = 58, BufferElementType, BufferDimensions, BufferUnpaddedDimensions, BufferDynamicDimensionIndices,
  BufferGetMemoryLayout, BufferOnDeviceSizeInBytes, BufferDevice, BufferMemory, BufferDelete, BufferIsDeleted,
  BufferCopyToDevice, BufferToHostBuffer, BufferIsOnCpu, BufferReadyEvent, BufferUnsafePointer,
  BufferIncreaseExternalReferenceCount, BufferDecreaseExternalReferenceCount, BufferOpaqueDeviceMemoryDataPointer,
  TopologyCreate = 82, TopologyDestroy, TopologyPlatformName, TopologyPlatformVersion, TopologyDeviceDescriptions,
  TopologySerialize, TopologyAttributes,
  ExecutableOutputElementTypes = 90, ExecutableOutputDimensions, BufferCopyToMemory,
  ClientCreateView = 93, ExecutableFingerprint, ClientTopology, ExecutableCompiledMemoryStats, MemoryKindId,
  ExecuteContextCreate = 98, ExecuteContextDestroy, BufferCopyRawToHost,
  LoadedExecutableGetDeviceAssignment = 117,
  Count = 118  // number of functions in version 0.81
};
// clang-format on

struct Version {
  Head head;
  int major, minor;
};
using AnyFunction = void (*)();
struct Api {
  Head head;
  Version version;
  AnyFunction functions[static_cast<int>(Function::Count)];  // head.size limits how many there are
};
static_assert(offsetof(Api, version.major) == 32 && offsetof(Api, functions) == 40);

// An option or an attribute. It has no tail, because it is an element of arrays.
struct NamedValue {
  Head head;
  const char* name;
  std::size_t name_size;
  ValueKind kind;
  union {
    const char* string;
    std::int64_t int64;
    const std::int64_t* int64_list;
    float real;
    bool boolean;
  };
  std::size_t size;  // length of a string or a list, else 1
};
static_assert(sizeof(NamedValue) == 56);

struct Layout {
  Head head;
  union {
    struct {
      Head head;
      const std::int64_t* minor_to_major;
      std::size_t rank;
      const std::int64_t* tile_dims;
      const std::size_t* tile_dim_sizes;
      std::size_t tiles;
    } tiled;
    struct {
      Head head;
      const std::int64_t* byte_strides;
      std::size_t rank;
    } strides;
  };
  LayoutKind kind;
};
static_assert(offsetof(Layout, kind) == 72 && sizeof(Layout) == 80);

// ---- arguments: one structure for each function, which it names ---------------------------------

// The arguments of a function of an object.
template <Function F, class Of>
struct On {
  static constexpr Function function = F;
  Head head;
  Of* of;
  Tail newer;
};
// The arguments of a function that returns a value of an object.
template <Function F, class Of, class T>
struct Ask {
  static constexpr Function function = F;
  Head head;
  Of* of;
  T value;  // out
  Tail newer;
};
// The arguments of a function that returns a list of an object.
template <Function F, class Of, class T>
struct AskList {
  static constexpr Function function = F;
  Head head;
  Of* of;
  T list;             // out
  std::size_t count;  // out
  Tail newer;
};
template <Function F, class Of, class T>
struct AskCount {  // the same with count and list exchanged
  static constexpr Function function = F;
  Head head;
  Of* of;
  std::size_t count;  // out
  T list;             // out
  Tail newer;
};

using ErrorDestroy = On<Function::ErrorDestroy, Error>;
using ErrorMessage = AskList<Function::ErrorMessage, const Error, const char*>;
using ErrorGetCode = Ask<Function::ErrorGetCode, const Error, ErrorCode>;

struct PluginInitialize {
  static constexpr Function function = Function::PluginInitialize;
  Head head;
  Tail newer;
};
struct PluginAttributes {
  static constexpr Function function = Function::PluginAttributes;
  Head head;
  const NamedValue* list;  // out
  std::size_t count;       // out
  Tail newer;
};

using EventDestroy = On<Function::EventDestroy, Event>;
using EventIsReady = Ask<Function::EventIsReady, Event, bool>;
using EventError = On<Function::EventError, Event>;
using EventAwait = On<Function::EventAwait, Event>;
struct EventOnReady {
  static constexpr Function function = Function::EventOnReady;
  Head head;
  Event* of;
  void (*callback)(Error* error, void* user);  // owns the error
  void* user;
  Tail newer;
};

struct ClientCreate {
  static constexpr Function function = Function::ClientCreate;
  Head head;
  const NamedValue* options;
  std::size_t count;
  void* key_value_callbacks[4];
  Client* client;  // out
  Tail newer;
};
using ClientDestroy = On<Function::ClientDestroy, Client>;
using ClientPlatformName = AskList<Function::ClientPlatformName, Client, const char*>;
using ClientPlatformVersion = AskList<Function::ClientPlatformVersion, Client, const char*>;
using ClientProcessIndex = Ask<Function::ClientProcessIndex, Client, int>;
using ClientDevices = AskList<Function::ClientDevices, Client, Device* const*>;
using ClientAddressableDevices = AskList<Function::ClientAddressableDevices, Client, Device* const*>;
using ClientAddressableMemories = AskList<Function::ClientAddressableMemories, Client, Memory* const*>;
using ClientTopology = Ask<Function::ClientTopology, Client, Topology*>;
template <Function F>
struct Lookup {
  static constexpr Function function = F;
  Head head;
  Client* of;
  int id;
  Device* device;  // out
  Tail newer;
};
using ClientLookupDevice = Lookup<Function::ClientLookupDevice>;
using ClientLookupAddressableDevice = Lookup<Function::ClientLookupAddressableDevice>;
struct ClientDefaultDeviceAssignment {
  static constexpr Function function = Function::ClientDefaultDeviceAssignment;
  Head head;
  Client* of;
  int replicas, partitions;
  std::size_t size;
  int* assignment;  // in, for `size` numbers
  Tail newer;
};

struct Program {
  Head head;
  char* code;
  std::size_t code_size;
  const char* format;
  std::size_t format_size;
  Tail newer;
};
struct ClientCompile {
  static constexpr Function function = Function::ClientCompile;
  Head head;
  Client* of;
  const Program* program;
  const char* options;
  std::size_t options_size;
  LoadedExecutable* executable;  // out
  Tail newer;
};
struct ClientBufferFromHostBuffer {
  static constexpr Function function = Function::ClientBufferFromHostBuffer;
  Head head;
  Client* of;
  const void* data;
  BufferType type;
  const std::int64_t* dims;
  std::size_t rank;
  const std::int64_t* byte_strides;
  std::size_t strides;  // 0: row-major
  HostSemantics semantics;
  Device* device;
  Memory* memory;
  Layout* layout;
  Event* done;     // out: the host's bytes are no longer needed
  Buffer* buffer;  // out
  Tail newer;
};
static_assert(offsetof(ClientBufferFromHostBuffer, buffer) == 112);
struct ClientCreateView {
  static constexpr Function function = Function::ClientCreateView;
  Head head;
  Client* of;
  void* data;
  const std::int64_t* dims;
  std::size_t rank;
  BufferType type;
  Layout* layout;
  Device* device;
  void (*on_delete)(void* data, void* user);
  void* user;
  std::intptr_t stream;
  Buffer* buffer;  // out
  Tail newer;
};
static_assert(offsetof(ClientCreateView, buffer) == 96);

using DeviceDescriptionId = Ask<Function::DeviceDescriptionId, DeviceDescription, int>;
using DeviceDescriptionProcessIndex = Ask<Function::DeviceDescriptionProcessIndex, DeviceDescription, int>;
using DeviceDescriptionAttributes =
    AskCount<Function::DeviceDescriptionAttributes, DeviceDescription, const NamedValue*>;
using DeviceDescriptionKind = AskList<Function::DeviceDescriptionKind, DeviceDescription, const char*>;
using DeviceDescriptionDebugString = AskList<Function::DeviceDescriptionDebugString, DeviceDescription, const char*>;
using DeviceDescriptionToString = AskList<Function::DeviceDescriptionToString, DeviceDescription, const char*>;
using DeviceGetDescription = Ask<Function::DeviceGetDescription, Device, DeviceDescription*>;
using DeviceIsAddressable = Ask<Function::DeviceIsAddressable, Device, bool>;
using DeviceLocalHardwareId = Ask<Function::DeviceLocalHardwareId, Device, int>;
using DeviceAddressableMemories = AskList<Function::DeviceAddressableMemories, Device, Memory* const*>;
using DeviceDefaultMemory = Ask<Function::DeviceDefaultMemory, Device, Memory*>;
using MemoryId = Ask<Function::MemoryId, Memory, int>;
using MemoryKind = AskList<Function::MemoryKind, Memory, const char*>;
using MemoryKindId = Ask<Function::MemoryKindId, Memory, int>;
using MemoryDebugString = AskList<Function::MemoryDebugString, Memory, const char*>;
using MemoryToString = AskList<Function::MemoryToString, Memory, const char*>;
using MemoryAddressableByDevices = AskList<Function::MemoryAddressableByDevices, Memory, Device* const*>;

using ExecutableDestroy = On<Function::ExecutableDestroy, Executable>;
using ExecutableName = AskList<Function::ExecutableName, Executable, const char*>;
using ExecutableNumReplicas = Ask<Function::ExecutableNumReplicas, Executable, std::size_t>;
using ExecutableNumPartitions = Ask<Function::ExecutableNumPartitions, Executable, std::size_t>;
using ExecutableNumOutputs = Ask<Function::ExecutableNumOutputs, Executable, std::size_t>;
using ExecutableGetCostAnalysis = AskCount<Function::ExecutableGetCostAnalysis, Executable, const NamedValue*>;
using ExecutableFingerprint = AskList<Function::ExecutableFingerprint, Executable, const char*>;
using ExecutableOutputElementTypes = AskList<Function::ExecutableOutputElementTypes, Executable, const BufferType*>;
struct ExecutableOutputDimensions {
  static constexpr Function function = Function::ExecutableOutputDimensions;
  Head head;
  Executable* of;
  std::size_t count;         // out
  const std::int64_t* dims;  // out: of all results, one after the other
  const std::size_t* ranks;  // out
  Tail newer;
};
struct ExecutableOutputMemoryKinds {
  static constexpr Function function = Function::ExecutableOutputMemoryKinds;
  Head head;
  Executable* of;
  std::size_t count;         // out
  const char* const* kinds;  // out
  const std::size_t* sizes;  // out
  Tail newer;
};
struct ExecutableOptimizedProgram {
  static constexpr Function function = Function::ExecutableOptimizedProgram;
  Head head;
  Executable* of;
  Program* program;  // code: in; null to query its size
  Tail newer;
};
struct ExecutableCompiledMemoryStats {
  static constexpr Function function = Function::ExecutableCompiledMemoryStats;
  Head head;
  Executable* of;
  struct Bytes {
    std::int64_t code, arguments, results, shared, temporary;  // shared: results in the memory of arguments
  } device, host;                                              // out
  Tail newer;
};

using LoadedExecutableDestroy = On<Function::LoadedExecutableDestroy, LoadedExecutable>;
using LoadedExecutableGetExecutable = Ask<Function::LoadedExecutableGetExecutable, LoadedExecutable, Executable*>;
using LoadedExecutableAddressableDevices =
    AskList<Function::LoadedExecutableAddressableDevices, LoadedExecutable, Device* const*>;
using LoadedExecutableDelete = On<Function::LoadedExecutableDelete, LoadedExecutable>;
using LoadedExecutableIsDeleted = Ask<Function::LoadedExecutableIsDeleted, LoadedExecutable, bool>;
using LoadedExecutableFingerprint = AskList<Function::LoadedExecutableFingerprint, LoadedExecutable, const char*>;
struct LoadedExecutableGetDeviceAssignment {
  static constexpr Function function = Function::LoadedExecutableGetDeviceAssignment;
  Head head;
  LoadedExecutable* of;
  const char* bytes;       // out: a DeviceAssignmentProto
  std::size_t size;        // out
  void* owner;             // out: owner of the bytes, for `destroy`
  void (*destroy)(void*);  // out
  Tail newer;
};
struct ExecuteOptions {
  Head head;
  void* callbacks[2];
  std::size_t callback_counts[2];
  int launch_id;
  const std::int64_t* not_donated;  // arguments that keep their memory even if the program donates them
  std::size_t not_donated_count;
  Tail newer;
};
struct LoadedExecutableExecute {
  static constexpr Function function = Function::LoadedExecutableExecute;
  Head head;
  LoadedExecutable* of;
  ExecuteOptions* options;
  Buffer* const* const* arguments;  // [devices][arguments]
  std::size_t devices, count;
  Buffer** const* results;  // [devices][results], filled in
  Event** done;             // [devices], filled in; may be null
  Device* device;           // on which a portable executable runs
  Tail newer;
};
static_assert(offsetof(ExecuteOptions, not_donated) == 56 && offsetof(LoadedExecutableExecute, device) == 72);

using BufferDestroy = On<Function::BufferDestroy, Buffer>;
using BufferElementType = Ask<Function::BufferElementType, Buffer, BufferType>;
using BufferDimensions = AskList<Function::BufferDimensions, Buffer, const std::int64_t*>;
using BufferUnpaddedDimensions = AskList<Function::BufferUnpaddedDimensions, Buffer, const std::int64_t*>;
using BufferDynamicDimensionIndices = AskList<Function::BufferDynamicDimensionIndices, Buffer, const std::size_t*>;
using BufferGetMemoryLayout = Ask<Function::BufferGetMemoryLayout, Buffer, Layout>;
using BufferOnDeviceSizeInBytes = Ask<Function::BufferOnDeviceSizeInBytes, Buffer, std::size_t>;
using BufferDevice = Ask<Function::BufferDevice, Buffer, Device*>;
using BufferMemory = Ask<Function::BufferMemory, Buffer, Memory*>;
using BufferDelete = On<Function::BufferDelete, Buffer>;
using BufferIsDeleted = Ask<Function::BufferIsDeleted, Buffer, bool>;
using BufferIsOnCpu = Ask<Function::BufferIsOnCpu, Buffer, bool>;
using BufferReadyEvent = Ask<Function::BufferReadyEvent, Buffer, Event*>;
using BufferUnsafePointer = Ask<Function::BufferUnsafePointer, Buffer, std::uintptr_t>;
using BufferOpaqueDeviceMemoryDataPointer = Ask<Function::BufferOpaqueDeviceMemoryDataPointer, Buffer, void*>;
using BufferIncreaseExternalReferenceCount = On<Function::BufferIncreaseExternalReferenceCount, Buffer>;
using BufferDecreaseExternalReferenceCount = On<Function::BufferDecreaseExternalReferenceCount, Buffer>;
template <Function F, class To>
struct CopyTo {
  static constexpr Function function = F;
  Head head;
  Buffer* of;
  To* to;
  Buffer* copy;  // out
  Tail newer;
};
using BufferCopyToDevice = CopyTo<Function::BufferCopyToDevice, Device>;
using BufferCopyToMemory = CopyTo<Function::BufferCopyToMemory, Memory>;
struct BufferToHostBuffer {
  static constexpr Function function = Function::BufferToHostBuffer;
  Head head;
  Buffer* of;
  Layout* layout;  // null: the device's own
  void* to;        // null: only `size` is filled in
  std::size_t size;
  Event* done;  // out
  Tail newer;
};
struct BufferCopyRawToHost {
  static constexpr Function function = Function::BufferCopyRawToHost;
  Head head;
  Buffer* of;
  void* to;
  std::int64_t offset, size;
  Event* done;  // out
  Tail newer;
};

struct TopologyCreate {
  static constexpr Function function = Function::TopologyCreate;
  Head head;
  const char* name;
  std::size_t name_size;
  const NamedValue* options;
  std::size_t count;
  Topology* topology;  // out
  Tail newer;
};
using TopologyDestroy = On<Function::TopologyDestroy, Topology>;
using TopologyPlatformName = AskList<Function::TopologyPlatformName, const Topology, const char*>;
using TopologyPlatformVersion = AskList<Function::TopologyPlatformVersion, const Topology, const char*>;
using TopologyDeviceDescriptions =
    AskList<Function::TopologyDeviceDescriptions, const Topology, DeviceDescription* const*>;
using TopologyAttributes = AskList<Function::TopologyAttributes, Topology, const NamedValue*>;

// The size of the fields that a caller must provide.
template <class Args>
constexpr std::size_t known_size() {
  return offsetof(Args, newer);
}

}  // namespace lc::backends::pjrt::api
#include "lightcone/macros_on.h"
