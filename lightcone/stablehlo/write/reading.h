// How an operand is read inside loops, axis by axis: what a product, a pooling window and a view have in common.
//
// An index of a view is an expression over the loops, with / and % where axes were joined or split. Loops are cut into
// parts until every index is a sum of steps; then an axis that follows one loop is a slice, one that follows several
// with room between them a reshape, and one that follows two that overlap a window of a convolution or a pool. Axes and
// loops that are open (sizes.h) are read whole or not at all.
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
  std::vector<std::size_t> from;  // which of the loops that were given it is a part of
  std::size_t size() const { return extents.size(); }
};

struct AxisReading {
  std::int64_t extent = 0;  // of the axis
  std::int64_t offset = 0;
  Sizes step;                              // of each loop
  std::int64_t lo = 0, hi = 0;             // elsewhere zero is read
  std::vector<std::size_t> loops() const;  // those with a step, the longest step first
};

struct Reading {
  std::vector<AxisReading> axes;
  std::size_t repeated = 0;                // the last axes are none of the operand: it is repeated along them
  bool nothing = false;                    // all that is read is padding
  std::vector<std::size_t> loops() const;  // that it depends on, in the order of the axes
};

struct Readings {
  Loops loops;
  std::vector<Reading> operands;
};

// `symbols`: the loops; those of extent 1 are numbers. Nothing where an index is no sum of steps, however it is cut, or
// a part of what is open would be read.
std::optional<Readings> read_in_loops(SizeTable& sizes, const std::vector<Dim>& symbols, std::vector<View::Position> at,
                                      std::span<const Shape> bases);

// Can slices, a reshape and reversals bring each loop of the axis to an axis of its own?
bool is_plain(const AxisReading& axis, const Loops& loops);
bool is_plain(const Reading& reading, const Loops& loops);  // and no loop moves along two axes

// Of places [start, end) of an axis those that are there, and how many zeros are read before and behind them.
struct Inside {
  std::int64_t begin, end, low, high;
};
Inside inside(const AxisReading& axis, std::int64_t start, std::int64_t end);

// An axis that stays as it is, cut to [begin, end) and padded.
struct Kept {
  std::size_t axis;
  std::int64_t begin, end, low, high;
};

// The operand with an axis for each loop that it depends on, and those that were kept.
struct Placed {
  struct Item {
    bool kept;
    std::size_t at;  // which loop, or which axis
    friend bool operator==(const Item&, const Item&) = default;
  };
  ValueId value = 0;
  std::vector<Item> items;
};
Placed place(Builder& b, ValueId x, const Reading& r, const Loops& loops, std::span<const Kept> kept = {});
// Its axes in this order, repeated along loops that it does not depend on.
ValueId arrange(Builder& b, const Placed& p, const std::vector<Placed::Item>& order, const Loops& loops);

}  // namespace lc::stablehlo
