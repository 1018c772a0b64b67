// Vectors of sentences are those of sentence-transformers: pooling, layers, lengths and prompts as the files say.
//
// LIGHTCONE_MINILM=FOLDER, the folder of all-MiniLM-L6-v2 (config.json, model.safetensors, tokenizer.json,
// modules.json), adds that model.
#include "lightcone/models/sentence/sentence_encoder.h"

#include <cstdlib>

#include "error_of.h"
#include "lightcone/io/data/readers.h"
#include "tiny_models.h"

using namespace lc;

namespace {

using nlohmann::json;
namespace fs = std::filesystem;

// A BERT of 17 tokens with a tokenizer, in a folder as sentence-transformers writes them.
struct Sentences {
  test::FormulaFolder folder;
  explicit Sentences(const char* architecture = "BertForTokenClassification")
      : folder(find(architecture, "config"), find(architecture, "tensors")) {
    write("tokenizer.json",
          {{"version", "1.0"},
           {"truncation", {{"max_length", 4}, {"strategy", "LongestFirst"}, {"stride", 0}, {"direction", "Right"}}},
           {"padding",
            {{"strategy", {{"Fixed", 9}}},
             {"direction", "Right"},
             {"pad_to_multiple_of", nullptr},
             {"pad_id", 0},
             {"pad_type_id", 0},
             {"pad_token", "[PAD]"}}},
           {"added_tokens", json::array()},
           {"normalizer",
            {{"type", "BertNormalizer"},
             {"clean_text", true},
             {"handle_chinese_chars", true},
             {"strip_accents", nullptr},
             {"lowercase", true}}},
           {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
           {"post_processor", {{"type", "BertProcessing"}, {"sep", {"[SEP]", 3}}, {"cls", {"[CLS]", 2}}}},
           {"decoder", nullptr},
           {"model",
            {{"type", "WordPiece"},
             {"unk_token", "[UNK]"},
             {"continuing_subword_prefix", "##"},
             {"max_input_chars_per_word", 100},
             {"vocab",
              {{"[PAD]", 0},
               {"[UNK]", 1},
               {"[CLS]", 2},
               {"[SEP]", 3},
               {"a", 4},
               {"cat", 5},
               {"sat", 6},
               {"on", 7},
               {"the", 8},
               {"mat", 9},
               {"dog", 10},
               {"ran", 11},
               {"far", 12},
               {"query", 13},
               {":", 14},
               {".", 15},
               {"##s", 16}}}}}});
  }
  void write(const std::string& name, const json& j) const {
    const fs::path file = folder.folder.path / name;
    fs::create_directories(file.parent_path());
    spit(file.string(), j.dump());
  }
  void modules(const std::vector<std::string>& types) const {
    json list = json::array();
    for (std::size_t k = 0; k < types.size(); ++k)
      list.push_back({{"idx", k},
                      {"name", str_cat(k)},
                      {"path", k ? str_cat(k, "_", types[k]) : ""},
                      {"type", "sentence_transformers.models." + types[k]}});
    write("modules.json", list);
  }
  static json find(const char* architecture, const char* key) {
    const json cases = json::parse(slurp(std::string(paths::kSource) + "/tests/goldens/encoders.json"));
    for (const json& c : cases)
      if (c["config"]["architectures"][0] == architecture) return c[key];
    throw std::runtime_error(key);
  }
  std::string path() const { return folder.path(); }
  // The vectors of the tokens of one text, by the reference.
  std::vector<double> hidden(const std::vector<double>& ids) const {
    const LoadedModel m = load_model(path());
    const auto n = std::ssize(ids);
    test::AllGiven given{{"input_ids", {{1, n}, ids}},
                         {"attention_mask", {{1, n}, std::vector<double>(ids.size(), 1)}}};
    if (m.inputs.contains("token_type_ids")) given["token_type_ids"] = {{1, n}, std::vector<double>(ids.size(), 0)};
    return test::by_reference(m, given, {{"batch", 1}, {"length", n}}).at("hidden");
  }
};

std::vector<double> wide(const std::vector<float>& v) { return {v.begin(), v.end()}; }

const std::vector<std::string> kTexts{"The cats sat on the mat.", "a dog", "a cat ran far"};
const std::vector<std::vector<double>> kIds{{2, 8, 5, 16, 6, 7, 8, 9, 15, 3}, {2, 4, 10, 3}, {2, 4, 5, 11, 12, 3}};
constexpr std::size_t kWidth = 8;

// Each kind of pooling against sums of the vectors of the tokens, for texts of several lengths in one batch.
TEST(Sentence, Poolings) {
  const Sentences s;
  for (const std::string_view name : pooling_names()) {
    const SentenceEncoder model = SentenceEncoder::load(s.path(), {.pooling = pooling_named(name), .threads = 1});
    const std::vector<double> got = wide(model.embed(kTexts));
    ASSERT_EQ(got.size(), kTexts.size() * kWidth);
    for (std::size_t t = 0; t < kTexts.size(); ++t) {
      const std::vector<double> h = s.hidden(kIds[t]);
      const std::size_t n = kIds[t].size();
      for (std::size_t k = 0; k < kWidth; ++k) {
        double sum = 0, weighted = 0, most = -INFINITY;
        for (std::size_t i = 0; i < n; ++i) {
          const double x = h[i * kWidth + k];
          sum += x, weighted += x * static_cast<double>(i + 1), most = std::max(most, x);
        }
        const auto count = static_cast<double>(n);
        const double want = name == "cls"             ? h[k]
                            : name == "max"           ? most
                            : name == "mean"          ? sum / count
                            : name == "mean_sqrt_len" ? sum / std::sqrt(count)
                            : name == "weightedmean"  ? weighted / (count * (count + 1) / 2)
                                                      : h[(n - 1) * kWidth + k];
        EXPECT_NEAR(got[t * kWidth + k], want, 1e-4) << name << " of text " << t << ", component " << k;
      }
    }
  }
}

// What the folder says: two kinds side by side, a layer, length 1, and six tokens of a text at most. The tokenizer's
// own truncation and padding do not count.
TEST(Sentence, ModulesOfTheFolder) {
  const Sentences s;
  s.modules({"Transformer", "Pooling", "Dense", "Normalize"});
  s.write("1_Pooling/config.json", {{"word_embedding_dimension", 8},
                                    {"pooling_mode_cls_token", true},
                                    {"pooling_mode_mean_tokens", true},
                                    {"pooling_mode_max_tokens", false}});
  s.write("2_Dense/config.json", {{"in_features", 16},
                                  {"out_features", 3},
                                  {"bias", true},
                                  {"activation_function", "torch.nn.modules.activation.Tanh"}});
  s.write("sentence_bert_config.json", {{"max_seq_length", 6}, {"do_lower_case", false}});
  std::vector<float> w(48), b{0.5f, -0.25f, 0};
  for (std::size_t k = 0; k < w.size(); ++k) w[k] = static_cast<float>(0.1 * std::cos(static_cast<double>(k)));
  save_safetensors((s.folder.folder.path / "2_Dense/model.safetensors").string(),
                   std::vector<TensorToSave>{{"linear.weight", DType::F32, {3, 16}, std::as_bytes(std::span(w))},
                                             {"linear.bias", DType::F32, {3}, std::as_bytes(std::span(b))}});
  const SentenceEncoder model = SentenceEncoder::load(s.path(), {.threads = 1});
  EXPECT_EQ(model.width(), 3);
  EXPECT_EQ(model.length(), 6);
  const std::vector<double> got = wide(model.embed(kTexts));
  for (std::size_t t = 0; t < kTexts.size(); ++t) {
    std::vector<double> ids = kIds[t];
    if (ids.size() > 6) ids.resize(5), ids.push_back(3);
    const std::vector<double> h = s.hidden(ids);
    std::vector<double> x(16, 0), y(3);
    for (std::size_t k = 0; k < kWidth; ++k) {
      x[k] = h[k];
      for (std::size_t i = 0; i < ids.size(); ++i) x[8 + k] += h[i * kWidth + k] / static_cast<double>(ids.size());
    }
    double norm = 0;
    for (std::size_t o = 0; o < 3; ++o) {
      double sum = static_cast<double>(b[o]);
      for (std::size_t k = 0; k < 16; ++k) sum += x[k] * static_cast<double>(w[o * 16 + k]);
      y[o] = std::tanh(sum), norm += y[o] * y[o];
    }
    for (std::size_t o = 0; o < 3; ++o) EXPECT_NEAR(got[t * 3 + o], y[o] / std::sqrt(norm), 1e-4) << t;
  }
}

// Encoders of later kinds, whose texts of one batch have other lengths than by themselves.
TEST(Sentence, OfOtherEncoders) {
  for (const char* architecture : {"ModernBertModel", "MPNetModel", "NomicBertModel"}) {
    const Sentences s(architecture);
    const SentenceEncoder model = SentenceEncoder::load(s.path(), {.pooling = pooling_named("cls"), .threads = 1});
    const std::vector<double> got = wide(model.embed(kTexts));
    for (std::size_t t = 0; t < kTexts.size(); ++t) {
      const std::vector<double> h = s.hidden(kIds[t]);
      for (std::size_t k = 0; k < kWidth; ++k) EXPECT_NEAR(got[t * kWidth + k], h[k], 1e-4) << architecture << " " << t;
    }
  }
}

TEST(Sentence, PromptsAndCosines) {
  const Sentences s;
  s.write("config_sentence_transformers.json", {{"prompts", {{"query", "query: "}}},
                                                {"default_prompt_name", nullptr},
                                                {"similarity_fn_name", "cosine"},
                                                {"__version__", json::object()}});
  const SentenceEncoder model = SentenceEncoder::load(s.path(), {.threads = 1});
  EXPECT_EQ(model.prompt("query"), "query: ");
  EXPECT_PRED2(contains, error_of([&] { model.prompt("querry"); }), "the model has no prompt 'querry'; it has query");
  const std::vector<float> v{1, 0, 0, 2, 3, 3, 0, 0};
  const std::vector<double> c = cosines(v, 4);
  const double half = std::sqrt(0.5);
  EXPECT_LT(test::farthest(c, {1, 0, half, 0, 0, 1, half, 0, half, half, 1, 0, 0, 0, 0, 0}), 1e-12);
  EXPECT_TRUE(model.embed(std::vector<std::string>()).empty());
  EXPECT_PRED2(contains, error_of([&] { model.embed(std::vector<std::string>{"a", "\xff"}); }), "embed: text 2 of 2: ");
}

TEST(Sentence, Mistakes) {
  const auto error = [](const std::function<void(const Sentences&)>& change) {
    const Sentences s;
    change(s);
    return error_of([&] { SentenceEncoder::load(s.path(), {.threads = 1}); });
  };
  EXPECT_PRED2(contains, error([](const Sentences& s) {
                 s.modules({"Transformer", "WeightedLayerPooling"});
               }),
               "modules.json: a module 'WeightedLayerPooling' at this place is not supported");
  EXPECT_PRED2(contains, error([](const Sentences& s) {
                 s.write("modules.json", {{{"idx", 0}, {"path", "../other"}, {"type", "x.Transformer"}}});
               }),
               "the path '../other' of a module leads out of the folder");
  EXPECT_PRED2(contains, error([](const Sentences& s) {
                 s.modules({"Transformer", "Pooling"});
                 s.write("1_Pooling/config.json", {{"pooling_mode_means_tokens", true}});
               }),
               "pooling_mode_means_tokens is true, and no key of this name is known of a Pooling (the nearest is "
               "pooling_mode_mean_tokens)");
  EXPECT_PRED2(contains, error([](const Sentences& s) {
                 s.write("sentence_bert_config.json", {{"do_lower_case", true}});
               }),
               "do_lower_case is true");
  EXPECT_PRED2(contains, error([](const Sentences& s) { fs::remove(s.folder.folder.path / "tokenizer.json"); }),
               "there is no tokenizer beside the model");
  EXPECT_PRED2(contains, error_of([] { pooling_named("means"); }), "there is no pooling 'means'; the nearest is mean");
}

// all-MiniLM-L6-v2 against transformers in f64: tokens, vectors and cosines, of an empty text, of other scripts and of
// a text that is too long as well; and against the numpy of ../shared/data.
TEST(Sentence, MiniLM) {
  const char* folder = std::getenv("LIGHTCONE_MINILM");
  if (!folder) GTEST_SKIP() << "LIGHTCONE_MINILM names no folder of all-MiniLM-L6-v2";
  const json want = json::parse(slurp(std::string(paths::kSource) + "/tests/goldens/minilm.json"));
  const std::vector<std::string> texts = want["texts"];
  const SentenceEncoder model = SentenceEncoder::load(folder, {.threads = 2});
  EXPECT_EQ(model.length(), 256);
  for (std::size_t k = 0; k < texts.size(); ++k) {
    const std::string_view text = texts[k];
    EXPECT_EQ(model.tokenizer().encode_within(std::span(&text, 1), 256).ids, want["ids"][k].get<std::vector<int>>())
        << k;
  }
  const std::vector<float> v = model.embed(texts);
  for (std::size_t k = 0; k < texts.size(); ++k)
    EXPECT_LT(test::farthest({v.begin() + static_cast<std::ptrdiff_t>(k * 384),
                              v.begin() + static_cast<std::ptrdiff_t>(k * 384 + 32)},
                             test::numbers_of(want["embeddings"][k])),
              1e-5)
        << k;
  EXPECT_LT(test::farthest(cosines(v, texts.size()), test::numbers_of(want["cosines"])), 1e-5);
  if (!fs::exists(data("models/minilm/expected.npz"))) return;
  const Array all = read_npz(data("models/minilm/expected.npz")).at("f64");
  const SentenceEncoder means = SentenceEncoder::load(folder, {.normalize = false, .threads = 2});
  const auto expected = all.values<double>();
  EXPECT_LT(test::farthest(wide(means.embed(std::span(texts).first(3))), {expected.begin(), expected.end()}), 1e-5);
}

}  // namespace
