#include "lightcone/models/diffusion/pipeline/lora.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "lightcone/base/error.h"
#include "lightcone/io/printable.h"
#include "lightcone/runtime/names.h"

namespace lc::diffusion {
namespace {

// How a name begins, and which part of a pipeline it means.
constexpr std::pair<std::string_view, std::string_view> kParts[] = {{"lora_unet_", "unet"},
                                                                    {"lora_te1_", "text_encoder"},
                                                                    {"lora_te2_", "text_encoder_2"},
                                                                    {"lora_te_", "text_encoder"},
                                                                    {"unet.", "unet"},
                                                                    {"transformer.", "transformer"},
                                                                    {"text_encoder_2.", "text_encoder_2"},
                                                                    {"text_encoder.", "text_encoder"},
                                                                    {"base_model.model.", "unet"}};

// How a name ends, and what the weight is.
enum class Role : std::uint8_t { Down, Up, Alpha };
constexpr std::pair<std::string_view, Role> kRoles[] = {{".lora_down.weight", Role::Down},
                                                        {".lora_up.weight", Role::Up},
                                                        {".lora_A.default.weight", Role::Down},
                                                        {".lora_B.default.weight", Role::Up},
                                                        {".lora_A.weight", Role::Down},
                                                        {".lora_B.weight", Role::Up},
                                                        {".lora_linear_layer.down.weight", Role::Down},
                                                        {".lora_linear_layer.up.weight", Role::Up},
                                                        {".lora.down.weight", Role::Down},
                                                        {".lora.up.weight", Role::Up},
                                                        {"_lora.down.weight", Role::Down},
                                                        {"_lora.up.weight", Role::Up},
                                                        {".alpha", Role::Alpha}};

void replace_all(std::string& s, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = s.find(from, at)) != s.npos; at += to.size()) s.replace(at, from.size(), to);
}

// A whole number at the beginning of a text, which loses it.
std::optional<std::int64_t> leading_number(std::string_view& s) {
  std::size_t n = 0;
  std::int64_t value = 0;
  while (n < s.size() && n < 4 && s[n] >= '0' && s[n] <= '9') value = 10 * value + (s[n++] - '0');
  if (n == 0) return std::nullopt;
  s.remove_prefix(n);
  return value;
}

// Kohya's files for SDXL number the blocks as the authors of Stable Diffusion did: three for each level.
std::string in_diffusers_names(std::string_view name) {
  for (const bool down : {true, false}) {
    const std::string_view begin = down ? "input_blocks_" : "output_blocks_";
    if (!name.starts_with(begin)) continue;
    std::string_view rest = name.substr(begin.size());
    const auto block = leading_number(rest);
    if (!block || !rest.starts_with("_1_") || (down && *block < 1)) return std::string(name);
    const std::int64_t k = down ? *block - 1 : *block;
    return str_cat(down ? "down_blocks_" : "up_blocks_", k / 3, "_attentions_", k % 3, rest.substr(2));
  }
  constexpr std::string_view kMiddle = "middle_block_1_";
  if (name.starts_with(kMiddle)) return str_cat("mid_block_attentions_0_", name.substr(kMiddle.size()));
  return std::string(name);
}

// The name that LoRA files have for a weight: the one that the model's file has, with '_' in place of '.'. Texts' may
// leave out which tower of CLIP it is.
std::string layer_of(std::string_view part, std::string name) {
  replace_all(name, ".", "_");
  constexpr std::string_view kTower = "text_model_";
  const bool clip =
      part.starts_with("text_encoder") && !name.starts_with(kTower) && name.starts_with("encoder_layers_");
  return clip ? std::string(kTower) + name : name;
}

}  // namespace

Lora::Lora(const std::string& path, double scale, const ReadOptions& o)
    : weights_(Weights::open(path, o)), scale_(scale) {
  for (const auto& [name, t] : weights_.tensors()) add(name, t);
  for (const auto& [key, layer] : layers_)
    if (!layer.down || !layer.up)
      throw file_error("lora", path, in_quotes(layer.written), " has no ", layer.down ? "second" : "first", " matrix");
}

