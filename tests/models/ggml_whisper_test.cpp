// Files of whisper.cpp hold the same Whisper as a folder of transformers does; damaged ones are Errors.
#include "lightcone/models/whisper/ggml_file.h"

#include <cmath>
#include <cstring>

#include "error_of.h"
#include "lightcone/io/checkpoints/quantize.h"
#include "lightcone/models/files/weight_table.h"
#include "lightcone/models/whisper/whisper.h"
#include "tiny_models.h"

using namespace lc;

namespace {

constexpr std::int32_t kVocab = 51864, kWidth = 32, kMels = 80, kSounds = 8, kTexts = 8;

// A writer of the format as whisper.cpp's models/convert-pt-to-ggml.py describes it.
struct GgmlFile {
  std::string bytes = "lmgg";
  std::vector<std::size_t> numbers = {};  // where each number of a header or a length stands
  void number(std::int32_t n) {
    numbers.push_back(bytes.size());
    bytes.append(reinterpret_cast<const char*>(&n), sizeof n);
  }
  void tensor(const std::string& name, const std::vector<std::int64_t>& shape, std::int32_t type,
              std::span<const std::byte> data) {
    number(static_cast<std::int32_t>(shape.size())), number(static_cast<std::int32_t>(name.size())), number(type);
    for (std::size_t k = shape.size(); k-- > 0;) number(static_cast<std::int32_t>(shape[k]));
    bytes += name;
    bytes.append(reinterpret_cast<const char*>(data.data()), data.size());
  }
};

// The weight of each band at each bin by the formula of Slaney's Auditory Toolbox, as librosa.filters.mel has it.
float mel_weight(int band, int bin) {
  const auto hz = [](double m) { return m < 15 ? m * 200 / 3 : 1000 * std::exp(std::log(6.4) / 27 * (m - 15)); };
  const double top = 15 + 27 * std::log(8.0) / std::log(6.4);
  const double a = hz(top * band / 81), b = hz(top * (band + 1) / 81), c = hz(top * (band + 2) / 81), f = 40.0 * bin;
  return static_cast<float>(std::fmax(0, std::fmin((f - a) / (b - a), (c - f) / (c - b))) * 2 / (c - a));
}

// The bytes of all 256 tokens of one, and then pairs that are joined: "the" is one token.
std::vector<std::string> vocabulary() {
  std::vector<std::string> all;
  for (int k = 0; k < 256; ++k) all.emplace_back(1, static_cast<char>(k));
  for (const char* t : {"th", "the", " the", " -"}) all.emplace_back(t);
  while (all.size() < 50257) all.push_back("#" + std::to_string(all.size()));
  return all;
}

GgmlFile header() {
  GgmlFile f;
  for (const std::int32_t n : {kVocab, kSounds, kWidth, 2, 1, kTexts, kWidth, 2, 1, kMels, 1}) f.number(n);
  f.number(kMels), f.number(201);
  for (int m = 0; m < kMels; ++m)
    for (int k = 0; k < 201; ++k) {
      const float w = mel_weight(m, k);
      f.bytes.append(reinterpret_cast<const char*>(&w), sizeof w);
    }
  const std::vector<std::string> tokens = vocabulary();
  f.number(static_cast<std::int32_t>(tokens.size()));
  for (const std::string& t : tokens) {
    const auto n = static_cast<std::int32_t>(t.size());
    f.bytes.append(reinterpret_cast<const char*>(&n), sizeof n);
    f.bytes += t;
  }
  return f;
}

struct Part {
  std::string openai, hf;
  std::vector<std::int64_t> shape;
};

std::vector<Part> parts() {
  std::vector<Part> all{{"encoder.positional_embedding", "encoder.embed_positions.weight", {kSounds, kWidth}},
                        {"encoder.conv1.weight", "encoder.conv1.weight", {kWidth, kMels, 3}},
                        {"encoder.conv1.bias", "encoder.conv1.bias", {kWidth}},
                        {"encoder.conv2.weight", "encoder.conv2.weight", {kWidth, kWidth, 3}},
                        {"encoder.conv2.bias", "encoder.conv2.bias", {kWidth}},
                        {"encoder.ln_post.weight", "encoder.layer_norm.weight", {kWidth}},
                        {"encoder.ln_post.bias", "encoder.layer_norm.bias", {kWidth}},
                        {"decoder.positional_embedding", "decoder.embed_positions.weight", {kTexts, kWidth}},
                        {"decoder.token_embedding.weight", "decoder.embed_tokens.weight", {kVocab, kWidth}},
                        {"decoder.ln.weight", "decoder.layer_norm.weight", {kWidth}},
                        {"decoder.ln.bias", "decoder.layer_norm.bias", {kWidth}}};
  for (const std::string stack : {"encoder", "decoder"}) {
    const auto add = [&](const std::string& theirs, const std::string& hf, const std::vector<std::int64_t>& shape) {
      all.push_back({stack + ".blocks.0." + theirs, stack + ".layers.0." + hf, shape});
    };
    const auto linear = [&](const std::string& theirs, const std::string& hf, std::int64_t out, std::int64_t in) {
      add(theirs + ".weight", hf + ".weight", {out, in});
      if (!theirs.ends_with("key")) add(theirs + ".bias", hf + ".bias", {out});
    };
    const auto norm = [&](const std::string& theirs, const std::string& hf) {
      add(theirs + ".weight", hf + ".weight", {kWidth}), add(theirs + ".bias", hf + ".bias", {kWidth});
    };
    for (const auto& [a, b] :
         {std::pair<std::string, std::string>{"attn", "self_attn"}, {"cross_attn", "encoder_attn"}}) {
      if (stack == "encoder" && a == "cross_attn") continue;
      norm(a + "_ln", b + "_layer_norm");
      for (const auto& [x, y] :
           {std::pair{".query", ".q_proj"}, {".key", ".k_proj"}, {".value", ".v_proj"}, {".out", ".out_proj"}})
        linear(a + x, b + y, kWidth, kWidth);
    }
    norm("mlp_ln", "final_layer_norm");
    linear("mlp.0", "fc1", 4 * kWidth, kWidth), linear("mlp.2", "fc2", kWidth, 4 * kWidth);
  }
  return all;
}

// The same model as a folder of transformers with floats, and as a file whose matrices are blocks of `format`, or f16.
struct Both {
  TempDir folder;
  std::string file;
  explicit Both(std::optional<QuantFormat> format) {
    GgmlFile f = header();
    std::vector<std::vector<float>> kept;
    std::vector<TensorToSave> saved;
    std::size_t i = 0;
    for (const Part& p : parts()) {
      std::int64_t n = 1;
      for (const std::int64_t d : p.shape) n *= d;
      std::vector<float> v;
      for (std::int64_t k = 0; k < n; ++k)
        v.push_back(static_cast<float>(0.3 * std::sin(1.3 * static_cast<double>(i) + 0.7 * static_cast<double>(k)) +
                                       (p.openai.ends_with("ln.weight") ? 1 : 0)));
      ++i;
      const bool matrix = p.shape.size() == 2 && p.openai.ends_with("weight");
      if (matrix && format) {
        std::vector<std::byte> blocks(v.size() / static_cast<std::size_t>(info(*format).elements) *
                                      static_cast<std::size_t>(info(*format).bytes));
        quantize(*format, v, blocks);
        f.tensor(p.openai, p.shape, static_cast<std::int32_t>(ggml_number(*format)), blocks);
        v = dequantized(*format, blocks, v.size());
      } else {
        std::vector<std::int64_t> shape = p.shape;
        if (p.openai.find("conv") != std::string::npos && shape.size() == 1) shape.push_back(1);  // a column there
        f.tensor(p.openai, shape, 0, std::as_bytes(std::span(v)));
      }
      kept.push_back(std::move(v));
      saved.push_back({"model." + p.hf, DType::F32, p.shape, {}});
    }
    for (std::size_t k = 0; k < saved.size(); ++k) saved[k].bytes = std::as_bytes(std::span(kept[k]));
    save_safetensors(folder / "model.safetensors", saved);
    spit(folder / "config.json",
         R"({"model_type": "whisper", "architectures": ["WhisperForConditionalGeneration"], "d_model": 32,
             "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
             "encoder_ffn_dim": 128, "decoder_ffn_dim": 128, "vocab_size": 51864, "num_mel_bins": 80,
             "max_source_positions": 8, "max_target_positions": 8})");
    file = folder / "ggml-own.bin";
    spit(file, f.bytes);
  }
  static std::uint32_t ggml_number(QuantFormat f) {
    switch (f) {
      case QuantFormat::Q4_0: return 2;
      case QuantFormat::Q5_0: return 6;
      case QuantFormat::Q5_1: return 7;
      default: return 8;  // Q8_0
    }
  }
  static std::vector<float> dequantized(QuantFormat f, std::span<const std::byte> blocks, std::size_t n) {
    StoredTensor t{.shape = {static_cast<std::int64_t>(n)}, .type = "", .bytes = blocks};
    t.ggml = static_cast<int>(ggml_number(f));
    return Weights::read(t);
  }
};

