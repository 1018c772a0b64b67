// Caches values that several loops over one row compute. Consecutive loops over a row (a maximum, a sum, the loop that
// writes the row) often need the same value: softmax its exponentials, a softmax of gelu(x) every gelu three times.
// Each loop was built with its own copy. Here the copies are recognised: the first loop stores the value in a row that
// stays in the L1 or L2 cache, and the others read it. A value that is cheaper to compute than to store is recomputed.
#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <unordered_map>

#include "lightcone/codegen/kernel_ir.h"
#include "lightcone/codegen/symbols.h"

namespace lc::codegen {
namespace {

constexpr int kMinRecomputeCost = 8;  // in simple operations

int cost(const Instr& i) {
  if (i.code == Code::GatherLoad) return 8;
  if (i.code == Code::MulAdd) return 2;
  if (i.code != Code::Apply) return is_narrow(i.dtype) ? 2 : 1;
  return info(i.op).cost;
}

bool same(const Instr& a, const Instr& b) {
  return a.code == b.code && a.dtype == b.dtype &&
         std::bit_cast<std::uint64_t>(a.value) == std::bit_cast<std::uint64_t>(b.value) && a.offset == b.offset &&
         a.valid == b.valid && a.stride == b.stride && a.extent == b.extent && a.buffer == b.buffer && a.op == b.op &&
         a.a == b.a && a.b == b.b && a.c == b.c;
}
std::size_t hash(const Instr& i) {
  std::size_t h = std::bit_cast<std::uint64_t>(i.value);
  for (const std::size_t part : {static_cast<std::size_t>(i.code), static_cast<std::size_t>(i.op), i.offset.hash(),
                                 static_cast<std::size_t>(i.buffer), static_cast<std::size_t>(i.a),
                                 static_cast<std::size_t>(i.b), static_cast<std::size_t>(i.c)})
    h = h * 1000003 + part;
  return h;
}

class RowCache {
 public:
  RowCache(Kernel& k, std::int64_t most_bytes) : k_(k), most_(most_bytes) {}
  void run();

 private:
  using Group = std::vector<int>;  // loops over one row, in order
  struct Candidate {
    int value;                 // computed in loop `from` of its group
    std::size_t from, to;      // first and last loop that use it
    std::vector<int> readers;  // instructions of loop `to` that read it
  };
  Instr& at(int id) { return k_.instrs[id]; }
  Loop& loop(int id) { return k_.loops[id]; }
  bool over_row(int id);
  void find_groups(const Block& b);
  void number();
  void look_at(const Group& g);
  int work(int id, std::set<int>& seen) const;
  void place(const Group& g);
  void drop_unused();

