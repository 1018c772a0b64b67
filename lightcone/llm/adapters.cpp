// Reads and writes adapters in the format of Hugging Face's peft. The two matrices of an embedding are transposed and
// have names of their own.
#include "lightcone/llm/adapters.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include <nlohmann/json.hpp>

#include "lightcone/io/atomic_file.h"
#include "lightcone/io/checkpoints/save.h"
#include "lightcone/io/checkpoints/weights.h"
#include "lightcone/io/json_internal.h"
#include "lightcone/io/printable.h"
#include "lightcone/llm/stored.h"

namespace lc::llm {
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

const ParameterInfo& find_parameter(std::span<const ParameterInfo> all, std::string_view op, const std::string& path) {
  const auto at = std::ranges::find(all, path, &ParameterInfo::path);
  if (at == all.end()) throw Error(op, str_cat("the model has no ", in_quotes(path), ", which an adapter is for"));
  return *at;
}

class PeftFiles {
 public:
  PeftFiles(std::span<const ParameterInfo> parameters, std::span<const nn::Adapter> adapters,
            const ParameterValues& values, const PeftTask& task)
      : parameters_(parameters), adapters_(adapters), task_(task) {
    tied_ = std::ranges::none_of(parameters_, [](const auto& p) { return p.path == "lm_head.weight"; });
    for (const nn::Adapter& each : adapters) add(each, values(each.a), values(each.b));
    for (const std::string& module : task.trained)
      for (const ParameterInfo& p : parameters)
        if (p.path.starts_with(module + ".")) matrices_.push_back({p.path, p.shape, values(p.path)});
  }

  void write(const std::string& folder, const std::string& base) const {
    std::vector<TensorToSave> tensors;
    for (const Matrix& m : matrices_)
      tensors.push_back({"base_model.model." + m.name, DType::F32, m.shape, std::as_bytes(std::span(m.values))});
    save_safetensors((std::filesystem::path(folder) / "adapter_model.safetensors").string(), tensors,
                     {{"format", "pt"}});
    io::AtomicFile f("save_adapters", (std::filesystem::path(folder) / "adapter_config.json").string());
    f.write(config(base).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    f.commit();
  }

 private:
  struct Matrix {
    std::string name;
    std::vector<std::int64_t> shape;
    std::vector<float> values;
  };

  void add(const nn::Adapter& each, std::span<const float> a, std::span<const float> b) {
    const ParameterInfo& weight = find_parameter(parameters_, "save_adapters", each.weight);
    const std::int64_t out = weight.shape[0], in = weight.shape[1];
    rank_ = static_cast<std::int64_t>(a.size()) / in, scale_ = each.scale;
    const std::string module = module_of(each.weight), name = last_word(module);
    std::vector<float> rows(b.begin(), b.end());
    if (weight.interleaved_heads > 0)
      rows = halves_of_neighbours(b, weight.interleaved_heads, out / weight.interleaved_heads);
    const auto pair = [&](const std::string& of) {
      matrices_.push_back({of + ".lora_A.weight", {rank_, in}, {a.begin(), a.end()}});
      matrices_.push_back({of + ".lora_B.weight", {out, rank_}, rows});
    };
    if (name != "embed_tokens") return pair(module);
    matrices_.push_back({module + ".lora_embedding_A", {rank_, out}, transposed(b, static_cast<std::size_t>(out))});
    matrices_.push_back({module + ".lora_embedding_B", {in, rank_}, transposed(a, static_cast<std::size_t>(rank_))});
    if (tied_) pair("lm_head"), ties_ = true;
  }

  // The names in "target_modules": the last component of a layer's path if all layers of that name have an adapter,
  // otherwise the whole path.
  std::set<std::string> targets() const {
    std::map<std::string, std::size_t> layers, adapted;
    for (const ParameterInfo& p : parameters_)
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
    nlohmann::json j{{"peft_type", "LORA"},
                     {"task_type", task_.type.empty() ? nlohmann::json() : nlohmann::json(task_.type)},
                     {"r", rank_},
                     {"lora_alpha", alpha},
                     {"lora_dropout", 0.0},
                     {"target_modules", targets()},
                     {"bias", "none"},
                     {"fan_in_fan_out", false},
                     {"inference_mode", true}};
    if (alpha == std::nearbyint(alpha)) j["lora_alpha"] = static_cast<std::int64_t>(alpha);
    if (ties_) j["ensure_weight_tying"] = true;
    for (const std::string& module : task_.trained) j["modules_to_save"].push_back(module);
    if (!base.empty()) j["base_model_name_or_path"] = base;
    return j;
  }

  std::span<const ParameterInfo> parameters_;
  std::span<const nn::Adapter> adapters_;
  const PeftTask& task_;
  std::vector<Matrix> matrices_;
  std::int64_t rank_ = 0;
  double scale_ = 1;
  bool tied_ = false, ties_ = false;
};

std::string in_folder(const std::string& folder, const char* file) {
  return (std::filesystem::path(folder) / file).string();
}

class PeftReader {
 public:
  PeftReader(const std::string& folder, std::span<const ParameterInfo> parameters)
      : folder_(folder), parameters_(parameters), file_(Weights::open(in_folder(folder, "adapter_model.safetensors"))) {
    const std::string path = in_folder(folder, "adapter_config.json");
    Budget budget(ReadOptions{}, path);
    const io::JsonDocument document = io::read_json(path, budget);
    const io::Json j = document.root();
    for (const char* more : {"use_dora", "fan_in_fan_out", "alora_invocation_tokens", "rank_pattern", "alpha_pattern"})
      if (const io::Json v = j[more];
          !v.absent() && v.flag() != false && !(v.is(io::Json::Kind::Object) && v.size() == 0))
        throw file_error("load_adapters", path, more, " is more than the LoRA that is read here");
    if (const io::Json v = j["bias"]; !v.absent() && v.text() != "none")
      throw file_error("load_adapters", path, "it has biases, which are not read here");
    const auto r = j["r"].integer();
    const auto alpha = j["lora_alpha"].number();
    if (!r || !alpha || *r < 1) throw file_error("load_adapters", path, "\"r\" and \"lora_alpha\" are no numbers");
    const auto rank = static_cast<double>(*r);
    rank_ = *r, scale_ = *alpha / (j["use_rslora"].flag() == true ? std::sqrt(rank) : rank);
  }

