// Pictures before and after a network: bytes to numbers and back, letterboxes, crops, normalisation and colours.
//
// A picture is [.., channels, h, w] in a floating type, with red, green and blue in [0, 1]; h and w must be numbers
// where they change. Everything is graph code, so it is compiled with its network and part of an exported program.
#pragma once

#include <cstdint>
#include <vector>

#include "lightcone/ops/ops.h"

namespace lc {

// Bytes [h, w, channels], as decoders give them, to f32 [1, channels, h, w] in [0, 1]: torchvision.transforms.ToTensor
// with a batch axis. (read_image() gives [3, h, w]: to(x, DType::F32) / 255.)
Tensor picture_of_bytes(Operand bytes);
// The inverse: [1, channels, h, w] or [channels, h, w] to u8 [h, w, channels], rounded to the nearest and clamped.
Tensor bytes_of_picture(Operand x);

struct LetterboxOptions {
  std::int64_t height = 640, width = 640;  // the size of the result, or its limit with a stride
  double pad_value = 114.0 / 255;          // grey of the bars
  std::int64_t stride = 0;  // > 0: bars only up to the next multiple of it, so that the result may be smaller
  bool scale_up = true;     // false: small pictures keep their size
  bool centred = true;      // false: bars at the right and the bottom alone
  bool antialias = false;   // resizes as Pillow does: a picture that shrinks loses no pixel of it
};
struct Letterbox {
  Tensor picture;                      // [.., channels, height, width]
  double scale = 1;                    // pixels of the result for one of the picture
  std::int64_t left = 0, top = 0;      // size of the bars
  std::int64_t height = 0, width = 0;  // size of the picture that was given
};
// Resizes a picture by one scale, bilinearly (without antialiasing, as OpenCV), so that it fits, and fills the rest
// with bars: what YOLO networks expect (Ultralytics' LetterBox; its rounding of sizes and bars).
Letterbox letterbox(Operand x, const LetterboxOptions& o = {});
// Maps boxes [.., 4] (x1, y1, x2, y2) from the letterbox to the picture that was given, and moves them into it.
Tensor boxes_of_picture(Operand boxes, const Letterbox& l);

// The middle of a picture; one that is smaller gets bars of 0 (torchvision.transforms.CenterCrop).
Tensor center_crop(Operand x, std::int64_t height, std::int64_t width);
// (x - mean) / std for each channel (torchvision.transforms.Normalize). Throws Error unless there are as many means and
// deviations as channels.
Tensor normalize_picture(Operand x, const std::vector<double>& mean, const std::vector<double>& std);

// Colours, along axis -3; Error unless it has 3 channels.
Tensor reverse_channels(Operand x);  // RGB to BGR and back
Tensor rgb_to_gray(Operand x);       // [.., 1, h, w]: 0.2989 R + 0.587 G + 0.114 B, as torchvision
// ITU-T T.871 (JPEG): Y in [0, 1], Cb and Cr in [0, 1] with 128 / 255 for grey.
Tensor rgb_to_ycbcr(Operand x);
Tensor ycbcr_to_rgb(Operand x);

}  // namespace lc
