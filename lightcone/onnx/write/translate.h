// Writes the operations of a StableHLO module, as lightcone/stablehlo/write makes them, as nodes of ONNX.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/onnx/write/emitter.h"
#include "lightcone/stablehlo/module.h"

namespace lc::onnx {

using stablehlo::Block;
using stablehlo::Operation;

class Translator {
 public:
  Translator(Emitter& e, const stablehlo::Module& m) : e_(e), m_(m) {}

  Emitter& emitter() { return e_; }
  void give(ValueId v, Ref r) { refs_[v] = r; }
  Ref operator[](ValueId v) const;
  const Type& type(ValueId v) const { return m_.values[static_cast<std::size_t>(v)].type; }
  // Writes the operations of a block and returns what it returns. What cannot be said is collected.
  std::vector<Ref> block(const Block& b);
  // Throws an Error that lists everything that could not be said.
  void require_all_said() const;

  // The operand or the result of an operation.
  Ref in(const Operation& o, std::size_t k) const { return (*this)[o.operands.at(k)]; }
  const Type& result_type(const Operation& o, std::size_t k = 0) const { return type(o.results.at(k)); }
  void result(const Operation& o, Ref r) { give(o.results.at(0), r); }

  // What is known of values beside their elements, so that several operations become one.
  struct Scaled {
    Ref x;
    double by;
  };
  std::map<Ref, Scaled> scaled = {};        // x * by
  std::map<Ref, Ref> log2_of = {};          // log2(x)
  std::map<Ref, Scaled> averages = {};      // a sum over windows: an average, times their size
  std::map<Ref, std::string> extents = {};  // the same extent as i64
  std::map<Ref, Ref> exp_of = {}, recip_of = {};
  struct Reduced {
    Ref x;
    std::size_t axis;
  };
  std::map<Ref, Reduced> sum_of = {}, max_of = {};  // reductions of one axis
  std::map<Ref, std::pair<Ref, Ref>> added = {};    // a + b
  // The value of which x was made by reshapes.
  Ref origin(Ref x) const;
  struct Transposed {
    Ref x;
    std::vector<std::size_t> permutation;
  };
  std::map<Ref, Transposed> transposed = {};
  std::map<Ref, Ref> reshaped = {};  // what a reshape was made of
  // x in another shape, and x with its axes in another order; `type` is that of the result. `list`: the extents, needed
  // if several are unknown.
  Ref reshape(Ref x, const Type& type, Ref list = -1);
  Ref transpose(Ref x, std::vector<std::size_t> permutation, const Type& type);

 private:
  void operation(const Operation& o);

  Emitter& e_;
  const stablehlo::Module& m_;
  std::map<ValueId, Ref> refs_;
  std::vector<std::string> unsaid_;
};

// Returns the softmax that e * r is, if it is one: e = exp(d), and r are the reciprocals of its sums.
std::optional<Ref> softmax(Translator& t, Ref e, Ref r, const Type& type);

// ---- attributes ----
const stablehlo::Attribute& attribute(const Operation& o, std::string_view name);
Extents integers_of(const Operation& o, std::string_view name);
// A list of numbers in a structure; empty if it is not there.
Extents field_of(const stablehlo::Attribute& a, std::string_view name);
std::string_view combiner(const Operation& o);  // what a reduction or a scatter does: "stablehlo.add"

using Handler = void (*)(Translator& t, const Operation& o);
struct Entry {
  std::string_view name;
  Handler write;
};
std::span<const Entry> elementwise_entries();
std::span<const Entry> shape_entries();
std::span<const Entry> reduction_entries();
std::span<const Entry> product_entries();
std::span<const Entry> index_entries();
std::span<const Entry> loop_entries();
std::span<const Entry> named_entries();

}  // namespace lc::onnx
