// Files of whisper.cpp (ggml-tiny.en.bin, ggml-base-q5_1.bin): a Whisper with its vocabulary in ggml's format of 2022.
//
// A file has the magic "lmgg", eleven sizes, the mel filters, the texts of the tokens, and the tensors in OpenAI's
// names, one after another without alignment. Blocks of quantised types stay as they are stored.
#pragma once

#include <memory>
#include <string>

#include "lightcone/io/checkpoints/weights.h"
#include "lightcone/io/text/tokenizer.h"

namespace lc {

// An opened file.
struct GgmlWhisper {
  Weights weights;  // in transformers' names, with the config.json that its sizes stand for
  std::shared_ptr<const Tokenizer> tokenizer;
};

// True for a file that begins as those of whisper.cpp do. False for what cannot be read.
bool is_ggml_whisper(const std::string& path);
// Reads a file. Throws Error if it is damaged, is no Whisper, or has a type of numbers or mel filters that are not
// known.
GgmlWhisper read_ggml_whisper(const std::string& path, const ReadOptions& o = {});
GgmlWhisper read_ggml_whisper(std::shared_ptr<const MappedFile> file, const ReadOptions& o = {});

}  // namespace lc
