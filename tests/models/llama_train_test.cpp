// A Llama's loss, gradients and twenty training steps are PyTorch's, and the saved model gives the same text when it is
// loaded for inference.
#include <cmath>
#include <fstream>
#include <random>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "data.h"
#include "error_of.h"
#include "lightcone/io/checkpoints/gguf.h"
#include "lightcone/io/checkpoints/save.h"
#include "lightcone/io/text/train_bpe.h"
#include "lightcone/llm/adapters.h"
#include "lightcone/llm/checkpoint.h"
#include "lightcone/llm/loss.h"
#include "lightcone/models/llama/llama.h"
#include "lightcone/models/llama/llama_model.h"
#include "lightcone/passes/passes.h"
#include "lightcone/train/trace.h"
#include "lightcone/train/trainer.h"
#include "on_device.h"
#include "paths.h"

using namespace lc;
using Json = nlohmann::json;

namespace {

// A training step of a model on one batch, with its gradients as outputs.
struct Training {
  Graph g;
  nn::Model<LlamaModel> model;
  std::optional<Trainer> trainer;

  Training(const LlamaConfig& c, const optim::Optimizer& o, std::int64_t batch, std::int64_t length)
      : Training(LlamaModel(c), o, batch, length) {}
  Training(const LlamaModel& m, const optim::Optimizer& o, std::int64_t batch, std::int64_t length) : model(g, m) {
    const Tensor x = g.input("x", {batch, length}, DType::I64), y = g.input("y", {batch, length}, DType::I64);
    auto loss = trace(
        model, [](auto& net, const Tensor& x, const Tensor& y) { return llm::next_token_loss(net, x, y); }, x, y);
    loss.loss().retrieve("loss");
    auto d = backward(std::move(loss));
    for (const optim::Update& u : d.updates()) g.output("grad." + u.parameter.node().name, u.gradient);
    update(model, o, std::move(d));
    trainer.emplace(model, generic() | test::device({.threads = 2}));
  }
  void show(const std::vector<std::vector<std::int64_t>>& rows) {
    std::vector<std::int64_t> x, y;
    for (const auto& r : rows) x.insert(x.end(), r.begin(), r.end() - 1), y.insert(y.end(), r.begin() + 1, r.end());
    trainer->context().set("x", x).set("y", y);
  }
};

llm::ParameterValues values_of(Training& t) {
  return [&t](const std::string& path) {
    const auto bytes = t.trainer->context().bytes(path);
    return std::span(reinterpret_cast<const float*>(bytes.data()), bytes.size() / 4);
  };
}

// Returns the mean loss of rows, by the inference model.
double loss_of(const Llama& speaks, const std::vector<std::vector<std::int64_t>>& rows) {
  double sum = 0, count = 0;
  const auto vocab = static_cast<std::size_t>(speaks.config().vocab);
  for (const auto& r : rows) {
    LlamaSession s(speaks);
    const std::vector<int> ids(r.begin(), r.end() - 1);
    const auto logits = s.feed(ids);
    for (std::size_t k = 0; k < ids.size(); ++k, ++count) {
      const auto row = logits.subspan(k * vocab, vocab);
      double all = 0;
      for (const float v : row) all += std::exp(static_cast<double>(v));
      sum += std::log(all) - static_cast<double>(row[static_cast<std::size_t>(r[k + 1])]);
    }
  }
  return sum / count;
}

double off(const std::vector<float>& have, const std::vector<float>& want) {
  double difference = 0, size = 0;
  for (std::size_t k = 0; k < want.size(); ++k) {
    difference += std::pow(have.at(k) - want[k], 2);
    size += std::pow(want[k], 2);
  }
  return std::sqrt(difference / size);
}

const LlamaConfig kSmall{.vocab = 300,
                         .hidden = 32,
                         .intermediate = 48,
                         .layers = 2,
                         .heads = 4,
                         .kv_heads = 2,
                         .head_dim = 8,
                         .context = 24,
                         .rope_frequencies = {}};

std::vector<std::vector<std::int64_t>> some_rows(std::int64_t vocab) {
  std::vector<std::vector<std::int64_t>> rows(3);
  std::int64_t v = 1;
  for (auto& r : rows)
    for (int k = 0; k < 13; ++k) r.push_back(v = (v * 29 + 17) % vocab);
  return rows;
}

void trains_as_pytorch(const std::string& name, const Json& reference, const Weights& gradients) {
  const Weights begin = Weights::open(data("llm/" + name + "/hf"));
  const LlamaConfig c = LlamaConfig::from(begin);
  const auto batch = reference["batch"].get<std::vector<std::vector<std::int64_t>>>();
  const Json &a = reference["adamw"], &s = reference["sgd"];
  const std::pair<optim::Optimizer, const Json*> both[] = {{optim::AdamW{.lr = a["lr"],
                                                                         .beta1 = a["betas"][0],
                                                                         .beta2 = a["betas"][1],
                                                                         .eps = a["eps"],
                                                                         .weight_decay = a["weight_decay"]},
                                                            &a},
                                                           {optim::SGD{.lr = s["lr"], .momentum = s["momentum"]}, &s}};
  for (const auto& [optimizer, want] : both) {
    Training t(c, optimizer, static_cast<std::int64_t>(batch.size()), static_cast<std::int64_t>(batch[0].size()) - 1);
    t.trainer->load_parameters(data("llm/" + name + "/hf/model.safetensors"));
    t.show(batch);
    const auto losses = (*want)["loss"].get<std::vector<double>>();
    for (std::size_t step = 0; step < losses.size(); ++step) {
      EXPECT_NEAR(t.trainer->step(), losses[step], 2e-3 * losses[step]) << "step " << step;
      if (step > 0) continue;
      EXPECT_NEAR(t.trainer->context().scalar("loss"), reference["loss0"].get<double>(), 1e-5);
      for (const auto& [path, stored] : gradients.tensors())
        EXPECT_LT(off(t.trainer->context().get("grad." + path), Weights::read(stored)), 2e-4) << path;
      EXPECT_EQ(gradients.tensors().size(), t.model.entries().size());
    }
  }
}

}  // namespace