  std::map<std::string, std::vector<float>> read(std::span<const nn::Adapter> adapters) {
    std::map<std::string, std::vector<float>> all;
    for (const nn::Adapter& each : adapters) {
      if (std::abs(each.scale - scale_) > 1e-6 * std::abs(scale_))
        throw file_error("load_adapters", folder_, "its scale, lora_alpha / r, is ", scale_, ", and that of ",
                         in_quotes(each.weight), " is ", each.scale, ": LoraOptions::alpha would be ",
                         scale_ * static_cast<double>(rank_));
      const std::string module = module_of(each.weight), name = last_word(module);
      const ParameterInfo& weight = find_parameter(parameters_, "load_adapters", each.weight);
      const std::int64_t out = weight.shape[0], in = weight.shape[1];
      if (name == "embed_tokens") {
        all[each.a] = transposed(matrix(module + ".lora_embedding_B", {in, rank_}), static_cast<std::size_t>(in));
        all[each.b] = transposed(matrix(module + ".lora_embedding_A", {rank_, out}), static_cast<std::size_t>(rank_));
        continue;
      }
      all[each.a] = matrix(module + ".lora_A.weight", {rank_, in});
      all[each.b] = matrix(module + ".lora_B.weight", {out, rank_});
      if (weight.interleaved_heads > 0)
        all[each.b] = neighbours_of_halves(all[each.b], weight.interleaved_heads, out / weight.interleaved_heads);
    }
    for (const auto& [name, tensor] : file_.tensors())
      if (!read_.contains(name) && name.find("lm_head") == name.npos)
        throw file_error("load_adapters", folder_, "it has ", in_quotes(name),
                         ", and the model no adapter there: LoraOptions::targets names the layers");
    return all;
  }

 private:
  std::vector<float> matrix(const std::string& name, const std::vector<std::int64_t>& shape) {
    const std::string stored = "base_model.model." + name;
    const StoredTensor* t = file_.find(stored);
    if (!t) throw file_error("load_adapters", folder_, "it has no ", in_quotes(stored));
    if (t->shape != shape)
      throw file_error("load_adapters", folder_, in_quotes(stored), " is ",
                       str(Shape(t->shape.begin(), t->shape.end())), ", and the model's is ",
                       str(Shape(shape.begin(), shape.end())));
    read_.insert(stored);
    return Weights::read(*t);
  }

  const std::string& folder_;
  const std::span<const ParameterInfo> parameters_;
  const Weights file_;
  std::int64_t rank_ = 0;
  double scale_ = 0;
  std::set<std::string> read_;
};

}  // namespace

std::map<std::string, std::vector<float>> load_adapters(const std::string& folder,
                                                        std::span<const ParameterInfo> parameters,
                                                        std::span<const nn::Adapter> adapters) {
  if (adapters.empty()) throw Error("load_adapters", "there are no adapters: nn::Lora goes around the model");
  return PeftReader(folder, parameters).read(adapters);
}

void save_adapters(const std::string& folder, std::span<const ParameterInfo> parameters,
                   std::span<const nn::Adapter> adapters, const ParameterValues& values, const std::string& base,
                   const PeftTask& task) {
  if (adapters.empty()) throw Error("save_adapters", "there are no adapters: nn::Lora goes around the model");
  const PeftFiles files(parameters, adapters, values, task);
  std::error_code wrong;
  std::filesystem::create_directories(folder, wrong);
  if (wrong) throw file_error("save_adapters", folder, "it cannot be made: ", wrong.message());
  files.write(folder, base);
}

}  // namespace lc::llm
