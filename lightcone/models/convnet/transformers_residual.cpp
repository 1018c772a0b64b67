#include "lightcone/models/convnet/transformers_residual.h"

#include "lightcone/io/printable.h"
#include "lightcone/models/blocks/config.h"
#include "lightcone/models/files/pictures.h"

namespace lc {
namespace {

// One of two words. Throws Error for another.
bool is_first(const ConfigFile& file, std::string_view key, std::string_view first, std::string_view second,
              std::string_view otherwise) {
  const std::string word = file.text(key, otherwise);
  if (word != first && word != second)
    file.fail(key, " is ", in_quotes(word), ", and only ", in_quotes(first), " and ", in_quotes(second),
              " are supported");
  return word == first;
}

}  // namespace

ResidualOptions read_residual(const ConfigFile& file, const Weights& w) {
  const std::string type = file.text("model_type");
  const bool resnet = type == "resnet";
  if (!resnet && type != "regnet") file.fail("a network of type ", in_quotes(type), " is no residual network");
  ResidualOptions o;
  o.stem = file.size("embedding_size", resnet ? 64 : 32), o.stem_kernel = resnet ? 7 : 3, o.stem_pool = resnet;
  o.channels = file.size("num_channels", 3), o.activation = known_activation(file, "hidden_act", "relu");
  o.eps = file.number("bn_eps", 1e-5);
  std::vector<std::int64_t> widths = file.sizes("hidden_sizes"), depths = file.sizes("depths");
  if (widths.empty())
    widths = resnet ? std::vector<std::int64_t>{256, 512, 1024, 2048} : std::vector<std::int64_t>{128, 192, 512, 1088};
  if (depths.empty()) depths = resnet ? std::vector<std::int64_t>{3, 4, 6, 3} : std::vector<std::int64_t>{2, 6, 12, 2};
  if (widths.size() != depths.size())
    file.fail("there are ", depths.size(), " depths and ", widths.size(), " hidden_sizes");
  require_fewer_layers(file, depths, w);
  if (resnet) {
    o.bottleneck = is_first(file, "layer_type", "bottleneck", "basic", "bottleneck");
    o.stride_first = file.flag("downsample_in_bottleneck", false);
  } else {
    o.squeeze = is_first(file, "layer_type", "y", "x", "y");
  }
  const bool first = file.flag("downsample_in_first_stage", !resnet);
  const std::int64_t group = resnet ? 0 : file.size("groups_width", 64);
  for (std::size_t k = 0; k < widths.size(); ++k) {
    ResidualStage s{.layers = depths[k], .width = widths[k], .inner = widths[k], .stride = k > 0 || first ? 2 : 1};
    if (resnet && o.bottleneck) s.inner = widths[k] / 4;
    if (!resnet) s.groups = static_cast<int>(std::max<std::int64_t>(1, widths[k] / group));
    if (s.inner < 1 || s.inner % s.groups != 0)
      file.fail("a stage of ", widths[k], " channels is not divided by groups_width ", group);
    o.stages.push_back(s);
  }
  file.neutral({"out_features", "out_indices", "stage_names", "image_size", "num_stages"});
  return o;
}

}  // namespace lc
