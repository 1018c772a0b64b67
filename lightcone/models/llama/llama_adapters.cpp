// Adapters as Hugging Face's peft has them: adapter_config.json and adapter_model.safetensors.
//
// The rows of queries and keys are those of Hugging Face's checkpoints, halves of each head, whatever file the model
// came from; an embedding's pair of matrices stands the other way round, under names of its own.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include <nlohmann/json.hpp>

#include "lightcone/io/atomic_file.h"
#include "lightcone/io/checkpoints/save.h"
#include "lightcone/io/printable.h"
#include "lightcone/models/llama/llama_model.h"
#include "lightcone/models/llama/llama_stored.h"

namespace lc {
namespace {

constexpr std::string_view kWeight = ".weight";

std::string module_of(const std::string& weight) { return weight.substr(0, weight.size() - kWeight.size()); }
std::string last_word(const std::string& module) { return module.substr(module.rfind('.') + 1); }

std::vector<float> transposed(std::span<const float> x, std::size_t rows) {
  const std::size_t columns = x.size() / rows;
  std::vector<float> y(x.size());
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c) y[c * rows + r] = x[r * columns + c];
  return y;
}

class PeftFiles {
 public:
  PeftFiles(const LlamaModel& model, std::span<const nn::Adapter> adapters, const LlamaValues& values)
      : parts_(model.parts()), config_(model.config()), adapters_(adapters) {
    tied_ = std::ranges::none_of(parts_, [](const auto& p) { return p.path == "lm_head.weight"; });
    for (const nn::Adapter& each : adapters) add(each, values(each.a), values(each.b));
  }

  void write(const std::string& folder, const std::string& base) const {
    std::vector<TensorToSave> tensors;
    for (const Matrix& m : matrices_)
      tensors.push_back({"base_model.model." + m.name, DType::F32, m.shape, std::as_bytes(std::span(m.values))});
    save_safetensors((std::filesystem::path(folder) / "adapter_model.safetensors").string(), tensors,
                     {{"format", "pt"}});
    io::AtomicFile f("save_llama_adapters", (std::filesystem::path(folder) / "adapter_config.json").string());
    f.write(config(base).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    f.commit();
  }

 private:
  struct Matrix {
    std::string name;
    std::vector<std::int64_t> shape;
    std::vector<float> values;
  };

  const LlamaModel::Part& part(const std::string& path) const {
    const auto at = std::ranges::find(parts_, path, &LlamaModel::Part::path);
    if (at == parts_.end())
      throw Error("save_llama_adapters", str_cat("the model has no ", in_quotes(path), ", which an adapter is for"));
    return *at;
  }

  void add(const nn::Adapter& each, std::span<const float> a, std::span<const float> b) {
    const std::int64_t out = part(each.weight).shape[0], in = part(each.weight).shape[1];
    rank_ = static_cast<std::int64_t>(a.size()) / in, scale_ = each.scale;
    const std::string module = module_of(each.weight), name = last_word(module);
    std::vector<float> rows(b.begin(), b.end());
    if (config_.rope_interleaved && (name == "q_proj" || name == "k_proj"))
      rows = halves_of_neighbours(b, name == "q_proj" ? config_.heads : config_.kv_heads, config_.head_dim);
    const auto pair = [&](const std::string& of) {
      matrices_.push_back({of + ".lora_A.weight", {rank_, in}, {a.begin(), a.end()}});
      matrices_.push_back({of + ".lora_B.weight", {out, rank_}, rows});
    };
    if (name != "embed_tokens") return pair(module);
    matrices_.push_back({module + ".lora_embedding_A", {rank_, out}, transposed(b, static_cast<std::size_t>(out))});
    matrices_.push_back({module + ".lora_embedding_B", {in, rank_}, transposed(a, static_cast<std::size_t>(rank_))});
    if (tied_) pair("lm_head"), ties_ = true;
  }

  // The last word of a layer's path where every layer of that name has an adapter, and otherwise the path.
  std::set<std::string> targets() const {
    std::map<std::string, std::size_t> layers, adapted;
    for (const auto& p : parts_)
      if (p.path.ends_with(kWeight)) ++layers[last_word(module_of(p.path))];
    for (const nn::Adapter& each : adapters_) ++adapted[last_word(module_of(each.weight))];
    std::set<std::string> all;
    for (const nn::Adapter& each : adapters_) {
      const std::string module = module_of(each.weight), name = last_word(module);
      all.insert(adapted[name] == layers[name] ? name : module);
    }
    return all;
  }

  nlohmann::json config(const std::string& base) const {
    const double alpha = scale_ * static_cast<double>(rank_);
    nlohmann::json j{{"peft_type", "LORA"}, {"task_type", "CAUSAL_LM"}, {"r", rank_},
                     {"lora_alpha", alpha}, {"lora_dropout", 0.0},      {"target_modules", targets()},
                     {"bias", "none"},      {"fan_in_fan_out", false},  {"inference_mode", true}};
    if (alpha == std::nearbyint(alpha)) j["lora_alpha"] = static_cast<std::int64_t>(alpha);
    if (ties_) j["ensure_weight_tying"] = true;
    if (!base.empty()) j["base_model_name_or_path"] = base;
    return j;
  }

  std::vector<LlamaModel::Part> parts_;
  const LlamaConfig& config_;
  std::span<const nn::Adapter> adapters_;
  std::vector<Matrix> matrices_;
  std::int64_t rank_ = 0;
  double scale_ = 1;
  bool tied_ = false, ties_ = false;
};

}  // namespace

void save_llama_adapters(const std::string& folder, const LlamaModel& model, std::span<const nn::Adapter> adapters,
                         const LlamaValues& values, const std::string& base) {
  if (adapters.empty()) throw Error("save_llama_adapters", "there are no adapters: nn::Lora goes around the model");
  const PeftFiles files(model, adapters, values);
  std::error_code wrong;
  std::filesystem::create_directories(folder, wrong);
  if (wrong) throw file_error("save_llama_adapters", folder, "it cannot be made: ", wrong.message());
  files.write(folder, base);
}

}  // namespace lc
