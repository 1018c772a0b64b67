// Models that take points, boxes, masks or texts beside pictures, SAM and LLaVA, compute what transformers computes.
#include "error_of.h"
#include "tiny_models.h"

using namespace lc;

namespace {

using nlohmann::json;
using test::AllGiven;
using test::numbers_of;

json cases() { return json::parse(slurp(std::string(paths::kSource) + "/tests/goldens/prompted_models.json")); }

LoadModelOptions options_of(const json& c) {
  LoadModelOptions o;
  if (!c["inputs"].is_null()) o.inputs = c["inputs"].get<std::vector<std::string>>();
  return o;
}

// Small models with weights by a formula, of which tools/make_picture_model_goldens.py asked transformers in f64.
TEST(PromptedModels, VariantsAreTransformers) {
  const json all = cases();
  ASSERT_EQ(all.size(), 5u);
  for (const json& c : all) {
    const test::FormulaFolder folder(c["config"], c["tensors"]);
    const LoadedModel m = load_model(folder.path(), options_of(c));
    const std::int64_t h = c["size"][0], w = c["size"][1];
    std::vector<double> pixels;  // the formula of the goldens
    for (std::int64_t k = 0; k < 3 * h * w; ++k) pixels.push_back(static_cast<double>(k * 5 % 17 - 8) / 8);
    AllGiven given{{"pixel_values", {{1, 3, h, w}, pixels}}};
    for (const auto& [name, x] : c["given"].items())
      given[name] = {x["shape"].get<std::vector<std::int64_t>>(), numbers_of(x["values"])};
    std::map<std::string, std::int64_t> sizes;
    for (const auto& [name, x] : m.inputs)
      for (int axis = 0; axis < x.rank(); ++axis)
        if (!x.extent(axis).constant())
          sizes[str_cat(x.extent(axis))] = given.at(name).shape[static_cast<std::size_t>(axis)];
    std::map<std::string, std::vector<double>> wanted;
    for (const auto& [output, values] : c["outputs"].items()) wanted[output] = numbers_of(values);
    test::expect_outputs(m, given, sizes, wanted);
  }
}

// A picture is encoded once, and its embeddings stand for it with any prompt.
TEST(PromptedModels, EmbeddingsOfSamStandForAPicture) {
  const json c = cases()[0];
  const test::FormulaFolder folder(c["config"], c["tensors"]);
  AllGiven given;
  for (const auto& [name, x] : c["given"].items())
    given[name] = {x["shape"].get<std::vector<std::int64_t>>(), numbers_of(x["values"])};
  const std::map<std::string, std::int64_t> sizes{{"batch", 1}, {"prompts", 2}, {"points", 2}};
  std::vector<double> pixels;
  for (std::int64_t k = 0; k < 3 * 32 * 32; ++k) pixels.push_back(static_cast<double>(k * 5 % 17 - 8) / 8);
  AllGiven whole = given;
  whole["pixel_values"] = {{1, 3, 32, 32}, pixels};
  const LoadedModel first = load_model(folder.path());
  const auto once = test::by_cpu(first, whole, sizes);
  given["image_embeddings"] = {{1, 16, 4, 4}, once.at("image_embeddings")};
  const LoadedModel second = load_model(folder.path(), {.inputs = {{"image_embeddings", "input_points"}}});
  EXPECT_FALSE(second.inputs.contains("pixel_values"));
  const auto twice = test::by_cpu(second, given, sizes);
  EXPECT_LT(test::farthest(twice.at("pred_masks"), once.at("pred_masks")), 1e-5);
  const LoadedModel masks_alone = load_model(folder.path(), {.inputs = {{"input_masks"}}});
  EXPECT_EQ(masks_alone.outputs.at("iou_scores").extent(1).constant(), 1);
}

TEST(PromptedModels, TinyLlava) {
  NEEDS_DATA(test::kTiny + "llava.safetensors");
  const test::TinyFolder folder("llava");
  const json answers = test::tiny_answers("llava_logits");
  const LoadedModel m = load_model(folder.path());
  const std::vector<double> ids = numbers_of(answers["token_ids"]);
  const auto length = static_cast<std::int64_t>(ids.size());
  const AllGiven given{{"pixel_values", {{1, 3, 12, 12}, numbers_of(answers["pixels"])}},
                       {"input_ids", {{1, length}, ids}},
                       {"attention_mask", {{1, length}, std::vector<double>(ids.size(), 1)}}};
  test::expect_outputs(
      m, given, {{"batch", 1}, {"pictures", 1}, {"length", length}},
      {{"image_features", numbers_of(answers["visual_tokens"])}, {"logits", numbers_of(answers["logits"])}});
}

TEST(PromptedModels, Mistakes) {
  const json all = cases();
  const auto error = [&](std::size_t k, const char* part, const char* key, const json& value, LoadModelOptions o = {}) {
    json config = all[k]["config"];
    if (*key) (*part ? config[part] : config)[key] = value;
    const test::FormulaFolder folder(config, all[k]["tensors"]);
    return error_of([&] { load_model(folder.path(), o); });
  };
  EXPECT_EQ(error(0, "", "", {}), "no error");
  EXPECT_PRED2(contains, error(0, "vision_config", "hidden_akt", "relu"), "no key of this name is known");
  EXPECT_PRED2(contains, error(0, "vision_config", "num_hidden_layers", 1'000'000), "1000000 layers, and ");
  EXPECT_PRED2(contains, error(0, "vision_config", "window_size", 4), "has the shape [5, 4]");
  EXPECT_PRED2(contains, error(0, "vision_config", "output_channels", 8), "its parts have different widths");
  EXPECT_PRED2(contains, error(0, "prompt_encoder_config", "patch_size", 16), "4 patches a side, and for prompts 2");
  EXPECT_PRED2(contains, error(0, "mask_decoder_config", "num_attention_heads", 3), "3 attention heads do not divide");
  EXPECT_PRED2(contains, error(0, "", "", {}, {.inputs = {{"input_point"}}}), "a SamModel has no input 'input_point'");
  EXPECT_PRED2(contains, error(0, "", "", {}, {.inputs = {{"pixel_values"}}}), "no prompt is among the inputs");
  EXPECT_PRED2(contains, error(0, "", "", {}, {.height = 64}), "takes pictures of 32 x 32");
  EXPECT_PRED2(contains, error(3, "", "", {}, {.inputs = {{"input_ids"}}}), "has no inputs to choose from");
  EXPECT_PRED2(contains, error(3, "vision_config", "model_type", "pixtral"),
               "a tower of pictures of type 'pixtral' is not supported");
  EXPECT_PRED2(contains, error(3, "", "vision_feature_layer", 3), "names layer 3 of a tower of 2");
  EXPECT_PRED2(contains, error(4, "", "vision_feature_select_strategy", "default"), "class token that SigLIP has not");
  EXPECT_PRED2(contains, error(3, "text_config", "model_type", "lama"), "is no language model that is known");
}

}  // namespace
