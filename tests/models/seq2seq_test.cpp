// Encoder-decoders that load_model() reads compute what transformers computed of the same files, and decoding step by
// step, with keys and values kept, gives what the whole graph gives.
#include "lightcone/models/seq2seq/seq2seq_model.h"

#include "error_of.h"
#include "lightcone/llm/generate.h"
#include "lightcone/models/blocks/positions/relative_bias.h"
#include "lightcone/models/seq2seq/cached_decoder.h"
#include "lightcone/models/seq2seq/seq2seq.h"
#include "tiny_models.h"

using namespace lc;

namespace {

using nlohmann::json;
using test::AllGiven;
using test::numbers_of;

std::vector<json> cases() {
  return json::parse(slurp(std::string(paths::kSource) + "/tests/goldens/seq2seq.json")).get<std::vector<json>>();
}

AllGiven given_of(const json& inputs) {
  AllGiven all;
  for (const auto& [name, values] : inputs.items()) {
    test::Given& g = all[name];
    for (const json* at = &values; at->is_array(); at = &(*at)[0]) g.shape.push_back(std::ssize(*at));
    g.values = numbers_of(values);
  }
  return all;
}

std::map<std::string, std::int64_t> sizes_of(const AllGiven& given) {
  std::map<std::string, std::int64_t> sizes{{"batch", given.begin()->second.shape[0]}};
  if (given.contains("input_ids")) sizes["length"] = given.at("input_ids").shape[1];
  if (given.contains("decoder_input_ids")) sizes["target"] = given.at("decoder_input_ids").shape[1];
  return sizes;
}

// Hidden states of padding mean nothing.
std::vector<double> without_padding(std::vector<double> hidden, const AllGiven& given) {
  const auto mask = given.find("attention_mask");
  if (mask == given.end() || hidden.size() % mask->second.values.size() != 0) return hidden;
  const std::size_t width = hidden.size() / mask->second.values.size();
  for (std::size_t k = 0; k < hidden.size(); ++k) hidden[k] *= mask->second.values[k / width];
  return hidden;
}

void expect_outputs(const LoadedModel& m, const AllGiven& given, const json& want) {
  const auto sizes = sizes_of(given);
  const auto exact = test::by_reference(m, given, {sizes.begin(), sizes.end()});
  const auto fast = test::by_cpu(m, given, sizes);
  for (const auto& [name, values] : want.items()) {
    const bool encoder = name == "encoder_hidden";
    const auto seen = [&](const std::vector<double>& v) { return encoder ? without_padding(v, given) : v; };
    const std::vector<double> expected = seen(numbers_of(values));
    EXPECT_LT(test::farthest(seen(exact.at(name)), expected), 1e-5) << m.architecture << " " << name;
    EXPECT_LT(test::farthest(seen(fast.at(name)), expected), 1e-4) << m.architecture << " " << name;
  }
}

// Small models with weights by a formula, of which tools/make_seq2seq_goldens.py asked transformers in f64.
TEST(Seq2Seq, ModelsAreTransformers) {
  for (const json& c : cases()) {
    const test::FormulaFolder folder(c["config"], c["tensors"]);
    const LoadedModel m = load_model(folder.path());
    EXPECT_EQ(m.architecture, c["config"]["architectures"][0].get<std::string>());
    expect_outputs(m, given_of(c["inputs"]), c["outputs"]);
  }
}

TEST(Seq2Seq, TinyCheckpoints) {
  NEEDS_DATA(test::kTiny + "bart.safetensors");
  for (const char* name : {"bart", "t5v10", "flan_t5", "whisper"}) {
    const test::TinyFolder folder(name);
    const json answers = test::tiny_answers(str_cat(name, "_logits"));
    json inputs{{"decoder_input_ids", answers["dec_sequences"]}};
    if (answers.contains("mel_inputs")) inputs["input_features"] = answers["mel_inputs"];
    else {
      inputs["input_ids"] = answers["enc_sequences"];
      inputs["attention_mask"] = answers["enc_sequences"];
      for (json& row : inputs["attention_mask"])
        for (json& id : row) id = 1;
    }
    expect_outputs(load_model(folder.path()), given_of(inputs),
                   {{"encoder_hidden", answers["enc_hidden"]}, {"logits", answers["logits"]}});
  }
}

// The logits of each position, decoded in steps of these numbers of tokens, of the first sample of a case.
std::vector<double> step_by_step(const json& c, CachedDecoder& d, std::span<const std::size_t> steps, std::size_t row) {
  std::vector<double> logits;
  const auto target = c["inputs"]["decoder_input_ids"][0].get<std::vector<std::int64_t>>();
  const auto rows = static_cast<std::size_t>(d.programs().shape().rows);
  std::size_t at = 0;
  for (const std::size_t n : steps) {
    std::vector<std::int64_t> ids;
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t k = 0; k < n; ++k) ids.push_back(r == row ? target[at + k] : 3);
    const std::span<const float> all = d.step(ids);
    const std::size_t vocab = all.size() / rows;
    const auto mine = all.subspan(row * vocab, vocab);
    logits.insert(logits.end(), mine.begin(), mine.end());
    at += n;
  }
  return logits;
}

