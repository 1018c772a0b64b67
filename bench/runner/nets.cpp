// Networks, written with the library's functions; names and shapes of parameters are as in bench/peers/nets_torch.py.
#include "workload.h"

namespace lc::bench {
namespace {

using i64 = std::int64_t;

Tensor dense(Net& net, Tensor x, const std::string& name, i64 in, i64 out) {
  return linear(x, net.parameter(name + ".weight", {out, in}), net.parameter(name + ".bias", {out}));
}

std::unique_ptr<Workload> mlp(const Json& w) {
  Net net(w);
  Tensor x = net.input("x", {w.at("batch").get<i64>(), 784});
  x = relu(dense(net, x, "fc1", 784, 512));
  x = relu(dense(net, x, "fc2", 512, 512));
  return net.finish(dense(net, x, "fc3", 512, 10));
}

// Measures the cost of a run with nothing to compute.
std::unique_ptr<Workload> scalar(const Json& w) {
  Net net(w);
  return net.finish(net.input("a", {1}) + net.input("b", {1}));
}

std::unique_ptr<Workload> vgg19(const Json& w) {
  Net net(w);
  Tensor x = net.input("x", {w.at("batch").get<i64>(), 3, 224, 224});
  i64 channels = 3, n = 0;
  for (const i64 width :
       {64, 64, 0, 128, 128, 0, 256, 256, 256, 256, 0, 512, 512, 512, 512, 0, 512, 512, 512, 512, 0}) {
    if (width == 0) {
      x = max_pool(x, {2}, {2});
      continue;
    }
    const std::string name = str_cat("conv", n++);
    x = relu(conv(x, net.parameter(name + ".weight", {width, channels, 3, 3}), net.parameter(name + ".bias", {width}),
                  {.padding = {1}}));
    channels = width;
  }
  x = relu(dense(net, flatten(x, 1), "fc1", 25088, 4096));
  x = relu(dense(net, x, "fc2", 4096, 4096));
  return net.finish(dense(net, x, "fc3", 4096, 1000));
}

Tensor conv_bn(Net& net, Tensor x, const std::string& name, i64 in, i64 out, int kernel, int stride, int groups = 1) {
  const Tensor y = conv(x, net.parameter(name + ".conv.weight", {out, in / groups, kernel, kernel}),
                        {.stride = {stride}, .padding = {kernel / 2}, .groups = groups});
  return batch_norm(y, net.parameter(name + ".norm.running_mean", {out}),
                    net.parameter(name + ".norm.running_var", {out}), net.parameter(name + ".norm.weight", {out}),
                    net.parameter(name + ".norm.bias", {out}));
}

std::unique_ptr<Workload> resnet50(const Json& w) {
  Net net(w);
  Tensor x = net.input("x", {w.at("batch").get<i64>(), 3, 224, 224});
  x = max_pool(relu(conv_bn(net, x, "stem", 3, 64, 7, 2)), {3}, {2}, {1});
  i64 in = 64;
  const int blocks[] = {3, 4, 6, 3};
  for (int stage = 0; stage < 4; ++stage)
    for (int b = 0; b < blocks[stage]; ++b) {
      const std::string name = str_cat("layer", stage, ".", b);
      const i64 width = i64{64} << stage, out = width * 4;
      const int stride = stage > 0 && b == 0 ? 2 : 1;
      Tensor y = relu(conv_bn(net, x, name + ".a", in, width, 1, 1));
      y = relu(conv_bn(net, y, name + ".b", width, width, 3, stride));
      y = conv_bn(net, y, name + ".c", width, out, 1, 1);
      x = relu(y + (b == 0 ? conv_bn(net, x, name + ".down", in, out, 1, stride) : x));
      in = out;
    }
  return net.finish(dense(net, mean(x, {2, 3}), "fc", 2048, 1000));
}

// MobileNetV2: the convolutions between the 1x1 convolutions are depthwise.
std::unique_ptr<Workload> mobilenet(const Json& w) {
  Net net(w);
  Tensor x = net.input("x", {w.at("batch").get<i64>(), 3, 224, 224});
  x = relu6(conv_bn(net, x, "stem", 3, 32, 3, 2));
  i64 in = 32;
  const struct {
    int wider, out, count, stride;
  } stages[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  for (int stage = 0; const auto& s : stages) {
    for (int b = 0; b < s.count; ++b) {
      const std::string name = str_cat("layer", stage, ".", b);
      const i64 width = in * s.wider;
      const int stride = b == 0 ? s.stride : 1;
      Tensor y = s.wider > 1 ? relu6(conv_bn(net, x, name + ".a", in, width, 1, 1)) : x;
      y = relu6(conv_bn(net, y, name + ".b", width, width, 3, stride, static_cast<int>(width)));
      y = conv_bn(net, y, name + ".c", width, s.out, 1, 1);
      x = stride == 1 && in == s.out ? x + y : y;
      in = s.out;
    }
    ++stage;
  }
  x = relu6(conv_bn(net, x, "head", 320, 1280, 1, 1));
  return net.finish(dense(net, mean(x, {2, 3}), "fc", 1280, 1000));
}

// A single depthwise convolution.
std::unique_ptr<Workload> depthwise(const Json& w) {
  Net net(w);
  const i64 channels = w.at("channels").get<i64>(), size = w.at("size").get<i64>();
  const int kernel = w.value("kernel", 3), stride = w.value("stride", 1);
  const Tensor x = net.input("x", {w.at("batch").get<i64>(), channels, size, size});
  return net.finish(relu6(conv_bn(net, x, "dw", channels, channels, kernel, stride, static_cast<int>(channels))));
}

Tensor norm(Net& net, Tensor x, const std::string& name, i64 width) {
  return layer_norm(x, {x.extent(-1)}, net.parameter(name + "norm.weight", {width}),
                    net.parameter(name + "norm.bias", {width}));
}

// Projects attention over heads of x [batch, seq, width]. With `joined` one product gives queries, keys and values.
Tensor attend(Net& net, Tensor x, const std::string& in, i64 batch, i64 seq, i64 width, i64 heads, bool causal,
              bool joined) {
  const i64 size = width / heads;
  const auto split = [&](const Tensor& t) { return t.reshape({batch, seq, heads, size}).permute({0, 2, 1, 3}); };
  std::vector<Tensor> qkv;
  if (joined) {
    const Tensor all = dense(net, x, in + "qkv", width, 3 * width);
    for (i64 k = 0; k < 3; ++k) qkv.push_back(split(all.slice(2, k * width, (k + 1) * width)));
  } else {
    for (const char* name : {"query", "key", "value"}) qkv.push_back(split(dense(net, x, in + name, width, width)));
  }
  const Tensor y = scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], AttentionOptions{.is_causal = causal});
  return dense(net, y.permute({0, 2, 1, 3}).reshape({batch, seq, width}), in + "out", width, width);
}

// Sums the embeddings of words, positions and segment kinds.
Tensor embedded(Net& net, i64 batch, i64 seq, i64 width, i64 vocabulary) {
  const Tensor words = embedding(net.ids("ids", {batch, seq}, vocabulary), net.parameter("word", {vocabulary, width}));
  const Tensor kinds = embedding(net.ids("kinds", {batch, seq}, 2), net.parameter("kind", {2, width}));
  return norm(net, words + net.parameter("place", {512, width}).slice(0, 0, seq) + kinds, "embedding_", width);
}

std::unique_ptr<Workload> bert(const Json& w) {
  Net net(w);
  const i64 batch = w.at("batch").get<i64>(), seq = w.at("tokens").get<i64>(), width = 768;
  const int layers = w.value("layers", 1);
  const bool joined = w.value("joined", false);
  Tensor x = w.contains("vocabulary") ? embedded(net, batch, seq, width, w.at("vocabulary").get<i64>())
                                      : net.input("x", {batch, seq, width});
  for (int k = 0; k < layers; ++k) {
    const std::string in = layers > 1 ? str_cat("layer", k, ".") : std::string();
    x = norm(net, x + attend(net, x, in, batch, seq, width, 12, false, joined), in + "attention_", width);
    const Tensor y = dense(net, gelu(dense(net, x, in + "up", width, 4 * width)), in + "down", 4 * width, width);
    x = norm(net, x + y, in + "output_", width);
  }
  return net.finish(x);
}

std::unique_ptr<Workload> gpt(const Json& w) {
  Net net(w);
  const i64 batch = w.at("batch").get<i64>(), seq = w.at("tokens").get<i64>(), width = w.value("width", 384);
  Tensor x = net.input("x", {batch, seq, width});
  x = x +
      attend(net, norm(net, x, "attention_", width), "", batch, seq, width, width / 64, true, w.value("joined", false));
  const Tensor y = dense(net, norm(net, x, "mlp_", width), "up", width, 4 * width);
  return net.finish(x + dense(net, gelu(y, w.value("gelu", "none")), "down", 4 * width, width));
}

}  // namespace

std::unique_ptr<Workload> make_net(const Json& w) {
  const auto kind = w.at("kind").get<std::string>();
  if (kind == "mlp") return mlp(w);
  if (kind == "scalar") return scalar(w);
  if (kind == "vgg19") return vgg19(w);
  if (kind == "resnet50") return resnet50(w);
  if (kind == "mobilenet") return mobilenet(w);
  if (kind == "depthwise") return depthwise(w);
  if (kind == "bert") return bert(w);
  if (kind == "gpt") return gpt(w);
  throw Error("bench", "no workload is of the kind " + kind);
}

}  // namespace lc::bench
