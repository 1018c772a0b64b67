// Generators of GGUF, SentencePiece and llama2.c files.
#include <bit>
#include <cstring>

#include "lightcone/io/checkpoints/quants.h"
#include "mutator.h"

namespace fuzz {
namespace {

constexpr std::uint64_t kHidden = 32, kInner = 64, kHeads = 2, kContext = 16;
const std::string kSpace = "\xE2\x96\x81";

template <class T>
void put(std::string& s, const T& v) {
  s.append(reinterpret_cast<const char*>(&v), sizeof v);
}
std::string random_bytes(Mutator& l, std::size_t bytes) {
  std::string s(bytes, 0);
  const std::uint64_t seed = l.draw(1u << 30);
  for (std::size_t i = 0; i < bytes; ++i) s[i] = static_cast<char>((seed + i * 2654435761u) >> 12 & 0x3b);
  return s;
}
// May truncate the file, append to it or change one of its bytes.
std::string ended(Mutator& l, std::string s) {
  if (!l.lies()) return s;
  const std::size_t kind = l.draw(3);
  if (kind == 0) s.resize(l.draw(s.size() + 1));
  if (kind == 1) s += random_bytes(l, 1 + l.draw(64));
  if (kind == 2 && !s.empty()) s[l.draw(s.size())] = static_cast<char>(l.draw(256));
  return s;
}

enum : std::uint32_t { U8, I8, U16, I16, U32, I32, F32, Bool, Text, Array, U64, I64, F64 };
constexpr std::size_t kBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

class GgufMaker {
 public:
  explicit GgufMaker(Mutator& l) : l_(l) {}
  std::string make();

 private:
  void text(std::string& s, const std::string& t) {
    const std::string w = l_.word(t);
    put(s, l_.number(w.size()));
    s += w;
  }
  // Appends the number as a value of the GGUF type `type`.
  void scalar(std::string& s, std::uint32_t type, double v) {
    const auto whole = static_cast<std::int64_t>(v);
    if (type == F32) put(s, static_cast<float>(v));
    else if (type == F64) put(s, v);
    else if (type == Text) text(s, "x");
    else if (type == Array) put(s, std::uint32_t{U8}), put(s, std::uint64_t{3}), s += "abc";
    else if (type <= F64) s.append(reinterpret_cast<const char*>(&whole), kBytes[type]);
  }
  void number(const std::string& key, std::uint32_t type, double v) {
    std::string s;
    text(s, key);
    const auto stated = static_cast<std::uint32_t>(l_.lies() ? l_.draw(15) : type);
    put(s, stated);
    scalar(s, l_.lies() ? type : stated,
           static_cast<double>(
               static_cast<std::int64_t>(l_.number(static_cast<std::uint64_t>(static_cast<std::int64_t>(v))))));
    add(s);
  }
  void real(const std::string& key, float v) {
    static constexpr float kOdd[] = {
        0, -1, 1e30f, -1e30f, std::bit_cast<float>(0x7fc00000u), std::bit_cast<float>(0x7f800000u)};
    std::string s;
    text(s, key);
    put(s, static_cast<std::uint32_t>(l_.lies() ? l_.draw(15) : std::uint64_t{F32}));
    put(s, l_.lies() ? kOdd[l_.draw(std::size(kOdd))] : v);
    add(s);
  }
  void words(const std::string& key, const std::string& v) {
    std::string s;
    text(s, key);
    put(s, static_cast<std::uint32_t>(l_.lies() ? l_.draw(15) : std::uint64_t{Text}));
    text(s, v);
    add(s);
  }
  template <class Element>
  void array(const std::string& key, std::uint32_t type, std::size_t n, const Element& element) {
    std::string s;
    text(s, key);
    put(s, static_cast<std::uint32_t>(l_.lies() ? l_.draw(15) : std::uint64_t{Array}));
    const auto stated = static_cast<std::uint32_t>(l_.lies() ? l_.draw(15) : type);
    put(s, stated);
    const std::size_t really = l_.count(n);
    put(s, l_.number(really));
    const std::uint32_t written = l_.lies() ? type : stated;
    for (std::size_t i = 0; i < really; ++i) element(s, written, n ? i % n : 0);
    add(s);
  }
  void add(const std::string& s) {
    if (l_.lies()) return;  // omits the value
    metadata_ += s, ++values_;
    if (l_.lies()) metadata_ += s, ++values_;  // writes the value twice
  }
  void tensor(const std::string& name, std::vector<std::uint64_t> shape, std::uint32_t type);
  void vocabulary();
  void numbers_of(const std::string& arch);