TEST(LlamaModel, TrainsAsInPyTorch) {
  int found = 0;
  if (std::filesystem::exists(data("llm")))
    for (const auto& folder : std::filesystem::directory_iterator(data("llm"))) {
      const std::string train = folder.path().string() + "/train";
      if (!std::filesystem::exists(train + "/training.json")) continue;
      ++found;
      trains_as_pytorch(folder.path().filename().string(), Json::parse(std::ifstream(train + "/training.json")),
                        Weights::open(train + "/grads_step0.safetensors"));
    }
  if (found == 0) GTEST_SKIP() << "the reference data llm/*/train is not here";
}

// The inference program computes the same from the saved model. With rotary halves, rows are permuted in the file.
TEST(LlamaModel, SpeaksAsItTrained) {
  for (const bool interleaved : {false, true}) {
    LlamaConfig c = kSmall;
    c.rope_interleaved = interleaved;
    Training t(c, optim::SGD{.lr = 0.5}, 3, 12);
    const auto rows = some_rows(c.vocab);
    t.show(rows);
    const float first = t.trainer->step();
    for (int k = 0; k < 4; ++k) t.trainer->step();
    const Vocabulary tokens = train_bpe(std::vector<std::string>{"abc abc"}, {.size = 300});
    const TempDir folder;
    save_llama(folder / "m.gguf", t.model.module(), values_of(t), tokens, DType::F32, "test");
    const Llama speaks = Llama::load(folder / "m.gguf", {.all_logits = true});
    const double said = loss_of(speaks, rows);
    const float now = t.trainer->step();
    EXPECT_NEAR(said, now, 1e-4);
    EXPECT_LT(now, first);
    EXPECT_EQ(speaks.tokenizer().size(), 300);
    const auto as_bytes = [&] { save_llama(folder / "i.gguf", t.model.module(), values_of(t), tokens, DType::I8); };
    EXPECT_PRED2(contains, error_of(as_bytes), "f32, f16 or bf16");
  }
}

