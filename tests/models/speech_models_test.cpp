// Encoders of speech that load_model() reads, wav2vec 2.0 and HuBERT, compute what transformers computes.
#include "error_of.h"
#include "tiny_models.h"

using namespace lc;

namespace {

using nlohmann::json;
using test::AllGiven;
using test::numbers_of;

json cases() { return json::parse(slurp(std::string(paths::kSource) + "/tests/goldens/speech_models.json")); }

// Small models with weights by a formula, of which tools/make_speech_model_goldens.py asked transformers in f64: two
// sounds, of which the second is filled up.
TEST(SpeechModels, VariantsAreTransformers) {
  const json all = cases();
  ASSERT_EQ(all.size(), 5u);
  std::vector<double> sound, mask;
  for (std::int64_t k = 0; k < 180; ++k) {
    sound.push_back(std::sin(static_cast<double>(k * k) / 40));
    mask.push_back(k < 90 + 59 ? 1 : 0);
  }
  for (const json& c : all) {
    const test::FormulaFolder folder(c["config"], c["tensors"]);
    const LoadedModel m = load_model(folder.path());
    std::map<std::string, std::vector<double>> wanted;
    for (const auto& [output, values] : c["outputs"].items()) wanted[output] = numbers_of(values);
    test::expect_outputs(m, {{"input_values", {{2, 90}, sound}}, {"attention_mask", {{2, 90}, mask}}},
                         {{"batch", 2}, {"samples", 90}}, wanted);
  }
}

TEST(SpeechModels, TinyWav2Vec2) {
  NEEDS_DATA(test::kTiny + "wav2vec2.safetensors");
  const test::TinyFolder folder("wav2vec2");
  const json answers = test::tiny_answers("wav2vec2_ref");
  const LoadedModel m = load_model(folder.path());
  for (std::size_t k = 0; k < answers["clips"].size(); ++k) {
    const std::vector<double> clip = numbers_of(answers["clips"][k]);
    const auto n = static_cast<std::int64_t>(clip.size());
    test::expect_outputs(
        m, {{"input_values", {{1, n}, clip}}, {"attention_mask", {{1, n}, std::vector<double>(clip.size(), 1)}}},
        {{"batch", 1}, {"samples", n}},
        {{"hidden", numbers_of(answers["hidden"][k])}, {"logits", numbers_of(answers["logits"][k])}});
  }
}

TEST(SpeechModels, Mistakes) {
  const json all = cases();
  const auto error = [&](std::size_t k, const char* key, const json& value) {
    json config = all[k]["config"];
    if (*key) config[key] = value;
    const test::FormulaFolder folder(config, all[k]["tensors"]);
    return error_of([&] { load_model(folder.path()); });
  };
  EXPECT_EQ(error(0, "", {}), "no error");
  EXPECT_PRED2(contains, error(0, "hidden_akt", "relu"), "no key of this name is known of wav2vec2");
  EXPECT_PRED2(contains, error(0, "add_adapter", true), "add_adapter");
  EXPECT_PRED2(contains, error(0, "conv_stride", {1}), "2 conv_dim, 2 conv_kernel and 1 conv_stride");
  EXPECT_PRED2(contains, error(0, "conv_stride", {60'000, 60'000}), "no error");
  EXPECT_PRED2(contains, error(0, "conv_kernel", {70'000, 3}), "70000 samples every 5");
  EXPECT_PRED2(contains, error(0, "num_conv_pos_embedding_groups", 3), "do not fit");
  EXPECT_PRED2(contains, error(0, "feat_extract_norm", "batch"), "known are group and layer");
  EXPECT_PRED2(contains, error(0, "architectures", {"Wav2Vec2ForXVector"}), "known are Wav2Vec2Model");
  EXPECT_PRED2(contains, error(0, "adapter_attn_dim", 3), "do_stable_layer_norm");
  EXPECT_PRED2(contains, error(3, "num_hidden_layers", 1'000'000), "1000000 layers, and ");
}

}  // namespace