  Kernel& k_;
  std::int64_t most_;  // most bytes of all rows
  std::vector<Group> groups_;
  std::vector<int> same_as_;           // by instruction: the first equivalent one, treating the loops of a group as one
  std::set<int> inside_;               // instructions of the current loop
  std::vector<Candidate> candidates_;  // candidates of the current group
  std::int64_t bytes_ = 0;
};

// Returns true for a loop with lanes and without inner loops whose values fit in a row.
bool RowCache::over_row(int id) {
  const Loop& l = loop(id);
  if (!l.lanes || std::any_of(l.body.items.begin(), l.body.items.end(), [](const Item& i) { return i.is_loop; }))
    return false;
  if (const auto n = l.extent.constant(); n && *n < kLanes) return false;
  if (l.extent.bounds().hi > most_) return false;  // also if unbounded
  if (l.reduction < 0) return id == k_.output_loops - 1;
  const Reduction& r = k_.reductions[l.reduction];
  return r.outer_loop == r.inner_loop;
}

void RowCache::find_groups(const Block& b) {
  std::vector<Group> here;
  for (const Item& i : b.items) {
    if (!i.is_loop) continue;
    if (!over_row(i.id)) {
      find_groups(loop(i.id).body);
      continue;
    }
    const auto g = std::find_if(here.begin(), here.end(),
                                [&](const Group& o) { return loop(o.front()).extent == loop(i.id).extent; });
    if (g != here.end()) g->push_back(i.id);
    else here.push_back({i.id});
  }
  for (Group& g : here)
    if (g.size() > 1) groups_.push_back(std::move(g));
}

void RowCache::number() {
  SymbolValues to;  // maps the symbols of a group to its first loop's
  for (const Group& g : groups_)
    for (int id : g) to.emplace(loop(id).symbol, symbol(loop(g.front())));
  const auto in_first = [&](const Dim& d) { return at_values(d, to); };
  std::vector<Instr> known;
  std::unordered_multimap<std::size_t, int> by_hash;
  for (std::size_t id = 0; id < k_.instrs.size(); ++id) {
    Instr i = k_.instrs[id];
    for (Dim* d : {&i.offset, &i.valid, &i.stride, &i.extent}) *d = in_first(*d);
    for (int* operand : {&i.a, &i.b, &i.c})
      if (*operand >= 0) *operand = same_as_[*operand];
    const std::size_t h = hash(i);
    int first = static_cast<int>(id);
    const auto [begin, end] = by_hash.equal_range(h);
    for (auto it = begin; it != end; ++it)
      if (same(known[it->second], i)) first = it->second;
    if (first == static_cast<int>(id)) by_hash.emplace(h, first);
    same_as_.push_back(first);
    known.push_back(std::move(i));
  }
}

// Returns the cost of the value in the current loop.
int RowCache::work(int id, std::set<int>& seen) const {
  if (id < 0 || !inside_.contains(id) || !seen.insert(id).second) return 0;
  const Instr& i = k_.instrs[id];
  return cost(i) + work(i.a, seen) + work(i.b, seen) + work(i.c, seen);
}

void RowCache::look_at(const Group& g) {
  std::map<int, std::pair<int, std::size_t>> computed;  // keyed by equivalence class: the instruction and its loop
  for (std::size_t n = 0; n < g.size(); ++n) {
    const Loop& l = loop(g[n]);
    inside_.clear();
    for (const Item& i : l.body.items) inside_.insert(i.id);
    std::set<int> seen;
    const auto visit = [&](auto& self, int id) -> void {
      if (id < 0 || !inside_.contains(id) || !seen.insert(id).second) return;
      const int what = same_as_[id];
      const auto [known, fresh] = computed.try_emplace(what, id, n);
      std::set<int> counted;
      if (!fresh && known->second.second < n && is_float(at(id).dtype) && work(id, counted) >= kMinRecomputeCost) {
        const auto value = known->second.first;  // copies, because clang 14 cannot capture structured bindings
        const auto from = known->second.second;
        auto w =
            std::find_if(candidates_.begin(), candidates_.end(), [&](const Candidate& o) { return o.value == value; });
        const std::int64_t bytes = l.extent.bounds().hi * (at(id).dtype == DType::F64 ? 8 : 4);
        if (w != candidates_.end() || bytes_ + bytes <= most_) {
          if (w == candidates_.end()) bytes_ += bytes, w = candidates_.insert(w, {value, from, n, {}});
          if (w->to != n) w->readers.clear();
          w->to = n;
          w->readers.push_back(id);
          at(id) = {.code = Code::CachedRow, .dtype = at(id).dtype, .offset = symbol(l), .buffer = value};
          return;
        }
      }
      for (int operand : {at(id).a, at(id).b, at(id).c}) self(self, operand);
    };
    visit(visit, l.reduction >= 0 ? k_.reductions[l.reduction].value : k_.result);
  }
}

// Assigns rows. A row is reused when its value is not read any more; at each position, reads come before writes.
void RowCache::place(const Group& g) {
  std::stable_sort(candidates_.begin(), candidates_.end(),
                   [](const Candidate& a, const Candidate& b) { return a.from < b.from; });
  const std::size_t first = k_.rows.size();
  std::vector<const Candidate*> last;  // last value in each row, from `first` on
  std::map<int, int> row_of;
  for (const Candidate& w : candidates_) {
    const DType t = at(w.value).dtype;
    std::size_t r = 0;
    const auto free = [&](const Candidate& o) {
      return o.to < w.from ||
             (o.to == w.from && std::all_of(o.readers.begin(), o.readers.end(), [&](int id) { return id < w.value; }));
    };
    while (r < last.size() && !(k_.rows[first + r].dtype == t && free(*last[r]))) ++r;
    if (r == last.size()) {
      last.push_back(&w);
      k_.rows.push_back({t, loop(g.front()).extent.bounds().hi});
    }
    last[r] = &w;
    row_of[w.value] = static_cast<int>(first + r);
    k_.cached_values.push_back({w.value, row_of[w.value], symbol(loop(g[w.from]))});
  }
  for (int id : g)
    for (const Item& i : loop(id).body.items)
      if (at(i.id).code == Code::CachedRow) at(i.id).buffer = row_of.at(at(i.id).buffer);
}

void RowCache::drop_unused() {
  std::vector<bool> used(k_.instrs.size(), false);
  const auto use = [&](int id) {
    if (id >= 0) used[id] = true;
  };
  use(k_.result);
  for (const Reduction& r : k_.reductions) use(r.value);
  for (const CachedValue& keep : k_.cached_values) use(keep.value);
  for (std::size_t id = used.size(); id-- > 0;)
    if (used[id])
      for (int operand : {k_.instrs[id].a, k_.instrs[id].b, k_.instrs[id].c}) use(operand);
  const auto clean = [&](Block& b) {
    std::erase_if(b.items, [&](const Item& i) { return !i.is_loop && !used[i.id]; });
  };
  clean(k_.top);
  for (Loop& l : k_.loops) clean(l.body);
}

void RowCache::run() {
  find_groups(k_.top);
  if (groups_.empty()) return;
  number();
  for (const Group& g : groups_) {
    candidates_.clear();
    look_at(g);
    place(g);
  }
  if (!k_.cached_values.empty()) drop_unused();
}

}  // namespace

void keep_rows(Kernel& k, std::int64_t most_bytes) {
  if (k.reductions.size() + (k.output_loops > 0) > 1) RowCache(k, most_bytes).run();
}

}  // namespace lc::codegen
