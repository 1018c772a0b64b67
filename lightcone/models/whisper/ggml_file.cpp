#include "lightcone/models/whisper/ggml_file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <set>

#include "lightcone/io/checkpoints/quants.h"
#include "lightcone/io/mapped_file.h"
#include "lightcone/io/printable.h"
#include "lightcone/models/files/weight_table.h"
#include "lightcone/models/gguf/config_text.h"
#include "lightcone/models/whisper/ggml_vocabulary.h"

namespace lc {
namespace {

constexpr std::string_view kMagic = "lmgg";  // the letters of ggml as a little-endian number
constexpr std::int32_t kBins = 201;          // a spectrum of 400 samples has them

// OpenAI's names, and those of transformers.
constexpr WeightName kOpenAiNames[] = {
    {"encoder.positional_embedding", "model.encoder.embed_positions.weight"},
    {"decoder.positional_embedding", "model.decoder.embed_positions.weight"},
    {"decoder.token_embedding", "model.decoder.embed_tokens"},
    {"encoder.conv1", "model.encoder.conv1"},
    {"encoder.conv2", "model.encoder.conv2"},
    {"encoder.ln_post", "model.encoder.layer_norm"},
    {"decoder.ln", "model.decoder.layer_norm"},
};
constexpr WeightName kOpenAiLayer[] = {
    {"attn_ln", "self_attn_layer_norm"},
    {"cross_attn_ln", "encoder_attn_layer_norm"},
    {"attn.query", "self_attn.q_proj"},
    {"attn.key", "self_attn.k_proj"},
    {"attn.value", "self_attn.v_proj"},
    {"attn.out", "self_attn.out_proj"},
    {"cross_attn.query", "encoder_attn.q_proj"},
    {"cross_attn.key", "encoder_attn.k_proj"},
    {"cross_attn.value", "encoder_attn.v_proj"},
    {"cross_attn.out", "encoder_attn.out_proj"},
    {"mlp_ln", "final_layer_norm"},
    {"mlp.0", "fc1"},
    {"mlp.2", "fc2"},
};

// The triangles of Slaney's scale, each with an area of 2 over its width in Hz, up to 8 kHz (librosa.filters.mel).
std::vector<float> mel_triangles(std::int32_t mels) {
  const double step = 200.0 / 3, knee = 1000, log_step = std::log(6.4) / 27;
  const auto hz = [&](double mel) {
    return mel < knee / step ? mel * step : knee * std::exp(log_step * (mel - knee / step));
  };
  const double top = knee / step + std::log(8000 / knee) / log_step;
  std::vector<float> all;
  for (std::int32_t m = 0; m < mels; ++m) {
    const double a = hz(top * m / (mels + 1)), b = hz(top * (m + 1) / (mels + 1)), c = hz(top * (m + 2) / (mels + 1));
    for (std::int32_t k = 0; k < kBins; ++k) {
      const double f = 8000.0 * k / (kBins - 1), height = std::min((f - a) / (b - a), (c - f) / (c - b));
      all.push_back(static_cast<float>(std::max(0.0, height) * 2 / (c - a)));
    }
  }
  return all;
}

class GgmlReader {
 public:
  GgmlReader(std::shared_ptr<const MappedFile> file, const ReadOptions& o)
      : file_(std::move(file)), options_(o), budget_(o, file_->path()) {}
  GgmlWhisper read();

 private:
  enum Size {
    Vocab,
    AudioLength,
    AudioWidth,
    AudioHeads,
    AudioLayers,
    TextLength,
    TextWidth,
    TextHeads,
    TextLayers,
    Mels
  };
  template <class... Ts>
  [[noreturn]] void fail(const Ts&... what) const {
    throw file_error("load_model", file_->path(), what...);
  }
  std::span<const std::byte> bytes(std::uint64_t n, std::string_view what) {
    if (n > file_->bytes().size() - at_) fail("truncated: it ends inside ", what);
    at_ += n;
    return file_->bytes().subspan(at_ - n, n);
  }
  std::int32_t number(std::string_view what) {
    std::int32_t n = 0;
    std::memcpy(&n, bytes(sizeof n, what).data(), sizeof n);
    return n;
  }
  std::int32_t number(std::string_view what, std::int32_t least, std::int32_t most) {
    const std::int32_t n = number(what);
    if (n < least || n > most) fail(what, " is ", n, ", and not from ", least, " to ", most);
    return n;
  }
  std::string text(std::int32_t most, std::string_view what) {
    const auto b = bytes(static_cast<std::uint64_t>(number(what, 0, most)), what);
    return {reinterpret_cast<const char*>(b.data()), b.size()};
  }
  void read_sizes();
  void read_filters();
  void read_vocabulary();
  void read_tensor();
  std::string config() const;
  std::string name_of(const std::string& theirs) const;

