#pragma once

#include <memory>

#include "lightcone/io/mapped_file.h"
#include "lightcone/io/read_options.h"
#include "lightcone/io/text/tokenizer.h"

namespace lc {

// Hugging Face's tokenizer.json, whatever it is made of, with that library's ids and texts. What is not known in it is
// an Error that names it.
std::shared_ptr<const Tokenizer> tokenizer_from_json(const MappedFile& file, Budget& budget);

}  // namespace lc