  Mutator& l_;
  std::string metadata_, table_, data_;
  std::uint64_t values_ = 0, tensors_ = 0;
  std::vector<std::string> pieces_;
};

void GgufMaker::tensor(const std::string& name, std::vector<std::uint64_t> shape, std::uint32_t type) {
  std::uint64_t bytes = 1;
  for (std::uint64_t d : shape) bytes *= d;
  const lc::GgmlType& t = *lc::ggml_type(type);
  bytes = bytes / static_cast<std::uint64_t>(t.elements) * static_cast<std::uint64_t>(t.bytes);
  if (l_.lies()) return;
  text(table_, name);
  const std::size_t rank = l_.count(shape.size());
  put(table_, static_cast<std::uint32_t>(l_.number(rank)));
  for (std::size_t i = 0; i < rank; ++i) put(table_, l_.number(shape[i % shape.size()]));
  put(table_, static_cast<std::uint32_t>(l_.lies() ? l_.draw(46) : type));
  put(table_, l_.number(data_.size()));
  data_ += random_bytes(l_, bytes);
  data_.resize((data_.size() + 31) / 32 * 32);
  ++tensors_;
}

void GgufMaker::vocabulary() {
  const std::size_t kind = l_.draw(5);
  if (kind == 3) return;  // no vocabulary
  if (kind == 0) pieces_ = {"<unk>", "<s>", "</s>", kSpace, "a", kSpace + "a", "b", "ab", "<0x41>", "<|im_end|>"};
  if (kind == 1)
    pieces_ = {"a",
               "b",
               "ab",
               "\xC4\xA0",
               "\xC4\xA0"
               "ab",
               "1",
               "<|endoftext|>",
               "c"};
  if (kind == 2) pieces_ = {"[UNK]", "[CLS]", "[SEP]", kSpace + "a", "b", kSpace + "ab", "abc", "c"};
  if (kind == 4) pieces_ = {"<pad>", "</s>", "<unk>", kSpace, "a", kSpace + "a", "b", "ab", "<x>", kSpace + "ab"};
  const std::size_t n = pieces_.size();
  if (l_.draw(2)) words("tokenizer.chat_template", "{{ messages }}");
  words("tokenizer.ggml.model", kind == 0 ? "llama" : kind == 1 ? "gpt2" : kind == 2 ? "bert" : "t5");
  if (kind == 1) words("tokenizer.ggml.pre", l_.draw(2) ? "llama-bpe" : "gpt-2");
  array("tokenizer.ggml.tokens", Text, n, [&](std::string& s, std::uint32_t type, std::size_t i) {
    type == Text ? text(s, pieces_[i]) : scalar(s, type, static_cast<double>(i));
  });
  array("tokenizer.ggml.scores", F32, n,
        [&](std::string& s, std::uint32_t type, std::size_t i) { scalar(s, type, -static_cast<double>(i)); });
  array("tokenizer.ggml.token_type", I32, n, [&](std::string& s, std::uint32_t type, std::size_t i) {
    const int kind_of = pieces_[i] == "<0x41>" ? 6 : pieces_[i].size() > 2 && pieces_[i][0] == '<' ? 3 : 1;
    scalar(s, type, kind_of);
  });
  if (kind == 1)
    array("tokenizer.ggml.merges", Text, 2, [&](std::string& s, std::uint32_t type, std::size_t i) {
      type == Text ? text(s, i ? "\xC4\xA0 ab" : "a b") : scalar(s, type, 1);
    });
  if (kind == 4) {
    const std::string map = charsmap(l_);
    if (l_.draw(2))
      array("tokenizer.ggml.precompiled_charsmap", l_.draw(2) ? I8 : U8, map.size(),
            [&](std::string& s, std::uint32_t type, std::size_t i) { scalar(s, type, map[i]); });
    for (const char* flag : {"add_space_prefix", "remove_extra_whitespaces", "escape_whitespaces"})
      if (l_.draw(2)) number(std::string("tokenizer.ggml.") + flag, Bool, l_.draw(2));
  }
  number("tokenizer.ggml.eos_token_id", U32, kind == 4 ? 1 : 2);
  number("tokenizer.ggml.bos_token_id", U32, 1);
  number("tokenizer.ggml.unknown_token_id", U32, kind == 4 ? 2 : 0);
  if (kind == 2) number("tokenizer.ggml.cls_token_id", U32, 1), number("tokenizer.ggml.seperator_token_id", U32, 2);
  if (l_.draw(2)) number("tokenizer.ggml.add_bos_token", Bool, 1);
  if (l_.draw(2)) number("tokenizer.ggml.eot_token_id", U32, 3);
}

void GgufMaker::numbers_of(const std::string& arch) {
  words("general.architecture", arch);
  number(arch + ".embedding_length", U32, kHidden);
  number(arch + ".feed_forward_length", U32, kInner);
  number(arch + ".block_count", U32, 1);
  number(arch + ".attention.head_count", U32, kHeads);
  number(arch + ".attention.head_count_kv", U32, 1);
  number(arch + ".context_length", U32, kContext);
  if (l_.draw(2)) number(arch + ".rope.dimension_count", U32, kHidden / kHeads);
  if (l_.draw(2)) number(arch + ".attention.sliding_window", U32, 4);
  real(arch + ".rope.freq_base", 10000);
  real(arch + ".attention.layer_norm_rms_epsilon", 1e-5f);
  if (l_.draw(2)) words(arch + ".rope.scaling.type", "linear"), real(arch + ".rope.scaling.factor", 2);
  if (l_.draw(2)) number("general.alignment", U32, 32);
  if (l_.draw(2)) words("general.name", "a model");
}

std::string GgufMaker::make() {
  vocabulary();
  const std::string arch = l_.draw(3) ? "llama" : "qwen2";
  numbers_of(arch);
  const std::uint64_t vocab = pieces_.empty() ? 8 : pieces_.size(), kv = kHidden / kHeads;
  static constexpr std::uint32_t kTypes[] = {0, 1, 30, 8, 2, 20, 39};  // the last two: IQ4_NL, MXFP4
  const auto type = [&] { return kTypes[l_.draw(std::size(kTypes))]; };
  tensor("token_embd.weight", {kHidden, vocab}, type());
  for (const char* norm : {"blk.0.attn_norm.weight", "blk.0.ffn_norm.weight", "output_norm.weight"})
    tensor(norm, {kHidden}, 0);
  for (const char* square : {"blk.0.attn_q.weight", "blk.0.attn_output.weight"})
    tensor(square, {kHidden, kHidden}, type());
  for (const char* key : {"blk.0.attn_k.weight", "blk.0.attn_v.weight"}) tensor(key, {kHidden, kv}, type());
  for (const char* wide : {"blk.0.ffn_gate.weight", "blk.0.ffn_up.weight"}) tensor(wide, {kHidden, kInner}, type());
  tensor("blk.0.ffn_down.weight", {kInner, kHidden}, type());
  if (l_.draw(3) == 0) tensor("rope_freqs.weight", {kv / 2}, 0);
  // Blocks of up to 256 values, of any format.
  const lc::QuantInfo& q = lc::kQuantFormats[l_.draw(std::size(lc::kQuantFormats))];
  tensor("blk.0.more.weight", {256, 1 + l_.draw(3)}, q.ggml);
  std::string s = "GGUF";
  put(s, static_cast<std::uint32_t>(l_.number(3)));
  put(s, l_.number(tensors_)), put(s, l_.number(values_));
  s += metadata_ + table_;
  s.resize((s.size() + 31) / 32 * 32);
  return ended(l_, s + data_);
}

std::string varint(std::uint64_t v) {
  std::string s;
  for (; v >= 128; v >>= 7) s += static_cast<char>(128 | (v & 127));
  return s += static_cast<char>(v);
}

// Writes fields of protocol buffers.
class ProtoMaker {
 public:
  explicit ProtoMaker(Mutator& l) : l_(l) {}
  void bytes(std::uint64_t field, const std::string& v) {
    if (l_.lies()) return;
    tag(field, 2), out += varint(l_.number(v.size())) + v;
  }
  void number(std::uint64_t field, std::uint64_t v) { tag(field, 0), out += varint(l_.number(v)); }
  void real(std::uint64_t field, float v) {
    tag(field, 5), put(out, l_.lies() ? std::bit_cast<float>(0x7fc00000u) : v);
  }
  std::string out;