// Some parameters have no field in GGUF's "llama": scaled positions are stored as divisors, and a model with norms of
// queries and keys is stored as a "qwen3".
TEST(LlamaModel, SaysWhatTheArchitectureDoesNot) {
  const Vocabulary tokens = train_bpe(std::vector<std::string>{"abc abc"}, {.size = 300});
  for (const bool norms : {false, true}) {
    LlamaConfig c = kSmall;
    if (!norms)
      for (std::int64_t i = 0; i < c.head_dim / 2; ++i)
        c.rope_frequencies.push_back(
            std::pow(c.rope_theta, -2.0 * static_cast<double>(i) / static_cast<double>(c.head_dim)) / (i < 2 ? 1 : 8));
    Training t(LlamaModel(c, {.query_key_norms = norms}), optim::SGD{.lr = 0.1}, 3, 12);
    const auto rows = some_rows(c.vocab);
    t.show(rows);
    for (int k = 0; k < 3; ++k) t.trainer->step();
    const TempDir folder;
    save_llama(folder / "m.gguf", t.model.module(), values_of(t), tokens, DType::F32);
    const Llama speaks = Llama::load(folder / "m.gguf", {.all_logits = true});
    const double said = loss_of(speaks, rows);
    EXPECT_NEAR(said, t.trainer->step(), 1e-4);
    // values may be temporary, as those of Trainer::merged() are
    save_llama(folder / "now.gguf", t.model.module(), values_of(t), tokens, DType::F32);
    save_llama(
        folder / "merged.gguf", t.model.module(), [&](const std::string& p) { return t.trainer->merged(p); }, tokens,
        DType::F32);
    EXPECT_EQ(loss_of(Llama::load(folder / "merged.gguf", {.all_logits = true}), rows),
              loss_of(Llama::load(folder / "now.gguf", {.all_logits = true}), rows));
    const Weights w = Weights::open(folder / "m.gguf");
    EXPECT_EQ(w.gguf()->text("general.architecture"), norms ? "qwen3" : "llama");
    EXPECT_EQ(w.find("rope_freqs.weight") != nullptr, !norms);
    EXPECT_EQ(w.gguf()->number("general.file_type"), 0);
    c.rope_interleaved = true;
    if (!norms) continue;
    const LlamaModel neighbours(c, {.query_key_norms = true});
    EXPECT_PRED2(contains, error_of([&] { save_llama(folder / "n.gguf", neighbours, values_of(t), tokens); }),
                 "no architecture of GGUF has norms of queries and keys and rotates neighbours");
  }
}

// A llama2.c vocabulary, which spells spaces as they are, gets GGUF's spelling in the file; texts keep their ids.
TEST(LlamaModel, SpellsSpacesAsGgufDoes) {
  Vocabulary v;
  v.pieces = {"<unk>", "\n<s>\n", "\n</s>\n", " ", "a", "b", " a", "ab", " ab"};
  v.escape_spaces = false;
  v.scores = {0, 0, 0, -5, -6, -7, -2, -3, -1};
  using Type = Vocabulary::Type;
  v.types = {Type::Unknown, Type::Control, Type::Control};
  v.types.resize(v.pieces.size(), Type::Normal);
  v.unk = 0, v.bos = 1, v.eos = 2, v.add_bos = true;
  LlamaConfig c = kSmall;
  c.vocab = static_cast<std::int64_t>(v.pieces.size());
  Training t(LlamaModel(c), optim::SGD{}, 3, 12);
  const TempDir folder;
  save_llama(folder / "m.gguf", t.model.module(), values_of(t), v, DType::F32);
  const Llama m = Llama::load(folder / "m.gguf");
  const auto before = make_tokenizer(v);
  EXPECT_EQ(m.tokenizer().encode("ab a b"), before->encode("ab a b"));
  EXPECT_EQ(m.tokenizer().decode(m.tokenizer().encode("ab a b")), "ab a b");
  EXPECT_EQ(m.tokenizer().vocabulary().pieces[1], "<s>");
}

