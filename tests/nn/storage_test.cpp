// Layers whose parameters are stored as halves, floats of 8 bits or quantised blocks compute what they compute with the
// same values in f32, products read the stored form, and embeddings convert only the rows that they select.
#include <gtest/gtest.h>

#include "error_of.h"
#include "lightcone/backends/cpu/kernels/abi/weight_formats.h"
#include "lightcone/composites/composites.h"
#include "lightcone/lightcone.h"
#include "lightcone/nn/layers.h"
#include "lightcone/verify/random_graph.h"
#include "lightcone/verify/verify.h"
#include "random_inputs.h"

using namespace lc;

namespace {

constexpr std::int64_t kRows = 200, kWidth = 256;

struct Net {
  nn::Embedding<> table{kRows, kWidth};
  nn::LayerNorm<> norm{kWidth};
  nn::Linear<> up{kWidth, 512}, down{512, 8};
  void visit(nn::Visitor& v) { v("table", table)("norm", norm)("up", up)("down", down); }
  Tensor operator()(const Tensor& ids) const { return down(gelu(up(norm(table(ids))))); }
};

// The matrices are stored in this type, everything else in f32.
nn::StorageOf matrices_as(nn::Storage s) {
  return [s](std::string_view, const Shape& shape) { return shape.size() == 2 ? s : nn::Storage{}; };
}

Value in_f32(const nn::Entry& e, const nn::Storage& s, const Value& stored) {
  Graph g;
  const Tensor x = g.input("x", e.tensor.shape(), e.tensor.dtype());
  g.output("y", s.quant ? prim::dequantize(x, *s.quant) : prim::cast(x, DType::F32));
  return interpret(g, {{"x", stored}}).outputs.at("y");
}

void expect_same(nn::Storage s) {
  Graph narrow, wide;
  nn::Model<nn::Stored<Net>> stored(narrow, nn::Stored<Net>(Net{}, matrices_as(s)));
  nn::Model<Net> plain(wide);
  narrow.output("y", stored(narrow.input("ids", {5}, DType::I64)));
  wide.output("y", plain(wide.input("ids", {5}, DType::I64)));
  std::map<std::string, Value> inputs = fitting_inputs(narrow, {}, 7, false), values = inputs;
  for (const nn::Entry& e : stored.entries())
    if (e.tensor.rank() == 2) values[e.name] = in_f32(e, s, inputs.at(e.name));
  const std::vector<double> want = interpret(wide, values).outputs.at("y").f;
  EXPECT_EQ(interpret(narrow, inputs).outputs.at("y").f, want);

  const Program program = compile(narrow, generic() | cpu({.threads = 1}));
  const bool packed =
      s.quant ? backends::cpu::packed_layout(weight_type(*s.quant)).block > 0 : s.dtype != DType::F8E4M3FN;
  EXPECT_EQ(fired(program.log(), "weight packed"), packed ? 2 : 0);
  // The table is not among the values that are computed at load: they would be four bytes for each of its elements.
  EXPECT_LT(program.plan().prepared_bytes, static_cast<std::size_t>(4 * (kWidth * 512 + 512 * 8) + 65536));
  EXPECT_TRUE(program.resident("table.weight"));
  EXPECT_TRUE(verify(narrow, generic() | cpu({.threads = 1})).ok());
}

}  // namespace

TEST(Storage, HalvesAndFloatsOfEightBits) {
  for (const DType t : {DType::BF16, DType::F16, DType::F8E4M3FN}) expect_same({.dtype = t});
}

TEST(Storage, QuantisedBlocks) {
  using enum QuantFormat;  // the packed ones, and one of each kind of the others
  for (const QuantFormat f : {Q8_0, Q4_0, Q4_K, Q6_K, Q8_K, TQ1_0, IQ4_XS, NVFP4, IQ1_M, IQ3_S})
    expect_same({.quant = f});
}

TEST(Storage, OnlyF32IsTrained) {
  Graph g;
  const nn::Model<nn::Stored<Net>> model(g, nn::Stored<Net>(Net{}, matrices_as({.dtype = DType::BF16})));
  EXPECT_EQ(model.count(), 2 * kWidth + 512 + 8);  // norms and biases
  EXPECT_EQ(nn::ModelBase::first_value(model.entries()[0], 1).bytes.size(), std::size_t{2} * kRows * kWidth);
}

TEST(Storage, WhatCannotBeStoredIsAnError) {
  Graph g;
  EXPECT_NE(error_of([&] {
              nn::Model<nn::Stored<nn::Linear<>>>(
                  g, nn::Stored(nn::Linear<>(30, 4), matrices_as({.quant = QuantFormat::Q8_0})));
            }).find("whole blocks"),
            std::string::npos);
  Graph h;
  EXPECT_NE(error_of([&] {
              nn::Model<nn::Stored<nn::Linear<>>>(h,
                                                  nn::Stored(nn::Linear<>(32, 4), matrices_as({.dtype = DType::I8})));
            }).find("which is no float"),
            std::string::npos);
  Graph k;
  const nn::Model<nn::Stored<nn::Linear<>>> blocks(
      k, nn::Stored(nn::Linear<>(32, 4), matrices_as({.quant = QuantFormat::Q8_0})));
  EXPECT_NE(error_of([&] { nn::ModelBase::first_value(blocks.entries()[0], 1); }).find("load it from a file"),
            std::string::npos);
}
