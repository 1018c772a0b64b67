#include "lightcone/models/swin/swin.h"

#include "lightcone/models/blocks/activation.h"
#include "lightcone/models/blocks/config.h"
#include "lightcone/models/blocks/patch_embedding.h"
#include "lightcone/models/blocks/transformer_block.h"
#include "lightcone/models/files/pictures.h"
#include "lightcone/nn/conv.h"
#include "lightcone/ops/creation.h"
#include "lightcone/ops/shape.h"

namespace lc {
namespace {

struct SwinConfig {
  std::vector<std::int64_t> depths, heads;
  std::int64_t width = 96, patch = 4, window = 7, channels = 3, labels = 0;
  double ratio = 4, eps = 1e-5;
  bool bias = true;
  std::string activation = "gelu";
  std::int64_t positions = 0;  // vectors of places that are added to patches; 0: none
};

// Rows and columns of a map.
struct Grid {
  std::int64_t h, w;
};

// Positions of one axis in windows of n x n, in rows: [n n], the row or the column of each.
Tensor places(Graph& g, std::int64_t n, bool columns) {
  const Tensor line = arange(g, n);
  return (columns ? line.reshape({1, n}) : line.reshape({n, 1})).expand({n, n}).reshape({n * n});
}

// A map [batch, h, w, width] as windows [batch windows, n n, width], and back.
Tensor windows_of(const Tensor& x, const Grid& grid, std::int64_t n) {
  const Dim batch = x.extent(0), width = x.extent(3);
  return x.reshape({batch, grid.h / n, n, grid.w / n, n, width})
      .permute({0, 1, 3, 2, 4, 5})
      .reshape({batch * Dim(grid.h / n * (grid.w / n)), n * n, width});
}
Tensor map_of_windows(const Tensor& x, const Dim& batch, const Grid& grid, std::int64_t n) {
  return x.reshape({batch, grid.h / n, grid.w / n, n, n, x.extent(2)})
      .permute({0, 1, 3, 2, 4, 5})
      .reshape({batch, grid.h, grid.w, x.extent(2)});
}

// A map filled up with zeros after its rows and columns, or the part of it that was there before.
Tensor fitted(const Tensor& x, const Grid& from, const Grid& to) {
  if (to.h < from.h || to.w < from.w) return narrow(narrow(x, 1, 0, to.h), 2, 0, to.w);
  return to.h > from.h || to.w > from.w ? x.pad(1, 0, to.h - from.h).pad(2, 0, to.w - from.w) : x;
}

// A layer: a transformer block whose attention is within windows, with a bias for each distance of two positions.
class SwinBlock {
 public:
  SwinBlock(const TransformerBlockOptions& o, std::int64_t window, bool moves)
      : o_(o),
        window_(window),
        moves_(moves),
        query_(o.width, o.width, {.bias = o.query_key_value_bias}),
        key_(o.width, o.width, {.bias = o.query_key_value_bias}),
        value_(o.width, o.width, {.bias = o.query_key_value_bias}),
        output_(o.width, o.width),
        up_(o.width, o.inner),
        down_(o.inner, o.width),
        attention_norm_(o.width, {.eps = o.eps}),
        feed_forward_norm_(o.width, {.eps = o.eps}) {}
  void visit(nn::Visitor& v) {
    v("query", query_)("key", key_)("value", value_)("output", output_)("attention_norm", attention_norm_);
    v("up", up_)("down", down_)("feed_forward_norm", feed_forward_norm_);
    const std::int64_t distances = 2 * window_ - 1;
    v.parameter("bias_table", table_, {distances * distances, o_.heads}, nn::constant_init(0));
  }
  Tensor operator()(const Tensor& x, const Grid& grid) const {  // [batch, h, w, width]
    const Tensor y = x + attend(attention_norm_(x), grid);
    return y + down_(activate(o_.activation, up_(feed_forward_norm_(y))));
  }

