// Tiling for transposed operands. If the innermost loop steps over rows of an operand (a transpose, channels moved
// last), every load is a line of its own, and of rows at power-of-two distances a cache holds only a dozen. If the
// operand is contiguous along another output loop, the nest is tiled over both loops: a tile of the operand is loaded
// by whole lines, transposed in registers and stored in local memory, from which the innermost loop reads in order.
#include <algorithm>

#include "lightcone/codegen/kernel_ir.h"
#include "lightcone/codegen/symbols.h"

namespace lc::codegen {
namespace {

constexpr std::int64_t kSide = 128;                           // elements
constexpr std::int64_t kShortestTile = 8, kShortestRow = 32;  // a few rows are read well without a tile
constexpr std::int64_t kLine = 64;  // padding in bytes between the rows of a tile, against collisions in cache sets
constexpr std::int64_t kCollide = 512;
constexpr std::int64_t kFewRounds = 64;  // iterations of a loop that threads divide among them

class Tiler {
 public:
  Tiler(Kernel& k, std::int64_t side, const Machine& m)
      : k_(k), along_(k.output_loops - 1), side_(side), near_(m.l2 / 16 * 3), most_(tile_bytes(m)) {}
  void run();

 private:
  Loop& loop(int id) { return k_.loops[id]; }
  Dim stride(const Instr& i);
  bool near(const Instr& i, int across);
  bool is_transposed(const Instr& i, int across);
  bool too_short(const Loop& l, std::int64_t least) const { return l.extent.bounds().hi < (side_ > 0 ? 2 : least); }
  std::vector<int> loads(int across);
  std::int64_t side(const std::vector<int>& loads, int across);
  std::int64_t bytes(const std::vector<int>& loads, std::int64_t side);
  std::int64_t length(int id, std::int64_t side) { return std::min(side, loop(id).extent.bounds().hi); }
  void nest(int across, std::int64_t side);
  void read_tile(Instr& i);

