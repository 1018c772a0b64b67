// Tiles of 128 x 256 or 128 x 128, 128 bytes deep. One thread lets the device copy both operands' tiles into a ring in
// shared memory (TMA), and two warpgroups of four warps multiply them from there (wgmma), 64 rows each. Producer and
// consumers wait for each other by two phases a stage: it is full, it is empty.
//
// Predicted of 128 x 256 in bf16 on an H100: a step is 8 instructions of 128 cycles for 48 KB, and reads 10 KB of
// shared memory an instruction, 80 of 128 bytes a cycle, so that products are bound by the cores: 48 KB of L2 for 1024
// cycles is 47 bytes a cycle and multiprocessor, half of it shared with neighbours. The cores wait at the beginning and
// at the end of a tile, because a block is alone on its multiprocessor: 4 steps of filling and the stores, 64 KB. A
// product of 4096^3 has 64 steps a tile and 3.9 waves of tiles: four fifths of the cores' speed. Seen on no GPU yet.
#include "lightcone/backends/gpu/products/warpgroup_tiles.h"

#include <optional>

#include "lightcone/backends/gpu/products/long_sums.h"

namespace lc::backends::gpu {

using std::to_string;

namespace {

constexpr int kGroupRows = 64;                           // rows of a warpgroup's instruction
constexpr int kStep = 32;                                // bytes of the sum that an instruction takes
constexpr int kEightRows = 8 * kMapRowBytes;             // bytes of eight rows of a matrix
constexpr int kConsumers = 2 * 128, kThreads = 3 * 128;  // the third warpgroup copies
constexpr int kStages = 4;

class WarpgroupTile {
 public:
  WarpgroupTile(const ProductTexts& t, Cores cores, int columns)
      : t_(t),
        cores_(cores),
        columns_(columns),
        depth_(kMapRowBytes / operand_map(t.p, false, kWarpgroupRows)->bytes),
        a_(*operand_map(t.p, false, kWarpgroupRows)),
        b_(*operand_map(t.p, true, columns)),
        w_(t.p.needs_64bit_index, kGivenSizes) {}
  KernelText text();

 private:
  int a_bytes() const { return kWarpgroupRows * kMapRowBytes; }
  int stage_bytes() const { return a_bytes() + columns_ * kMapRowBytes; }
  void begin_phases();
  void copy(const OperandMap& m, const std::string& name, const std::string& own, int rows,
            const std::vector<std::string>& batch, int offset);
  void produce(const std::vector<std::string>& batch);
  std::string matrix(const OperandMap& m, const std::string& name, int bytes) const;
  void multiply();
  void store();

