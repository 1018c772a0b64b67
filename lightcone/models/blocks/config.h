// What blocks read of config.json.
#pragma once

#include <string>
#include <string_view>

#include "lightcone/models/files/config_file.h"

namespace lc {

// The name of an activation. Throws Error that names the nearest one if there is none of this name.
std::string known_activation(const ConfigFile& file, std::string_view key, std::string_view otherwise);

}  // namespace lc
