#include "lightcone/models/blocks/patch_embedding.h"

#include "lightcone/ops/functional/functional.h"
#include "lightcone/ops/shape.h"

namespace lc {

std::int64_t number_of(const Tensor& x, int axis, const char* who) {
  const auto n = x.extent(axis).constant();
  if (!n) throw Error(who, str_cat("the height and width of pictures have to be numbers, not ", str(x.shape())));
  return *n;
}

PatchEmbedding::PatchEmbedding(const PatchEmbeddingOptions& o)
    : o_(o),
      projection_(o.channels, o.width, {o.patch_height, o.patch_width},
                  {.stride = {static_cast<int>(o.patch_height), static_cast<int>(o.patch_width)}}, o.bias) {}

void PatchEmbedding::visit(nn::Visitor& v) {
  const nn::Init zero = nn::constant_init(0);
  const auto shape = [&](std::int64_t tokens) {
    return o_.flat ? Shape{tokens, o_.width} : Shape{1, tokens, o_.width};
  };
  if (o_.class_tokens > 0)
    v.parameter("cls_token", class_token_, o_.flat ? Shape{o_.width} : Shape{1, 1, o_.width}, zero);
  if (o_.class_tokens > 1) v.parameter("distillation_token", distillation_token_, {1, 1, o_.width}, zero);
  if (o_.registers > 0) v.parameter("register_tokens", registers_, {1, o_.registers, o_.width}, zero);
  v("projection", projection_);
  v.parameter("positions", positions_, shape(o_.class_tokens + o_.patches()), zero);
}

Tensor PatchEmbedding::positions(std::int64_t rows, std::int64_t columns) const {
  const std::int64_t before = o_.height / o_.patch_height, across = o_.width_of_picture / o_.patch_width;
  const Tensor table = positions_.reshape({1, o_.class_tokens + o_.patches(), o_.width});
  if (rows == before && columns == across) return table;
  const Tensor grid =
      narrow(table, 1, o_.class_tokens, before * across).reshape({1, before, across, o_.width}).permute({0, 3, 1, 2});
  const Tensor resized = interpolate(grid, {.size = {static_cast<int>(rows), static_cast<int>(columns)},
                                            .mode = "bicubic",
                                            .antialias = o_.antialias})
                             .permute({0, 2, 3, 1})
                             .reshape({1, rows * columns, o_.width});
  return o_.class_tokens > 0 ? cat({narrow(table, 1, 0, o_.class_tokens), resized}, 1) : resized;
}

Tensor PatchEmbedding::operator()(const Tensor& pictures, const nn::At& at) const {
  const OpScope scope("PatchEmbedding", at);
  if (pictures.rank() != 4 || pictures.extent(1) != Dim(o_.channels))
    throw Error("PatchEmbedding",
                str_cat("needs pictures [batch, ", o_.channels, ", height, width], not ", str(pictures.shape())));
  const std::int64_t h = number_of(pictures, 2, "PatchEmbedding"), w = number_of(pictures, 3, "PatchEmbedding");
  if (!o_.resizes && (h != o_.height || w != o_.width_of_picture))
    throw Error("PatchEmbedding", str_cat("pictures of ", h, " x ", w, " do not fit to positions for ", o_.height,
                                          " x ", o_.width_of_picture, "; interpolate_pos_encoding resizes them"));
  if (h < o_.patch_height || w < o_.patch_width)
    throw Error("PatchEmbedding",
                str_cat("a picture of ", h, " x ", w, " has no patch of ", o_.patch_height, " x ", o_.patch_width));
  const std::int64_t rows = h / o_.patch_height, columns = w / o_.patch_width;
  const Dim batch = pictures.extent(0);
  Tensor x = projection_(pictures).reshape({batch, o_.width, rows * columns}).permute({0, 2, 1});
  const auto repeated = [&](const Tensor& t) { return t.reshape({1, -1, o_.width}).expand({batch, -1, o_.width}); };
  std::vector<Tensor> parts;
  if (o_.class_tokens > 0) parts.push_back(repeated(class_token_));
  if (o_.class_tokens > 1) parts.push_back(repeated(distillation_token_));
  parts.push_back(x);
  x = cat(parts, 1) + positions(rows, columns);
  if (o_.registers == 0) return x;
  return cat({narrow(x, 1, 0, o_.class_tokens), repeated(registers_), narrow(x, 1, o_.class_tokens, rows * columns)},
             1);
}

}  // namespace lc
