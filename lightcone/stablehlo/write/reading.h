// How an operand is read inside of loops, axis by axis: common to products, pooling windows and views.
//
// An index of a view is an expression over the loops, with / and % where axes were joined or split. Loops are split
// into parts until every index is a sum of steps. An axis that follows one loop is then a slice, one that follows
// several without overlap is a reshape, and one that follows two that overlap is a window of a convolution or a pool.
// Open axes and loops (sizes.h) are read whole or not at all, or, if SizeTable::open_windows is set, through windows.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "lightcone/core/graph.h"
#include "lightcone/stablehlo/write/builder.h"

namespace lc::stablehlo {

struct Loops {
  std::vector<Dim> symbols;
  Sizes extents;                  // above 1, or open
  std::vector<std::size_t> from;  // index of the given loop of which it is a part
  std::size_t size() const { return extents.size(); }
};

struct AxisReading {
  std::int64_t extent = 0;  // extent of the axis
  std::int64_t offset = 0;
  Sizes step;                   // step of each loop
  std::int64_t lo = 0, hi = 0;  // zero is read unless lo <= index < hi
  bool windows = false;         // the axis is open and read through windows: in order, beginning at its start
  std::vector<std::size_t> loops() const;  // loops with a step, the longest step first
};

struct Reading {
  std::vector<AxisReading> axes;
  std::size_t repeated = 0;                // the operand is repeated along this many last axes, which it does not have
  bool nothing = false;                    // only padding is read
  std::vector<std::size_t> loops() const;  // loops that it depends on, in the order of the axes
};

struct Readings {
  Loops loops;
  std::vector<Reading> operands;
};

// Analyses operands read in the loops `symbols`; loops of extent 1 are constants. Returns nullopt if an index is no sum
// of steps however loops are split, or if part of something open would be read.
std::optional<Readings> read_in_loops(SizeTable& sizes, const std::vector<Dim>& symbols, std::vector<View::Position> at,
                                      std::span<const Shape> bases);

// Returns true if slices, a reshape and reversals can give each loop of the axis an axis of its own.
bool is_plain(const AxisReading& axis, const Loops& loops);
bool is_plain(const Reading& reading, const Loops& loops);  // also requires that no loop moves along two axes

// The existing part of the indices [start, end) of an axis, and the number of zeros read before and after it.
struct Inside {
  std::int64_t begin, end, low, high;
};
Inside inside(const AxisReading& axis, std::int64_t start, std::int64_t end);

// An axis that stays as it is, sliced to [begin, end) and padded.
struct Kept {
  std::size_t axis;
  std::int64_t begin, end, low, high;
};

// The operand with one axis for each loop that it depends on, and the kept axes.
struct Placed {
  struct Item {
    bool kept;
    std::size_t at;  // index of the loop or axis
    friend bool operator==(const Item&, const Item&) = default;
  };
  ValueId value = 0;
  std::vector<Item> items;
};
Placed place(Builder& b, ValueId x, const Reading& r, const Loops& loops, std::span<const Kept> kept = {});
// Transposes the axes to this order and broadcasts along loops that the operand does not depend on.
ValueId permute_and_broadcast(Builder& b, const Placed& p, const std::vector<Placed::Item>& order, const Loops& loops);

}  // namespace lc::stablehlo