TEST(Seq2Seq, CachedDecodingIsTheWholeGraph) {
  for (const json& c : cases()) {
    if (!c["outputs"].contains("logits")) continue;
    const test::FormulaFolder folder(c["config"], c["tensors"]);
    const Weights w = Weights::open(folder.path());
    const ConfigFile file(w);
    Seq2SeqConfig config = Seq2SeqConfig::from(file);
    config.complete(w, file);
    const std::vector<double> all = numbers_of(c["outputs"]["logits"]);
    const auto vocab = static_cast<std::size_t>(config.vocab);
    for (const std::int64_t rows : {1, 3}) {
      const auto programs = std::make_shared<const Seq2SeqPrograms>(
          w, config, Seq2SeqShape{.rows = rows, .source = config.hears() ? config.encoder.length : 12, .context = 12},
          generic() | cpu({.threads = 1}));
      EXPECT_EQ(programs->decoder().interpreted(), 0u);
      CachedDecoder d(programs);
      if (config.hears()) {
        const std::vector<double> mel = numbers_of(c["inputs"]["input_features"][0]);
        d.encode(std::vector<float>(mel.begin(), mel.end()));
      } else {
        d.encode(c["inputs"]["input_ids"][0].get<std::vector<std::int64_t>>());
      }
      const std::size_t row = static_cast<std::size_t>(rows) - 1;
      const std::size_t ones[] = {1, 1, 1, 1, 1}, some[] = {3, 2};
      std::vector<double> want(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(5 * vocab));
      EXPECT_LT(test::farthest(step_by_step(c, d, ones, row), want), 1e-4) << config.architecture << " rows " << rows;
      d.begin();
      want = {all.begin() + static_cast<std::ptrdiff_t>(2 * vocab),
              all.begin() + static_cast<std::ptrdiff_t>(3 * vocab)};
      want.insert(want.end(), all.begin() + static_cast<std::ptrdiff_t>(4 * vocab),
                  all.begin() + static_cast<std::ptrdiff_t>(5 * vocab));
      EXPECT_LT(test::farthest(step_by_step(c, d, some, row), want), 1e-4) << config.architecture << " rows " << rows;
    }
  }
}

// A row that continues another one has that one's past.
TEST(Seq2Seq, RowsContinueTheirParents) {
  const json c = cases().front();
  const test::FormulaFolder folder(c["config"], c["tensors"]);
  const Weights w = Weights::open(folder.path());
  const ConfigFile file(w);
  Seq2SeqConfig config = Seq2SeqConfig::from(file);
  config.complete(w, file);
  const auto source = c["inputs"]["input_ids"][0].get<std::vector<std::int64_t>>();
  const auto run = [&](std::int64_t rows) {
    CachedDecoder d(std::make_shared<const Seq2SeqPrograms>(
        w, config, Seq2SeqShape{.rows = rows, .source = 12, .context = 12}, generic() | cpu({.threads = 1})));
    d.encode(source);
    return d;
  };
  CachedDecoder two = run(2), one = run(1);
  two.step(std::vector<std::int64_t>{2, 2});
  two.step(std::vector<std::int64_t>{5, 7});
  two.step(std::vector<std::int64_t>{9, 4}, std::vector<std::int64_t>{1, 0});
  const std::span<const float> both = two.step(std::vector<std::int64_t>{6, 8}, std::vector<std::int64_t>{1, 1});
  const auto alone = [&](std::vector<std::int64_t> ids) {
    one.begin();
    const std::span<const float> last = one.step(ids);
    return std::vector<double>(last.begin(), last.end());
  };
  const std::vector<double> got(both.begin(), both.end());
  std::vector<double> want = alone({2, 5, 4, 6}), second = alone({2, 5, 4, 8});
  want.insert(want.end(), second.begin(), second.end());
  EXPECT_LT(test::farthest(got, want), 1e-5);
}