  Kernel& k_;
  int along_;
  Dim all_ = 1;               // elements of the result
  std::int64_t side_;         // requested; 0: to be chosen
  std::int64_t near_, most_;  // bytes that are read well without a tile, and bytes of all tiles
};

// Returns the stride of a load along the innermost loop, or 0 if it is not constant.
Dim Tiler::stride(const Instr& i) {
  const Loop& l = loop(along_);
  const Dim first = renamed(i.offset, l.symbol, 0), step = renamed(i.offset, l.symbol, 1) - first;
  return first + step * symbol(l) == i.offset ? step : Dim(0);
}

bool Tiler::is_transposed(const Instr& i, int across) {
  if (i.code != Code::Load || !(i.valid == Dim(1))) return false;
  const Loop& l = loop(across);
  if (coefficient(i.offset, l.symbol) != 1 || mentions(i.offset - symbol(l), l.symbol)) return false;
  const Dim s = stride(i);
  return !(s == Dim(0)) && !(s == Dim(1));
}

// Returns true if the operand needs no tile: all of it, or the rows of the operand that a few rows of the result read,
// stay in a cache. Strides that are multiples of kCollide use few sets of the cache and do need one.
bool Tiler::near(const Instr& i, int across) {
  const auto size = static_cast<std::int64_t>(size_of(i.dtype));
  const Dim step = stride(i) * size;
  const bool collides = step.is_constant() && step.offset() % kCollide == 0;
  if (side_ > 0 || collides) return false;
  const Dim rows = loop(across).extent.bounds().hi < kLanes ? step * loop(along_).extent : all_ * size;
  return rows.bounds().hi <= near_;
}

std::vector<int> Tiler::loads(int across) {
  std::vector<int> all;
  if (too_short(loop(across), kShortestTile)) return all;
  for (const Item& i : loop(along_).body.items)
    if (const Instr& in = k_.instrs[i.id]; is_transposed(in, across) && !near(in, across)) all.push_back(i.id);
  return all;
}

std::int64_t Tiler::bytes(const std::vector<int>& loads, std::int64_t side) {
  std::int64_t all = 0;
  for (int id : loads) all += side * (side * static_cast<std::int64_t>(size_of(k_.instrs[id].dtype)) + kLine);
  return all;
}

// Tile side: the largest power of two whose tiles fit in the budget, and no longer than the shorter loop.
std::int64_t Tiler::side(const std::vector<int>& loads, int across) {
  if (side_ > 0) return side_;
  std::int64_t side = kSide;
  const std::int64_t shorter = std::min(length(along_, kSide), length(across, kSide));
  while (side > 2 * kLanes && (side > shorter || bytes(loads, side) > most_)) side /= 2;
  return side;
}

// Makes the two loops innermost, inside of two loops over the origins of tiles. The values of the loops between them
// move into the last but one. Threads divide the outermost loop, so a long loop is put there.
void Tiler::nest(int across, std::int64_t side) {
  const std::vector<Loop> old = std::move(k_.loops);
  const auto at = [&](int id) -> const Loop& { return old[id]; };
  const auto longest = [&](int id) { return at(id).extent.bounds().hi; };
  const int between = along_ - across - 1;
  const bool first = across == 0 && (between == 0 || longest(1) < kFewRounds);
  const bool turn = first && longest(along_) > longest(across);
  std::vector<Loop> all(old.begin(), old.begin() + across);
  const auto origins = [&](int id) {
    Loop l = loop_over(kTileOrigins[id], at(id).extent);
    l.step = side;
    all.push_back(std::move(l));
    return static_cast<int>(all.size()) - 1;
  };
  Block values = at(across).body;
  int tile_across = 0, tile_along = 0;
  const auto outer = [&] { (turn ? tile_along : tile_across) = origins(turn ? along_ : across); };
  if (first) outer();
  for (int id = across + 1; id < along_; ++id) {
    values.items.insert(values.items.end(), at(id).body.items.begin(), at(id).body.items.end());
    all.push_back(at(id));
    all.back().body = {};
  }
  if (!first) outer();
  (turn ? tile_across : tile_along) = origins(turn ? across : along_);
  std::erase_if(values.items, [](const Item& i) { return i.is_loop; });
  all.push_back(at(across));
  all.back().body = std::move(values);
  all.back().tile = tile_across;
  all.push_back(at(along_));
  all.back().tile = tile_along;
  for (int id = 0; id < static_cast<int>(all.size()); ++id) {
    Loop& l = all[id];
    l.depth = id, l.parent = id - 1;
    if (id > across) all[static_cast<std::size_t>(id) - 1].body.items.push_back({true, id});
  }
  k_.loops = std::move(all);
  k_.output_loops += 2, along_ += 2;
}

void Tiler::read_tile(Instr& i) {
  const Loop &along = loop(along_), &across = loop(along_ - 1);
  const Dim first = symbol(loop(across.tile)), begin = symbol(loop(along.tile));
  const std::int64_t pitch =
      length(along_, loop(along.tile).step) + kLine / static_cast<std::int64_t>(size_of(i.dtype));
  k_.tiles.push_back({.buffer = i.buffer,
                      .dtype = i.dtype,
                      .offset = i.offset,
                      .origin = renamed(renamed(i.offset, across.symbol, first), along.symbol, begin),
                      .stride = stride(i),
                      .across = along_ - 1,
                      .pitch = pitch,
                      .elements = pitch * length(along_ - 1, loop(across.tile).step)});
  i.offset = (symbol(across) - first) * Dim(pitch) + (symbol(along) - begin);
  i.buffer = static_cast<int>(k_.buffers.size() + k_.tiles.size()) - 1;
}

void Tiler::run() {
  if (!loop(along_).lanes || too_short(loop(along_), kShortestRow)) return;
  if (coefficient(k_.store_offset, loop(along_).symbol) != 1) return;
  for (const Loop& l : k_.loops) all_ = all_ * l.extent;
  int across = -1;
  std::vector<int> best;
  for (int id = along_ - 1; id >= 0; --id)
    if (std::vector<int> here = loads(id); here.size() > best.size()) best = std::move(here), across = id;
  if (across < 0) return;
  while (side_ == 0 && bytes(best, 2 * kLanes) > most_) best.pop_back();  // the others are read without a tile
  nest(across, side(best, across));
  for (int id : best) read_tile(k_.instrs[id]);
}

}  // namespace

void tile_loops(Kernel& k, std::int64_t side, const Machine& m) {
  if (k.output_loops > 1 && k.reductions.empty()) Tiler(k, side, m).run();
}

}  // namespace lc::codegen