 private:
  void tag(std::uint64_t field, std::uint64_t type) {
    if (l_.lies()) field = l_.draw(50);
    if (l_.lies()) type = l_.draw(8);
    out += varint(field << 3 | type);
  }
  Mutator& l_;
};

}  // namespace

Files make_gguf(Mutator& l) { return {{{"model.gguf", GgufMaker(l).make()}}}; }

// A SentencePiece normalization table (double-array trie) of two rules: "b" becomes "a", "ab" is removed.
std::string charsmap(Mutator& l) {
  std::vector<std::uint32_t> units(256);
  const auto unit = [](std::uint32_t byte, std::uint32_t offset, bool leaf) {
    return byte | (leaf ? 1u << 8 : 0) | offset << 10;
  };
  units[0] = unit(0, 1, false);
  units[1 ^ 'b'] = unit('b', 2, true), units[(1 ^ 'b') ^ 2] = 1u << 31;
  units[1 ^ 'a'] = unit('a', 8, false);
  units[(1 ^ 'a') ^ 8 ^ 'b'] = unit('b', 16, true), units[((1 ^ 'a') ^ 8 ^ 'b') ^ 16] = 1u << 31 | 1;
  std::string s;
  put(s, static_cast<std::uint32_t>(l.number(units.size() * 4)));
  for (const std::uint32_t u : units) put(s, l.lies() ? static_cast<std::uint32_t>(l.draw(1u << 31)) : u);
  return s + std::string("a\0\0", 3);
}

Files make_sentencepiece(Mutator& l) {
  ProtoMaker p(l);
  std::vector<std::pair<std::string, std::uint64_t>> pieces = {{"<unk>", 2},
                                                               {"<s>", 3},
                                                               {"</s>", 3},
                                                               {kSpace, 1},
                                                               {"a", 1},
                                                               {kSpace + "a", 1},
                                                               {"b", 1},
                                                               {"ab", 1 + l.draw(2) * 4},
                                                               {"<|end|>", 3 + l.draw(2)}};
  const bool bytes = l.draw(4) == 0;
  static constexpr char kDigits[] = "0123456789ABCDEF";
  for (std::size_t b = 0; bytes && b < 256; ++b)
    pieces.emplace_back(std::string("<0x") + kDigits[b >> 4] + kDigits[b & 15] + ">", 6);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    ProtoMaker q(l);
    q.bytes(1, l.word(pieces[i].first));
    q.real(2, -static_cast<float>(i));
    if (pieces[i].second != 1) q.number(3, pieces[i].second);
    p.bytes(1, q.out);
  }
  ProtoMaker trainer(l), normalizer(l);
  trainer.number(3, 1 + l.draw(4)), trainer.number(4, pieces.size()), trainer.number(40, 0), trainer.number(41, 1),
      trainer.number(42, 2);
  if (bytes) trainer.number(35, 1);
  if (l.draw(2)) trainer.number(24, l.draw(2)), trainer.bytes(44, "?");
  p.bytes(2, trainer.out);
  normalizer.bytes(1, "identity"), normalizer.number(3, l.draw(2)), normalizer.number(4, l.draw(2));
  if (l.draw(2)) normalizer.bytes(2, charsmap(l));
  p.bytes(3, normalizer.out);
  return {{{"tokenizer.model", ended(l, p.out)}}};
}

