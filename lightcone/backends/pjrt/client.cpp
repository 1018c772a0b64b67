#include "lightcone/backends/pjrt/client.h"

#include <iterator>

#include "lightcone/base/error.h"

namespace lc::backends::pjrt {
namespace {

// CompileOptionsProto: {executable_build_options: {device_ordinal: -1, num_replicas: 1, num_partitions: 1},
// compile_portable_executable: true}. A portable program runs on the device that each run names.
constexpr unsigned char kCompileOptions[] = {0x1a, 0x0f, 0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                             0xff, 0xff, 0x01, 0x20, 0x01, 0x28, 0x01, 0x20, 0x01};

constexpr std::pair<DType, api::BufferType> kTypes[] = {
    {DType::F32, api::BufferType::F32},      {DType::F64, api::BufferType::F64},
    {DType::F16, api::BufferType::F16},      {DType::BF16, api::BufferType::BF16},
    {DType::I8, api::BufferType::S8},        {DType::I16, api::BufferType::S16},
    {DType::I32, api::BufferType::S32},      {DType::I64, api::BufferType::S64},
    {DType::U8, api::BufferType::U8},        {DType::U16, api::BufferType::U16},
    {DType::U32, api::BufferType::U32},      {DType::U64, api::BufferType::U64},
    {DType::Bool, api::BufferType::Pred},    {DType::F8E4M3FN, api::BufferType::F8E4M3FN},
    {DType::F8E5M2, api::BufferType::F8E5M2}};
static_assert(std::size(kTypes) == std::size(kDTypes));

// Calls a function that returns one value.
template <class Args, class Of>
auto ask(const Plugin& p, Of* of, std::string_view doing) {
  Args args{};
  args.of = of;
  p.call(args, doing);
  return args.value;
}
template <class Args, class Of>
std::string ask_text(const Plugin& p, Of* of, std::string_view doing) {
  Args args{};
  args.of = of;
  p.call(args, doing);
  return {args.list, args.count};
}

// Returns the number of bytes of an array. Throws Error if it exceeds the address space.
std::size_t bytes_of(DType t, std::span<const std::int64_t> shape) {
  std::size_t bytes = size_of(t);
  bool empty = false;
  for (const std::int64_t d : shape) {
    if (d < 0) throw Error("pjrt", str_cat("an extent of an array is ", d));
    empty = empty || d == 0;
  }
  if (empty) return 0;
  for (const std::int64_t d : shape)
    if (__builtin_mul_overflow(bytes, static_cast<std::size_t>(d), &bytes))
      throw Error("pjrt", "an array has more bytes than there are addresses");
  return bytes;
}

std::vector<api::NamedValue> named_values(const Attributes& options) {
  std::vector<api::NamedValue> all;
  for (const auto& [name, value] : options) {
    api::NamedValue v{};
    v.head.size = sizeof v;
    v.name = name.data(), v.name_size = name.size(), v.size = 1;
    v.kind = static_cast<api::ValueKind>(value.index());  // the same order as Attribute's
    if (const auto* s = std::get_if<std::string>(&value)) v.string = s->data(), v.size = s->size();
    if (const auto* i = std::get_if<std::int64_t>(&value)) v.int64 = *i;
    if (const auto* l = std::get_if<std::vector<std::int64_t>>(&value)) v.int64_list = l->data(), v.size = l->size();
    if (const auto* f = std::get_if<float>(&value)) v.real = *f;
    if (const auto* b = std::get_if<bool>(&value)) v.boolean = *b;
    all.push_back(v);
  }
  return all;
}

}  // namespace

api::BufferType type_of(DType t) {
  for (const auto& [own, theirs] : kTypes)
    if (own == t) return theirs;
  return api::BufferType::Invalid;
}
std::optional<DType> dtype_of(api::BufferType t) {
  for (const auto& [own, theirs] : kTypes)
    if (theirs == t) return own;
  return std::nullopt;
}

// ---- events and arrays ------------------------------------------------------------------------

void Event::await() const {
  if (!handle_.get()) return;
  api::EventAwait args{{}, handle_.get(), {}};
  handle_.client()->plugin().call(args, "finish what it was asked for");
}
bool Event::ready() const {
  return !handle_.get() || ask<api::EventIsReady>(handle_.client()->plugin(), handle_.get(), "say whether it is done");
}

const Plugin& Array::plugin() const { return handle_.client()->plugin(); }

DType Array::dtype() const {
  const auto type = ask<api::BufferElementType>(plugin(), get(), "name the element type of an array");
  if (const auto t = dtype_of(type)) return *t;
  throw Error("pjrt", str_cat("an array has PJRT's element type ", static_cast<int>(type),
                              ", which Lightcone has not: convert it within the program"));
}
std::vector<std::int64_t> Array::shape() const {
  api::BufferDimensions args{};
  args.of = get();
  plugin().call(args, "name the shape of an array");
  return {args.list, args.list + args.count};
}
std::size_t Array::bytes() const { return bytes_of(dtype(), shape()); }

void Array::to_host(void* to, std::size_t bytes) const {
  const std::vector<std::int64_t> dims = shape();
  const std::size_t want = bytes_of(dtype(), dims);
  if (bytes != want) throw Error("pjrt", str_cat("an array of ", want, " bytes does not fit ", bytes));
  std::vector<std::int64_t> minor_to_major(dims.size());
  for (std::size_t k = 0; k < dims.size(); ++k) minor_to_major[k] = static_cast<std::int64_t>(dims.size() - 1 - k);
  api::Layout layout{};  // without one the layout would be the device's
  layout.head.size = sizeof layout;
  layout.tiled = {{sizeof layout.tiled, nullptr}, minor_to_major.data(), minor_to_major.size(), nullptr, nullptr, 0};
  std::byte nothing{};
  api::BufferToHostBuffer args{};
  args.of = get(), args.layout = &layout, args.to = want ? to : &nothing, args.size = want;
  plugin().call(args, "copy an array to the host");
  Event(handle_.client(), args.done).await();
}

Event Array::ready() const {
  return {handle_.client(), ask<api::BufferReadyEvent>(plugin(), get(), "say when an array is there")};
}
bool Array::is_deleted() const { return ask<api::BufferIsDeleted>(plugin(), get(), "say whether an array is there"); }

// ---- programs ---------------------------------------------------------------------------------

Executable::Executable(std::shared_ptr<const Client> client, api::LoadedExecutable* e, int device)
    : handle_(std::move(client), e), device_(device) {
  const Handle<api::Executable, api::ExecutableDestroy> inner(
      handle_.client(), ask<api::LoadedExecutableGetExecutable>(plugin(), e, "describe a program"));
  results_ = ask<api::ExecutableNumOutputs>(plugin(), inner.get(), "count the results of a program");
}
const Plugin& Executable::plugin() const { return handle_.client()->plugin(); }

Attributes Executable::cost() const {
  const Handle<api::Executable, api::ExecutableDestroy> inner(
      handle_.client(), ask<api::LoadedExecutableGetExecutable>(plugin(), handle_.get(), "describe a program"));
  api::ExecutableGetCostAnalysis args{};
  args.of = inner.get();
  plugin().call(args, "say what a program costs");
  return read_attributes(args.list, args.count);
}

Executable::Optimised Executable::optimised() const {
  const Handle<api::Executable, api::ExecutableDestroy> inner(
      handle_.client(), ask<api::LoadedExecutableGetExecutable>(plugin(), handle_.get(), "describe a program"));
  api::Program program{};
  program.head.size = sizeof program;
  api::ExecutableOptimizedProgram args{};
  args.of = inner.get(), args.program = &program;
  plugin().call(args, "show a program");
  std::string code(program.code_size, '\0');
  program.code = code.data();
  plugin().call(args, "show a program");
  return {std::string(program.format, program.format_size), std::move(code)};
}

std::vector<Array> Executable::execute(std::span<const Array* const> arguments, std::span<const std::int64_t> kept,
                                       std::optional<Event>* done) const {
  std::vector<api::Buffer*> in, out(results_);
  for (const Array* a : arguments) in.push_back(a->get());
  api::ExecuteOptions options{};
  options.head.size = sizeof options;
  options.not_donated = kept.data(), options.not_donated_count = kept.size();
  api::Buffer* const* const in_lists[] = {in.data()};
  api::Buffer** const out_lists[] = {out.data()};
  api::Event* events[] = {nullptr};
  api::LoadedExecutableExecute args{};
  args.of = handle_.get(), args.options = &options, args.arguments = in_lists;
  args.devices = 1, args.count = in.size(), args.results = out_lists;
  args.done = done ? events : nullptr;
  args.device = handle_.client()->device_at(device_);
  plugin().call(args, "run a program");
  std::vector<Array> results;
  results.reserve(out.size());
  for (api::Buffer* b : out) results.emplace_back(handle_.client(), b);
  if (done) done->emplace(handle_.client(), events[0]);
  return results;
}

// ---- the client -------------------------------------------------------------------------------

std::shared_ptr<const Client> Client::create(std::shared_ptr<const Plugin> plugin, const Attributes& options) {
  const std::shared_ptr<Client> c(new Client(std::move(plugin)));
  const std::vector<api::NamedValue> values = named_values(options);
  api::ClientCreate args{};
  args.options = values.data(), args.count = values.size();
  c->plugin_->call(args, "make a client");
  c->client_ = args.client;
  api::ClientAddressableDevices devices{};
  devices.of = c->client_;
  c->plugin_->call(devices, "list its devices");
  c->devices_.assign(devices.list, devices.list + devices.count);
  if (c->devices_.empty()) throw Error("pjrt", str_cat("'", c->plugin_->name(), "' finds no device on this machine"));
  return c;
}

Client::~Client() {
  if (!client_) return;
  api::ClientDestroy args{{}, client_, {}};
  plugin_->call_quietly(args);
}

std::string Client::platform() const {
  return ask_text<api::ClientPlatformName>(*plugin_, client_, "name its platform");
}
std::string Client::platform_version() const {
  return ask_text<api::ClientPlatformVersion>(*plugin_, client_, "name the version of its platform");
}

api::Device* Client::device_at(int index) const {
  if (index < 0 || static_cast<std::size_t>(index) >= devices_.size())
    throw Error("pjrt", str_cat("there is no device ", index, ": '", plugin_->name(), "' has ", devices_.size(),
                                ", counted from 0"));
  return devices_[index];
}

DeviceInfo Client::device(int index) const {
  api::DeviceDescription* const d = ask<api::DeviceGetDescription>(*plugin_, device_at(index), "describe a device");
  return {ask<api::DeviceDescriptionId>(*plugin_, d, "number a device"),
          ask_text<api::DeviceDescriptionKind>(*plugin_, d, "name the kind of a device"),
          ask_text<api::DeviceDescriptionToString>(*plugin_, d, "describe a device")};
}

Executable Client::compile(std::string_view text, int device) const {
  device_at(device);
  api::Program program{};
  program.head.size = sizeof program;
  program.code = const_cast<char*>(text.data()), program.code_size = text.size();
  program.format = "mlir", program.format_size = 4;
  api::ClientCompile args{};
  args.of = client_, args.program = &program;
  args.options = reinterpret_cast<const char*>(kCompileOptions), args.options_size = sizeof kCompileOptions;
  plugin_->call(args, "compile the program");
  return {shared_from_this(), args.executable, device};
}

Array Client::to_device(const ArrayView& array, int device) const {
  const std::size_t want = bytes_of(array.dtype, array.shape);
  if (array.bytes.size() != want)
    throw Error("pjrt", str_cat("an array of this shape and type has ", want, " bytes, not ", array.bytes.size()));
  alignas(64) static constexpr std::byte kNothing[64] = {};
  api::ClientBufferFromHostBuffer args{};
  args.of = client_, args.data = want ? array.bytes.data() : kNothing, args.type = type_of(array.dtype);
  args.dims = array.shape.data(), args.rank = array.shape.size();
  args.semantics = api::HostSemantics::UntilTransferCompletes;
  args.device = device_at(device);
  plugin_->call(args, "copy an array to its device");
  Array there(shared_from_this(), args.buffer);
  Event(shared_from_this(), args.done).await();
  return there;
}

}  // namespace lc::backends::pjrt
