#include "lightcone/nn/layers.h"

namespace lc::nn {

Init uniform_init(double bound) {
  return [bound](const init::Extents& s, const init::Source& from) { return init::uniform(s, from, -bound, bound); };
}
Init constant_init(float value) {
  return [value](const init::Extents& s, const init::Source&) { return init::constant(s, value); };
}

}  // namespace lc::nn
