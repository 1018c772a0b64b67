// The interface of the microkernels of convolutions. The algorithms around them are in conv/.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lc::backends::cpu {

inline constexpr int kSpatial = 3;  // axes of a window, at most

// A coordinate that no image reaches: bounds of an axis without padding.
inline constexpr std::int64_t kConvFar = std::int64_t{1} << 40;

// Winograd's F(4x4, 3x3): 4 x 4 results from products at 6 x 6 points.
inline constexpr std::int64_t kWinogradOut = 4, kWinogradSide = 6, kWinogradPoints = kWinogradSide * kWinogradSide;

// A summed element of a window.
struct Tap {
  std::int64_t image, weight;    // offsets in elements
  std::int64_t shift[kSpatial];  // added to the pixel's coordinates
};

// A matrix product: one group of one image.
struct ConvProblem {
  const float *image = nullptr, *weight = nullptr;
  const float* packed = nullptr;  // the group's packed panels of weights, or null
  float* out = nullptr;
  std::int64_t rows = 1, weight_row = 0, out_row = 0;
  std::int64_t pixels = 1;  // in total
  std::int64_t extent[kSpatial], image_step[kSpatial], step[kSpatial], lo[kSpatial], hi[kSpatial];
  const Tap* taps = nullptr;
  std::int64_t depth = 0;
  bool neighbours = false;  // the taps of a filter row are contiguous
};

// A tile of Winograd's algorithm: its addresses, and which of its pixels exist.
struct WinogradTile {
  const float* image;
  float* out;
  std::int64_t top, bottom, left, right;  // rows and columns of the 6x6 that may be read
  std::int64_t down, across;              // rows and columns of the 4x4 that are written; 0 past the last tile
};

// Convolutions with contiguous pixels: functions per instruction set.
struct ConvTable {
  int mr, nr;
  // Packs weights [row, row + rows) x taps [k, k + depth) to [depth][mr].
  void (*pack_weights)(const ConvProblem* p, std::int64_t row, std::int64_t rows, std::int64_t k, std::int64_t depth,
                       float* to);
  // Packs pixels [first, first + columns) x taps [k, k + depth) to strips [depth][nr].
  void (*pack_image)(const ConvProblem* p, std::int64_t first, std::int64_t columns, std::int64_t k, std::int64_t depth,
                     float* to);
  // C[rows <= mr, columns <= nr] (+)= packed weights [depth][mr] * packed image [depth][nr].
  void (*tile)(const float* a, const float* b, std::int64_t depth, float* c, std::int64_t c_row, std::int64_t rows,
               std::int64_t columns, bool add);
  // As `tile`, over an image whose row for tap k begins at b + at[k]. Whole vectors are written, which may exceed the
  // columns. `next` points to weights that are prefetched.
  void (*slide)(const float* a, const float* next, const float* b, const std::int64_t* at, std::int64_t depth, float* c,
                std::int64_t c_row, std::int64_t rows, std::int64_t columns, bool add);
  // Copies n elements, `step` apart, with zeros outside [begin, end). Whole vectors are written.
  void (*copy_row)(const float* from, std::int64_t step, std::int64_t begin, std::int64_t end, std::int64_t n,
                   float* to);
  // Number of tiles that Winograd's transforms below process at once. Element i of their 36 results is at [i * stride].
  int lanes;
  // Transforms filters of rows [row, row + rows <= mr) and channels [first, first + depth) to [36][depth][mr]. Returns
  // false if a number is infinite, NaN or too large for the transform.
  bool (*weights_in)(const ConvProblem* p, std::int64_t row, std::int64_t rows, std::int64_t first, std::int64_t depth,
                     float* to, std::int64_t stride);
  // Transforms `lanes` tiles of the channel at `offset`, with the strides `down` and `across` between pixels. Returns
  // false as weights_in does.
  bool (*image_in)(const WinogradTile* at, std::int64_t offset, std::int64_t down, std::int64_t across, float* to,
                   std::int64_t stride);
  // Transforms `lanes` tiles of products back and writes them to the tiles' outputs at `offset`, with rows of `width`
  // floats.
  void (*out)(const float* tiles, std::int64_t stride, const WinogradTile* at, std::int64_t offset, std::int64_t width);
};
extern const ConvTable kConvGeneric, kConvAvx2, kConvAvx512, kConvNeon;

// A run of taps that are contiguous both in the image and in the weights.
struct TapRun {
  std::int64_t offset, length;  // offset in the image; number of taps
};

