// Checkpoints of several ranks. Each rank writes a file with some of the tensors, whole ones, and then the index of
// Hugging Face's sharded checkpoints (*.safetensors.index.json) names the file of each tensor:
//
//   run-a-00001-of-00004.safetensors ... run-a-00004-of-00004.safetensors, run.safetensors.index.json
//
// The files of the next checkpoint are called run-b-..., so that the index, which is replaced at once, names the old
// ones or the new ones, whenever processes are killed. All readers of sharded checkpoints read it: Weights::open() of
// the index.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace lc::io {

// "FOLDER/run.safetensors.index.json" of "FOLDER/run.safetensors".
std::string index_path(const std::string& path);
// The file of rank `rank` of `ranks`, in the set "a" or "b".
std::string part_file(const std::string& path, char set, int rank, int ranks);
// The set that the index does not name; "a" if there is none.
char free_set(const std::string& path);
// Writes the index. `files`: the file of each tensor by its name, as part_file() gives it.
void write_index(const std::string& path, const std::map<std::string, std::string>& files, std::size_t bytes);

// Returns what to read for a checkpoint that was written at `path` by one rank or by several: the path itself, or its
// index. Where there are both, a run has gone on with other ranks and was killed between two calls: the one with more
// steps counts.
std::string latest_checkpoint(const std::string& path);
// Whether ranks have written an index at this path.
bool has_parts(const std::string& path);
// Removes files of parts that the index does not name, and the checkpoint of one rank, which is older; without an index
// all parts.
void remove_older_than_index(const std::string& path);
// Removes the index and all parts.
void remove_parts(const std::string& path);

}  // namespace lc::io
