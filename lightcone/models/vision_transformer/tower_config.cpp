#include "lightcone/models/vision_transformer/tower_config.h"

#include "lightcone/models/blocks/config.h"

namespace lc {

TowerConfig read_tower(const ConfigFile& c, const TowerConfig& otherwise) {
  TowerConfig t = otherwise;
  TransformerBlockOptions& b = t.block;
  b.width = c.size("hidden_size", b.width), b.heads = c.size("num_attention_heads", b.heads);
  if (b.inner >= 0) b.inner = c.size("intermediate_size", b.inner);
  t.layers = c.size("num_hidden_layers", t.layers);
  b.eps = c.number("layer_norm_eps", b.eps), b.activation = known_activation(c, "hidden_act", b.activation);
  b.norm_first = true;
  if (b.heads > b.width || b.width % b.heads != 0)
    c.fail(b.heads, " attention heads do not divide a width of ", b.width);
  if (!(b.eps > 0)) c.fail("layer_norm_eps is ", b.eps, ", and not above 0");
  return t;
}

void read_patches(const ConfigFile& file, TowerConfig& c, const LoadModelOptions& o) {
  PatchEmbeddingOptions& p = c.patches;
  const PictureSize picture = trained_size(file, p.height), patch = size_of_key(file, "patch_size", p.patch_height);
  p.width = c.block.width, p.channels = file.size("num_channels", 3);
  p.height = picture.height, p.width_of_picture = picture.width;
  p.patch_height = patch.height, p.patch_width = patch.width;
  p.resizes = o.interpolate_pos_encoding;
  if (p.patches() < 1) file.fail("a picture of ", p.height, " has no patch of ", p.patch_height);
  const PictureSize s = picture_size(file, o, picture);
  if (!p.resizes && (s.height != p.height || s.width != p.width_of_picture))
    file.fail("the model takes pictures of ", p.height, " x ", p.width_of_picture, ", and ", s.height, " x ", s.width,
              " are asked for: interpolate_pos_encoding resizes its table of positions");
}

}  // namespace lc
