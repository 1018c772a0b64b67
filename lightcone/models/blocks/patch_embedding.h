// PatchEmbedding: pictures as sequences of patches with positions, which transformers of pictures begin with
// (A. Dosovitskiy et al., "An image is worth 16x16 words", 2020).
//
// Parameters: projection.weight and .bias, cls_token and distillation_token [1, 1, width], register_tokens
// [1, n, width], positions [1, tokens, width]; those that the options name.
#pragma once

#include <cstdint>

#include "lightcone/nn/conv.h"
#include "lightcone/ops/ops.h"

namespace lc {

// The sizes of a PatchEmbedding.
struct PatchEmbeddingOptions {
  std::int64_t width = 0, channels = 3;
  std::int64_t patch_height = 0, patch_width = 0;
  std::int64_t height = 0, width_of_picture = 0;  // for which the table of positions was trained
  std::int64_t class_tokens = 1;                  // 0: none; 2: DeiT's, with one for distillation
  std::int64_t registers = 0;                     // tokens without positions, after those of the class
  bool bias = true;
  bool flat = false;       // CLIP's files: cls_token [width], positions [tokens, width]
  bool antialias = false;  // a table of positions that shrinks loses none
  bool resizes = false;    // the table of positions is resized for pictures of another size
  std::int64_t patches() const { return height / patch_height * (width_of_picture / patch_width); }
};

// Patches with positions as a module: pictures [batch, channels, h, w] -> [batch, class_tokens + registers + patches,
// width]. Patches are in rows; pixels that fill no patch are left out. Throws Error for a picture whose size is not
// that of the table, unless it is to be resized: bicubic, as torch.nn.functional.interpolate.
class PatchEmbedding {
 public:
  explicit PatchEmbedding(const PatchEmbeddingOptions& o);
  void visit(nn::Visitor& v);
  Tensor operator()(const Tensor& pictures, const nn::At& at = nn::At::current()) const;
  const PatchEmbeddingOptions& options() const { return o_; }

 private:
  Tensor positions(std::int64_t rows, std::int64_t columns) const;  // [class_tokens + rows columns, width]

  PatchEmbeddingOptions o_;
  nn::Conv2d<> projection_;
  Tensor class_token_, distillation_token_, registers_, positions_;
};

// Extent `axis` of x as a number. Throws Error, which begins with `who`, if it is a symbol.
std::int64_t number_of(const Tensor& x, int axis, const char* who);

}  // namespace lc
