// verify() holds each pass against the f64 reference for whole networks on every GPU device.
#include "gpu_devices.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/verify/verify.h"
#include "nets.h"

using namespace lc;
using namespace lc::test;

namespace {

class Networks : public OnGpu {
 protected:
  void right(const std::string& name, const Graph& g, const Bindings& sizes = {}) {
    const Compiler c = generic() | compiler({.fallback = cpu({.threads = 1})});
    const VerifyReport r = verify(g, c, {.trials = 1, .wild = false, .sizes = sizes, .shrink = false});
    EXPECT_TRUE(r.ok()) << name << "\n" << r.str();
    EXPECT_GT(r.decided(), 0.9) << name;
  }
};
LIGHTCONE_ON_GPUS(Networks);

}  // namespace

TEST_P(Networks, OfLinearLayers) {
  right("seed", seed_example());
  right("custom pass", custom_pass_example());
  right("typed mlp", typed_mlp_example(), {{"batch", 5}});
  right("mlp", mlp());
}
TEST_P(Networks, OfAttention) {
  right("attention", attention_alone());
  right("bert", bert());
  right("gpt", gpt());
}
TEST_P(Networks, OfConvolutions) {
  right("vgg", vgg());
  right("resnet", resnet());
  right("mobilenet", mobilenet());
}
TEST_P(Networks, Llama) {
  const Bindings prompt = {{"seq", 7}, {"past", 5}};
  right("llama", llama(), prompt);
  right("llama, bf16 cache", llama(DType::BF16), prompt);
  right("llama, Q8_0", llama(DType::F32, QuantFormat::Q8_0), prompt);
}

// More operands than a kernel of any device may take.
TEST_P(Networks, OfVeryManyOperands) {
  Graph g;
  std::vector<Tensor> parts;
  for (int k = 0; k < 150; ++k) parts.push_back(g.input(str_cat("x", k), {3}));
  g.output("side by side", lc::cat(parts, 0));
  Tensor all = parts[0];
  for (const Tensor& t : parts) all = all * 0.5 + t;
  g.output("sum", all);
  right("150 operands", g);
}