// Adapters have peft's layout for the Hugging Face model: rows of queries and keys are ordered by halves of a head, and
// an embedding's two matrices are transposed and exchanged.
TEST(LlamaModel, AdaptersAreThoseOfHuggingFacesModel) {
  LlamaConfig c = kSmall;
  c.rope_interleaved = true;
  const LlamaModel model(c);
  const auto q = static_cast<std::size_t>(c.heads * c.head_dim), hidden = static_cast<std::size_t>(c.hidden),
             vocab = static_cast<std::size_t>(c.vocab);
  std::map<std::string, std::vector<float>> values;
  const auto numbered = [&](const std::string& name, std::size_t n) {
    for (std::size_t k = 0; k < n; ++k) values[name].push_back(static_cast<float>(k));
  };
  const std::string query = "model.layers.1.self_attn.q_proj", table = "model.embed_tokens";
  numbered("qa", 2 * hidden), numbered("qb", q * 2), numbered("ea", 2 * hidden), numbered("eb", vocab * 2);
  const std::vector<nn::Adapter> adapters{{query + ".weight", "qa", "qb", 3.0}, {table + ".weight", "ea", "eb", 3.0}};
  const TempDir dir;
  llm::save_adapters(
      dir / "adapter", model.parameters(), adapters,
      [&](const std::string& n) { return std::span<const float>(values.at(n)); }, "somewhere/base");
  const Weights w = Weights::open(dir / "adapter/adapter_model.safetensors");
  const std::string at = "base_model.model.";
  const std::vector<float> b = Weights::read(w.at(at + query + ".lora_B.weight"));
  const auto half = static_cast<std::size_t>(c.head_dim) / 2;
  for (std::size_t row = 0; row < q; ++row) {  // head, half, index within the half
    const std::size_t head = row / (2 * half), part = row / half % 2, i = row % half;
    EXPECT_EQ(b[row * 2], values["qb"][((head * half + i) * 2 + part) * 2]) << row;
  }
  EXPECT_EQ(Weights::read(w.at(at + query + ".lora_A.weight")), values["qa"]);
  const StoredTensor& ea = w.at(at + table + ".lora_embedding_A");
  EXPECT_EQ(ea.shape, (std::vector<std::int64_t>{2, c.vocab}));
  EXPECT_EQ(Weights::read(ea)[1], values["eb"][2]);
  EXPECT_EQ(Weights::read(w.at(at + table + ".lora_embedding_B"))[1], values["ea"][hidden]);
  EXPECT_EQ(Weights::read(w.at(at + "lm_head.lora_B.weight")), values["eb"]);  // the embedding is the head, too
  const Json config = Json::parse(std::ifstream(dir / "adapter/adapter_config.json"));
  EXPECT_EQ(config["r"], 2);
  EXPECT_EQ(config["lora_alpha"], 6);
  EXPECT_EQ(config["target_modules"], (Json{"embed_tokens", query}));
  EXPECT_EQ(config["ensure_weight_tying"], true);
  EXPECT_EQ(config["base_model_name_or_path"], "somewhere/base");
  const auto again = llm::load_adapters(dir / "adapter", model.parameters(), adapters);
  EXPECT_EQ(again, values);
  const std::vector<nn::Adapter> others{adapters[0]}, scaled{{query + ".weight", "qa", "qb", 2.0}, adapters[1]};
  EXPECT_PRED2(contains, error_of([&] { llm::load_adapters(dir / "adapter", model.parameters(), others); }),
               "and the model no adapter there: LoraOptions::targets names the layers");
  EXPECT_PRED2(contains, error_of([&] { llm::load_adapters(dir / "adapter", model.parameters(), scaled); }),
               "its scale, lora_alpha / r, is 3, and that of 'model.layers.1.self_attn.q_proj.weight' is 2: "
               "LoraOptions::alpha would be 6");
  const std::vector<nn::Adapter> more{
      adapters[0], adapters[1], {"model.layers.0.self_attn.q_proj.weight", "a", "b", 3.0}};
  EXPECT_PRED2(contains, error_of([&] { llm::load_adapters(dir / "adapter", model.parameters(), more); }),
               "it has no 'base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight'");
  LlamaConfig wide = c;
  wide.heads = 8;
  EXPECT_PRED2(
      contains, error_of([&] { llm::load_adapters(dir / "adapter", LlamaModel(wide).parameters(), adapters); }),
      "'base_model.model.model.layers.1.self_attn.q_proj.lora_B.weight' is [32, 2], and the model's is [64, 2]");
  for (const char* wrong :
       {R"({"r": 3, "lora_alpha": 9})", R"({"r": "2"})", R"({"r": 2, "lora_alpha": 6, "use_dora": true})",
        R"({"r": 2, "lora_alpha": 6, "bias": "all"})", "[", ""}) {
    spit(dir / "adapter/adapter_config.json", wrong);
    EXPECT_PRED2(contains, error_of([&] { llm::load_adapters(dir / "adapter", model.parameters(), adapters); }),
                 "adapter");
  }
  EXPECT_PRED2(contains, error_of([&] {
                 llm::save_adapters(dir / "x", model.parameters(), {},
                                    [](const std::string&) { return std::vector<float>(); });
               }),
               "there are no adapters");
}

