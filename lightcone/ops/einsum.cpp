// einsum: multiplies and sums the operands from left to right, two at a time, so that each step is a contraction that
// back ends recognise.
#include <algorithm>
#include <map>

#include "lightcone/composites/composites.h"
#include "lightcone/ops/internal.h"

namespace lc {
using namespace detail;
namespace {

using Labels = std::vector<int>;  // a letter, or kDots + index of an ellipsis axis from the right
constexpr int kDots = 256;

struct Factor {
  Tensor x;
  Labels labels;
};
bool contains(const Labels& l, int c) { return std::find(l.begin(), l.end(), c) != l.end(); }

struct Equation {
  std::string text;
  std::vector<std::string> terms = {""};
  std::string output;
  bool explicit_output = false;

  [[noreturn]] void refuse(const std::string& problem) const {
    throw Error("einsum", str_cat("'", text, "': ", problem));
  }

  explicit Equation(std::string_view equation) : text(equation) {
    std::string s;
    for (const char c : equation)
      if (c != ' ') s += c;
    if (const auto arrow = s.find("->"); arrow != s.npos) {
      explicit_output = true;
      output = s.substr(arrow + 2);
      s.resize(arrow);
    }
    for (const char c : s) {
      if (c == ',') terms.emplace_back();
      else terms.back() += c;
    }
    for (std::string& t : terms) dots(t);
    dots(output);
  }
  // replaces "..." by '.'; other characters must be letters
  void dots(std::string& t) const {
    const auto at = t.find("...");
    if (at != t.npos) t.erase(at, 3);
    for (const char c : t)
      if (!std::isalpha(static_cast<unsigned char>(c)))
        refuse(str_cat("letters, commas, one ... an operand and an arrow are understood, not '", c, "'"));
    if (at != t.npos) t.insert(at, 1, '.');
  }
};

Labels label(const std::string& term, int dots) {
  Labels l;
  for (const char c : term) {
    if (c != '.') l.push_back(c);
    else
      for (int k = dots; k-- > 0;) l.push_back(kDots + k);
  }
  return l;
}

// Takes the diagonal over a letter that appears twice.
void take_diagonals(Factor& f) {
  for (std::size_t i = 0; i < f.labels.size(); ++i)
    for (std::size_t j = f.labels.size(); j-- > i + 1;)
      if (f.labels[j] == f.labels[i]) {
        Shape s = f.x.shape();
        s[j] = 1;
        const Tensor index = f.x.graph().index(s, Dim::index(static_cast<int>(i), s[i]));
        f.x = prim::gather(f.x, index, static_cast<int>(j)).squeeze(static_cast<int>(j));
        f.labels.erase(f.labels.begin() + static_cast<std::ptrdiff_t>(j));
      }
}

template <class Keep>
void sum_out(Factor& f, const Keep& keep) {
  for (std::size_t k = f.labels.size(); k-- > 0;)
    if (!keep(f.labels[k])) {
      f.x = prim::sum_reduce(f.x, static_cast<int>(k));
      f.labels.erase(f.labels.begin() + static_cast<std::ptrdiff_t>(k));
    }
}

// Permutes the axes of f to the order of `labels` and broadcasts missing axes and those of extent 1.
Tensor aligned(const Factor& f, const Labels& labels, const Shape& full) {
  std::vector<int> order;
  Shape ones;
  for (const int c : labels) {
    const auto at = std::find(f.labels.begin(), f.labels.end(), c);
    if (at != f.labels.end()) order.push_back(static_cast<int>(at - f.labels.begin()));
    ones.push_back(at == f.labels.end() ? Dim(1) : f.x.extent(order.back()));
  }
  return f.x.permute(order).reshape(ones).expand(full);
}

// Multiplies a and b and sums over labels for which `keep` is false. Kept axes have the order of `first`.
template <class Keep>
Factor contract(const Factor& a, const Factor& b, const Labels& first, const Keep& keep) {
  Labels kept, summed;
  for (const int c : first)
    if (contains(a.labels, c) || contains(b.labels, c)) kept.push_back(c);
  for (const Labels* l : {&a.labels, &b.labels})
    for (const int c : *l)
      if (Labels& to = keep(c) ? kept : summed; !contains(to, c)) to.push_back(c);
  Labels all = kept;
  all.insert(all.end(), summed.begin(), summed.end());
  Shape full;
  for (const int c : all) {
    Dim n = 1;
    for (const Factor* f : {&a, &b})
      if (const auto at = std::find(f->labels.begin(), f->labels.end(), c); at != f->labels.end() && n == Dim(1))
        n = f->x.extent(static_cast<int>(at - f->labels.begin()));
    full.push_back(n);
  }
  Tensor x = aligned(a, all, full), y = aligned(b, all, full);
  if (summed.empty()) return {prim::mul(x, y), kept};
  // merges the summed axes, so that back ends see a matrix product
  Shape rows(full.begin(), full.begin() + static_cast<std::ptrdiff_t>(kept.size()));
  rows.push_back(product(Shape(full.begin() + static_cast<std::ptrdiff_t>(kept.size()), full.end())));
  return {prim::sum_reduce(prim::mul(x.reshape(rows), y.reshape(rows)), static_cast<int>(kept.size())), kept};
}

std::vector<Factor> factors(const Equation& e, const std::vector<Tensor>& operands, DType type, int& dots) {
  if (e.terms.size() != operands.size())
    e.refuse(str_cat("names ", e.terms.size(), " operands, ", operands.size(), " were given"));
  std::vector<Factor> all;
  std::map<int, Dim> extents;
  for (std::size_t t = 0; t < operands.size(); ++t) {
    const bool open = e.terms[t].find('.') != std::string::npos;
    const int more = operands[t].rank() - static_cast<int>(e.terms[t].size()) + open;
    if (more < 0 || (more > 0 && !open))
      e.refuse(str_cat("'", e.terms[t], "' does not name the axes of ", str(operands[t].shape())));
    dots = std::max(dots, more);
    Factor f{prim::cast(operands[t], type), label(e.terms[t], more)};
    for (std::size_t k = 0; k < f.labels.size(); ++k) {
      const Dim n = f.x.extent(static_cast<int>(k));
      const auto [it, fresh] = extents.try_emplace(f.labels[k], n);
      if (it->second == Dim(1)) it->second = n;
      if (!(it->second == n) && !(n == Dim(1)))
        e.refuse(
            str_cat(f.labels[k] < kDots ? str_cat("'", static_cast<char>(f.labels[k]), "'") : "an axis of the ellipsis",
                    " is both ", it->second, " and ", n));
    }
    take_diagonals(f);
    all.push_back(std::move(f));
  }
  return all;
}

Labels output_labels(const Equation& e, const std::vector<Factor>& all, int dots) {
  std::map<int, int> seen;
  for (const std::string& t : e.terms)
    for (const char c : t)
      if (c != '.') ++seen[c];
  if (!e.explicit_output) {
    Labels out = label(".", dots);
    for (const auto& [c, n] : seen)
      if (n == 1) out.push_back(c);
    return out;
  }
  for (const char c : e.output) {
    if (c != '.' && !seen.contains(c)) e.refuse(str_cat("'", c, "' of the result is in no operand"));
    if (std::count(e.output.begin(), e.output.end(), c) > 1) e.refuse(str_cat("'", c, "' is twice in the result"));
  }
  if (all.empty()) return {};
  return label(e.output, dots);
}

}  // namespace

Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands, const Tensor::At& at) {
  const OpScope scope("einsum", at);
  if (operands.empty()) throw Error("einsum", "needs at least one tensor");
  DType type = operands[0].dtype();
  for (const Tensor& t : operands) type = promote(type, t.dtype());
  if (is_narrow(type)) {
    std::vector<Tensor> wide;
    for (const Tensor& t : operands) wide.push_back(prim::cast(t, DType::F32));
    return prim::cast(einsum(equation, wide, at), type);
  }
  const Equation e(equation);
  int dots = 0;
  std::vector<Factor> all = factors(e, operands, type, dots);
  const Labels out = output_labels(e, all, dots);
  const auto needed_after = [&](std::size_t t, int c) {
    if (contains(out, c)) return true;
    for (std::size_t k = t + 1; k < all.size(); ++k)
      if (contains(all[k].labels, c)) return true;
    return false;
  };
  Factor r = all[0];
  sum_out(r, [&](int c) { return needed_after(0, c); });
  for (std::size_t t = 1; t < all.size(); ++t) {
    const auto needed = [&](int c) { return needed_after(t, c); };
    // axes that only one of the two has are summed before the product
    sum_out(all[t], [&](int c) { return needed(c) || contains(r.labels, c); });
    sum_out(r, [&](int c) { return needed(c) || contains(all[t].labels, c); });
    r = contract(r, all[t], out, needed);
  }
  std::vector<int> order;
  for (const int c : out)
    order.push_back(static_cast<int>(std::find(r.labels.begin(), r.labels.end(), c) - r.labels.begin()));
  return r.x.permute(order);
}

}  // namespace lc
