#include "driver/settings.h"

#include <cstdlib>
#include <string>
#include <string_view>

namespace lc::simulators::cuda {
namespace {

struct Named {
  const char* name;
  Settings::Value Settings::*value;
};

constexpr Named kNames[] = {{"order", &Settings::order},
                            {"deferred", &Settings::deferred},
                            {"fail_at", &Settings::fail_at},
                            {"fail_code", &Settings::fail_code},
                            {"fail_compiles", &Settings::fail_compiles},
                            {"lost_at", &Settings::lost_at},
                            {"sticky", &Settings::sticky},
                            {"memory", &Settings::memory},
                            {"devices", &Settings::devices},
                            {"driver_version", &Settings::driver_version},
                            {"nvrtc_version", &Settings::nvrtc_version},
                            {"compute_capability", &Settings::compute_capability},
                            {"multiprocessors", &Settings::multiprocessors},
                            {"calls", &Settings::calls},
                            {"launches", &Settings::launches},
                            {"overlapping", &Settings::overlapping},
                            {"compiles", &Settings::compiles},
                            {"genuine_compiles", &Settings::genuine_compiles}};

std::string variable(std::string_view name) {
  std::string s = "FAKE_CUDA_";
  for (const char c : name) s += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return s;
}

Settings* from_environment() {
  auto* s = new Settings;  // never destroyed
  for (const Named& n : kNames)
    if (const char* text = std::getenv(variable(n.name).c_str())) s->*n.value = std::strtol(text, nullptr, 0);
  return s;
}

}  // namespace

Settings& settings() {
  static Settings* const only = from_environment();
  return *only;
}

Settings::Value* find_setting(const char* name) {
  for (const Named& n : kNames)
    if (std::string_view(n.name) == name) return &(settings().*n.value);
  return nullptr;
}

}  // namespace lc::simulators::cuda
