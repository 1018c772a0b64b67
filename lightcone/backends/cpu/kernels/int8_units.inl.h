// Table of an instruction set's int8 microkernels. The including file defines pack_a, pack_b and a tile of kUnitColumns
// columns.
#pragma once

namespace lc::backends::cpu {
namespace {

template <int Step, bool Min>
constexpr Microkernel unit(const char* name, Arithmetic a) {
  return {name,
          a,
          MR,
          kUnitColumns,
          Step,
          sizeof(Quantised<MR, Step, Min>),
          PanelStep<Step, Min>::bytes,
          kLine,
          pack_a<Step, Min>,
          pack_b<Step, Min>,
          kTile<Step, Min>,
          nullptr,
          nullptr,
          kArrangeInt8<Step, Min>,
          kGemvInt8<Step, Min>,
          kPanelsAsPacked && Step == 32 && !Min};
}

}  // namespace

const Microkernel UNITS[5] = {unit<32, false>(UNIT_NAME "_32", Arithmetic::Int8Step32),
                              unit<32, true>(UNIT_NAME "_32_min", Arithmetic::Int8Step32Min),
                              unit<16, false>(UNIT_NAME "_16", Arithmetic::Int8Step16),
                              unit<16, true>(UNIT_NAME "_16_min", Arithmetic::Int8Step16Min),
                              exact_unit(UNIT_NAME "_exact")};

}  // namespace lc::backends::cpu
