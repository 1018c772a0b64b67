// Weights of 8 bits with scales in tensors of their own are the numbers that the published formats say.
#include "lightcone/models/files/scaled_weights.h"

#include <list>

#include "error_of.h"
#include "tiny_models.h"

using namespace lc;

namespace {

using nlohmann::json;

json llama() {
  for (const auto& c : json::parse(slurp(std::string(paths::kSource) + "/tests/goldens/languages.json")))
    if (c["config"]["model_type"] == "mistral" && c["config"]["architectures"][0] == "MistralForCausalLM") return c;
  return {};
}

// How a format stores the scale of a matrix [out, in].
struct Format {
  json config;
  DType type;
  std::string scale;  // after the name of the layer
  std::vector<std::int64_t> (*shape)(std::int64_t, std::int64_t);
  std::int64_t rows, columns;  // that share a scale; 0: all
  double factor = 1;
};

// The matrices of `c` in a format, in one folder, and as floats of the same numbers in another.
void write(const json& c, const Format& f, const std::string& narrow, const std::string& plain) {
  const test::FormulaFolder given(c["config"], c["tensors"], test::NormWeights::OneAxis);
  const Weights w = Weights::open(given.path());
  std::list<std::vector<std::byte>> bytes;
  std::list<std::vector<float>> floats;
  std::vector<TensorToSave> a, b;
  for (const auto& [name, t] : w.tensors()) {
    if (name.find("_proj.weight") == std::string::npos) {
      a.push_back({name, DType::F32, t.shape, t.bytes}), b.push_back(a.back());
      continue;
    }
    const std::int64_t out = t.shape[0], in = t.shape[1];
    auto& codes = bytes.emplace_back();
    for (std::int64_t k = 0; k < out * in; ++k) {
      const int code = static_cast<int>(k * 37 % (f.type == DType::I8 ? 255 : 0x60));
      codes.push_back(static_cast<std::byte>(f.type == DType::I8 ? code - 127 : code));
    }
    const std::vector<std::int64_t> shape = f.shape(out, in);
    std::int64_t scales = 1;
    for (const std::int64_t d : shape) scales *= d;
    auto& by = floats.emplace_back();
    for (std::int64_t k = 0; k < scales; ++k) by.push_back(0.01F + 0.003F * static_cast<float>(k % 5));
    const std::string part = name.substr(0, name.size() - std::string("weight").size());
    a.push_back({name, f.type, t.shape, codes});
    a.push_back({part + f.scale, DType::F32, shape, std::as_bytes(std::span(by))});
    const std::vector<float> read = Weights::read({.shape = t.shape, .type = "", .bytes = codes, .dtype = f.type});
    auto& v = floats.emplace_back();
    const std::int64_t across = f.columns == 0 ? 1 : (in + f.columns - 1) / f.columns;
    for (std::int64_t r = 0; r < out; ++r)
      for (std::int64_t k = 0; k < in; ++k) {
        const std::int64_t at = (f.rows == 0 ? 0 : r / f.rows * across) + (f.columns == 0 ? 0 : k / f.columns);
        v.push_back(static_cast<float>(read[static_cast<std::size_t>(r * in + k)] * f.factor *
                                       by[static_cast<std::size_t>(at)]));
      }
    b.push_back({name, DType::F32, t.shape, std::as_bytes(std::span(v))});
  }
  json quantised = c["config"];
  quantised["quantization_config"] = f.config;
  spit(narrow + "/config.json", quantised.dump()), spit(plain + "/config.json", c["config"].dump());
  save_safetensors(narrow + "/model.safetensors", a), save_safetensors(plain + "/model.safetensors", b);
}

json compressed(const char* type, const char* format) {
  const json weights{{"num_bits", 8}, {"type", type}, {"symmetric", true}, {"strategy", "channel"}, {"dynamic", false}};
  return {
      {"quant_method", "compressed-tensors"},
      {"format", format},
      {"config_groups", {{"group_0", {{"targets", {"Linear"}}, {"weights", weights}, {"input_activations", nullptr}}}}},
      {"ignore", {"lm_head"}},
      {"kv_cache_scheme", nullptr}};
}

TEST(ScaledWeights, PublishedFormats) {
  using Sizes = std::vector<std::int64_t>;
  const auto rows = [](std::int64_t out, std::int64_t) { return Sizes{out}; };
  const auto column = [](std::int64_t out, std::int64_t) { return Sizes{out, 1}; };
  const auto one = [](std::int64_t, std::int64_t) { return Sizes{1}; };
  const auto blocks = [](std::int64_t out, std::int64_t in) { return Sizes{(out + 4) / 5, (in + 6) / 7}; };
  const std::vector<Format> all{
      {{{"quant_method", "bitsandbytes"}, {"load_in_8bit", true}, {"load_in_4bit", false}, {"llm_int8_threshold", 6.0}},
       DType::I8,
       "SCB",
       rows,
       1,
       0,
       1.0 / 127},
      {compressed("int", "int-quantized"), DType::I8, "weight_scale", column, 1, 0},
      {compressed("float", "float-quantized"), DType::F8E4M3FN, "weight_scale", one, 0, 0},
      {{{"quant_method", "fp8"}, {"activation_scheme", "dynamic"}, {"fmt", "e4m3"}, {"weight_block_size", {5, 7}}},
       DType::F8E4M3FN,
       "weight_scale_inv",
       blocks,
       5,
       7},
      {{{"quant_method", "fbgemm_fp8"}, {"activation_scale_ub", 1200.0}},
       DType::F8E4M3FN,
       "weight_scale",
       column,
       1,
       0},
  };
  const test::AllGiven given{{"input_ids", {{1, 5}, {3, 1, 4, 1, 10}}}, {"attention_mask", {{1, 5}, {1, 1, 1, 1, 1}}}};
  for (const Format& f : all) {
    const TempDir narrow, plain;
    write(llama(), f, narrow.path.string(), plain.path.string());
    try {
      const Bindings sizes{{"batch", 1}, {"length", 5}};
      const auto want = test::by_reference(load_model(plain.path.string()), given, sizes).at("logits");
      const auto got = test::by_reference(load_model(narrow.path.string()), given, sizes).at("logits");
      EXPECT_LT(test::farthest(got, want), 1e-5) << f.config;
    } catch (const Error& e) {
      ADD_FAILURE() << f.config << ": " << e.what();
    }
  }
}

TEST(ScaledWeights, WhatIsNotKnownIsNamed) {
  const auto with = [](const json& quantization) {
    json c = llama();
    c["config"]["quantization_config"] = quantization;
    const test::FormulaFolder folder(c["config"], c["tensors"], test::NormWeights::OneAxis);
    return error_of([&] { load_model(folder.path()); });
  };
  EXPECT_PRED2(contains, with({{"quant_method", "gptq"}, {"bits", 4}}), "quantised by 'gptq' are not supported");
  EXPECT_PRED2(contains, with({{"quant_method", "bitsandbytes"}, {"load_in_4bit", true}}), "without load_in_8bit");
  EXPECT_PRED2(contains, with({{"quant_method", "fp8"}, {"weight_blok_size", {2, 2}}}), "weight_blok_size");
  json four = compressed("int", "pack-quantized");
  EXPECT_PRED2(contains, with(four), "'pack-quantized' of compressed-tensors is not known");
  four = compressed("int", "int-quantized");
  four["config_groups"]["group_0"]["weights"]["num_bits"] = 4;
  EXPECT_PRED2(contains, with(four), "num_bits is 4");
}

}  // namespace