 private:
  // A map that windows do not divide is filled up with zeros, which are attended to as in training.
  Tensor attend(const Tensor& x, const Grid& grid) const {
    const auto whole = [&](std::int64_t n) { return (n + window_ - 1) / window_ * window_; };
    const Grid full{whole(grid.h), whole(grid.w)};
    const std::int64_t shift = moves_ && std::min(grid.h, grid.w) > window_ ? window_ / 2 : 0;
    const Dim batch = x.extent(0);
    const auto moved = [&](const Tensor& t, int by) { return shift ? roll(t, {by, by}, {1, 2}) : t; };
    const Tensor in = windows_of(moved(fitted(x, grid, full), -static_cast<int>(shift)), full, window_);
    const std::int64_t n = window_ * window_, count = full.h / window_ * (full.w / window_);
    Tensor mask = bias(x.graph()).reshape({1, 1, o_.heads, n, n});
    if (shift) mask = mask + apart(x.graph(), full, shift).reshape({1, count, 1, n, n});
    mask = mask.expand({batch, count, o_.heads, n, n}).reshape({batch * Dim(count), o_.heads, n, n});
    const auto heads = [&](const Tensor& t) {
      return t.reshape({t.extent(0), n, o_.heads, o_.width / o_.heads}).permute({0, 2, 1, 3});
    };
    const Tensor y =
        scaled_dot_product_attention(heads(query_(in)), heads(key_(in)), heads(value_(in)), {.attn_mask = mask});
    const Tensor out = output_(y.permute({0, 2, 1, 3}).reshape({in.extent(0), n, o_.width}));
    return fitted(moved(map_of_windows(out, batch, full, window_), static_cast<int>(shift)), full, grid);
  }
  // [heads, n n, n n].
  Tensor bias(Graph& g) const {
    const auto distance = [&](bool columns) {
      const Tensor p = places(g, window_, columns);
      return p.unsqueeze(1) - p.unsqueeze(0) + (window_ - 1);
    };
    const Tensor row = distance(false) * (2 * window_ - 1) + distance(true);
    return index_select(table_, 0, row.reshape({-1}))
        .reshape({window_ * window_, window_ * window_, o_.heads})
        .permute({2, 0, 1});
  }
  // -100 where two positions of a window were neighbours only because the map was moved around: [windows, n n, n n].
  Tensor apart(Graph& g, const Grid& grid, std::int64_t shift) const {
    const auto regions = [&](std::int64_t extent) {
      const Tensor at = arange(g, extent);
      return to(ge(at, extent - window_), DType::F32) + to(ge(at, extent - shift), DType::F32);
    };
    const Tensor region = regions(grid.h).reshape({grid.h, 1}) * 3.0 + regions(grid.w).reshape({1, grid.w});
    const Tensor w = windows_of(region.reshape({1, grid.h, grid.w, 1}), grid, window_).squeeze(2);
    return to(ne(w.unsqueeze(1), w.unsqueeze(2)), DType::F32) * -100.0;
  }