namespace {

// Training begins with the checkpoint's loss. The model it writes has the loss at the end of training, the same
// tokenizer and the same configuration.
void goes_on_from(const std::string& checkpoint, const std::string& result) {
  SCOPED_TRACE(checkpoint);
  const Weights w = Weights::open(checkpoint);
  const Llama before = Llama::load(checkpoint, {.all_logits = true});
  const auto rows = some_rows(before.config().vocab);
  Training t(LlamaModel::of(w), optim::SGD{.lr = 0.1}, 3, 12);
  t.trainer->load_parameters(w, [&](const std::string& path) { return llm::name_in_file(w, path); });
  t.show(rows);
  const float first = t.trainer->step();
  EXPECT_NEAR(loss_of(before, rows), first, 1e-4 * (1 + first));
  for (int k = 0; k < 3; ++k) t.trainer->step();
  llm::save_like(w, result, t.model.module().parameters(), values_of(t), DType::F32);
  const Llama after = Llama::load(result, {.all_logits = true});
  const double said = loss_of(after, rows);
  const float last = t.trainer->step();
  EXPECT_NEAR(said, last, 1e-4 * (1 + last));
  EXPECT_LT(last, first);
  EXPECT_EQ(after.config().rope_frequencies, before.config().rope_frequencies);
  EXPECT_EQ(after.config().eos, before.config().eos);
  EXPECT_EQ(after.config().eps, before.config().eps);
  EXPECT_EQ(after.has_tokenizer(), before.has_tokenizer());
  if (before.has_tokenizer()) {
    const char* text = "Once upon a time, there was a fox. \xC3\xA4 123";
    EXPECT_EQ(after.tokenizer().encode(text), before.tokenizer().encode(text));
  }
  EXPECT_EQ(after.chat_template().text, before.chat_template().text);
  const Weights saved = Weights::open(result);
  for (const auto& [name, tensor] : w.tensors()) EXPECT_EQ(saved.at(name).shape, tensor.shape) << name;
  if (!w.gguf()) {
    const Json config = Json::parse(std::ifstream(result + "/config.json"));
    EXPECT_EQ(config[config.contains("dtype") ? "dtype" : "torch_dtype"], "float32");
  }
}

// Writes a folder in Hugging Face's format, with random values.
void make_folder(const std::string& folder, const LlamaConfig& c, const LlamaModelOptions& o,
                 const std::string& config) {
  std::vector<std::vector<float>> values;
  std::vector<TensorToSave> tensors;
  std::mt19937 random(7);
  for (const llm::ParameterInfo& p : LlamaModel(c, o).parameters()) {
    std::normal_distribution<float> normal(p.shape.size() == 1 && !p.path.ends_with("bias") ? 1.0f : 0.0f, 0.2f);
    std::int64_t n = 1;
    for (const std::int64_t d : p.shape) n *= d;
    std::vector<float>& v = values.emplace_back(static_cast<std::size_t>(n));
    for (float& x : v) x = normal(random);
  }
  std::size_t k = 0;
  for (const llm::ParameterInfo& p : LlamaModel(c, o).parameters())
    tensors.push_back({p.path, DType::F32, p.shape, std::as_bytes(std::span(values[k++]))});
  std::filesystem::create_directories(folder);
  save_safetensors(folder + "/model.safetensors", tensors);
  spit(folder + "/config.json", config);
}

const char* const kNumbers = R"("vocab_size": 300, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
  "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 24, "rms_norm_eps": 1e-5)";

}  // namespace

TEST(LlamaModel, GoesOnFromACheckpoint) {
  const TempDir dir;
  goes_on_from(std::string(paths::kSource) + "/models/story/story.gguf", dir / "story.gguf");
  for (const char* file : {"llm/stories260K/gguf", "llm/babyllama361/gguf"})
    if (std::filesystem::exists(data(file)))
      for (const auto& e : std::filesystem::directory_iterator(data(file)))
        if (e.path().extension() == ".gguf") goes_on_from(e.path().string(), dir / e.path().filename().string());
  for (const char* folder : {"hf", "hf-bf16-sharded"})
    if (const std::string from = data(std::string("llm/stories260K/") + folder); std::filesystem::exists(from))
      goes_on_from(from, dir / folder);
}

