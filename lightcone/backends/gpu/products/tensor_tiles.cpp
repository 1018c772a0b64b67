// Tiles of 64 x 64 (four warps of 32 x 32) or 128 x 128 (eight of 64 x 32), 64 bytes deep, through a ring of tiles in
// shared memory. Operands in the cores' type are copied asynchronously; others go through registers, where they are
// converted. Chunks of 16 bytes are permuted (swizzled) within the rows of a tile, so that eight rows' chunks are in
// different banks.
//
// Predicted of 128 x 128 in bf16: 48 kB shared, three tiles in flight, 170 registers (NVRTC 13.5, sm_90a): one block a
// multiprocessor; 32 mma of 4096 products for 24 ldmatrix.x4 a warp and step. mma.sync reaches about two thirds of the
// wgmma speed of an H200's cores. Device memory is read 64 operations a byte, so that large products are bound by the
// cores.
#include "lightcone/backends/gpu/products/tensor_tiles.h"

#include "lightcone/backends/gpu/products/long_sums.h"
#include "lightcone/backends/gpu/products/operand.h"
#include "lightcone/codegen/simt/tensor_cores.h"

namespace lc::backends::gpu {

using std::to_string;

namespace {

constexpr int kRowBytes = 64;  // bytes of a tile's row, if rows go along the sum
constexpr int kColumns = 32;   // columns of a warp

struct CoreInfo {
  std::string mma;
  int bytes;  // bytes of an element
};
CoreInfo core_info(Cores c, const Product& p) {
  switch (c) {
    case Cores::F16: return {"lc_mma_f16", 2};
    case Cores::Tf32: return {"lc_mma_tf32", 4};
    case Cores::I8: return {"lc_mma_s8", 1};
    case Cores::F8: return {"lc_mma_" + f8_name(p.a.type) + "_" + f8_name(p.b.type), 1};
    default: return {"lc_mma_bf16", 2};
  }
}

// An operand: fills its tiles and reads fragments from them.
class Ring {
 public:
  Ring(const ProductTexts& t, bool is_b, Cores cores, int side, int threads, std::string name)
      : cores_(cores),
        bytes_(core_info(cores, t.p).bytes),
        chunk_(16 / bytes_),
        side_(side),
        name_(std::move(name)),
        direct_(t.p, is_b, side, kRowBytes / bytes_, threads, name_, chunk_),
        converted_(t.p, is_b, side, kRowBytes / bytes_, threads, name_, 4),
        stored_((is_b ? t.p.b : t.p.a).type) {
    copies_ = stored_ == taken(cores, stored_) && direct_.whole_vectors() && (direct_.along_sum() || bytes_ == 2);
    // ldmatrix transposes only elements of 16 bits
    transposed_ = !reader().along_sum() && bytes_ == 2;
  }
  bool copies() const { return copies_; }
  int tile_bytes() const { return side_ * kRowBytes; }
  void prepare(Writer& w, const std::string& first) {
    copies_ ? direct_.prepare(w, first) : converted_.prepare(w, first);
  }
  // Copies asynchronously to the tile at `tile`.
  void copy(Writer& w, const std::string& k, const std::string& tile) const {
    direct_.each(
        w, k, "k_end",
        [&](int v, const std::string& from) {
          w.line("lc_copy16_async(" + tile + " + " + chunk_of(direct_, v) + ", " + from + ");");
        },
        [&](int v) { w.line("*(uint4*)(" + tile + " + " + chunk_of(direct_, v) + ") = make_uint4(0u, 0u, 0u, 0u);"); });
  }
  void read(Writer& w, const std::string& k) const { converted_.read(w, k, "k_end"); }
  void keep(Writer& w, const std::string& tile) const;
  // Loads fragments for 16 free indices from `own` on and the step's part of the sum from byte `depth` on, as `r`[4].
  // Their four matrices are in the order that the instruction takes for A (rows first) or for B (`sums_first`).
  void fragments(Writer& w, const std::string& own, int depth, bool sums_first, const std::string& r) const;

 private:
  const TileReader& reader() const { return copies_ ? direct_ : converted_; }
  std::string row_offset(const std::string& row, const std::string& byte) const {  // in a tile along the sum
    return "(" + row + ") * " + to_string(kRowBytes) + " + (((" + byte + ") / 16 ^ (((" + row +
           ") / 2) & 3)) * 16) + (" + byte + ") % 16";
  }
  std::string transposed_offset(const std::string& sum, const std::string& own) const {
    return "(" + sum + ") * " + to_string(side_ * 2) + " + (((" + own + ") / 8 ^ ((" + sum + ") & 7)) * 16) + (" + own +
           ") % 8 * 2";
  }
  // Returns a register in the tile's type, for an operand whose elements are not of 16 bits.
  std::string kept(const std::string& number) const {
    if (bytes_ == 4) return number;
    return "(signed char)" + (is_f8(stored_) ? "lc_f32_to_" + std::string(name(stored_)) + "(" + number + ")" : number);
  }
  std::string chunk_of(const TileReader& r, int v) const {
    return transposed_ ? transposed_offset(r.index_sum(v), r.index_own(v))
                       : row_offset(r.index_own(v), "(" + r.index_sum(v) + ") * " + to_string(bytes_));
  }