void Lora::add(const std::string& name, const StoredTensor& t) {
  std::string_view rest = name, part = "unet";
  for (const auto& [begin, meant] : kParts)
    if (rest.starts_with(begin)) {
      rest.remove_prefix(begin.size()), part = meant;
      break;
    }
  const auto role = std::ranges::find_if(kRoles, [&](const auto& r) { return rest.ends_with(r.first); });
  if (role == std::end(kRoles))
    throw file_error("lora", path(), in_quotes(name),
                     " is no weight of a LoRA that is known: names end in "
                     ".lora_down.weight and .lora_up.weight, .lora_A.weight and .lora_B.weight, or .alpha");
  rest.remove_suffix(role->first.size());
  std::string layer(rest);
  replace_all(layer, ".processor.", ".");
  if (layer.ends_with(".to_out")) layer += ".0";
  replace_all(layer, ".", "_");
  Layer& l = layers_[str_cat(part, " ", in_diffusers_names(layer))];
  l.written = name;
  if (role->second == Role::Down) l.down = &t;
  else if (role->second == Role::Up) l.up = &t;
  else l.alpha = static_cast<double>(Weights::read(t).at(0));
}

Lora::Layer* Lora::find(std::string_view part, std::string_view layer) {
  const auto at = layers_.find(str_cat(part, " ", layer));
  return at == layers_.end() ? nullptr : &at->second;
}
void Lora::require_all_used() const {
  for (const auto& [key, layer] : layers_)
    if (!layer.used)
      throw file_error("lora", path(), in_quotes(layer.written), " is for a layer that the model does not have");
}

namespace {

// Adds a layer's product to the values [out, in, ...] of a weight.
void add_product(const Lora& lora, const Lora::Layer& l, std::span<const std::int64_t> shape, std::vector<float>& w) {
  const auto rank = l.down->shape.empty() ? 0 : l.down->shape[0], out = shape.empty() ? 0 : shape[0];
  const std::int64_t in = out > 0 ? static_cast<std::int64_t>(w.size()) / out : 0;
  const auto columns = rank > 0 ? l.down->elements() / rank : 0, rows = rank > 0 ? l.up->elements() / rank : 0;
  if (rank < 1 || columns != in || rows != out || l.up->elements() != rows * rank)
    throw file_error("lora", lora.path(), in_quotes(l.written), " does not fit a weight of ", out, " x ", in);
  const std::vector<float> down = Weights::read(*l.down), up = Weights::read(*l.up);
  const double factor = lora.scale() * (l.alpha != 0 ? l.alpha / static_cast<double>(rank) : 1);
  for (std::int64_t o = 0; o < out; ++o)
    for (std::int64_t i = 0; i < in; ++i) {
      double sum = 0;
      for (std::int64_t r = 0; r < rank; ++r)
        sum += static_cast<double>(up[static_cast<std::size_t>(o * rank + r)]) *
               static_cast<double>(down[static_cast<std::size_t>(r * in + i)]);
      float& value = w[static_cast<std::size_t>(o * in + i)];
      value = static_cast<float>(static_cast<double>(value) + factor * sum);
    }
}

}  // namespace

void merge_loras(Program& program, const LoadedModel& m, std::string_view part, std::vector<Lora>& loras) {
  const Graph& g = m.graph();
  constexpr std::string_view kWeight = ".weight";
  for (NodeId id = 0; id < g.size(); ++id) {
    const Node& n = g[id];
    if (n.op != Op::Input || !n.parameter || !std::string_view(n.name).ends_with(kWeight)) continue;
    const StoredTensor* stored = m.weights.find(n.name);
    if (!stored) continue;
    std::string name = m.weights.name_in_file(n.name);
    name.resize(name.size() - std::min(name.size(), kWeight.size()));
    const std::string layer = layer_of(part, std::move(name));
    std::vector<float> values;
    for (Lora& lora : loras)
      if (Lora::Layer* l = lora.find(part, layer)) {
        if (!stored->dtype || stored->quant)
          throw file_error("lora", lora.path(), in_quotes(l->written), " is for a weight in quantised blocks");
        if (values.empty()) values = Weights::read(*stored);
        add_product(lora, *l, stored->shape, values);
        l->used = true;
      }
    if (values.empty()) continue;
    Value v = make_value(*stored->dtype, stored->shape);
    v.f.assign(values.begin(), values.end());
    const auto bytes = std::make_shared<std::vector<std::byte>>(v.size() * size_of(v.dtype));
    write_value(v, bytes->data());
    program.load(n.name, bytes->data(), bytes->size(), bytes);
  }
}

}  // namespace lc::diffusion