Files make_llama2c(Mutator& l) {
  const bool own_head = l.draw(2);
  const std::int64_t dim = 8, inner = 12, layers = static_cast<std::int64_t>(1 + l.draw(2)), heads = 2, kv_heads = 1,
                     vocab = 5, context = 4;
  std::string s;
  for (std::int64_t n : {dim, inner, layers, heads, kv_heads, own_head ? -vocab : vocab, context})
    put(s, static_cast<std::int32_t>(l.number(static_cast<std::uint64_t>(n))));
  const std::int64_t kv = dim / heads * kv_heads, layer = 2 * dim + 2 * dim * dim + 2 * kv * dim + 3 * inner * dim,
                     floats = vocab * dim * (own_head ? 2 : 1) + layers * layer + dim + context * dim / heads;
  return {{{"model.bin", ended(l, s + random_bytes(l, static_cast<std::size_t>(floats) * 4))}}};
}

Files make_llama2c_tokenizer(Mutator& l) {
  const std::vector<std::string> pieces = {"<unk>", "<s>", "</s>", " ", "a", " a", "b", "ab", "<0x41>"};
  std::string s;
  put(s, static_cast<std::int32_t>(l.number(6)));
  const std::size_t n = l.count(pieces.size());
  for (std::size_t i = 0; i < n; ++i) {
    const std::string p = l.word(pieces[i % pieces.size()]);
    put(s, l.lies() ? std::bit_cast<float>(0x7fc00000u) : -static_cast<float>(i));
    put(s, static_cast<std::int32_t>(l.number(p.size())));
    s += p;
  }
  return {{{"tokenizer.bin", ended(l, s)}}};
}

}  // namespace fuzz
