// Shared by the readers of checkpoint formats.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "lightcone/io/mapped_file.h"
#include "lightcone/io/weights.h"

namespace lc::io {

bool looks_like_safetensors(std::span<const std::byte> bytes);
nlohmann::json parse_json(const std::string& path);  // Errors name the file
// One file, or a *.index.json with its shards.
std::vector<std::shared_ptr<const MappedFile>> add_safetensors(Weights& w, const std::string& path, bool map);

}  // namespace lc::io
