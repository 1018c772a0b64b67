#include "lightcone/ops/typed.h"

#include <map>
#include <mutex>

namespace lc::typed {
namespace {

std::string text(const Shape& s) {
  Text t;
  t.add(s);
  return t.s;
}

struct Ranges {
  std::mutex lock;
  std::map<std::string, Bounds> of;
};
Ranges& ranges() {
  static Ranges r;
  return r;
}
lc::Dim symbol(const char* name) {
  Ranges& r = ranges();
  const std::lock_guard hold(r.lock);
  const Bounds b = r.of.try_emplace(name, Bounds{1, 4096}).first->second;
  return lc::Dim::symbol(name, b.lo, b.hi);
}

}  // namespace

void bound(const char* name, std::int64_t low, std::int64_t high) {
  Ranges& r = ranges();
  const std::lock_guard hold(r.lock);
  r.of[name] = {low, high};
}

lc::Tensor check_as(lc::Tensor t, const Shape& to, DType dtype, const std::source_location& at) {
  const OpScope scope("as", at);
  const lc::Shape have = t.shape();
  bool ok = static_cast<int>(have.size()) == to.rank;
  for (int i = 0; i < to.rank && ok; ++i) {
    const lc::Dim& d = have[static_cast<std::size_t>(i)];
    if (to.d[i].number()) ok = d == lc::Dim(to.d[i].n);
    if (to.d[i].named()) ok = d.name() == std::string(to.d[i].name);
  }
  if (!ok) throw Error("as", cat("a tensor of ", str(have), " is not a ", text(to)));
  if (t.dtype() != dtype) throw Error("as", cat("a tensor of ", name(t.dtype()), " is not one of ", name(dtype)));
  return t;
}

lc::Tensor make_input(Graph& g, const char* name, const Shape& s, DType dtype, const std::int64_t* dims, int count, const std::source_location& at) {
  const OpScope scope("input", at);
  lc::Shape shape;
  int used = 0;
  for (int i = 0; i < s.rank; ++i) {
    if (s.d[i].number()) shape.push_back(s.d[i].n);
    else if (s.d[i].named()) shape.push_back(symbol(s.d[i].name));
    else if (used < count) shape.push_back(dims[used++]);
    else throw Error("input", cat("'", name, "' of ", text(s), " needs a number for each ?"));
  }
  if (used != count) throw Error("input", cat("'", name, "' of ", text(s), " takes ", used, " numbers, not ", count));
  return g.input(name, std::move(shape), dtype, at);
}

lc::Shape to_shape(lc::Tensor t, const Shape& s) {
  lc::Shape shape;
  int unknown = -1;
  for (int i = 0; i < s.rank; ++i) {
    if (s.d[i].number()) {
      shape.push_back(s.d[i].n);
      continue;
    }
    if (s.d[i].named()) {
      // the tensor's own symbol of that name
      lc::Dim found = 0;
      for (const lc::Dim& d : t.shape())
        if (d.name() == std::string(s.d[i].name)) found = d;
      shape.push_back(found == lc::Dim(0) ? symbol(s.d[i].name) : found);
      continue;
    }
    if (unknown >= 0) throw Error("reshape", cat(text(s), " leaves more than one extent open"));
    unknown = i;
    shape.push_back(1);
  }
  if (unknown >= 0) shape[static_cast<std::size_t>(unknown)] = product(t.shape()) / product(shape);
  return shape;
}

}  // namespace lc::typed