// Distances with which buckets begin, as transformers' T5 has them with 32 buckets up to 128 (it was asked for 0 to
// 5000).
TEST(Seq2Seq, BucketsOfDistances) {
  EXPECT_EQ((DistanceBuckets{.both_directions = true}.thresholds()),
            (std::vector<std::int64_t>{12, 16, 23, 32, 46, 64, 91}));
  EXPECT_EQ(DistanceBuckets{}.thresholds().front(), 19);
}

// Greedy and beam search, with the rules that generation_config.json may state, find what transformers found.
TEST(Seq2Seq, SearchesAreTransformers) {
  for (const json& c : cases()) {
    if (c["generated"].empty()) continue;
    const test::FormulaFolder folder(c["config"], c["tensors"]);
    const auto source = c["inputs"]["input_ids"][0].get<std::vector<int>>();
    for (const json& search : c["generated"]) {
      spit(folder.folder / "generation_config.json", search["settings"].dump());
      const Seq2Seq model =
          Seq2Seq::load(folder.path(), {.source = 12, .context = 12, .compiler = generic() | cpu({.threads = 1})});
      std::vector<int> want = search["ids"];
      want.erase(want.begin());  // the start
      if (model.ends(want.back())) want.pop_back();
      EXPECT_EQ(model.generate(source), want) << c["config"]["architectures"] << " " << search["settings"];
    }
  }
}

// llm::generate() continues a text of an encoder-decoder as it does that of any other model.
TEST(Seq2Seq, DecodersForSamplers) {
  const json c = cases().front();
  const test::FormulaFolder folder(c["config"], c["tensors"]);
  const Seq2Seq model = Seq2Seq::load(
      folder.path(), {.beams = 1, .source = 12, .context = 12, .compiler = generic() | cpu({.threads = 1})});
  const auto source = c["inputs"]["input_ids"][0].get<std::vector<int>>();
  const auto decoder = model.decoder(source);
  llm::Sampler greedy({});
  const auto text = llm::generate(*decoder, greedy, decoder->feed(model.generation().start), {.max_tokens = 6});
  EXPECT_EQ(text.tokens, model.generate(source, {.max_tokens = 6}));
}

TEST(Seq2Seq, Mistakes) {
  json c = cases().front();
  const auto error = [&](const json& changed) {
    const test::FormulaFolder folder(changed["config"], changed["tensors"]);
    return error_of([&] { load_model(folder.path()); });
  };
  const auto with = [&](const char* key, const json& value) {
    json changed = c;
    changed["config"][key] = value;
    return error(changed);
  };
  EXPECT_EQ(error(c), "no error");
  EXPECT_PRED2(contains, with("scale_embeding", true), "the nearest is scale_embedding");
  EXPECT_PRED2(contains, with("normalize_before", true), "normalize_before is true, which is not supported");
  EXPECT_PRED2(contains, with("decoder_attention_heads", 4), "they must be the same");
  EXPECT_PRED2(contains, with("encoder_attention_heads", 3), "they must be the same");
  EXPECT_PRED2(contains, with("activation_function", "gelo"), "the nearest is gelu");
  EXPECT_PRED2(contains, with("architectures", {"BartForCausalLM"}), "is not known for model_type 'bart'");
  EXPECT_PRED2(contains, with("encoder_layers", 100000000), "layers, and 66 weights");
  EXPECT_PRED2(contains, with("encoder_layers", 1), "is no part of a BartForConditionalGeneration");
  EXPECT_PRED2(contains, with("decoder_layers", 2), "there is no weight 'model.decoder.layers.1.");
  EXPECT_EQ(with("normalize_before", false), "no error");
  for (const json& other : cases())
    if (other["config"]["architectures"][0] == "T5ForConditionalGeneration") c = other;
  EXPECT_PRED2(contains, with("relative_attention_num_buckets", 6), "not a multiple of 4");
  EXPECT_PRED2(contains, with("relative_attention_max_distance", 16), "not above 16");
  EXPECT_PRED2(contains, with("dense_act_fn", "relu"), "do not agree");
  for (const json& other : cases())
    if (other["config"]["model_type"] == "whisper") c = other;
  EXPECT_PRED2(contains, with("use_weighted_layer_sum", true), "not supported");
  EXPECT_PRED2(contains, with("max_source_positions", 1000000000), "1000000000 positions, more than the 65536");
}

}  // namespace
