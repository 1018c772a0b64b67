// The client, and its one device.
#include <algorithm>

#include "objects.h"

namespace lc::backends::pjrt::api {

Machine& machine() {
  static Machine m;
  return m;
}

namespace {

template <class Args>
void say(Args& args, std::string_view text) {
  args.list = text.data(), args.count = text.size();
}
constexpr std::string_view kVersion = "lightcone " LIGHTCONE_VERSION;

void create(ClientCreate& args) {
  auto client = std::make_unique<Client>();
  for (std::size_t k = 0; k < args.count; ++k) {
    const NamedValue& option = args.options[k];
    check_part(&option, sizeof option, "an option");
    const std::string_view name(option.name, option.name_size);
    if (name != "threads") invalid(str_cat("there is no option '", name, "': there is 'threads'"));
    if (option.kind != ValueKind::Int64 || option.int64 < 0 || option.int64 > 4096)
      invalid("'threads' is an integer from 0, which means all cores, to 4096");
    client->threads = static_cast<int>(option.int64);
  }
  args.client = client.release();
}

void platform_name(ClientPlatformName& args) { say(args, kPlatform); }
void platform_version(ClientPlatformVersion& args) { say(args, kVersion); }
void process_index(ClientProcessIndex& args) { args.value = 0; }
void topology(ClientTopology& args) { args.value = &machine().topology; }
template <class Args>
void list_devices(Args& args) {
  args.list = machine().devices, args.count = 1;
}
template <class Args>
void list_memories(Args& args) {
  args.list = machine().memories, args.count = 1;
}
template <Function F>
void lookup(Lookup<F>& args) {
  if (args.id != 0) throw Failure(ErrorCode::NotFound, str_cat("there is no device ", args.id, ": there is device 0"));
  args.device = &machine().device;
}
void default_assignment(ClientDefaultDeviceAssignment& args) {
  if (args.replicas != 1 || args.partitions != 1)
    invalid(str_cat(args.replicas, " replicas of ", args.partitions, " partitions do not fit on one device"));
  if (args.size < 1 || !args.assignment) invalid("the assignment has no room for one device");
  args.assignment[0] = 0;
}

void description_id(DeviceDescriptionId& args) { args.value = 0; }
void description_process(DeviceDescriptionProcessIndex& args) { args.value = 0; }
void description_attributes(DeviceDescriptionAttributes& args) { args.list = nullptr, args.count = 0; }
void description_kind(DeviceDescriptionKind& args) { say(args, DeviceDescription::kind); }
template <class Args>
void description_text(Args& args) {
  say(args, DeviceDescription::text);
}
void describe_device(DeviceGetDescription& args) { args.value = &args.of->description; }
void is_addressable(DeviceIsAddressable& args) { args.value = true; }
void hardware_id(DeviceLocalHardwareId& args) { args.value = 0; }
void default_memory(DeviceDefaultMemory& args) { args.value = &machine().memory; }
void memory_id(MemoryId& args) { args.value = 0; }
void memory_kind(MemoryKind& args) { say(args, Memory::kind); }
void memory_kind_id(MemoryKindId& args) { args.value = 0; }
template <class Args>
void memory_text(Args& args) {
  say(args, Memory::text);
}

void create_topology(TopologyCreate& args) { args.topology = new Topology; }
void topology_platform(TopologyPlatformName& args) { say(args, kPlatform); }
void topology_version(TopologyPlatformVersion& args) { say(args, kVersion); }
void topology_devices(TopologyDeviceDescriptions& args) { args.list = machine().descriptions, args.count = 1; }
void topology_attributes(TopologyAttributes& args) { args.list = nullptr, args.count = 0; }

// Destroys a topology, except the client's own.
void destroy_topology(TopologyDestroy& args) {
  if (args.of != &machine().topology) delete args.of;
}

}  // namespace

void add_client_functions(Api& table) {
  add<ClientCreate, create>(table);
  add_destroy<ClientDestroy>(table);
  add<ClientPlatformName, platform_name>(table);
  add<ClientPlatformVersion, platform_version>(table);
  add<ClientProcessIndex, process_index>(table);
  add<ClientDevices, list_devices>(table);
  add<ClientAddressableDevices, list_devices>(table);
  add<ClientAddressableMemories, list_memories>(table);
  add<ClientTopology, topology>(table);
  add<ClientLookupDevice, lookup>(table);
  add<ClientLookupAddressableDevice, lookup>(table);
  add<ClientDefaultDeviceAssignment, default_assignment>(table);
  add<DeviceDescriptionId, description_id>(table);
  add<DeviceDescriptionProcessIndex, description_process>(table);
  add<DeviceDescriptionAttributes, description_attributes>(table);
  add<DeviceDescriptionKind, description_kind>(table);
  add<DeviceDescriptionDebugString, description_text>(table);
  add<DeviceDescriptionToString, description_text>(table);
  add<DeviceGetDescription, describe_device>(table);
  add<DeviceIsAddressable, is_addressable>(table);
  add<DeviceLocalHardwareId, hardware_id>(table);
  add<DeviceAddressableMemories, list_memories>(table);
  add<DeviceDefaultMemory, default_memory>(table);
  add<MemoryId, memory_id>(table);
  add<MemoryKind, memory_kind>(table);
  add<MemoryKindId, memory_kind_id>(table);
  add<MemoryDebugString, memory_text>(table);
  add<MemoryToString, memory_text>(table);
  add<MemoryAddressableByDevices, list_devices>(table);
  add<TopologyCreate, create_topology>(table);
  add<TopologyDestroy, destroy_topology>(table);
  add<TopologyPlatformName, topology_platform>(table);
  add<TopologyPlatformVersion, topology_version>(table);
  add<TopologyDeviceDescriptions, topology_devices>(table);
  add<TopologyAttributes, topology_attributes>(table);
}

}  // namespace lc::backends::pjrt::api