  Cores cores_;
  int bytes_, chunk_, side_;
  std::string name_;
  TileReader direct_, converted_;
  WeightType stored_;
  bool copies_ = false, transposed_ = false;
};

void Ring::keep(Writer& w, const std::string& tile) const {
  const auto number = [&](int v, int e) { return name_ + "_r[" + to_string(v * 4 + e) + "]"; };
  const auto pair = [&](int v, int e) {
    const std::string a = number(v, e), b = number(v, e + 1);
    return cores_ == Cores::F16 ? "((u32)lc_f32_to_f16(" + a + ") | (u32)lc_f32_to_f16(" + b + ") << 16)"
                                : "lc_pack_bf16(" + a + ", " + b + ")";
  };
  for (int v = 0; v < converted_.vectors(); ++v) {
    if (bytes_ == 2) {  // four adjacent ones, along the sum or across it
      w.line("*(uint2*)(" + tile + " + " + chunk_of(converted_, v) + ") = make_uint2(" + pair(v, 0) + ", " +
             pair(v, 2) + ");");
      continue;
    }
    for (int e = 0; e < 4; ++e) {
      const std::string more = e ? " + " + to_string(e) : "";
      const std::string own = converted_.index_own(v) + (converted_.along_sum() ? "" : more),
                        sum = converted_.index_sum(v) + (converted_.along_sum() ? more : "");
      w.line("*(" + std::string(bytes_ == 4 ? "float" : "signed char") + "*)(" + tile + " + " +
             row_offset(own, "(" + sum + ") * " + to_string(bytes_)) + ") = " + kept(number(v, e)) + ";");
    }
  }
}

void Ring::fragments(Writer& w, const std::string& own, int depth, bool sums_first, const std::string& r) const {
  // matrix i of four: its eight free indices, and its half of the instruction's depth
  const std::string low = "(lane / 8 & 1)", high = "(lane / 16)";
  const std::string octet = sums_first ? high : low, half = sums_first ? low : high;
  const std::string tile = "ring_" + name_ + " + at_" + name_ + " + ";
  if (transposed_)
    w.line("lc_ldmatrix4_trans(" + r + ", " + tile +
           transposed_offset(to_string(depth / 2) + " + " + half + " * 8 + lane % 8", own + " + " + octet + " * 8") +
           ");");
  else
    w.line("lc_ldmatrix4(" + r + ", " + tile +
           row_offset(own + " + " + octet + " * 8 + lane % 8", to_string(depth) + " + " + half + " * 16") + ");");
}

class TensorTile {
 public:
  TensorTile(const ProductTexts& t, Cores cores, int side)
      : t_(t),
        core_(core_info(cores, t.p)),
        side_(side),
        threads_(2 * side),
        warp_rows_(side / 2),
        blocks_(side / 32),
        stages_(side == 128 ? 3 : 4),
        depth_(kRowBytes / core_.bytes),
        a_(t, false, cores, side, threads_, "a"),
        b_(t, true, cores, side, threads_, "b"),
        w_(t.p.needs_64bit_index, kGivenSizes) {}
  KernelText text();

 private:
  void fill(const std::string& k, const std::string& stage, bool at_once);
  void multiply();
  void store();