  TransformerBlockOptions o_;
  std::int64_t window_;
  bool moves_;
  nn::Linear<> query_, key_, value_, output_, up_, down_;
  nn::LayerNorm<> attention_norm_, feed_forward_norm_;
  Tensor table_;
};

struct SwinStage {
  std::vector<SwinBlock> blocks = {};
  std::optional<std::pair<nn::LayerNorm<>, nn::Linear<>>> merging = {};  // it joins 2 x 2 patches after the blocks
  void visit(nn::Visitor& v) {
    v("blocks", blocks);
    if (merging) v("downsample.norm", merging->first)("downsample.reduction", merging->second);
  }
};

class Swin {
 public:
  explicit Swin(const SwinConfig& c)
      : c_(c),
        patches_(c.channels, c.width, c.patch, {.stride = {static_cast<int>(c.patch)}}),
        patch_norm_(c.width),
        norm_(last_width(c), {.eps = c.eps}),
        classifier_(last_width(c), c.labels) {
    std::int64_t width = c.width;
    for (std::size_t s = 0; s < c.depths.size(); ++s, width *= 2) {
      const TransformerBlockOptions o{.width = width,
                                      .heads = c.heads[s],
                                      .inner = static_cast<std::int64_t>(static_cast<double>(width) * c.ratio),
                                      .eps = c.eps,
                                      .activation = c.activation,
                                      .norm_first = true,
                                      .query_key_value_bias = c.bias};
      SwinStage& stage = stages_.emplace_back();
      for (std::int64_t k = 0; k < c.depths[s]; ++k) stage.blocks.emplace_back(o, c.window, k % 2 == 1);
      if (s + 1 < c.depths.size())
        stage.merging.emplace(nn::LayerNorm<>(4 * width), nn::Linear<>(4 * width, 2 * width, {.bias = false}));
    }
  }
  static std::int64_t last_width(const SwinConfig& c) { return c.width << (c.depths.size() - 1); }
  void visit(nn::Visitor& v) {
    v("patches", patches_)("patch_norm", patch_norm_);
    if (c_.positions > 0) v.parameter("positions", positions_, {1, c_.positions, c_.width}, nn::constant_init(0));
    v("stages", stages_)("norm", norm_);
    if (c_.labels > 0) v("classifier", classifier_);
  }
  std::map<std::string, Tensor> operator()(const Tensor& pictures, Grid grid) const {
    const auto filled = [&](const Tensor& t, int axis, std::int64_t to) {
      const std::int64_t rest = to * c_.patch - number_of(t, axis, "Swin");
      return rest > 0 ? t.pad(axis, 0, rest) : t;
    };
    Tensor x = patch_norm_(patches_(filled(filled(pictures, 2, grid.h), 3, grid.w)).permute({0, 2, 3, 1}));
    if (c_.positions > 0) x = x + positions_.reshape({1, grid.h, grid.w, c_.width});
    for (const SwinStage& stage : stages_) {
      for (const SwinBlock& block : stage.blocks) x = block(x, grid);
      if (!stage.merging) continue;
      const Grid even{(grid.h + 1) / 2 * 2, (grid.w + 1) / 2 * 2};
      x = fitted(x, grid, even);
      grid = {even.h / 2, even.w / 2};
      const Tensor four = x.reshape({x.extent(0), grid.h, 2, grid.w, 2, x.extent(3)})
                              .permute({0, 1, 3, 4, 2, 5})  // rows change fastest within the four
                              .reshape({x.extent(0), grid.h, grid.w, x.extent(3) * Dim(4)});
      x = stage.merging->second(stage.merging->first(four));
    }
    x = norm_(x.reshape({x.extent(0), grid.h * grid.w, x.extent(3)}));
    const Tensor pooled = mean(x, {1});
    std::map<std::string, Tensor> out{{"hidden", x}, {"pooled", pooled}};
    if (c_.labels > 0) out["logits"] = classifier_(pooled);
    return out;
  }

