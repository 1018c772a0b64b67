// lightcone_pjrt.so: Lightcone's CPU back end as a PJRT plugin. This file has the library's exported function, errors
// and events.
#include <utility>

#include "objects.h"

namespace lc::backends::pjrt::api {
namespace {

Error out_of_memory{ErrorCode::ResourceExhausted, "there is not enough memory"};  // no memory is left to allocate it

// Returns true if a structure is large enough. The callers cannot report an error, and leave a smaller one unchanged.
template <class Args>
bool is_whole(const Args* args) {
  return args && args->head.size >= known_size<Args>();
}
void error_destroy(ErrorDestroy* args) {
  if (is_whole(args) && args->of != &out_of_memory) delete args->of;
}
void error_message(ErrorMessage* args) {
  if (!is_whole(args)) return;
  args->list = args->of ? args->of->message.c_str() : "";
  args->count = args->of ? args->of->message.size() : 0;
}
void error_code(ErrorGetCode& args) { args.value = args.of->code; }

void initialise(PluginInitialize&) {}
void attributes(PluginAttributes& args) {
  static constexpr std::int64_t kCurrent[] = {1, 13, 0}, kMinimum[] = {0, 9, 0};  // versions of StableHLO, as text
  static const auto kAll = [] {
    std::vector<NamedValue> all;
    const auto start = [&](std::string_view name, ValueKind kind, std::size_t size) -> NamedValue& {
      return all.emplace_back(NamedValue{{sizeof(NamedValue), nullptr}, name.data(), name.size(), kind, {}, size});
    };
    start("lightcone_version", ValueKind::String, std::string_view(LIGHTCONE_VERSION).size()).string =
        LIGHTCONE_VERSION;
    start("stablehlo_current_version", ValueKind::Int64List, 3).int64_list = kCurrent;
    start("stablehlo_minimum_version", ValueKind::Int64List, 3).int64_list = kMinimum;
    return all;
  }();
  args.list = kAll.data(), args.count = kAll.size();
}

void is_ready(EventIsReady& args) { args.value = true; }
void event_error(EventError&) {}
void await(EventAwait&) {}
void on_ready(EventOnReady& args) {
  if (!args.callback) invalid("OnReady was given no function to call");
  args.callback(nullptr, args.user);
}

template <int N>
Error* not_implemented(void*) noexcept {
  return guarded([] { unimplemented(str_cat("the lightcone plugin does not implement function ", N, " of PJRT")); });
}
template <int... N>
void fill(Api& table, std::integer_sequence<int, N...>) {
  ((table.functions[N] = reinterpret_cast<AnyFunction>(&not_implemented<N>)), ...);
}

const Api* make_table() {
  static Api table{};
  table.head.size = sizeof table;
  table.version = {{sizeof(Version), nullptr}, 0, 81};
  fill(table, std::make_integer_sequence<int, static_cast<int>(Function::Count)>());
  table.functions[static_cast<int>(Function::ErrorDestroy)] = reinterpret_cast<AnyFunction>(&error_destroy);
  table.functions[static_cast<int>(Function::ErrorMessage)] = reinterpret_cast<AnyFunction>(&error_message);
  add<ErrorGetCode, error_code>(table);
  add<PluginInitialize, initialise>(table);
  add<PluginAttributes, attributes>(table);
  add_destroy<EventDestroy>(table);
  add<EventIsReady, is_ready>(table);
  add<EventError, event_error>(table);
  add<EventAwait, await>(table);
  add<EventOnReady, on_ready>(table);
  add_client_functions(table);
  add_buffer_functions(table);
  add_program_functions(table);
  return &table;
}

}  // namespace

Error* make_error(ErrorCode code, std::string_view message) noexcept {
  try {
    return new Error{code, std::string(message)};
  } catch (...) {
    return &out_of_memory;
  }
}

}  // namespace lc::backends::pjrt::api

extern "C" __attribute__((visibility("default"))) const lc::backends::pjrt::api::Api* GetPjrtApi() {
  static const lc::backends::pjrt::api::Api* const table = lc::backends::pjrt::api::make_table();
  return table;
}
