// A model whose logits are NaN reports the layer they come from and generates nothing.
#include <algorithm>
#include <cmath>
#include <limits>

#include "data.h"
#include "gguf_writer.h"
#include "lightcone/base/error.h"
#include "lightcone/models/llama/llama.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "on_device.h"

using namespace lc;

namespace {

constexpr float kBad = std::numeric_limits<float>::quiet_NaN();

// The tiny Llama with `layers` equal layers.
Gguf tiny(unsigned layers) {
  Gguf g = tiny_llama_with_tokens();
  g.metadata["llama.block_count"] = layers;
  const auto first = g.tensors;
  for (unsigned k = 1; k < layers; ++k)
    for (const auto& [name, t] : first)
      if (name.starts_with("blk.0.")) g.tensors[str_cat("blk.", k, ".", name.substr(6))] = t;
  return g;
}

// Returns the Error of feeding tokens, or "".
std::string refusal(const Gguf& g, const LlamaOptions& o, std::vector<int> tokens = {1, 4, 5}) {
  const TempDir dir;
  spit(dir / "x.gguf", g.bytes());
  const Llama m = Llama::load(dir / "x.gguf", o);
  LlamaSession s(m);
  try {
    s.feed(tokens);
    return "";
  } catch (const Error& e) {
    EXPECT_EQ(s.tokens().size(), 0u) << "tokens that gave no logits were kept";
    return e.what();
  }
}

}  // namespace

TEST(NaN, LogitsNameTheLayerTheyComeFrom) {
  for (const bool compiled : {false, true}) {
    LlamaOptions o{.threads = 1};
    if (!compiled) o.compiler = Compiler();
    EXPECT_EQ(refusal(tiny(3), o), "");
    for (const auto& [tensor, layer] : {std::pair{"blk.1.attn_q.weight", "model.layers.1.self_attn.q_proj.weight"},
                                        std::pair{"blk.1.attn_v.weight", "model.layers.1.self_attn.v_proj.weight"},
                                        std::pair{"blk.2.attn_norm.weight", "model.layers.2.input_layernorm.weight"},
                                        std::pair{"blk.0.ffn_down.weight", "model.layers.0.mlp.down_proj.weight"},
                                        std::pair{"blk.2.ffn_up.weight", "model.layers.2.mlp.up_proj.weight"},
                                        std::pair{"output_norm.weight", "model.norm.weight"}}) {
      Gguf g = tiny(3);
      std::fill(g.tensors.at(tensor).second.begin(), g.tensors.at(tensor).second.end(), kBad);
      const std::string said = refusal(g, o);
      EXPECT_NE(said.find(layer), std::string::npos) << tensor << ": " << said;
      EXPECT_NE(said.find("NaN"), std::string::npos) << said;
    }
  }
}

// One NaN in one row suffices, whichever logit it affects, also with several rows in one run.
TEST(NaN, OneOfThemIsEnough) {
  Gguf g = tiny(2);
  g.tensors.at("blk.1.ffn_gate.weight").second[17] = kBad;
  EXPECT_NE(refusal(g, {.threads = 2}).find("model.layers.1.mlp"), std::string::npos);
  EXPECT_NE(refusal(g, {.chunk = 2, .threads = 2}).find("model.layers.1.mlp"), std::string::npos);
  EXPECT_NE(refusal(g, {.all_logits = true, .threads = 2}).find("model.layers.1.mlp"), std::string::npos);
  Gguf head = tiny(1);
  head.tensors["output.weight"] = head.tensors.at("token_embd.weight");
  head.tensors.at("output.weight").second[3 * 8 + 1] = kBad;  // affects token 3 only
  EXPECT_NE(refusal(head, {.threads = 1}).find("lm_head.weight"), std::string::npos);
}

// Infinite weights first give infinities, and the difference of two infinities is NaN.
TEST(NaN, OfInfinitiesAreFoundWhereTheyAppear) {
  Gguf g = tiny(3);
  for (float& v : g.tensors.at("blk.1.ffn_gate.weight").second) v = v < 0 ? -INFINITY : INFINITY;
  const std::string said = refusal(g, {.threads = 1});
  EXPECT_NE(said.find("model.layers.1.mlp"), std::string::npos) << said;
}

// After the Error, a session continues as if the tokens had not been fed.
TEST(NaN, ASessionGoesOnAfterwards) {
  Gguf g = tiny(2);
  const TempDir dir;
  g.tensors["output.weight"] = g.tensors.at("token_embd.weight");
  spit(dir / "good.gguf", g.bytes());
  for (std::size_t k = 0; k < 8; ++k) g.tensors.at("token_embd.weight").second[3 * 8 + k] = kBad;  // token 3
  spit(dir / "bad.gguf", g.bytes());
  const Llama good = Llama::load(dir / "good.gguf", {.threads = 1});
  const Llama bad = Llama::load(dir / "bad.gguf", {.threads = 1});
  LlamaSession a(good), b(bad);
  a.feed(std::vector<int>{1, 4});
  b.feed(std::vector<int>{1, 4});
  EXPECT_THROW(b.feed(3), Error);
  EXPECT_EQ(b.tokens().size(), 2u);
  const auto want = a.feed(5), have = b.feed(5);
  EXPECT_EQ(std::vector<float>(want.begin(), want.end()), std::vector<float>(have.begin(), have.end()));
}

// exp(x) of a large x, multiplied by weights, one of which is 0.
TEST(NaN, OfAnInfinityIsFollowedToItsBeginning) {
  for (const bool compiled : {false, true}) {
    Graph g;
    const Tensor x = g.input("x", {2, 64}), w = g.input("w", {64, 3});
    matmul(exp(x), w).retrieve("y");
    const Program p = compile(g, compiled ? generic() | test::device({.threads = 1}) : Compiler());
    std::vector<float> weights(192, 1);
    weights[5] = 0;
    Context c(p);
    std::vector<float> points(128, 1);
    points[1] = 1000;
    const auto said = [&](Context::Infinities i) -> std::string {
      try {
        c.set("x", points).set("w", weights).run_checked(i);
        return "";
      } catch (const Error& e) {
        return e.what();
      }
    };
    const std::string nan = said(Context::Infinities::Allowed);
    for (const char* word : {"the output 'y' holds NaN: it first appears in matmul",
                             ", of an infinity that first appears in exp", "nan_test.cpp"})
      EXPECT_NE(nan.find(word), std::string::npos) << nan;
    weights[5] = 1;
    EXPECT_EQ(said(Context::Infinities::Allowed), "");
    const std::string infinity = said(Context::Infinities::Refused);
    for (const char* word : {"the output 'y' holds an infinity: it first appears in exp", "nan_test.cpp"})
      EXPECT_NE(infinity.find(word), std::string::npos) << infinity;
    points[1] = -1000, points[2] = INFINITY;
    const std::string given = said(Context::Infinities::Refused);
    EXPECT_NE(given.find("there is an infinity in 'x'"), std::string::npos) << given;
    points[2] = 1;
    EXPECT_EQ(said(Context::Infinities::Refused), "");
  }
}