  const ProductTexts& t_;
  Cores cores_;
  int columns_, depth_;
  OperandMap a_, b_;
  Writer w_;
};

void WarpgroupTile::begin_phases() {
  w_.line("LC_SHARED(u64, full, " + to_string(kStages) + ");");
  w_.line("LC_SHARED(u64, empty, " + to_string(kStages) + ");");
  w_.line("LC_RING(ring);");
  w_.line("const int lane = LC_THREAD % 32, warp = LC_THREAD / 32;");
  w_.open("if (LC_THREAD == 0) {");
  w_.open("for (int s = 0; s < " + to_string(kStages) + "; ++s) {");
  w_.line("lc_phase_init(full + s, 1);");
  w_.line("lc_phase_init(empty + s, " + to_string(kConsumers / 32) + ");");
  w_.close();
  w_.line("lc_phase_init_done();");
  w_.close();
  w_.line("LC_BARRIER;");
}

// Copies the tile's `rows` free indices from `own` on: as one box, or as one box per 64 of them if the operand is
// contiguous across the sum.
void WarpgroupTile::copy(const OperandMap& m, const std::string& name, const std::string& own, int rows,
                         const std::vector<std::string>& batch, int offset) {
  const int wide = m.along_sum ? rows : m.box[0];
  std::string more;
  for (const std::size_t i : m.batch) more += ", (int)" + batch[i];
  for (int at = 0; at < rows; at += wide) {
    const std::string free_index = at ? own + " + " + to_string(at) : own;
    w_.line("lc_tile_copy_" + to_string(m.extents.size()) + "(to + " + to_string(offset + at * kMapRowBytes) +
            ", &map_" + name + ", full + stage, " + (m.along_sum ? "k, " + free_index : free_index + ", k") + more +
            ");");
  }
}

// Lets one thread keep the ring full.
void WarpgroupTile::produce(const std::vector<std::string>& batch) {
  w_.open("if (warp >= " + to_string(kConsumers / 32) + ") {");
  w_.line("lc_give_registers<40>();");
  w_.open("if (LC_THREAD == " + to_string(kConsumers) + ") {");
  w_.line("int stage = 0, parity = 1;");  // every stage is empty at first
  w_.open("for (int s = 0; s < steps; ++s) {");
  w_.line("lc_phase_wait(empty + stage, parity);");
  w_.line("lc_phase_expect(full + stage, " + to_string(stage_bytes()) + ");");
  w_.line("const int k = (int)k_begin + s * " + to_string(depth_) + ";");
  w_.line("u8* const to = ring + stage * " + to_string(stage_bytes()) + ";");
  copy(a_, "a", "(int)tile_m * " + to_string(kWarpgroupRows), kWarpgroupRows, batch, 0);
  copy(b_, "b", "(int)tile_n * " + to_string(columns_), columns_, batch, a_bytes());
  w_.line("if (++stage == " + to_string(kStages) + ") stage = 0, parity ^= 1;");
  w_.close();
  w_.close();
  w_.line("return;");
  w_.close();
}

// Returns the descriptor of an instruction's operand, `bytes` along the sum after the tile's beginning.
std::string WarpgroupTile::matrix(const OperandMap& m, const std::string& name, int bytes) const {
  if (m.along_sum) return "lc_matrix(" + name + " + " + to_string(bytes) + ", " + to_string(kEightRows) + ", 16)";
  return "lc_matrix(" + name + " + " + to_string(bytes / m.bytes * kMapRowBytes) + ", " + to_string(kEightRows) + ", " +
         to_string(depth_ * kMapRowBytes) + ")";
}

void WarpgroupTile::multiply() {
  const std::string product = "lc_wgmma_" + warpgroup_types(t_.p, cores_) + "_" + to_string(columns_) + "<" +
                              to_string(!a_.along_sum) + ", " + to_string(!b_.along_sum) + ">";
  w_.line("lc_take_registers<232>();");
  w_.line("LC_SUMS(" + t_.sum_type() + ", " + to_string(columns_ / 2) + ", c_);");
  w_.line("LC_UNROLL");
  w_.line("for (int i = 0; i < " + to_string(columns_ / 2) + "; ++i) c_[i] = 0;");
  const LongSums sums(t_, columns_ / 2);
  sums.begin(w_);
  w_.line("int stage = 0, before = 0, parity = 0;");
  w_.line("LC_LOOP");
  w_.open("for (int s = 0; s < steps; ++s) {");
  w_.line("lc_phase_wait(full + stage, parity);");
  // 64 rows are contiguous in either layout: 64 rows of 128 bytes, or as many steps of the sum
  w_.line("const u8 *a = ring + stage * " + to_string(stage_bytes()) + " + warp / 4 * " +
          to_string(kGroupRows * kMapRowBytes) + ", *b = ring + stage * " + to_string(stage_bytes()) + " + " +
          to_string(a_bytes()) + ";");
  w_.line("lc_products_begin(c_);");
  for (int bytes = 0; bytes < kMapRowBytes; bytes += kStep)
    w_.line(product + "(c_, " + matrix(a_, "a", bytes) + ", " + matrix(b_, "b", bytes) + ");");
  w_.line("lc_products_commit(c_);");
  w_.line("lc_products_wait<1>(c_);");
  w_.line("if (s > 0 && lane == 0) lc_phase_arrive(empty + before);");  // no thread of the warp reads it any more
  w_.line("before = stage;");
  sums.end_step(w_, "s * " + to_string(depth_), depth_, kMostByCores, "lc_products_wait<0>(c_);");
  w_.line("if (++stage == " + to_string(kStages) + ") stage = 0, parity ^= 1;");
  w_.close();
  w_.line("lc_products_wait<0>(c_);");
  sums.finish(w_);
}

// A thread has two adjacent columns of each eight, in a row and in the eighth row after it.
void WarpgroupTile::store() {
  const Product& p = t_.p;
  const std::string rows = w_.number(product(p.rows));
  for (int half = 0; half < 2; ++half) {
    w_.open("{");
    w_.let("row", "tile_m * " + to_string(kWarpgroupRows) + " + warp * 16 + " + to_string(8 * half) + " + lane / 4");
    w_.open("if (row < " + rows + ") {");
    w_.let("c_row", w_.offset("c_base", w_.indices(p.rows, "row", "r"), p.c_rows));
    w_.line("LC_UNROLL");
    w_.open("for (int j = 0; j < " + to_string(columns_ / 8) + "; ++j) {");
    t_.store_neighbours(w_, "tile_n * " + to_string(columns_) + " + j * 8 + lane % 4 * 2",
                        [&](int e) { return "c_[j * 4 + " + to_string(2 * half + e) + "]"; });
    for (int n = 0; n < 3; ++n) w_.close();
  }
}

KernelText WarpgroupTile::text() {
  begin_phases();
  const std::vector<std::string> batch = t_.locate(w_, kWarpgroupRows, columns_);
  w_.line("const int steps = (int)((k_end - k_begin + " + to_string(depth_ - 1) + ") / " + to_string(depth_) + ");");
  produce(batch);
  multiply();
  store();
  KernelText k{std::string(warpgroup_primitives()) + warpgroup_product(t_.p, cores_, columns_) +
                   t_.finished(w_, kThreads, "LC_MAP map_a, LC_MAP map_b"),
               kThreads, w_.sizes()};
  k.rows = kWarpgroupRows, k.columns = columns_, k.depth = depth_;
  k.maps = {a_, b_};
  k.shared = static_cast<std::size_t>(kStages * stage_bytes()) + 1024;  // the ring begins at a multiple of 1024
  return k;
}

}  // namespace

bool fits_warpgroups(const Product& p, Cores cores) {
  if (cores == Cores::None || p.a.type != taken(cores, p.a.type) || p.b.type != taken(cores, p.b.type)) return false;
  return operand_map(p, false, kWarpgroupRows) && operand_map(p, true, kWarpgroupColumns);
}

KernelText warpgroup_tiles(const ProductTexts& t, Cores cores, int columns) {
  return WarpgroupTile(t, cores, columns).text();
}

}  // namespace lc::backends::gpu
