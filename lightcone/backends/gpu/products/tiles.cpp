// Tiles of the result in registers, tiles of the operands in shared memory.
//
// 256 threads make a tile of 64 x 64 (4 x 4 a thread, 16 deep) or 128 x 128 (8 x 8, 8 deep). In each step a thread
// reads one vector of four of A and one of B, for the next step, while it multiplies this step's: there is one barrier
// a step. Predicted of 128 x 128: 17 kB shared, about 120 registers (64 sums), two blocks on a multiprocessor. A step
// has 64 fused multiply-adds for four 16-byte reads of shared memory, so that arithmetic is the bound. It does 32
// operations a byte of device memory, and an H200 is bound by arithmetic from 14 on (67 TFLOP/s, 4.8 TB/s).
#include "lightcone/backends/gpu/products/kernels.h"
#include "lightcone/backends/gpu/products/long_sums.h"
#include "lightcone/backends/gpu/products/operand.h"

namespace lc::backends::gpu {

using std::to_string;

namespace {

constexpr int kTileThreads = 256, kThreadsOfRow = 16;

// Returns the position of the thread's c-th row or column in the tile: groups of four, kThreadsOfRow * 4 apart.
std::string spread(const std::string& lane, int c) {
  return lane + " * 4 + " + to_string(c / 4 * 4 * kThreadsOfRow + c % 4);
}

struct Tile {
  const ProductTexts& t;
  int side, depth, each, pitch;
  TileReader a, b;
  Writer w;

  Tile(const ProductTexts& of, int size)
      : t(of),
        side(size),
        depth(4 * kTileThreads / size),
        each(size / kThreadsOfRow),
        pitch(size + 4),
        a(of.p, false, size, depth, kTileThreads, "a"),
        b(of.p, true, size, depth, kTileThreads, "b"),
        w(of.p.needs_64bit_index, kGivenSizes) {}

  void multiply();
  void store();
  KernelText text();
};

void Tile::multiply() {
  const std::string type = t.sum_type();
  w.line("LC_UNROLL");
  w.open("for (int kk = 0; kk < " + to_string(depth) + "; ++kk) {");
  for (const char* side_name : {"a", "b"})
    for (int v = 0; v < each / 4; ++v)
      w.line("LC_LOADV_LOCAL(" + type + ", 4, " + side_name + to_string(v) + "_, tile_" + side_name + " + at + kk * " +
             to_string(pitch) + " + " + spread(side_name[0] == 'a' ? "ty" : "tx", 4 * v) + ");");
  for (int i = 0; i < each; ++i)
    for (int j = 0; j < each; ++j) {
      const std::string c = "c_[" + to_string(i * each + j) + "]";
      const std::string x = "LC_AT(a" + to_string(i / 4) + "_, " + to_string(i % 4) + ")",
                        y = "LC_AT(b" + to_string(j / 4) + "_, " + to_string(j % 4) + ")";
      w.line(c + " = " + (t.p.exact ? c + " + " + x + " * " + y : "lc_mul_add_f(" + x + ", " + y + ", " + c + ")") +
             ";");
    }
  w.close();
}

void Tile::store() {
  const Product& p = t.p;
  const std::string rows = w.number(product(p.rows)), columns = w.number(product(p.columns));
  for (int i = 0; i < each; ++i) {
    w.open("{");
    w.let("row", "tile_m * " + to_string(side) + " + " + spread("ty", i));
    w.open("if (row < " + rows + ") {");
    const auto at = w.indices(p.rows, "row", "r");
    w.let("c_row", w.offset("c_base", at, p.c_rows));
    w.line("LC_UNROLL");
    w.open("for (int j = 0; j < " + to_string(each) + "; ++j) {");
    w.let("column", "tile_n * " + to_string(side) + " + tx * 4 + j / 4 * " + to_string(4 * kThreadsOfRow) + " + j % 4");
    w.open("if (column < " + columns + ") {");
    const auto in = w.indices(p.columns, "column", "q");
    t.store(w, w.offset("c_row", in, p.c_columns), "c_[" + to_string(i * each) + " + j]");
    for (int n = 0; n < 4; ++n) w.close();
  }
}

KernelText Tile::text() {
  const std::string type = t.sum_type(), one = to_string(depth * pitch);
  w.line("LC_SHARED(" + type + ", tile_a, " + to_string(2 * depth * pitch) + ");");
  w.line("LC_SHARED(" + type + ", tile_b, " + to_string(2 * depth * pitch) + ");");
  w.line("const int tx = LC_THREAD % " + to_string(kThreadsOfRow) + ", ty = LC_THREAD / " + to_string(kThreadsOfRow) +
         ";");
  t.locate(w, side, side);
  a.prepare(w, "tile_m * " + to_string(side));
  b.prepare(w, "tile_n * " + to_string(side));
  w.line(type + " c_[" + to_string(each * each) + "];");
  w.line("LC_UNROLL");
  w.line("for (int i = 0; i < " + to_string(each * each) + "; ++i) c_[i] = 0;");
  const LongSums sums(t, each * each);
  sums.begin(w);
  a.read(w, "k_begin", "k_end"), b.read(w, "k_begin", "k_end");
  w.line("int at = 0;");
  a.keep(w, "tile_a", pitch), b.keep(w, "tile_b", pitch);
  w.line("LC_BARRIER;");
  w.open("for (" + w.index() + " k = k_begin; k < k_end; k += " + to_string(depth) + ") {");
  w.let("next", "k + " + to_string(depth));
  a.read(w, "next", "k_end"), b.read(w, "next", "k_end");
  multiply();
  w.line("at = " + one + " - at;");
  a.keep(w, "(tile_a + at)", pitch), b.keep(w, "(tile_b + at)", pitch);
  w.line("LC_BARRIER;");
  sums.end_step(w, "k - k_begin", depth, kMostByThread);
  w.close();
  sums.finish(w);
  store();
  KernelText k{t.finished(w, kTileThreads), kTileThreads, w.sizes()};
  k.rows = k.columns = side, k.depth = depth;
  return k;
}

}  // namespace

KernelText ProductTexts::tiles(int side) const { return Tile(*this, side).text(); }

}  // namespace lc::backends::gpu
