// The operands of one attention: which elements of which values a kernel reads, as strides in the axes of the result.
// An index of the result is pulled back through the views of each operand. An axis is split in two if operands depend
// on one part of it only, as keys do that several query heads share.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "lightcone/core/graph.h"
#include "lightcone/lowering/attention.h"
#include "lightcone/lowering/factors.h"

namespace lc::lowering {

class AttentionOperands {
 public:
  struct AxisCut {  // an axis of the result, split in two
    std::size_t axis;
    Dim by;
  };
  // `root` has the shape of the result. If `scales`, keys and values may come as integers times scales.
  AttentionOperands(const Graph& g, NodeId root, const std::vector<AxisCut>& cuts, bool scales)
      : g_(g), root_(root), cuts_(cuts), scales_(scales) {}

  std::optional<AxisCut> wish;  // a cut with which an operand could be read that cannot be read now
  bool scaled = false;          // keys or values were read as integers times scales

 protected:
  using Index = std::vector<Dim>;
  struct Coordinate {  // an element of a value
    NodeId node;
    Index index;
    friend bool operator==(const Coordinate&, const Coordinate&) = default;
  };
  struct Read {  // an operand of the kernel
    Edge edge;
    Linear at;
  };
  struct Cached {  // keys or values as they are stored
    Read numbers;
    CacheType type = CacheType::F32;
    std::optional<Read> scale;
  };
  struct Axis {
    Dim symbol, extent, out;
  };
  struct Step {
    AttentionStep step;
    std::optional<Read> read;
  };

  const Node& node(const Coordinate& p) const { return g_[p.node]; }
  bool is(const Coordinate& p, Op op) const { return node(p).op == op && node(p).dtype == DType::F32; }
  std::optional<Coordinate> pull(const Edge& e, const Index& index) const;
  std::optional<Coordinate> pull(const Coordinate& p, std::size_t k) const { return pull(node(p).in[k], p.index); }
  std::optional<Read> read(const Edge& e, const Index& index);
  std::optional<Cached> cached(const Edge& e, const Index& index);
  std::optional<Read> read_small(const Edge& e, const Index& index);

  void make_axes();
  bool add_keys(const Dim& keys);    // false if the number of keys may be 0 or is 1
  void add_depth(const Dim& depth);  // the last symbol
  const Dim& depth_symbol() const { return symbols_.back(); }
  // Whether q_ and k_ are operands of a product that a kernel computes.
  bool fits_product() const;
  std::optional<Attention> plan() const;

  const Graph& g_;
  NodeId root_;
  const std::vector<AxisCut>& cuts_;
  bool scales_;
  std::vector<Axis> axes_;
  Index index_;    // index of the result
  Index symbols_;  // symbols of the axes, the keys and the depth
  Dim key_, keys_, depth_;
  double exponent_ = 1;
  float scale_ = 1;
  std::optional<Read> q_;
  std::optional<Cached> k_, v_;
  std::vector<Step> steps_;

 private:
  std::optional<Cached> quantised(const Coordinate& p);
  std::optional<Read> smallest(const Edge& e, Index index, const std::set<std::string>& used);
  void depends(const Coordinate& p, std::set<std::string>& on, int& budget) const;
  void look_for_cut(const Dim& d);
  bool place_axes(Attention& p) const;
};

// Whether an index mentions a symbol.
bool mentions(const Dim& d, const Dim& symbol);

// Calls read(operands) with more and more cuts, then without scales, until it gives a plan.
template <class Operands, class F>
std::optional<Attention> plan_with_cuts(const Graph& g, NodeId root, const F& read) {
  std::vector<AttentionOperands::AxisCut> cuts;
  for (bool scales = true;;) {
    Operands o(g, root, cuts, scales);
    if (auto plan = read(o)) return plan;
    if (o.wish && cuts.size() <= 3) cuts.push_back(*o.wish);
    else if (o.scaled) scales = false, cuts.clear();  // take the product for f32 that another kernel computes
    else return std::nullopt;
  }
}

}  // namespace lc::lowering