test::AllGiven sounds() {
  std::vector<double> mels;
  for (int k = 0; k < kMels * 2 * kSounds; ++k) mels.push_back(std::sin(0.3 * k));
  return {{"input_features", {{1, kMels, 2 * kSounds}, mels}}, {"decoder_input_ids", {{1, 3}, {50257, 262, 290}}}};
}

TEST(GgmlWhisper, ComputesWhatTheFolderDoes) {
  for (const std::optional<QuantFormat> format :
       {std::optional<QuantFormat>(), std::optional(QuantFormat::Q5_0), std::optional(QuantFormat::Q8_0)}) {
    const Both both(format);
    const std::map<std::string, std::int64_t> sizes{{"batch", 1}, {"target", 3}};
    const auto want = test::by_cpu(load_model(both.folder.path.string()), sounds(), sizes).at("logits");
    const LoadedModel m = load_model(both.file);
    EXPECT_LT(test::farthest(test::by_cpu(m, sounds(), sizes).at("logits"), want), 1e-4);
    ASSERT_TRUE(m.weights.find("tokens.weight"));
    EXPECT_EQ(m.weights.find("tokens.weight")->quant, format);  // as stored
  }
}

// Tokens are joined in the order of their ids, specials stand where OpenAI's English models have them, and signs that
// no speech has are silenced.
TEST(GgmlWhisper, Vocabulary) {
  const Both both({});
  const GgmlWhisper w = read_ggml_whisper(both.file);
  EXPECT_EQ(w.tokenizer->encode(" the", false), (std::vector<int>{258}));
  EXPECT_EQ(w.tokenizer->encode("thx", false), (std::vector<int>{256, 'x'}));
  const std::vector<std::string>& pieces = w.tokenizer->vocabulary().pieces;
  EXPECT_EQ(pieces[50256], "<|endoftext|>");
  EXPECT_EQ(pieces[50257], "<|startoftranscript|>");
  EXPECT_EQ(pieces[50357], "<|translate|>");
  EXPECT_EQ(pieces[50362], "<|notimestamps|>");
  EXPECT_EQ(pieces[50363], "<|0.00|>");
  EXPECT_EQ(pieces[51863], "<|30.00|>");
  const Whisper model = Whisper::load(both.file, {.beams = 1});
  const auto& silent = model.tokens().suppressed;
  for (const int id : {static_cast<int>('"'), 259, 50257, 50361})
    EXPECT_TRUE(std::ranges::find(silent, id) != silent.end()) << id;
  EXPECT_EQ(model.tokens().suppressed_first, (std::vector<int>{50256, 32}));
}

