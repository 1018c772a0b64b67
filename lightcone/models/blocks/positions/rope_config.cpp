#include "lightcone/models/blocks/positions/rope_config.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "lightcone/io/printable.h"

namespace lc {
namespace {

constexpr double kTurn = 2 * std::numbers::pi;

// The object that scales the rotation, if there is one.
std::optional<ConfigFile> scaling_of(const ConfigFile& c, const RopeKeys& keys, std::string_view kind) {
  if (c.is_object(keys.scaling_key)) return c.section(keys.scaling_key);
  if (!c.is_object("rope_parameters")) return {};
  const ConfigFile all = c.section("rope_parameters");
  if (kind.empty()) return all;
  return all.is_object(kind) ? std::optional(all.section(kind)) : std::nullopt;
}

struct Scaling {
  const ConfigFile& c;
  const RopeKeys& keys;
  std::int64_t original(std::int64_t otherwise) const { return c.size("original_max_position_embeddings", otherwise); }
  double factor() const {
    const double f = c.number("factor", 1);
    if (!(f > 0)) c.fail("the factor of RoPE's scaling is ", f, ", and not above 0");
    return f;
  }
};

// Frequencies of long waves are divided by the factor, those of short waves are kept, and those between interpolated.
void scale_llama3(const Scaling& s, RopeConfig& r) {
  const double factor = s.factor(), low = s.c.number("low_freq_factor", 1), high = s.c.number("high_freq_factor", 4);
  const auto original = static_cast<double>(s.original(8192));
  if (!(high > low && low > 0)) s.c.fail("low_freq_factor ", low, " and high_freq_factor ", high, " are no band");
  for (double& f : r.frequencies) {
    const double wave = kTurn / f, blend = (original / wave - low) / (high - low);
    f = wave > original / low ? f / factor : wave < original / high ? f : (1 - blend) * f / factor + blend * f;
  }
}

double magnitude(double factor, double slope) { return factor <= 1 ? 1 : 0.1 * slope * std::log(factor) + 1; }

// YaRN (B. Peng et al., 2023): a ramp between interpolated and kept frequencies, by how often a pair turns within the
// context of training.
void scale_yarn(const Scaling& s, double theta, RopeConfig& r) {
  const auto original = static_cast<double>(s.original(s.keys.positions));
  const double factor = s.c.has("factor") ? s.factor() : static_cast<double>(s.keys.positions) / original;
  const double m = s.c.number("mscale", 0), all = s.c.number("mscale_all_dim", 0);
  const double usual = m != 0 && all != 0 ? magnitude(factor, m) / magnitude(factor, all) : magnitude(factor, 1);
  r.factor = s.c.number("attention_factor", usual);
  const auto pairs = static_cast<double>(r.frequencies.size());
  const auto pair_of = [&](double turns) { return pairs * std::log(original / (turns * kTurn)) / std::log(theta); };
  const auto given = [&](std::string_view key, double otherwise) {
    const double v = s.c.number(key, otherwise);
    return v != 0 ? v : otherwise;
  };
  double low = pair_of(given("beta_fast", 32)), high = pair_of(given("beta_slow", 1));
  if (s.c.flag("truncate", true)) low = std::floor(low), high = std::ceil(high);
  low = std::max(low, 0.0), high = std::min(high, 2 * pairs - 1);
  if (low == high) high += 0.001;
  for (std::size_t k = 0; k < r.frequencies.size(); ++k) {
    const double ramp = std::clamp((static_cast<double>(k) - low) / (high - low), 0.0, 1.0);
    r.frequencies[k] *= ramp / factor + (1 - ramp);
  }
}

// LongRoPE (Y. Ding et al., 2024): a divisor for each pair, and others for texts beyond the context of training. Phi 3
// writes that context beside the object.
void scale_longrope(const ConfigFile& c, const Scaling& s, RopeConfig& r) {
  r.original = s.original(c.size("original_max_position_embeddings", s.keys.positions));
  const auto divided = [&](std::string_view key) {
    const std::vector<double> by = s.c.numbers(key);
    if (by.size() != r.frequencies.size())
      s.c.fail(key, " has ", by.size(), " values for ", r.frequencies.size(), " pairs");
    std::vector<double> f = r.frequencies;
    for (std::size_t k = 0; k < f.size(); ++k) {
      if (!(by[k] > 0)) s.c.fail(key, " holds ", by[k], ", and not numbers above 0");
      f[k] /= by[k];
    }
    return f;
  };
  r.long_frequencies = divided("long_factor");
  r.frequencies = divided("short_factor");
  const double factor =
      s.c.has("factor") ? s.factor() : static_cast<double>(s.keys.positions) / static_cast<double>(r.original);
  const double usual = factor <= 1 ? 1 : std::sqrt(1 + std::log(factor) / std::log(static_cast<double>(r.original)));
  r.factor = s.c.number("attention_factor", usual);
  if (r.original >= s.keys.positions) r.long_frequencies.clear();
}

void scale(const ConfigFile& c, const ConfigFile& within, const RopeKeys& keys, double theta, RopeConfig& r) {
  const Scaling s{within, keys};
  std::string type = within.text("rope_type", within.text("type", "default"));
  within.neutral({"type", "rope_theta", "partial_rotary_factor"});
  if (type == "su") type = "longrope";  // what Phi 3 called it first
  if (type == "linear") {
    const double factor = s.factor();
    for (double& f : r.frequencies) f /= factor;
  } else if (type == "llama3") {
    scale_llama3(s, r);
  } else if (type == "yarn") {
    scale_yarn(s, theta, r);
  } else if (type == "longrope") {
    scale_longrope(c, s, r);
  } else if (type == "dynamic") {
    // stretches beyond max_position_embeddings only, which is the longest text here
    s.factor();
    within.neutral({"original_max_position_embeddings", "alpha"});
  } else if (type != "default") {
    within.fail("RoPE's scaling of type ", in_quotes(type),
                " is not known (default, linear, dynamic, llama3, yarn and longrope are)");
  }
  if (type == "default" || type == "linear") within.neutral({"factor", "original_max_position_embeddings"});
  within.neutral({"original_max_position_embeddings", "finetuned"});
  within.require_all_known("RoPE");
}

}  // namespace

RopeConfig plain_rope(std::int64_t rotated, double theta, bool interleaved) {
  RopeConfig r;
  r.interleaved = interleaved;
  for (std::int64_t k = 0; k < rotated / 2; ++k)
    r.frequencies.push_back(std::pow(theta, -2.0 * static_cast<double>(k) / static_cast<double>(rotated)));
  return r;
}

RopeConfig read_rope(const ConfigFile& c, const RopeKeys& keys, std::string_view kind) {
  constexpr std::int64_t kMostElements = 1 << 16;
  const std::optional<ConfigFile> within = scaling_of(c, keys, kind);
  const auto number = [&](std::string_view key, std::string_view inner, double otherwise) {
    const double outside = c.number(key, otherwise);
    return within ? within->number(inner, outside) : outside;
  };
  const double theta = number(keys.theta_key, "rope_theta", keys.theta);
  const double part = number(keys.partial_key, "partial_rotary_factor", keys.partial);
  const auto rotated = static_cast<std::int64_t>(static_cast<double>(keys.head) * part);
  if (!(theta > 0 && std::isfinite(theta))) c.fail("the base of RoPE is ", theta, ", and not above 0");
  if (!(part > 0 && part <= 1) || keys.head > kMostElements || rotated < 2 || rotated % 2 != 0)
    c.fail("a part of ", part, " of heads of ", keys.head, " elements cannot be rotated");
  RopeConfig r = plain_rope(rotated, theta, keys.interleaved);
  if (within) scale(c, *within, keys, theta, r);
  return r;
}

}  // namespace lc
