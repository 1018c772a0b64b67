// A checkpoint in several files, which the index of Hugging Face's transformers lists: {"weight_map": {"name":
// "file"}}.
#include <filesystem>
#include <set>

#include "lightcone/base/error.h"
#include "lightcone/io/checkpoints/torch/torch_file.h"
#include "lightcone/io/checkpoints/weights_internal.h"
#include "lightcone/io/json_internal.h"
#include "lightcone/io/printable.h"

namespace lc::io {

namespace fs = std::filesystem;

void add_shards(Weights& w, const std::string& index, Budget& budget) {
  const JsonDocument document = read_json(index, budget);
  const Json places = document.root()["weight_map"];
  if (!places.is(Json::Kind::Object)) throw file_error("load", index, "it has no weight_map");
  std::set<std::string_view> shards;
  for (const auto& [name, shard] : places) {
    if (!shard.is(Json::Kind::String))
      throw file_error("load", index, "the shard of ", in_quotes(name), " is not a file name");
    const std::string_view file = shard.text();
    if (file.empty() || file.find('\0') != file.npos || fs::path(file).filename() != file)  // never outside the folder
      throw file_error("load", index, "the shard ", in_quotes(file), " is not a plain file name");
    if (shards.insert(file).second) budget.take(64);
  }
  for (std::string_view s : shards) {
    const std::string path = (fs::path(index).parent_path() / s).string();
    const auto file = w.options().map ? MappedFile::open(path) : MappedFile::read(path);
    if (looks_like_torch(file->bytes())) add_torch(w, file, budget);
    else add_safetensors(w, file, budget);
  }
  for (const auto& [name, shard] : places)
    if (!w.find(name)) throw file_error("load", index, in_quotes(name), " is in no shard");
}

}  // namespace lc::io