  const ProductTexts& t_;
  CoreInfo core_;
  int side_, threads_, warp_rows_, blocks_, stages_, depth_;  // blocks_: of 16 rows, in a warp
  Ring a_, b_;
  Writer w_;
};

// Begins to fill a tile of the ring. Elements that go through registers are stored later, or now if `at_once`.
void TensorTile::fill(const std::string& k, const std::string& stage, bool at_once) {
  for (Ring* r : {&a_, &b_}) {
    const std::string tile =
        std::string("ring_") + (r == &a_ ? "a" : "b") + " + " + stage + " * " + to_string(r->tile_bytes());
    if (r->copies()) r->copy(w_, k, tile);
    else r->read(w_, k);
    if (at_once && !r->copies()) r->keep(w_, tile);
  }
  w_.line("lc_copy_commit();");
}

void TensorTile::multiply() {
  const int columns = kColumns / 8;
  for (int d = 0; d < kRowBytes; d += 32) {  // every instruction takes 32 bytes of the sum
    w_.open("{");
    w_.line("u32 b_[" + to_string(columns / 2) + "][4];");
    for (int j = 0; j < columns / 2; ++j)
      b_.fragments(w_, "warp_n + " + to_string(16 * j), d, true, "b_[" + to_string(j) + "]");
    for (int i = 0; i < blocks_; ++i) {
      w_.open("{");
      w_.line("u32 a_[4];");
      a_.fragments(w_, "warp_m + " + to_string(16 * i), d, false, "a_");
      for (int j = 0; j < columns; ++j) {
        const std::string b = "b_[" + to_string(j / 2) + "][" + to_string(j % 2 * 2);
        w_.line("{ const u32 x[2] = {" + b + "], " + b + " + 1]}; " + core_.mma + "(c_[" + to_string(i * columns + j) +
                "], a_, x); }");
      }
      w_.close();
    }
    w_.close();
  }
}

void TensorTile::store() {
  const Product& p = t_.p;
  const std::string rows = w_.number(product(p.rows));
  for (int i = 0; i < blocks_; ++i)
    for (int half = 0; half < 2; ++half) {
      w_.open("{");
      w_.let("row", "tile_m * " + to_string(side_) + " + warp_m + " + to_string(16 * i + 8 * half) + " + lane / 4");
      w_.open("if (row < " + rows + ") {");
      w_.let("c_row", w_.offset("c_base", w_.indices(p.rows, "row", "r"), p.c_rows));
      w_.line("LC_UNROLL");
      w_.open("for (int j = 0; j < " + to_string(kColumns / 8) + "; ++j) {");
      t_.store_neighbours(w_, "tile_n * " + to_string(side_) + " + warp_n + j * 8 + lane % 4 * 2", [&](int e) {
        return "c_[" + to_string(i * kColumns / 8) + " + j][" + to_string(2 * half + e) + "]";
      });
      for (int n = 0; n < 3; ++n) w_.close();
    }
}

KernelText TensorTile::text() {
  const std::string ahead = to_string(stages_ - 1), count = to_string(blocks_ * kColumns / 8);
  w_.line("LC_SHARED(u8, ring_a, " + to_string(stages_ * a_.tile_bytes()) + ");");
  w_.line("LC_SHARED(u8, ring_b, " + to_string(stages_ * b_.tile_bytes()) + ");");
  w_.line("const int lane = LC_THREAD % 32, warp = LC_THREAD / 32;");
  w_.line("const int warp_m = warp % 2 * " + to_string(warp_rows_) + ", warp_n = warp / 2 * " + to_string(kColumns) +
          ";");
  t_.locate(w_, side_, side_);
  a_.prepare(w_, "tile_m * " + to_string(side_));
  b_.prepare(w_, "tile_n * " + to_string(side_));
  w_.line(t_.sum_type() + " c_[" + count + "][4];");
  w_.line("LC_UNROLL");
  w_.line("for (int i = 0; i < " + count + "; ++i) c_[i][0] = c_[i][1] = c_[i][2] = c_[i][3] = 0;");
  const LongSums sums(t_, blocks_ * kColumns / 8, 4);
  sums.begin(w_);
  w_.open("for (int s = 0; s < " + ahead + "; ++s) {");
  fill("(k_begin + s * " + to_string(depth_) + ")", "s", true);
  w_.close();
  w_.line("int stage = 0, next = " + ahead + ";");
  w_.open("for (" + w_.index() + " k = k_begin; k < k_end; k += " + to_string(depth_) + ") {");
  w_.line("lc_copy_wait<" + to_string(stages_ - 2) + ">();");
  w_.line("LC_BARRIER;");  // this tile has arrived, and no thread reads the previous one any more
  w_.let("soon", "k + " + to_string((stages_ - 1) * depth_));
  fill("soon", "next", false);
  w_.line("const int at_a = stage * " + to_string(a_.tile_bytes()) + ", at_b = stage * " + to_string(b_.tile_bytes()) +
          ";");
  multiply();
  if (!a_.copies()) a_.keep(w_, "ring_a + next * " + to_string(a_.tile_bytes()));
  if (!b_.copies()) b_.keep(w_, "ring_b + next * " + to_string(b_.tile_bytes()));
  sums.end_step(w_, "k - k_begin", depth_, kMostByCores);
  w_.line("stage = stage + 1 == " + to_string(stages_) + " ? 0 : stage + 1, next = next + 1 == " + to_string(stages_) +
          " ? 0 : next + 1;");
  w_.close();
  w_.line("lc_copy_wait<0>();");
  sums.finish(w_);
  store();
  KernelText k{std::string(codegen::simt::tensor_primitives()) + t_.finished(w_, threads_), threads_, w_.sizes()};
  k.rows = k.columns = side_, k.depth = depth_;
  return k;
}

}  // namespace

WeightType taken(Cores c, WeightType stored) {
  switch (c) {
    case Cores::F16: return WeightType::F16;
    case Cores::Tf32: return WeightType::F32;
    case Cores::I8: return WeightType::I8;
    case Cores::F8: return stored;
    default: return WeightType::BF16;
  }
}

std::string f8_name(WeightType t) { return t == WeightType::F8E4M3FN ? "e4m3" : "e5m2"; }

KernelText tensor_tiles(const ProductTexts& t, Cores cores, int side) { return TensorTile(t, cores, side).text(); }

}  // namespace lc::backends::gpu