// Qwen 2 has biases, Qwen 3 norms of queries and keys, Llama 3 scaled frequencies.
TEST(LlamaModel, GoesOnFromEveryKind) {
  const TempDir dir;
  const std::string numbers = kNumbers;
  make_folder(dir / "qwen2", kSmall,
              {.tied = false, .biases = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}},
              R"({"model_type": "qwen2", )" + numbers + "}");
  make_folder(dir / "qwen3", kSmall, {.query_key_norms = true}, R"({"model_type": "qwen3", )" + numbers + "}");
  make_folder(dir / "llama3", kSmall, {},
              R"({"model_type": "llama", "rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1,
  "high_freq_factor": 4, "original_max_position_embeddings": 16}, )" +
                  numbers + "}");
  for (const char* kind : {"qwen2", "qwen3", "llama3"}) goes_on_from(dir / kind, dir / (std::string(kind) + ".after"));
  EXPECT_NE(LlamaConfig::from(Weights::open(dir / "llama3")).rope_frequencies,
            LlamaConfig::from(Weights::open(dir / "qwen3")).rope_frequencies);
  const Weights w = Weights::open(dir / "qwen2");
  Training t(LlamaModel::of(w), optim::SGD{}, 3, 12);
  EXPECT_PRED2(contains,
               error_of([&] { llm::save_like(w, dir / "qwen2", t.model.module().parameters(), values_of(t)); }),
               "that is the folder which training began from");
  EXPECT_PRED2(contains,
               error_of([&] { llm::save_like(w, dir / "x", t.model.module().parameters(), values_of(t), DType::I8); }),
               "f32, f16 or bf16");
}

// Two texts in one row have the logits that each has alone. Without segment numbers the second one sees the first.
TEST(LlamaModel, PackedTextsDoNotSeeEachOther) {
  Graph g;
  const nn::Model<LlamaModel> model(g, LlamaModel(kSmall));
  const Tensor packed = g.input("packed", {1, 12}, DType::I64), segments = g.input("segments", {1, 12}, DType::I64),
               first = g.input("first", {1, 5}, DType::I64), second = g.input("second", {1, 7}, DType::I64);
  model(packed, segments).retrieve("together"), model(packed).retrieve("unnumbered");
  model(first).retrieve("one"), model(second).retrieve("two");
  Program p = compile(g, generic() | test::device({.threads = 2}));
  model.initialise(p, 3);
  Context c(p);
  const std::vector<std::int64_t> a{5, 9, 200, 7, 31}, b{12, 250, 3, 3, 80, 99, 1};
  std::vector<std::int64_t> both = a, numbers(5, 0);
  both.insert(both.end(), b.begin(), b.end()), numbers.resize(12, 1);
  c.set("packed", both).set("segments", numbers).set("first", a).set("second", b).run();
  std::vector<float> alone = c.get("one");
  const std::vector<float> two = c.get("two");
  alone.insert(alone.end(), two.begin(), two.end());
  EXPECT_LT(off(c.get("together"), alone), 1e-5);
  EXPECT_GT(off(c.get("unnumbered"), alone), 1e-2);
  EXPECT_PRED2(contains, error_of([&] { model(packed, first); }), "segments of [1, 5] do not number ids of [1, 12]");
}

TEST(LlamaModel, RefusesWhatMakesNoModel) {
  LlamaConfig c = kSmall;
  c.kv_heads = 3;
  EXPECT_PRED2(contains, error_of([&] { LlamaModel m(c); }), "3 key heads do not divide 4 query heads");
  c = kSmall, c.layers = 0;
  EXPECT_PRED2(contains, error_of([&] { LlamaModel m(c); }), "makes no model");
  c = kSmall, c.head_dim = 7;
  EXPECT_PRED2(contains, error_of([&] { LlamaModel m(c); }), "cannot be rotated");
  c = kSmall, c.rope_frequencies = {0.5, 0.1, 0.01};
  EXPECT_PRED2(contains, error_of([&] { LlamaModel m(c); }), "3 frequencies of RoPE, heads of size 8 have 4");
}
