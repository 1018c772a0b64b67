// Metadata of GGUF files that all language models share.
#pragma once

#include <cstdint>

#include "lightcone/core/dtype.h"
#include "lightcone/io/checkpoints/save.h"
#include "lightcone/io/checkpoints/weights.h"
#include "lightcone/io/text/tokenizer.h"

namespace lc::llm {

// Returns the size of the vocabulary of a GGUF file. The header does not have it: it is the number of rows of the
// embedding table. Throws Error if there is no such table, or if the file has another number of tokens.
std::int64_t gguf_vocabulary(const Weights& w);

// llama.cpp's number of the type that most matrices of a file have: F32, F16 or BF16.
inline std::uint32_t gguf_file_type(DType t) { return t == DType::F32 ? 0 : t == DType::F16 ? 1 : 32; }

// Appends the fields of a vocabulary of SentencePiece's kind.
void add_vocabulary(GgufFields& fields, const Vocabulary& v);

}  // namespace lc::llm