 private:
  SwinConfig c_;
  nn::Conv2d<> patches_;
  nn::LayerNorm<> patch_norm_;
  Tensor positions_;
  std::vector<SwinStage> stages_;
  nn::LayerNorm<> norm_;
  nn::Linear<> classifier_;
};

SwinConfig read_swin(const ConfigFile& file, const Weights& w) {
  SwinConfig c;
  c.depths = file.sizes("depths"), c.heads = file.sizes("num_heads");
  if (c.depths.empty()) c.depths = {2, 2, 6, 2};
  if (c.heads.empty()) c.heads = {3, 6, 12, 24};
  constexpr std::size_t kMostStages = 16;
  if (c.depths.size() != c.heads.size() || c.depths.size() > kMostStages)
    file.fail("there are ", c.depths.size(), " depths and ", c.heads.size(), " num_heads");
  require_fewer_layers(file, c.depths, w);
  c.width = file.size("embed_dim", 96), c.patch = file.size("patch_size", 4), c.window = file.size("window_size", 7);
  c.channels = file.size("num_channels", 3), c.ratio = file.number("mlp_ratio", 4);
  c.eps = file.number("layer_norm_eps", 1e-5), c.bias = file.flag("qkv_bias", true);
  c.activation = known_activation(file, "hidden_act", "gelu");
  if (constexpr double kMost = 1000; !(c.ratio > 0 && c.ratio <= kMost)) file.fail("mlp_ratio is ", c.ratio);
  if (constexpr std::int64_t kMost = 1024; c.window > kMost) file.fail("window_size is ", c.window);
  for (std::size_t s = 0; s < c.depths.size(); ++s)
    if ((c.width << s) % c.heads[s] != 0)
      file.fail(c.heads[s], " attention heads do not divide a width of ", c.width << s);
  if (w.find("classifier.weight")) c.labels = std::ssize(file.labels());
  if (file.flag("use_absolute_embeddings", false)) {
    const PictureSize s = trained_size(file, 224);
    c.positions = s.height / c.patch * (s.width / c.patch);
  }
  file.neutral({"drop_path_rate", "encoder_stride", "hidden_size", "num_layers", "out_features", "out_indices",
                "stage_names", "path_norm"});
  return c;
}

// The size of the first map. Throws Error if a map of a stage is smaller than a window, or has no vectors of places.
Grid first_grid(const ConfigFile& file, const SwinConfig& c, const PictureSize& size) {
  const Grid first{(size.height + c.patch - 1) / c.patch, (size.width + c.patch - 1) / c.patch};
  Grid g = first;
  for (std::size_t s = 0; s < c.depths.size(); ++s, g = {(g.h + 1) / 2, (g.w + 1) / 2})
    if (g.h < c.window || g.w < c.window)
      file.fail("pictures of ", size.height, " x ", size.width, " have a map of ", g.h, " x ", g.w,
                ", which is smaller than windows of ", c.window);
  if (c.positions > 0 && first.h * first.w != c.positions)
    file.fail("pictures of ", size.height, " x ", size.width, " have ", first.h, " x ", first.w,
              " patches, and there are vectors for ", c.positions, " places (use_absolute_embeddings)");
  return first;
}

constexpr WeightName kSwinNames[] = {
    {"embeddings.mask_token", ""},
    {"encoder.layers.#.blocks.#.attention.self.relative_position_index", ""},
    {"embeddings.patch_embeddings.projection", "patches"},
    {"embeddings.position_embeddings", "positions"},
    {"embeddings.norm", "patch_norm"},
    {"encoder.layers.#.blocks.#.layernorm_before", "stages.#.blocks.#.attention_norm"},
    {"encoder.layers.#.blocks.#.attention.self.query", "stages.#.blocks.#.query"},
    {"encoder.layers.#.blocks.#.attention.self.key", "stages.#.blocks.#.key"},
    {"encoder.layers.#.blocks.#.attention.self.value", "stages.#.blocks.#.value"},
    {"encoder.layers.#.blocks.#.attention.self.relative_position_bias_table", "stages.#.blocks.#.bias_table"},
    {"encoder.layers.#.blocks.#.attention.output.dense", "stages.#.blocks.#.output"},
    {"encoder.layers.#.blocks.#.layernorm_after", "stages.#.blocks.#.feed_forward_norm"},
    {"encoder.layers.#.blocks.#.intermediate.dense", "stages.#.blocks.#.up"},
    {"encoder.layers.#.blocks.#.output.dense", "stages.#.blocks.#.down"},
    {"encoder.layers.#.downsample", "stages.#.downsample"},
    {"layernorm", "norm"},
    {"classifier", "classifier"},
};
constexpr std::string_view kSwinPrefixes[] = {"swin."};

}  // namespace

LoadedModel load_swin(const Weights& w, const ConfigFile& config, const LoadModelOptions& o) {
  const SwinConfig c = read_swin(config, w);
  const PictureSize size = picture_size(config, o, trained_size(config, 224));
  const Grid grid = first_grid(config, c, size);
  LoadedModel m("swin", WeightTable(w, kSwinPrefixes, kSwinNames));
  if (c.labels > 0) m.labels = config.labels();
  config.require_all_known("swin");
  m.architecture = c.labels > 0 ? "SwinForImageClassification" : "SwinModel";
  const Swin& s = m.add(Swin(c));
  m.weights.require_all_used(str_cat("a ", m.architecture));
  for (const auto& [name, value] : s(picture_input(m, o, c.channels, size), grid)) m.give(name, value);
  m.retrieve(o);
  return m;
}

}  // namespace lc
