// The values of a graph that are known before it runs: integers as expressions over the graph's symbols.
//
// Models in other formats compute shapes with the same operations as numbers: the shape of an input, an element of it,
// twice that, joined with other numbers, is what a reshape is given. An importer writes these operations into the graph
// as any others and asks here what a tensor holds. The rules are those of the operations themselves, evaluated on Dims.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lightcone/core/array_view.h"
#include "lightcone/core/tensor.h"

namespace lc::readers {

// An element: a number, or the quotient of an expression and a number.
struct KnownElement {
  Dim whole = 0;
  std::int64_t per = 1;             // above 1 only for floats
  std::optional<double> real = {};  // a float without symbols
};

class KnownValues {
 public:
  // Returns the elements of an input that stays the same from run to run, or nullopt.
  using Data = std::function<std::optional<ArrayView>(const std::string& input)>;
  explicit KnownValues(Data data) : data_(std::move(data)) {}

  static constexpr std::int64_t kMostElements = 4096;  // the most that a tensor may have
  static constexpr std::int64_t kMostSteps = 1 << 20;

  // How many elements were evaluated. After kMostSteps nothing more is known.
  std::int64_t steps() const { return steps_; }

  // The elements of t in row-major order. nullopt: an extent of t is no number, t has more than kMostElements, or an
  // element depends on data.
  std::optional<std::vector<KnownElement>> elements(const Tensor& t);
  // The elements of an integer or bool tensor, or nullopt.
  std::optional<std::vector<Dim>> integers(const Tensor& t);
  // The elements of a tensor without symbols, as f64, or nullopt.
  std::optional<std::vector<double>> numbers(const Tensor& t);

 private:
  using Index = std::vector<std::int64_t>;
  using Maybe = std::optional<KnownElement>;
  Maybe at(const Graph& g, const Edge& e, const Index& index);
  Maybe at(const Graph& g, NodeId id, const Index& index);
  Maybe compute(const Graph& g, const Node& n, const Index& index);
  Maybe reduce(const Graph& g, const Node& n, const Index& index);
  Maybe gathered(const Graph& g, const Node& n, const Index& index);
  Maybe scattered(const Graph& g, const Node& n, const Index& index);
  Maybe input(const Node& n, const Index& index) const;

  Data data_;
  const Graph::Impl* graph_ = nullptr;  // the graph that known_ is about
  std::map<std::pair<NodeId, Index>, Maybe> known_;
  std::int64_t budget_ = 0, steps_ = 0;
  int depth_ = 0;
};

}  // namespace lc::readers
