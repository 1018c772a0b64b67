// Positions: which positions a graph computes, which of them see which, and the angles by which they are rotated.
#pragma once

#include "lightcone/models/blocks/positions/rotation.h"
#include "lightcone/models/language/config/language_config.h"

namespace lc {

// The positions past, past + 1, ..., past + rows - 1 of a text. In a graph of whole texts `past` is 0.
class Positions {
 public:
  // `shown` is bool [batch, past + rows]: false hides a position from all but itself. Undefined: all are shown.
  Positions(Graph& g, Dim rows, Dim past, const Tensor& shown = {});

  RopeAngles angles(const RopeConfig& r) const { return rope_angles(g_, r, rows_, past_); }
  // The keys that a row attends to, bool [rows, past + rows] or [batch, 1, rows, past + rows]. Undefined: those up to
  // itself, and `past` is 0.
  Tensor mask(const LanguageLayerKind& kind) const;
  // The same, defined always.
  Tensor whole_mask(const LanguageLayerKind& kind) const;
  // f32 [rows, past + rows]: how far a key lies behind the row, as a number of 0 or below.
  Tensor distances() const;
  // i64: the positions [rows], or [batch, rows] of a count of the shown ones only, from 0.
  Tensor numbers() const;
  Tensor shown_numbers() const;
  Tensor shown() const;  // bool [batch, rows, 1], or undefined

 private:
  Tensor row(const Shape& shape) const;
  Tensor column(const Shape& shape) const;

  Graph& g_;
  Dim rows_, past_;
  Tensor shown_;
};

}  // namespace lc
