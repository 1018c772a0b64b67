// Sums and maxima of the ranks' numbers, in the order of their places.
#include <algorithm>
#include <cmath>

#include "lightcone/base/error.h"
#include "lightcone/distributed/communicator.h"

namespace lc {
namespace {

template <class T>
T larger(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? a : b;
  return a < b ? b : a;
}

template <class T, class Sum = T>
void reduce(ReduceOp r, std::span<const void* const> in, void* out, std::size_t begin, std::size_t end) {
  T* y = static_cast<T*>(out);
  for (std::size_t k = begin; k < end; ++k) {
    Sum s = static_cast<const T*>(in[0])[k];
    for (std::size_t j = 1; j < in.size(); ++j) {
      const Sum x = static_cast<const T*>(in[j])[k];
      s = r == ReduceOp::Sum ? static_cast<Sum>(s + x) : larger(s, x);
    }
    y[k] = static_cast<T>(s);
  }
}

void reduce_narrow(DType t, ReduceOp r, std::span<const void* const> in, void* out, std::size_t begin,
                   std::size_t end) {
  for (std::size_t k = begin; k < end; ++k) {
    auto s = static_cast<float>(load_f64(in[0], t, k));
    for (std::size_t j = 1; j < in.size(); ++j) {
      const auto x = static_cast<float>(load_f64(in[j], t, k));
      s = r == ReduceOp::Sum ? s + x : larger(s, x);
    }
    store_f64(out, t, k, s);
  }
}

}  // namespace

void reduce_rows(DType dtype, ReduceOp r, std::span<const void* const> in, void* out, std::size_t begin,
                 std::size_t end) {
  const auto with = [&]<class T>() { reduce<T>(r, in, out, begin, end); };
  switch (dtype) {
    case DType::F32: return with.operator()<float>();
    case DType::F64: return with.operator()<double>();
    case DType::F16:
    case DType::BF16:
    case DType::F8E4M3FN:
    case DType::F8E5M2: return reduce_narrow(dtype, r, in, out, begin, end);
    // Sums of integers wrap, as those of graphs do: unsigned arithmetic does.
    case DType::I8: return r == ReduceOp::Sum ? with.operator()<std::uint8_t>() : with.operator()<std::int8_t>();
    case DType::I16: return r == ReduceOp::Sum ? with.operator()<std::uint16_t>() : with.operator()<std::int16_t>();
    case DType::I32: return r == ReduceOp::Sum ? with.operator()<std::uint32_t>() : with.operator()<std::int32_t>();
    case DType::I64: return r == ReduceOp::Sum ? with.operator()<std::uint64_t>() : with.operator()<std::int64_t>();
    case DType::U8: return with.operator()<std::uint8_t>();
    case DType::U16: return with.operator()<std::uint16_t>();
    case DType::U32: return with.operator()<std::uint32_t>();
    case DType::U64: return with.operator()<std::uint64_t>();
    case DType::Bool: return reduce<std::uint8_t>(ReduceOp::Max, in, out, begin, end);
  }
}

void Communicator::run_together(const Collective& c, std::span<const Piece> pieces) {
  Collective one = c;
  for (const Piece& p : pieces) one.n = p.n, run(one, p.in, p.out);
}

std::string_view name(Collective::Operation operation) {
  constexpr std::string_view names[] = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast",
                                        "permute",    "send"};
  return names[static_cast<std::size_t>(operation)];
}

std::string str(const Collective& c) {
  const bool reduces =
      c.operation == Collective::Operation::AllReduce || c.operation == Collective::Operation::ReduceScatter;
  return str_cat(name(c.operation),
                 !reduces                       ? ""
                 : c.reduction == ReduceOp::Sum ? " (sum)"
                                                : " (max)",
                 " of ", c.n, " ", name(c.dtype), " among ", c.group.size(), " ranks, operation ", c.tag);
}

}  // namespace lc
