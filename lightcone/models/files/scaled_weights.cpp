#include "lightcone/models/files/scaled_weights.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "lightcone/core/dim.h"
#include "lightcone/io/printable.h"

namespace lc {
namespace {

// How a method stores a weight X.weight.
struct Scaling {
  std::string_view scale;                 // what its scale is called: X.SCB
  double factor = 1;                      // times the scale
  std::vector<std::int64_t> blocks = {};  // rows and columns that share a scale; empty: as many as divide evenly
  std::vector<std::string_view> besides;  // further tensors of X that say nothing of the weight
};

void read_bitsandbytes(const ConfigFile& q, Scaling& s) {
  if (!q.flag("load_in_8bit", false))
    q.fail("bitsandbytes without load_in_8bit, which is 4 bits, is not supported; GGUF files of 4 bits are");
  q.lacks({"load_in_4bit"});
  q.neutral({"llm_int8_threshold", "llm_int8_skip_modules", "llm_int8_enable_fp32_cpu_offload",
             "llm_int8_has_fp16_weight", "bnb_4bit_compute_dtype", "bnb_4bit_quant_type", "bnb_4bit_use_double_quant",
             "bnb_4bit_quant_storage"});
  constexpr double kMost = 127;  // the scale is the largest magnitude of a row
  s = {.scale = "SCB", .factor = 1 / kMost, .besides = {"weight_format"}};
}

void read_compressed(const ConfigFile& q, Scaling& s) {
  const std::string format = q.text("format", "int-quantized");
  if (format != "int-quantized" && format != "float-quantized" && format != "naive-quantized")
    q.fail("the format ", in_quotes(format), " of compressed-tensors is not known (int-quantized, float-quantized and ",
           "naive-quantized are)");
  const ConfigFile groups = q.section("config_groups");
  for (int k = 0; groups.is_object(str_cat("group_", k)); ++k) {
    const ConfigFile weights = groups.section(str_cat("group_", k)).section("weights");
    if (weights.size("num_bits") != 8)
      weights.fail("num_bits is ", weights.size("num_bits"), ", and only 8 is supported");
    if (!weights.flag("symmetric", true)) weights.fail("symmetric is false, which is not supported");
    weights.lacks({"actorder"});
    weights.neutral({"type", "strategy", "group_size", "block_structure", "dynamic", "observer", "observer_kwargs",
                     "scale_dtype", "zp_dtype"});
    weights.require_all_known("compressed-tensors");
  }
  q.lacks({"kv_cache_scheme"});
  q.neutral({"ignore", "quantization_status", "global_compression_ratio", "sparsity_config", "version",
             "transform_config", "config_groups"});
  s = {.scale = "weight_scale", .besides = {"input_scale"}};
}

void read_fp8(const ConfigFile& q, Scaling& s) {
  q.only("fmt", "e4m3");
  q.neutral({"activation_scheme", "modules_to_not_convert", "dequantize", "scale_fmt"});
  s = {.scale = "weight_scale_inv",
       .blocks = q.sizes("weight_block_size"),
       .besides = {"input_scale", "activation_scale"}};
  if (!s.blocks.empty() && s.blocks.size() != 2)
    q.fail("weight_block_size has ", s.blocks.size(), " numbers, and not the rows and columns of a block");
}

void read_fbgemm(const ConfigFile& q, Scaling& s) {
  q.neutral({"activation_scale_ub", "modules_to_not_convert"});
  s = {.scale = "weight_scale", .besides = {"input_scale", "input_scale_ub"}};
}

std::optional<Scaling> scaling_of(const ConfigFile& c) {
  if (!c.is_object("quantization_config")) return {};
  const ConfigFile q = c.section("quantization_config");
  const std::string method = q.text("quant_method");
  if (method == "mxfp4") return {};  // GPT-OSS reads it
  Scaling s;
  if (method == "bitsandbytes" || (method.empty() && q.flag("load_in_8bit", false))) read_bitsandbytes(q, s);
  else if (method == "compressed-tensors") read_compressed(q, s);
  else if (method == "fp8") read_fp8(q, s);
  else if (method == "fbgemm_fp8") read_fbgemm(q, s);
  else
    q.fail("weights quantised by ", in_quotes(method),
           " are not supported (bitsandbytes of 8 bits, compressed-tensors ",
           "of 8 bits, fp8, fbgemm_fp8 and mxfp4 are)");
  q.require_all_known(method);
  return s;
}

// For each element along an axis the index of its scale.
std::vector<std::size_t> scale_of_each(const Weights& w, const std::string& name, std::int64_t n, std::int64_t scales,
                                       std::int64_t block) {
  const bool whole = block > 0 ? scales == (n + block - 1) / block : scales > 0 && n % scales == 0;
  if (scales != 1 && !whole)
    throw file_error("load_model", w.path(), in_quotes(name), " has ", scales, " scales for ", n,
                     " elements of an axis");
  const std::int64_t each = scales == 1 ? n : block > 0 ? block : n / scales;
  std::vector<std::size_t> at;
  for (std::int64_t k = 0; k < n; ++k) at.push_back(static_cast<std::size_t>(k / each));
  return at;
}

// A matrix with its scales, the same for all elements, of rows or of blocks.
std::vector<float> multiplied(const Weights& w, const std::string& name, const StoredTensor& t,
                              const StoredTensor& scale, const Scaling& s) {
  if (t.shape.size() != 2 || scale.shape.size() > 2)
    throw file_error("load_model", w.path(), in_quotes(name), " has ", t.shape.size(), " axes, and its scale ",
                     scale.shape.size(), ": matrices alone are supported with scales");
  std::vector<float> v = Weights::read(t);
  const std::vector<float> by = Weights::read(scale);
  const std::int64_t down = scale.shape.empty() ? 1 : scale.shape[0],
                     across = scale.shape.size() == 2 ? scale.shape[1] : 1;
  const auto block = [&](std::size_t axis) { return s.blocks.empty() ? 0 : s.blocks[axis]; };
  const auto rows = scale_of_each(w, name, t.shape[0], down, block(0));
  const auto columns = scale_of_each(w, name, t.shape[1], across, block(1));
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (std::size_t k = 0; k < columns.size(); ++k)
      v[r * columns.size() + k] *= static_cast<float>(
          s.factor * static_cast<double>(by[rows[r] * static_cast<std::size_t>(across) + columns[k]]));
  return v;
}

}  // namespace

Weights scaled_weights(const Weights& w, const ConfigFile& c) {
  const std::optional<Scaling> s = w.gguf() ? std::nullopt : scaling_of(c);
  if (!s) return w;
  std::map<std::string, StoredTensor, std::less<>> tensors = w.tensors();
  std::vector<std::shared_ptr<const void>> owners;
  for (const auto& [name, scale] : w.tensors()) {
    const std::string end = str_cat(".", s->scale);
    if (!name.ends_with(end)) continue;
    const std::string part = name.substr(0, name.size() - end.size()), weight = part + ".weight";
    const StoredTensor* t = w.find(weight);
    if (!t) throw file_error("load_model", w.path(), "there is ", in_quotes(name), ", and no ", in_quotes(weight));
    const auto values = std::make_shared<const std::vector<float>>(multiplied(w, weight, *t, scale, *s));
    owners.push_back(values);
    tensors[weight] = {t->shape, "F32", std::as_bytes(std::span(*values)), DType::F32};
    tensors.erase(name);
    for (const std::string_view other : s->besides) tensors.erase(str_cat(part, ".", other));
  }
  return w.with(std::move(tensors), std::move(owners));
}

}  // namespace lc
