// Buffers: row-major arrays in the host's memory.
#include <cstring>
#include <optional>

#include "lightcone/backends/pjrt/client.h"
#include "objects.h"

namespace lc::backends::pjrt::api {
namespace {

// Returns the element type; for complex numbers the type of their two adjacent parts.
std::optional<DType> part_of(BufferType t) {
  return t == BufferType::C64 ? DType::F32 : t == BufferType::C128 ? DType::F64 : dtype_of(t);
}
bool is_complex(BufferType t) { return t == BufferType::C64 || t == BufferType::C128; }

std::size_t element_size(BufferType t) {
  const std::optional<DType> own = part_of(t);
  if (!own) unimplemented(str_cat("arrays of PJRT's element type ", static_cast<int>(t), " are not supported"));
  return size_of(*own) * (is_complex(t) ? 2 : 1);
}

std::size_t total_bytes(std::size_t element, const std::vector<std::int64_t>& dims) {
  std::size_t bytes = element;
  bool empty = false;
  for (const std::int64_t d : dims) {
    if (d < 0) invalid(str_cat("an extent of an array is ", d));
    empty = empty || d == 0;
  }
  for (std::size_t k = 0; !empty && k < dims.size(); ++k)
    if (__builtin_mul_overflow(bytes, static_cast<std::size_t>(dims[k]), &bytes) || bytes > PTRDIFF_MAX)
      throw Failure(ErrorCode::ResourceExhausted, "an array has more bytes than there are addresses");
  return empty ? 0 : bytes;
}

std::vector<std::int64_t> row_major(const ArrayType& t) {
  std::vector<std::int64_t> strides(t.dims.size());
  auto stride = static_cast<std::int64_t>(t.element);
  for (std::size_t k = t.dims.size(); k-- > 0; stride *= t.dims[k]) strides[k] = stride;
  return strides;
}

// Copies element by element between any strides, and whole rows if both are dense.
void copy_strided(std::byte* to, const std::int64_t* to_strides, const std::byte* from,
                  const std::int64_t* from_strides, const ArrayType& t, std::size_t axis = 0) {
  if (axis == t.dims.size()) {
    std::memcpy(to, from, t.element);
    return;
  }
  const auto element = static_cast<std::int64_t>(t.element);
  if (axis + 1 == t.dims.size() && to_strides[axis] == element && from_strides[axis] == element) {
    std::memcpy(to, from, static_cast<std::size_t>(t.dims[axis]) * t.element);
    return;
  }
  for (std::int64_t i = 0; i < t.dims[axis]; ++i)
    copy_strided(to + i * to_strides[axis], to_strides, from + i * from_strides[axis], from_strides, t, axis + 1);
}

// Returns the strides of a layout.
std::vector<std::int64_t> strides_of(const Layout* layout, const ArrayType& t) {
  std::vector<std::int64_t> strides = row_major(t);
  const std::size_t rank = t.dims.size();
  if (!layout) return strides;
  check_part(layout, offsetof(Layout, kind) + sizeof layout->kind, "a layout");
  if (layout->kind == LayoutKind::Strides) check_part(&layout->strides, sizeof layout->strides, "a layout of strides");
  else check_part(&layout->tiled, sizeof layout->tiled, "a layout in order");
  if (layout->kind == LayoutKind::Strides) {
    if (layout->strides.rank != rank) invalid(str_cat("a layout of ", layout->strides.rank, " strides for ", t.str()));
    strides.assign(layout->strides.byte_strides, layout->strides.byte_strides + rank);
    return strides;
  }
  if (layout->tiled.tiles) unimplemented("tiled layouts are not supported: rows of elements are");
  if (layout->tiled.rank != rank) invalid(str_cat("a layout of ", layout->tiled.rank, " axes for ", t.str()));
  std::vector<bool> seen(rank);
  auto stride = static_cast<std::int64_t>(t.element);
  for (std::size_t k = 0; k < rank; ++k) {
    const std::int64_t axis = layout->tiled.minor_to_major[k];
    if (axis < 0 || axis >= static_cast<std::int64_t>(rank) || seen[static_cast<std::size_t>(axis)])
      invalid(str_cat("minor_to_major of a layout is no order of the ", rank, " axes"));
    seen[static_cast<std::size_t>(axis)] = true;
    strides[static_cast<std::size_t>(axis)] = stride;
    stride *= t.dims[static_cast<std::size_t>(axis)];
  }
  return strides;
}

void from_host(ClientBufferFromHostBuffer& args) {
  ArrayType type(args.type, {args.dims, args.dims + args.rank});
  if (!args.data && type.bytes) invalid("the data of a buffer have no address");
  if (args.strides && args.strides != args.rank)
    invalid(str_cat(args.strides, " strides for an array of ", args.rank, " axes"));
  auto bytes = std::make_shared<Bytes>(type.bytes);
  const std::vector<std::int64_t> dense = row_major(type);
  const auto* from = static_cast<const std::byte*>(args.data);
  if (type.bytes)
    copy_strided(bytes->data(), dense.data(), from, args.strides ? args.byte_strides : dense.data(), type);
  std::unique_ptr<Event> ready(done());
  args.buffer = new Buffer(std::move(type), std::move(bytes));
  args.done = ready.release();
}

void create_view(ClientCreateView& args) {
  ArrayType type(args.type, {args.dims, args.dims + args.rank});
  if (!args.data && type.bytes) invalid("the data of a buffer have no address");
  const std::size_t alignment = size_of(*part_of(type.type));
  if (reinterpret_cast<std::uintptr_t>(args.data) % alignment)
    invalid(str_cat("the data of a buffer are not aligned to numbers of ", alignment, " bytes"));
  if (strides_of(args.layout, type) != row_major(type)) unimplemented("a view of columns is not supported: rows are");
  const std::size_t size = type.bytes;
  args.buffer = new Buffer(std::move(type), std::make_shared<Bytes>(args.data, size, args.on_delete, args.user));
}

void to_host(BufferToHostBuffer& args) {
  const ArrayType& type = args.of->type;
  const std::shared_ptr<Bytes> bytes = args.of->bytes();
  if (!args.to) {
    args.size = type.bytes;
    return;
  }
  if (args.size < type.bytes)
    invalid(str_cat(type.str(), " has ", type.bytes, " bytes, and there is room for ", args.size));
  const std::vector<std::int64_t> strides = strides_of(args.layout, type), dense = row_major(type);
  if (type.bytes) copy_strided(static_cast<std::byte*>(args.to), strides.data(), bytes->data(), dense.data(), type);
  args.done = done();
}

void raw_to_host(BufferCopyRawToHost& args) {
  const std::shared_ptr<Bytes> bytes = args.of->bytes();
  const auto size = static_cast<std::int64_t>(bytes->size());
  if (args.offset < 0 || args.size < 0 || args.offset > size || args.size > size - args.offset)
    throw Failure(ErrorCode::OutOfRange,
                  str_cat(args.size, " bytes from ", args.offset, " on leave a buffer of ", size));
  if (args.size && !args.to) invalid("there is no address to copy to");
  if (args.size) std::memcpy(args.to, bytes->data() + args.offset, static_cast<std::size_t>(args.size));
  args.done = done();
}

void element_type(BufferElementType& args) { args.value = args.of->type.type; }
template <class Args>
void dimensions(Args& args) {
  args.list = args.of->type.dims.data(), args.count = args.of->type.dims.size();
}
void dynamic_dimensions(BufferDynamicDimensionIndices& args) { args.list = nullptr, args.count = 0; }
void memory_layout(BufferGetMemoryLayout& args) {
  args.value = {};
  args.value.head.size = sizeof(Layout);
  args.value.kind = LayoutKind::Tiled;
  args.value.tiled = {{sizeof args.value.tiled, nullptr},
                      args.of->minor_to_major.data(),
                      args.of->minor_to_major.size(),
                      nullptr,
                      nullptr,
                      0};
}
void on_device_size(BufferOnDeviceSizeInBytes& args) { args.value = args.of->type.bytes; }
void device(BufferDevice& args) { args.value = &machine().device; }
void memory(BufferMemory& args) { args.value = &machine().memory; }
void remove(BufferDelete& args) { args.of->release(); }
void is_deleted(BufferIsDeleted& args) { args.value = args.of->is_deleted(); }
void is_on_cpu(BufferIsOnCpu& args) { args.value = true; }
void ready_event(BufferReadyEvent& args) { args.value = done(); }
void unsafe_pointer(BufferUnsafePointer& args) {
  args.value = reinterpret_cast<std::uintptr_t>(args.of->bytes()->data());
}
void data_pointer(BufferOpaqueDeviceMemoryDataPointer& args) { args.value = args.of->bytes()->data(); }
void hold(BufferIncreaseExternalReferenceCount& args) { args.of->hold(); }
void let_go(BufferDecreaseExternalReferenceCount& args) { args.of->let_go(); }
void copy_to_device(BufferCopyToDevice&) { invalid("the buffer is on that device already: there is one"); }
void copy_to_memory(BufferCopyToMemory& args) { args.copy = new Buffer(args.of->type, args.of->bytes()); }

}  // namespace

ArrayType::ArrayType(BufferType t, std::vector<std::int64_t> d)
    : type(t), dims(std::move(d)), element(element_size(t)), bytes(total_bytes(element, dims)) {}

std::string ArrayType::str() const {
  const auto part = lc::name(*part_of(type));
  std::string s = str_cat("an array of ", is_complex(type) ? str_cat("complex ", part) : std::string(part), " [");
  for (std::size_t k = 0; k < dims.size(); ++k) s += str_cat(k ? ", " : "", dims[k]);
  return s + "]";
}

Buffer::Buffer(ArrayType t, std::shared_ptr<Bytes> b) : type(std::move(t)), bytes_(std::move(b)) {
  for (std::size_t k = type.dims.size(); k-- > 0;) minor_to_major.push_back(static_cast<std::int64_t>(k));
}
std::shared_ptr<Bytes> Buffer::bytes() const {
  const std::lock_guard lock(mutex_);
  if (!bytes_) invalid("the buffer was deleted, or donated to a program");
  return bytes_;
}
std::shared_ptr<Bytes> Buffer::release() {
  const std::lock_guard lock(mutex_);
  return std::exchange(bytes_, nullptr);
}
bool Buffer::is_deleted() const {
  const std::lock_guard lock(mutex_);
  return !bytes_;
}
void Buffer::hold() {
  const std::lock_guard lock(mutex_);
  if (!bytes_) invalid("the buffer was deleted, or donated to a program");
  held_.push_back(bytes_);
}
void Buffer::let_go() {
  const std::lock_guard lock(mutex_);
  if (held_.empty()) invalid("the buffer has no reference from outside");
  held_.pop_back();
}

void add_buffer_functions(Api& table) {
  add<ClientBufferFromHostBuffer, from_host>(table);
  add<ClientCreateView, create_view>(table);
  add_destroy<BufferDestroy>(table);
  add<BufferElementType, element_type>(table);
  add<BufferDimensions, dimensions>(table);
  add<BufferUnpaddedDimensions, dimensions>(table);
  add<BufferDynamicDimensionIndices, dynamic_dimensions>(table);
  add<BufferGetMemoryLayout, memory_layout>(table);
  add<BufferOnDeviceSizeInBytes, on_device_size>(table);
  add<BufferDevice, device>(table);
  add<BufferMemory, memory>(table);
  add<BufferDelete, remove>(table);
  add<BufferIsDeleted, is_deleted>(table);
  add<BufferCopyToDevice, copy_to_device>(table);
  add<BufferCopyToMemory, copy_to_memory>(table);
  add<BufferToHostBuffer, to_host>(table);
  add<BufferIsOnCpu, is_on_cpu>(table);
  add<BufferReadyEvent, ready_event>(table);
  add<BufferUnsafePointer, unsafe_pointer>(table);
  add<BufferOpaqueDeviceMemoryDataPointer, data_pointer>(table);
  add<BufferIncreaseExternalReferenceCount, hold>(table);
  add<BufferDecreaseExternalReferenceCount, let_go>(table);
  add<BufferCopyRawToHost, raw_to_host>(table);
}

}  // namespace lc::backends::pjrt::api
