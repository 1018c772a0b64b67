// A plan for people, and for scripts.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "planned.h"

namespace lc::tool {

// The paragraphs of one plan. `batch`: samples a step.
std::string text_of(const Planned& p, const Cluster& cluster, std::int64_t batch);
nlohmann::ordered_json json_of(const Planned& p, const Cluster& cluster);

// Seconds with three digits: "1.23 ms".
std::string human_seconds(double s);

}  // namespace lc::tool