// Each number of a header that is changed, and each length at which the file may end, is an Error and never more.
TEST(GgmlWhisper, DamageIsAnError) {
  const Both both({});
  const std::string whole = slurp(both.file);
  const GgmlFile head = header();
  const auto open = [&](std::string bytes) {
    const auto kept = std::make_shared<std::string>(std::move(bytes));
    return error_of([&] { read_ggml_whisper(MappedFile::view("x.bin", std::as_bytes(std::span(*kept)))); });
  };
  EXPECT_EQ(open(whole), "no error");
  std::vector<std::size_t> numbers = head.numbers;
  for (std::size_t at = head.bytes.size(); numbers.size() < 40; at += 4) numbers.push_back(at);  // the first tensors
  for (const std::size_t at : numbers)
    for (const std::int32_t n : {-1, 0x7fffffff, 1 << 20}) {
      std::string bytes = whole;
      std::memcpy(bytes.data() + at, &n, sizeof n);
      open(std::move(bytes));  // some are other models, and the rest Errors
    }
  for (std::size_t cut = 0; cut < whole.size(); cut += 1 + cut / 3)
    EXPECT_NE(open(whole.substr(0, cut)), "no error") << cut;
  std::string other = whole;
  const float half = 0.5F;
  std::memcpy(other.data() + head.numbers[12] + 4 + 40, &half, sizeof half);
  EXPECT_PRED2(contains, open(other), "mel filters");
  EXPECT_PRED2(contains, open(head.bytes + std::string(3, '\0')), "truncated");
  GgmlFile stranger = head;
  const std::vector<float> one(32);
  stranger.tensor("encoder.blocks.0.attn.kee.weight", {32}, 0, std::as_bytes(std::span(one)));
  EXPECT_PRED2(contains, open(stranger.bytes), "'encoder.blocks.0.attn.kee.weight' is no part of a Whisper");
}

}  // namespace
