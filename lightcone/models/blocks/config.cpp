#include "lightcone/models/blocks/config.h"

#include <algorithm>

#include "lightcone/io/printable.h"
#include "lightcone/models/blocks/activation.h"
#include "lightcone/runtime/names.h"

namespace lc {

std::string known_activation(const ConfigFile& file, std::string_view key, std::string_view otherwise) {
  std::string name = file.text(key, otherwise);
  if (std::ranges::find(activation_names(), name) == activation_names().end())
    file.fail("the activation ", in_quotes(name), " is not known; the nearest is ",
              nearest_name(name, activation_names()));
  return name;
}

}  // namespace lc
