#pragma once

#include <memory>

#include "lightcone/io/mapped_file.h"
#include "lightcone/io/read_options.h"
#include "lightcone/io/text/tokenizer.h"

namespace lc {

// Reads Hugging Face's tokenizer.json, with the ids and texts of that library. Throws Error that names a component or
// field that is not supported.
std::shared_ptr<const Tokenizer> tokenizer_from_json(const MappedFile& file, Budget& budget);

}  // namespace lc