  std::shared_ptr<const MappedFile> file_;
  ReadOptions options_;
  Budget budget_;
  std::size_t at_ = kMagic.size();
  std::int32_t sizes_[10] = {};
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::map<std::string, StoredTensor, std::less<>> tensors_;
  std::vector<std::shared_ptr<const void>> owners_;
};

void GgmlReader::read_sizes() {
  constexpr std::int32_t kWide = 1 << 14, kLong = 1 << 16, kDeep = 1 << 10;
  sizes_[Vocab] = number("the number of ids", kWhisperEnglish, kWhisperMost);
  sizes_[AudioLength] = number("the length of sounds", 1, kLong);
  sizes_[AudioWidth] = number("the width of the encoder", 1, kWide);
  sizes_[AudioHeads] = number("the number of heads of the encoder", 1, kWide);
  sizes_[AudioLayers] = number("the number of layers of the encoder", 1, kDeep);
  sizes_[TextLength] = number("the length of texts", 1, kLong);
  sizes_[TextWidth] = number("the width of the decoder", 1, kWide);
  sizes_[TextHeads] = number("the number of heads of the decoder", 1, kWide);
  sizes_[TextLayers] = number("the number of layers of the decoder", 1, kDeep);
  sizes_[Mels] = number("the number of mel bands", 1, 1 << 10);
  number("the type of numbers");  // each tensor says its own
  if (sizes_[AudioWidth] != sizes_[TextWidth])
    fail("encoder and decoder are ", sizes_[AudioWidth], " and ", sizes_[TextWidth], " wide, and not equally");
}

// The filters are those that every Whisper has, and are computed here.
void GgmlReader::read_filters() {
  constexpr double kRounding = 1e-5;
  if (number("the number of mel filters") != sizes_[Mels] || number("the number of bins") != kBins)
    fail("it has mel filters of other sizes than Whisper's");
  const std::vector<float> own = mel_triangles(sizes_[Mels]);
  const auto theirs = bytes(own.size() * sizeof(float), "the mel filters");
  for (std::size_t k = 0; k < own.size(); ++k) {
    float x = 0;
    std::memcpy(&x, theirs.data() + k * sizeof x, sizeof x);
    if (!(std::fabs(x - own[k]) < kRounding)) fail("its mel filters are not Whisper's: number ", k, " is ", x);
  }
}

void GgmlReader::read_vocabulary() {
  constexpr std::int32_t kLongest = 1 << 12;
  const std::int32_t count = number("the number of tokens", 0, sizes_[Vocab]);
  std::vector<std::string> tokens;
  for (std::int32_t k = 0; k < count; ++k) {
    budget_.take(sizeof(std::string) * 2);
    tokens.push_back(text(kLongest, "a token"));
    budget_.parsed(tokens.back().size());
    budget_.take(tokens.back().size());
  }
  tokenizer_ = ggml_tokenizer(tokens, sizes_[Vocab], file_->path(), budget_);
}

std::string GgmlReader::name_of(const std::string& theirs) const {
  for (const WeightName& row : kOpenAiNames)
    if (const auto ours = rewritten(theirs, row.theirs, row.ours)) return *ours;
  for (const char* part : {"encoder", "decoder"})
    for (const WeightName& row : kOpenAiLayer)
      if (const auto ours = rewritten(theirs, str_cat(part, ".blocks.#.", row.theirs),
                                      str_cat("model.", part, ".layers.#.", row.ours)))
        return *ours;
  fail("the tensor ", in_quotes(theirs), " is no part of a Whisper");
}

void GgmlReader::read_tensor() {
  constexpr std::int32_t kAxes = 4, kName = 256, kExtent = 1 << 28;
  const std::int32_t axes = number("the number of axes of a tensor", 1, kAxes);
  const std::int32_t length = number("the length of a name", 1, kName);
  const std::int32_t type = number("the type of a tensor", 0, 255);
  StoredTensor t;
  for (std::int32_t k = 0; k < axes; ++k) t.shape.insert(t.shape.begin(), number("an extent", 1, kExtent));
  const auto name = bytes(static_cast<std::uint64_t>(length), "a name");
  const std::string theirs(reinterpret_cast<const char*>(name.data()), name.size());
  const GgmlType* kind = ggml_type(static_cast<std::uint32_t>(type));
  if (!kind) fail("the tensor ", in_quotes(theirs), " has the type ", type, ", which is not known");
  if (t.shape.back() % kind->elements != 0)
    fail("rows of ", in_quotes(theirs), " are ", t.shape.back(), " long, and no whole blocks of ", kind->name);
  std::uint64_t n = 1;
  for (const std::int64_t extent : t.shape) {
    n *= static_cast<std::uint64_t>(extent);
    if (n > file_->bytes().size() * 64) fail("truncated: it ends inside ", in_quotes(theirs));
  }
  t.bytes = bytes(n / static_cast<std::uint64_t>(kind->elements) * static_cast<std::uint64_t>(kind->bytes), theirs);
  t.type = kind->name, t.dtype = kind->dtype, t.quant = kind->quant, t.ggml = type;
  constexpr std::size_t kAligned = 8;
  if (t.dtype && std::bit_cast<std::uintptr_t>(t.bytes.data()) % kAligned != 0) {  // nothing in the file is aligned
    budget_.parsed(t.bytes.size());
    budget_.take(t.bytes.size());
    const auto copy = std::make_shared<const std::vector<std::byte>>(t.bytes.begin(), t.bytes.end());
    owners_.push_back(copy);
    t.bytes = *copy;
  }
  if (theirs.starts_with("encoder.conv") && theirs.ends_with("bias")) t.shape = {t.elements()};  // columns there
  if (!tensors_.emplace(name_of(theirs), std::move(t)).second)
    fail("the tensor ", in_quotes(theirs), " is there twice");
}

std::string GgmlReader::config() const {
  ConfigText c;
  const int end = tokenizer_->vocabulary().eos;
  c.set("model_type", "whisper").set("architectures", std::vector<std::string>{"WhisperForConditionalGeneration"});
  c.set("vocab_size", sizes_[Vocab]).set("num_mel_bins", sizes_[Mels]).set("d_model", sizes_[AudioWidth]);
  c.set("encoder_layers", sizes_[AudioLayers]).set("encoder_attention_heads", sizes_[AudioHeads]);
  c.set("decoder_layers", sizes_[TextLayers]).set("decoder_attention_heads", sizes_[TextHeads]);
  c.set("encoder_ffn_dim", 4 * sizes_[AudioWidth]).set("decoder_ffn_dim", 4 * sizes_[TextWidth]);
  c.set("max_source_positions", sizes_[AudioLength]).set("max_target_positions", sizes_[TextLength]);
  c.set("activation_function", "gelu").set("eos_token_id", end).set("pad_token_id", end);
  c.set("decoder_start_token_id", end + 1);
  c.set("suppress_tokens", silenced_tokens(*tokenizer_));
  std::vector<double> first{static_cast<double>(end)};
  for (const int id : tokenizer_->encode(" ", false)) first.push_back(id);
  c.set("begin_suppress_tokens", first);
  return c.str();
}

GgmlWhisper GgmlReader::read() {
  const auto all = file_->bytes();
  if (all.size() < kMagic.size() || std::memcmp(all.data(), kMagic.data(), kMagic.size()) != 0)
    fail("it is no file of whisper.cpp");
  read_sizes();
  read_filters();
  budget_.parsed(at_);
  read_vocabulary();
  while (at_ < all.size()) read_tensor();
  return {Weights::of(file_, "ggml", config(), std::move(tensors_), std::move(owners_), options_), tokenizer_};
}

}  // namespace

bool is_ggml_whisper(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char first[kMagic.size()] = {};
  return file.read(first, sizeof first) && std::string_view(first, sizeof first) == kMagic;
}

GgmlWhisper read_ggml_whisper(std::shared_ptr<const MappedFile> file, const ReadOptions& o) {
  return GgmlReader(std::move(file), o).read();
}

GgmlWhisper read_ggml_whisper(const std::string& path, const ReadOptions& o) {
  return read_ggml_whisper(o.map ? MappedFile::open(path) : MappedFile::read(path), o);
}

}  // namespace lc
