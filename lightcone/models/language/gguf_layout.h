// How GGUF files store language models: their names of weights, and what llama.cpp's converter changed of them.
#pragma once

#include <string_view>
#include <vector>

#include "lightcone/io/checkpoints/weights.h"
#include "lightcone/models/files/weight_table.h"
#include "lightcone/models/language/config/language_config.h"

namespace lc {

// The names of weights in files of this general.architecture, for WeightTable.
std::vector<WeightName> gguf_names(const Weights& w, std::string_view architecture);
// Turns the layout that transformers' files of an architecture have into that of a GGUF file. Which biases there are,
// and whether the head is the table of tokens, is what the file has.
void use_gguf_layout(const Weights& w, std::string_view architecture, LanguageConfig& l);

}  // namespace lc
