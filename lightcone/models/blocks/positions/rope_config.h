// The frequencies of rotary positions (RoPE), with every way to stretch them that config.json knows.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lightcone/models/files/config_file.h"

namespace lc {

// One kind of rotation.
struct RopeConfig {
  std::vector<double> frequencies = {};       // radians per position of each pair; twice as many elements are rotated
  std::vector<double> long_frequencies = {};  // for texts longer than `original` (longrope); empty: the same
  std::int64_t original = 0;
  double factor = 1;         // multiplies sine and cosine (YaRN, longrope)
  bool interleaved = false;  // pairs are neighbours (2i, 2i + 1), not (i, i + n / 2)
};

// What an architecture says of its rotation. Keys of v5's rope_parameters count like those outside.
struct RopeKeys {
  std::int64_t head = 0;  // elements of a head
  double theta = 10000;   // if config.json has none
  double partial = 1;     // part of a head that is rotated, if config.json says nothing
  std::string_view theta_key = "rope_theta", partial_key = "partial_rotary_factor";
  std::string_view scaling_key = "rope_scaling";
  std::int64_t positions = 0;  // max_position_embeddings
  bool interleaved = false;
};

// Reads the rotation of config.json. `kind` is a key within rope_parameters, of models with several kinds of layers; ""
// for others. Throws Error for a type of scaling that is not known, and for sizes that make no sense.
RopeConfig read_rope(const ConfigFile& c, const RopeKeys& keys, std::string_view kind = "");
// The frequencies without any scaling.
RopeConfig plain_rope(std::int64_t rotated, double theta, bool interleaved = false);

}  // namespace lc
