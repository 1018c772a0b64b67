#include "lightcone/backends/gpu/products/operand.h"

#include <algorithm>

#include "lightcone/backends/gpu/products/blocks.h"

namespace lc::backends::gpu {

using std::to_string;

std::string element_type(WeightType t) {
  switch (t) {
    case WeightType::F32: return "float";
    case WeightType::F16:
    case WeightType::BF16: return "u16";
    case WeightType::I8:
    case WeightType::Bytes: return "lc_i8";
    default: return "u8";
  }
}

std::string value_functions(WeightType t) {
  const auto format = info(t).format;
  return format ? block_functions(*format) : "";
}

std::string widened(WeightType t, const std::string& v) {
  return t == WeightType::F16     ? "lc_f16_to_f32(" + v + ")"
         : t == WeightType::BF16  ? "lc_bf16_to_f32(" + v + ")"
         : t == WeightType::I8    ? "(int)" + v
         : t == WeightType::Bytes ? "(float)" + v
         : is_f8(t)               ? "lc_" + std::string(name(t)) + "_to_f32(" + v + ")"
                                  : v;
}

std::string value(WeightType t, const std::string& pointer, const std::string& index) {
  if (block_format(t)) return "lc_value_" + std::string(name(t)) + "(" + pointer + ", " + index + ")";
  return widened(t, pointer + "[" + index + "]");
}

std::string value(Writer& w, const Operand& s, const std::string& pointer, const std::string& index) {
  if (!s.repacked) return value(s.type, pointer, index);
  return "lc_value_" + std::string(name(s.type)) + "_planes(" + pointer + ", " + index + ", " + w.number(s.blocks) +
         ")";
}

TileReader::TileReader(const Product& p, bool is_b, int own, int depth, int threads, std::string name, int width)
    : p_(p),
      s_(is_b ? p.b : p.a),
      extents_(is_b ? p.columns : p.rows),
      own_(own),
      depth_(depth),
      threads_(threads),
      width_(width),
      n_(std::move(name)) {
  const bool sum_near = !s_.sum.empty() && s_.sum.back() == Dim(1),
             own_near = !s_.own.empty() && s_.own.back() == Dim(1);
  along_sum_ = sum_near || !own_near;
  vector_ = fits_vectors();
}

// Returns true if `width_` adjacent elements are always contiguous, aligned to their size, and all inside or all
// outside.
bool TileReader::fits_vectors() const {
  if (block_format(s_.type)) return false;
  const std::vector<Dim>& along = along_sum_ ? s_.sum : s_.own;
  const std::vector<Dim>& extents = along_sum_ ? p_.sum : extents_;
  if (along.empty() || !(along.back() == Dim(1)) || !multiple(extents.back(), width_) || !multiple(s_.offset, width_))
    return false;
  const auto all = [this](const std::vector<Dim>& strides, std::size_t count) {
    return std::all_of(strides.begin(), strides.begin() + static_cast<std::ptrdiff_t>(count),
                       [this](const Dim& d) { return multiple(d, width_); });
  };
  if (!all(s_.batch, s_.batch.size()) || !all(s_.own, s_.own.size() - (along_sum_ ? 0 : 1)) ||
      !all(s_.sum, s_.sum.size() - (along_sum_ ? 1 : 0)))
    return false;
  return std::all_of(s_.bounds.begin(), s_.bounds.end(),
                     [&](const Operand::Bound& b) { return (along_sum_ ? b.sum : b.own).back() == 0; });
}

std::string TileReader::index_own(int v) const {
  const std::string q = "(LC_THREAD" + (v ? " + " + to_string(v * threads_) : "") + ")";
  return along_sum_ ? q + " / " + to_string(depth_ / width_)
                    : q + " % " + to_string(own_ / width_) + " * " + to_string(width_);
}
std::string TileReader::index_sum(int v) const {
  const std::string q = "(LC_THREAD" + (v ? " + " + to_string(v * threads_) : "") + ")";
  return along_sum_ ? q + " % " + to_string(depth_ / width_) + " * " + to_string(width_)
                    : q + " / " + to_string(own_ / width_);
}

void TileReader::prepare(Writer& w, const std::string& first) {
  w.line(std::string(p_.exact ? "int " : "float ") + n_ + "_r[" + to_string(elements()) + "];");
  const Dim all = product(extents_);
  for (int v = 0; v < vectors(); ++v)
    for (int e = 0; e < (along_sum_ || vector_ ? 1 : width_); ++e) {
      const std::string at = n_ + to_string(v * width_ + e);
      w.let(at + "_i", first + " + " + index_own(v) + (e ? " + " + to_string(e) : ""));
      w.line("const int " + at + "_in = " + at + "_i < " + w.number(all) + ";");
      const auto index = w.indices(extents_, at + "_i", at + "_x");
      w.let(at + "_p", w.offset(n_ + "_base", index, s_.own));
      for (std::size_t j = 0; j < s_.bounds.size(); ++j) {
        std::vector<Dim> steps(s_.bounds[j].own.begin(), s_.bounds[j].own.end());
        w.let(at + "_c" + to_string(j), w.offset("", index, steps));
      }
    }
}

// Computes the offset of contracted index `k`, and how far it moves the coordinates.
void TileReader::sum_offset(Writer& w, const std::string& k, const std::string& name) const {
  const auto index = w.indices(p_.sum, k, name + "_x");
  w.let(name + "_p", w.offset("", index, s_.sum));
  for (std::size_t j = 0; j < s_.bounds.size(); ++j) {
    std::vector<Dim> steps(s_.bounds[j].sum.begin(), s_.bounds[j].sum.end());
    w.let(name + "_c" + to_string(j), w.offset("", index, steps));
  }
}

// Returns the condition for an element to lie in the operand and in this part of the sum.
std::string TileReader::inside(Writer& w, const std::string& own, const std::string& sum,
                               const std::string& end) const {
  std::string test = own + "_in && " + sum + " < " + end;
  for (std::size_t j = 0; j < s_.bounds.size(); ++j) {
    const std::string c = own + "_c" + to_string(j) + " + " + sum + "_c" + to_string(j);
    const Operand::Bound& b = s_.bounds[j];
    if (!(b.lo == Dim(-lowering::Convolution::kFar))) test += " && " + c + " >= " + w.number(b.lo);
    if (!(b.hi == Dim(lowering::Convolution::kFar))) test += " && " + c + " < " + w.number(b.hi);
  }
  return test;
}

void TileReader::read(Writer& w, const std::string& k, const std::string& end) const {
  const std::string type = p_.exact ? "int" : "float", zero = p_.exact ? "0" : "0.0f", pointer = "in_" + n_;
  const auto r = [&](int v, int e) { return n_ + "_r[" + to_string(v * width_ + e) + "]"; };
  if (vector_)
    return each(
        w, k, end,
        [&](int v, const std::string& from) {
          w.line("LC_LOADV(" + element_type(s_.type) + ", " + to_string(width_) + ", v_, " + from + ");");
          for (int e = 0; e < width_; ++e)
            w.line(r(v, e) + " = (" + type + ")" + widened(s_.type, "LC_AT(v_, " + to_string(e) + ")") + ";");
        },
        [&](int v) {
          for (int e = 0; e < width_; ++e) w.line(r(v, e) + " = " + zero + ";");
        });
  for (int v = 0; v < vectors(); ++v) {
    w.open("{");
    for (int e = 0; e < width_; ++e) {
      const std::string s = "s" + to_string(along_sum_ ? e : 0), at = n_ + to_string(v * width_ + (along_sum_ ? 0 : e));
      if (e == 0 || along_sum_) {
        w.let(s, k + " + " + index_sum(v) + (e ? " + " + to_string(e) : ""));
        sum_offset(w, s, s);
      }
      w.line(r(v, e) + " = " + inside(w, at, s, end) + " ? " + value(w, s_, pointer, at + "_p + " + s + "_p") + " : " +
             zero + ";");
    }
    w.close();
  }
}

void TileReader::each(Writer& w, const std::string& k, const std::string& end,
                      const std::function<void(int v, const std::string& from)>& in,
                      const std::function<void(int v)>& out) const {
  for (int v = 0; v < vectors(); ++v) {
    const std::string at = n_ + to_string(v * width_);
    w.open("{");
    w.let("s0", k + " + " + index_sum(v));
    sum_offset(w, "s0", "s0");
    w.open("if (" + inside(w, at, "s0", end) + ") {");
    in(v, "in_" + n_ + " + " + at + "_p + s0_p");
    w.close();
    w.open("else {");
    out(v);
    w.close();
    w.close();
  }
}

void TileReader::keep(Writer& w, const std::string& tile, int pitch) const {
  const std::string type = p_.exact ? "int" : "float";
  for (int v = 0; v < vectors(); ++v) {
    const auto r = [&](int e) { return n_ + "_r[" + to_string(v * width_ + e) + "]"; };
    const std::string own = index_own(v), sum = "(" + index_sum(v);
    if (!along_sum_) {
      w.line("{ LC_VECTOR(" + type + ", " + to_string(width_) + ", v_);");
      for (int e = 0; e < width_; ++e) w.line("  LC_AT(v_, " + to_string(e) + ") = " + r(e) + ";");
      w.line("  LC_STOREV_LOCAL(" + type + ", " + to_string(width_) + ", " + tile + " + " + sum + ") * " +
             to_string(pitch) + " + " + own + ", v_); }");
      continue;
    }
    for (int e = 0; e < width_; ++e)
      w.line(tile + "[" + sum + " + " + to_string(e) + ") * " + to_string(pitch) + " + " + own + "] = " + r(e) + ";");
  }
}

}  // namespace lc::backends::gpu
