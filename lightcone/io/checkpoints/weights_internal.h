// Functions shared by the readers of checkpoint formats.
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

// Takes the memory of one entry of a table of tensors from the budget.
void take_tensor(Budget& budget, std::size_t name, std::size_t rank);
// True for ONNX's ModelProto: its version is the first field, and a graph (7) is among the fields.
bool looks_like_onnx(std::span<const std::byte> file);
bool looks_like_safetensors(std::span<const std::byte> bytes);
// Describes a file of another format and how to convert it ("an ONNX model, ..."); "" if the format is unknown.
std::string foreign_format(std::span<const std::byte> file);
GgufFile read_gguf(std::shared_ptr<const MappedFile> file, Budget& budget);
// Returns the first file, which has everything but the other tensors, of a model in several GGUF files
// (NAME-00002-of-00003.gguf). Any other path is returned unchanged.
std::string first_gguf_part(const std::string& path);
// Returns the path of part `number` of the same model.
std::string gguf_part(const std::string& path, std::int64_t number);
std::int64_t parts_of_gguf(const std::string& path);  // number of parts according to the name; 1 for other names
// Adds the tensors of one file.
void add_safetensors(Weights& w, const std::shared_ptr<const MappedFile>& file, Budget& budget);
void add_torch(Weights& w, const std::shared_ptr<const MappedFile>& file, Budget& budget);
// Adds the tensors of all shards of a *.index.json: safetensors files, or PyTorch's.
void add_shards(Weights& w, const std::string& index, Budget& budget);
// Returns the path of the first of these names that exists in the folder, as any kind of file; "" if none does.
std::string first_in(const std::string& folder, std::span<const char* const> names);
bool is_folder(const std::string& path);

}  // namespace lc::io