// Channels-last convolutions: functions per instruction set.
struct NhwcTable {
  static constexpr int kMostNr = 64;
  int mr, nr;  // pixels and output channels of a tile; nr <= kMostNr
  // C[rows <= mr, columns <= nr] (+)= image * weights. Run i of pixel r begins at pixels[r] + runs[i].offset; weights
  // are [depth][nr]. `next` points to data to prefetch, a cache line per step of depth.
  void (*tile)(const float* const* pixels, const TapRun* runs, std::int64_t count, const float* weights,
               const float* next, float* c, std::int64_t c_row, std::int64_t rows, std::int64_t columns, bool add);
  // Transforms filters of `count` channels of a panel for Winograd's algorithm; their nine taps are `tap` apart. Writes
  // 36 panels [count][nr], `stride` apart. Returns false if a number is infinite, NaN or too large for the transform.
  bool (*filters_in)(const float* w, std::int64_t tap, std::int64_t count, float* to, std::int64_t stride);
  // Transforms the 6x6 pixels of a tile, each with its channels, to 36 rows of channels, `stride` apart. Returns false
  // as filters_in does.
  bool (*image_in)(const float* const* at, std::int64_t channels, float* to, std::int64_t stride);
  // Transforms 36 rows of channels back to the 4x4 pixels of a tile; addresses of missing pixels are null.
  void (*pixels_out)(const float* from, std::int64_t stride, std::int64_t channels, float* const* at);
  // Widens n numbers to f32; n is a multiple of nr.
  void (*widen_bf16)(const std::uint16_t* from, std::int64_t n, float* to);
  void (*widen_f16)(const std::uint16_t* from, std::int64_t n, float* to);
};
extern const NhwcTable kNhwcGeneric, kNhwcAvx2, kNhwcAvx512;

// Channels-last convolutions in bf16: functions per instruction set.
struct NhwcBf16Table {
  const char* name;
  int mr, nr;
  // As NhwcTable::tile, with taps and offsets counted in words.
  decltype(NhwcTable::tile) tile;
  // Rounds `count` channels, `step` apart, of n pixels to words; the last word is padded with a zero.
  void (*round)(const float* from, std::int64_t from_pixel, std::int64_t step, std::int64_t n, std::int64_t count,
                std::uint32_t* to, std::int64_t to_pixel);
};
extern const NhwcBf16Table kNhwcBf16Generic, kNhwcBf16Avx512Bf16;

// What a worker reads next, prefetched `step` bytes at a time.
struct TilesAhead {
  const std::byte *from = nullptr, *end = nullptr;
  std::int64_t step = 64;
};
// Channels-last convolutions in bf16 on tile registers, whose rows are pixels: functions per instruction set. The image
// is rounded to planes of 32 channels, [channels / 32][y][x][32], so that a row of a register is a cache line. Up to
// four channels are [y][x][4], so that a row of a register is up to eight pixels of a window.
struct ConvTilesTable {
  const char* name;
  // Called before and after a thread's calls of `tiles`; a register of pixels has `rows` <= 16 rows of `row_bytes`
  // <= 64.
  void (*begin)(int rows, int row_bytes);
  void (*end)();
  // Computes pairs of registers of pixels times 32 output channels. Register r begins at pixels[r] + at[k] in step k of
  // 32 numbers, and its rows are `step` bytes apart. Weights are u16 [steps][2][16][16][2], sums f32
  // [pairs][2][2][16][16]: pixels, then groups of 16 output channels.
  void (*tiles)(const std::byte* const* pixels, std::int64_t pairs, const std::int64_t* at, std::int64_t steps,
                std::int64_t step, const std::byte* weights, float* sums, bool add, TilesAhead* ahead);
  // Rounds the contiguous channels of n pixels to planes, `plane` bytes apart; the last plane is padded with zeros.
  void (*round)(const float* from, std::int64_t from_pixel, std::int64_t n, std::int64_t channels, std::byte* to,
                std::int64_t plane);
  // Rounds up to four channels of n pixels, `channel` floats apart, to u16 [n][4], padded with zeros.
  void (*round_few)(const float* from, std::int64_t from_pixel, std::int64_t channel, std::int64_t n,
                    std::int64_t channels, std::byte* to);
  // Copies rows [first, rows) of a register's sums to pixels of the result; `streamed`: past the caches.
  void (*put)(const float* sums, std::int64_t first, std::int64_t rows, std::int64_t columns, float* out,
              std::int64_t out_row, bool streamed);
  // Rounds one step of weights: 16 pairs of numbers of up to 32 output channels, which are `row` elements apart. Pair p
  // is at[2 * p] and at[2 * p + 1], offsets in elements, or kNoChannel for zero.
  void (*filters_f32)(const void* from, const std::int64_t* at, std::int64_t row, std::int64_t rows, std::byte* to);
  void (*filters_bf16)(const void* from, const std::int64_t* at, std::int64_t row, std::int64_t rows, std::byte* to);
  void (*filters_f16)(const void* from, const std::int64_t* at, std::int64_t row, std::int64_t rows, std::byte* to);
};
extern const ConvTilesTable kConvTilesAmx, kConvTilesEmulated;

// The offset of the missing half of the last pair of an odd number of channels.
inline constexpr std::int64_t kNoChannel = INT64_MIN;

