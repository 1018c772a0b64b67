#include "lightcone/models/diffusion/unet.h"

#include "lightcone/models/blocks/activation.h"
#include "lightcone/ops/ops.h"
#include "lightcone/ops/shape.h"

namespace lc::diffusion {
namespace {

constexpr std::int64_t kLongest = 1 << 10;  // most tokens of a text, for which memory is planned

const Tensor& at_name(const Conditions& given, const char* name) {
  const auto at = given.find(name);
  if (at == given.end() || !at->second.defined()) throw Error("UNet", str_cat("there is no input '", name, "'"));
  return at->second;
}

}  // namespace

UNetTrunk::UNetTrunk(UNetConfig u)
    : u_(std::move(u)),
      conv_in_(u_.in_channels, u_.levels.front().channels, u_.kernel_in, {.padding = (u_.kernel_in - 1) / 2}),
      time_embedding_(u_.levels.front().channels, u_.time_width, u_.activation, u_.time_last, u_.time_condition),
      mid_block_(u_) {
  if (u_.classes == ClassEmbedding::Table) class_table_.emplace(u_.class_count, u_.time_width);
  if (u_.classes == ClassEmbedding::Timestep)
    class_embedding_.emplace(u_.levels.front().channels, u_.time_width, u_.activation);
  if (u_.classes == ClassEmbedding::Projection) class_embedding_.emplace(u_.class_width, u_.time_width);
  if (u_.classes == ClassEmbedding::SimpleProjection) class_projection_.emplace(u_.class_width, u_.time_width);
  if (u_.added_width > 0) add_embedding_.emplace(u_.added_width, u_.time_width);
  if (u_.text_width > 0) encoder_hid_proj_.emplace(u_.text_width, u_.levels.front().context);
  std::int64_t in = u_.levels.front().channels;
  for (std::size_t k = 0; k < u_.levels.size(); ++k) {
    down_blocks_.emplace_back(u_, k, in);
    in = u_.levels[k].channels;
  }
}

void UNetTrunk::visit(nn::Visitor& v) {
  v("conv_in", conv_in_)("time_embedding", time_embedding_);
  if (class_table_) v("class_embedding", *class_table_);
  if (class_embedding_) v("class_embedding", *class_embedding_);
  if (class_projection_) v("class_embedding", *class_projection_);
  if (add_embedding_) v("add_embedding", *add_embedding_);
  if (encoder_hid_proj_) v("encoder_hid_proj", *encoder_hid_proj_);
  v("down_blocks", down_blocks_)("mid_block", mid_block_);
}

Tensor UNetTrunk::class_embedding(const Tensor& labels) const {
  if (class_table_) return (*class_table_)(labels);
  if (class_projection_) return (*class_projection_)(labels);
  if (u_.classes == ClassEmbedding::Identity) return labels;
  if (u_.classes == ClassEmbedding::Projection) return (*class_embedding_)(labels);
  return (*class_embedding_)(sinusoids(
      labels, {.width = u_.levels.front().channels, .cosines_first = u_.cosines_first, .shift = u_.frequency_shift}));
}

Tensor UNetTrunk::time_embedding(const Conditions& given) const {
  const auto of = [&](const Tensor& t, std::int64_t width) {
    return sinusoids(t, {.width = width, .cosines_first = u_.cosines_first, .shift = u_.frequency_shift});
  };
  const Tensor condition = u_.time_condition > 0 ? at_name(given, "timestep_cond") : Tensor();
  Tensor t = time_embedding_(of(at_name(given, "timestep"), u_.levels.front().channels), condition);
  if (u_.classes != ClassEmbedding::None) {
    const Tensor c = class_embedding(at_name(given, "class_labels"));
    t = u_.classes_beside ? cat({t, c}, 1) : t + c;
  }
  if (add_embedding_) {
    const Tensor& ids = at_name(given, "time_ids");
    const Tensor each = of(ids.reshape({ids.extent(0) * ids.extent(1)}), u_.added_time_width);
    const Tensor all = each.reshape({ids.extent(0), ids.extent(1) * Dim(u_.added_time_width)});
    t = t + (*add_embedding_)(cat({at_name(given, "text_embeds"), all}, 1));
  }
  return u_.time_activation.empty() ? t : activate(u_.time_activation, t);
}

UNetTrunk::State UNetTrunk::operator()(const Conditions& given, const Tensor& hint) const {
  State s;
  s.time = time_embedding(given);
  s.context = at_name(given, "encoder_hidden_states");
  if (encoder_hid_proj_) s.context = (*encoder_hid_proj_)(s.context);
  const Tensor& sample = at_name(given, "sample");
  s.x = conv_in_(u_.center_input ? sample * 2.0 - 1.0 : sample);
  if (hint.defined()) s.x = s.x + hint;
  s.skips = {s.x};
  for (const DownBlock& block : down_blocks_) s.x = block(s.x, s.time, s.context, s.skips);
  s.x = mid_block_(s.x, s.time, s.context);
  return s;
}

UNet::UNet(const UNetConfig& u)
    : trunk_(u),
      conv_norm_out_(u.groups, u.levels.front().channels, u.eps),
      conv_out_(u.levels.front().channels, u.out_channels, u.kernel_out, {.padding = (u.kernel_out - 1) / 2}) {
  std::int64_t in = u.levels.back().channels;
  for (std::size_t k = u.levels.size(); k-- > 0;) {
    up_blocks_.emplace_back(u, k, in);
    in = u.levels[k].channels;
  }
}
void UNet::visit(nn::Visitor& v) {
  trunk_.visit(v);
  v("up_blocks", up_blocks_)("conv_norm_out", conv_norm_out_)("conv_out", conv_out_);
}
Tensor UNet::operator()(const Conditions& given, const std::optional<Residuals>& control, const nn::At& at) const {
  const OpScope scope("UNet", at);
  UNetTrunk::State s = trunk_(given);
  if (control) {
    if (control->down.size() != s.skips.size())
      throw Error("UNet", str_cat("a ControlNet with ", control->down.size(), " residuals, and the UNet takes ",
                                  s.skips.size(), ": they are of different models"));
    for (std::size_t k = 0; k < s.skips.size(); ++k) s.skips[k] = s.skips[k] + control->down[k];
    s.x = s.x + control->middle;
  }
  for (const UpBlock& block : up_blocks_) s.x = block(s.x, s.time, s.context, s.skips);
  const bool summed = config().levels.front().attends_up;  // a spatial transformer made the last value
  return conv_out_(activate(config().activation, summed ? conv_norm_out_.by_means(s.x) : conv_norm_out_(s.x)));
}

ControlNet::Hint::Hint(const UNetConfig& u)
    : conv_in(u.hint_channels, u.hint_widths.front(), 3, {.padding = 1}),
      conv_out(u.hint_widths.back(), u.levels.front().channels, 3, {.padding = 1}) {
  for (std::size_t k = 0; k + 1 < u.hint_widths.size(); ++k) {
    blocks.emplace_back(u.hint_widths[k], u.hint_widths[k], 3, ConvOptions{.padding = 1});
    blocks.emplace_back(u.hint_widths[k], u.hint_widths[k + 1], 3, ConvOptions{.stride = 2, .padding = 1});
  }
}
Tensor ControlNet::Hint::operator()(const Tensor& picture) const {
  Tensor x = silu(conv_in(picture));
  for (const nn::Conv2d<>& block : blocks) x = silu(block(x));
  return conv_out(x);
}

ControlNet::ControlNet(const UNetConfig& u)
    : trunk_(u), hint_(u), mid_(u.levels.back().channels, u.levels.back().channels, 1) {
  const auto add = [&](std::int64_t channels) { down_.emplace_back(channels, channels, 1); };
  add(u.levels.front().channels);
  for (std::size_t k = 0; k < u.levels.size(); ++k) {
    const std::int64_t values = u.levels[k].layers + (k + 1 < u.levels.size() ? 1 : 0);
    for (std::int64_t n = 0; n < values; ++n) add(u.levels[k].channels);
  }
}
void ControlNet::visit(nn::Visitor& v) {
  trunk_.visit(v);
  v("controlnet_cond_embedding", hint_)("controlnet_down_blocks", down_)("controlnet_mid_block", mid_);
}
std::int64_t ControlNet::scale() const { return std::int64_t{1} << (config().hint_widths.size() - 1); }
Residuals ControlNet::operator()(const Conditions& given, const nn::At& at) const {
  const OpScope scope("ControlNet", at);
  const Tensor& picture = at_name(given, "controlnet_cond");
  const UNetTrunk::State s = trunk_(given, hint_(config().hint_bgr ? picture.flip(1) : picture));
  const auto pooled = [&](const Tensor& x) { return config().pools ? mean(x, {2, 3}, true) : x; };
  Residuals r;
  for (std::size_t k = 0; k < s.skips.size(); ++k) r.down.push_back(pooled(down_[k](s.skips[k])));
  r.middle = pooled(mid_(s.x));
  return r;
}

Conditions unet_inputs(LoadedModel& m, const UNetConfig& u, const LoadModelOptions& o, const UNetSizes& sizes,
                       bool sample) {
  const auto extent = [&](const char* name, std::int64_t size, std::int64_t most) {
    return extent_of_input(m, name, size, 1, most);
  };
  const Dim batch = extent("batch", sizes.batch, o.batch), height = extent("height", sizes.height, kLargestLatent),
            width = extent("width", sizes.width, kLargestLatent), length = extent("length", sizes.length, kLongest);
  const auto add = [&](const char* name, const Shape& shape, DType type = DType::F32) {
    m.inputs[name] = m.graph().input(name, shape, type);
  };
  if (sample) add("sample", {batch, u.in_channels, height, width});
  add("timestep", {batch});
  add("encoder_hidden_states", {batch, length, u.context()});
  if (u.time_condition > 0) add("timestep_cond", {batch, u.time_condition});
  if (u.added_width > 0) {
    if (u.pooled() < 1)
      throw Error("load_model", str_cat("projection_class_embeddings_input_dim is ", u.added_width, ", less than ",
                                        kTimeIds, " times addition_time_embed_dim, ", u.added_time_width));
    add("text_embeds", {batch, u.pooled()});
    add("time_ids", {batch, kTimeIds});
  }
  if (u.classes == ClassEmbedding::Table) add("class_labels", {batch}, DType::I64);
  else if (u.classes == ClassEmbedding::Timestep) add("class_labels", {batch});
  else if (u.classes == ClassEmbedding::Identity) add("class_labels", {batch, u.time_width});
  else if (u.classes != ClassEmbedding::None) add("class_labels", {batch, u.class_width});
  return m.inputs;
}

std::span<const WeightName> unet_weight_names() {
  static constexpr WeightName kNames[] = {
      {"conv_in", "conv_in"},
      {"time_embedding", "time_embedding"},
      {"class_embedding", "class_embedding"},
      {"add_embedding", "add_embedding"},
      {"encoder_hid_proj", "encoder_hid_proj"},
      {"down_blocks", "down_blocks"},
      {"mid_block", "mid_block"},
      {"up_blocks", "up_blocks"},
      {"conv_norm_out", "conv_norm_out"},
      {"conv_out", "conv_out"},
      {"controlnet_cond_embedding", "controlnet_cond_embedding"},
      {"controlnet_down_blocks", "controlnet_down_blocks"},
      {"controlnet_mid_block", "controlnet_mid_block"},
  };
  return kNames;
}

LoadedModel load_unet(const Weights& w, const ConfigFile& config, const LoadModelOptions& o) {
  const UNetConfig u = UNetConfig::from(config, false, w.tensors().size());
  LoadedModel m("UNet2DConditionModel", WeightTable(w, {}, unet_weight_names()));
  m.architecture = m.type;
  const UNet& net = m.add(UNet(u));
  m.weights.require_all_used("a UNet2DConditionModel");
  m.give("prediction", net(unet_inputs(m, u, o, {.height = o.height, .width = o.width})));
  m.retrieve(o);
  return m;
}

LoadedModel load_controlnet(const Weights& w, const ConfigFile& config, const LoadModelOptions& o) {
  const UNetConfig u = UNetConfig::from(config, true, w.tensors().size());
  LoadedModel m("ControlNetModel", WeightTable(w, {}, unet_weight_names()));
  m.architecture = m.type;
  const ControlNet& net = m.add(ControlNet(u));
  m.weights.require_all_used("a ControlNetModel");
  Conditions given = unet_inputs(m, u, o, {.height = o.height, .width = o.width});
  const Tensor& sample = given["sample"];
  const Dim scale = net.scale();
  given["controlnet_cond"] = m.inputs["controlnet_cond"] = m.graph().input(
      "controlnet_cond", {sample.extent(0), u.hint_channels, sample.extent(2) * scale, sample.extent(3) * scale});
  const Residuals r = net(given);
  for (std::size_t k = 0; k < r.down.size(); ++k) m.give(str_cat("down_block_res_samples.", k), r.down[k]);
  m.give("mid_block_res_sample", r.middle);
  m.retrieve(o);
  return m;
}

}  // namespace lc::diffusion
