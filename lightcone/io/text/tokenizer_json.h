#pragma once

#include "lightcone/io/mapped_file.h"
#include "lightcone/io/read_options.h"
#include "lightcone/io/text/tokenizer.h"

namespace lc {

// Hugging Face's tokenizer.json: BPE (byte-level, or with byte fallback) and WordPiece.
Vocabulary vocabulary_from_json(const MappedFile& file, Budget& budget);

}  // namespace lc