// A factor of a filter gradient on tile registers: pixels of a row of some images, with contiguous channels. Distances
// are in floats.
struct ImagePixels {
  const float* from;
  std::int64_t image, images, pixel, count, channels;
};
// Gradients of filters in bf16 on tile registers: functions per instruction set. A word is a number of two images at
// one pixel, so that a shifted window has the same words. `pairs` words of a pixel follow each other; those of missing
// images are zeros. A block of 16 channels is a plane of its own.
struct GradientTilesTable {
  const char* name;
  // Called before and after a thread's calls of `tiles`, whose steps have `words` <= 16 words.
  void (*begin)(int words);
  void (*end)();
  // Rounds pixels of the image to [channels / 16][pixels][pairs][16 channels]; a pixel is `to_pixel` bytes long.
  void (*image)(const ImagePixels* p, std::int64_t pairs, std::byte* to, std::int64_t to_pixel, std::int64_t plane);
  // Rounds up to 16 / pairs pixels of the cotangent to a step, [channels / 16][16 channels][16 words].
  void (*cotangent)(const ImagePixels* p, std::int64_t pairs, std::byte* to, std::int64_t plane);
  // Adds the products of 32 channels of the cotangent and 32 of the image. Step k of the cotangent is two registers at
  // cotangent[0] + 1024 * k and cotangent[1] + 1024 * k, of the image two registers at image[0] + at[k] and image[1] +
  // at[k]. Sums are f32 [2][2][16][16]: blocks of the cotangent's channels, then of the image's.
  void (*tiles)(const std::byte* const* cotangent, const std::byte* const* image, const std::int64_t* at,
                std::int64_t steps, float* sums, bool add);
  // Copies a register of sums to the result. Its rows are the cotangent's channels, or the image's if `transposed`.
  void (*put)(const float* sums, std::int64_t cotangents, std::int64_t channels, float* out, std::int64_t out_row,
              bool transposed);
};
extern const GradientTilesTable kGradientTilesAmx, kGradientTilesEmulated;

// Convolutions in bf16 with contiguous pixels, whose products are those of a Microkernel: functions per instruction
// set.
struct NchwBf16Table {
  // Rounds n pixels of each of `count` pairs of channels, at from[2 * i] and from[2 * i + 1], which may be kNoChannel.
  // Column c of pair i is written at to[c / 16 * group + i * row + c % 16]; columns begin with `column`.
  void (*round)(const float* image, const std::int64_t* from, std::int64_t count, std::int64_t step, std::int64_t n,
                std::uint32_t* to, std::int64_t row, std::int64_t column, std::int64_t group);
  // Copies n <= 16 consecutive words from each of `count` offsets to rows of 16 words.
  void (*gather)(const std::uint32_t* from, const std::int64_t* at, std::int64_t count, std::int64_t n,
                 std::uint32_t* to);
  // Copies rows of n floats.
  void (*move)(const float* from, std::int64_t from_row, std::int64_t rows, std::int64_t n, float* to,
               std::int64_t to_row);
};
extern const NchwBf16Table kNchwBf16Generic, kNchwBf16Avx512Bf16;

// A window of a depthwise convolution. Output rows that are computed together share rows of the image: from[(row * step
// + tap) * pitch].
struct DepthwiseWindow {
  const float* weights;    // [taps down][taps across]
  const std::int64_t* at;  // offset of each tap across
  std::int64_t down, across;
  std::int64_t pitch, step, dilation;  // floats per image row; rows between pixels; rows between taps
};
// Rows of a depthwise convolution, of n elements, `step` apart, with zeros outside [begin, end). Whole vectors are
// written.
struct DepthwiseRows {
  const float* from;
  std::int64_t row, step, begin, end, n, to_row;  // row, to_row: floats between rows
};
// Convolutions with few taps: functions per instruction set.
struct DepthwiseTable {
  int width;        // lanes of a vector
  int mr, last_mr;  // output rows at a time; channels-last: pixels at a time
  // Computes n pixels of rows <= mr output rows, which are contiguous in `out`.
  void (*rows)(const DepthwiseWindow* w, const float* from, float* out, std::int64_t rows, std::int64_t n);
  // Copies `count` rows.
  void (*copy)(const DepthwiseRows* r, std::int64_t count, float* to);
  // Computes `count` <= last_mr pixels of `channels` <= nr channels. Weights are [taps][nr].
  // The address of tap t of pixel p is at[t * stride + p] + first.
  void (*pixels)(const float* const* at, std::int64_t stride, std::int64_t first, const float* weights, std::int64_t nr,
                 std::int64_t taps, float* out, std::int64_t out_row, std::int64_t count, std::int64_t channels);
};
extern const DepthwiseTable kDepthwiseGeneric, kDepthwiseAvx2, kDepthwiseAvx512, kDepthwiseNeon;

// Offsets of a pixel in both factors, in floats from the first pixel of a block.
struct PixelPair {
  std::int32_t rows, columns;
};

// Gradients of filters: functions per instruction set.
struct FilterGradientTable {
  int mr, nr;  // rows and columns of a tile
  // C[rows <= mr, columns <= nr] (+)= sum over `count` pixels of a[rows] * b[columns].
  void (*tile)(const float* a, const float* b, const PixelPair* pixels, std::int64_t count, float* c,
               std::int64_t c_row, std::int64_t rows, std::int64_t columns, bool add);
};
extern const FilterGradientTable kFilterGradientGeneric, kFilterGradientAvx2, kFilterGradientAvx512;

}  // namespace lc::backends::cpu
