// Shared by the readers of checkpoint formats.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lightcone/io/checkpoints/gguf.h"
#include "lightcone/io/checkpoints/weights.h"
#include "lightcone/io/mapped_file.h"
#include "lightcone/io/read_options.h"
#include "lightcone/io/shape.h"

namespace lc::io {

// What a table of tensors takes for one of them.
void take_tensor(Budget& budget, std::size_t name, std::size_t rank);
bool looks_like_safetensors(std::span<const std::byte> bytes);
// What a file is that is no checkpoint, and what to do with it: "an ONNX model, ..."; "" where nobody knows.
std::string foreign_format(std::span<const std::byte> file);
GgufFile read_gguf(std::shared_ptr<const MappedFile> file, Budget& budget);
// The first file of a model that lies in several (NAME-00002-of-00003.gguf), which has all but tensors; any other path
// is given back as it is.
std::string first_gguf_part(const std::string& path);
std::string gguf_part(const std::string& path, std::int64_t number);
std::int64_t parts_of_gguf(const std::string& path);  // as its name says; 1 of another name
// One file, or a *.index.json with its shards.
std::vector<std::shared_ptr<const MappedFile>> add_safetensors(Weights& w, const std::string& path, bool map,
                                                               Budget& budget);
// The path of the first of these names that a folder holds, whatever it is; "" when it holds none.
std::string first_in(const std::string& folder, std::span<const char* const> names);
bool is_folder(const std::string& path);

}  // namespace lc::io
