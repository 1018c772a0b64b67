// Trainer on several ranks: values in parts, and checkpoints that all ranks write.
#include <algorithm>
#include <exception>

#include "lightcone/io/checkpoints/parts.h"
#include "lightcone/io/checkpoints/save.h"
#include "lightcone/io/printable.h"
#include "lightcone/train/trainer.h"

namespace lc {
namespace {

constexpr std::int64_t kDone = -1;

// The rank that writes each tensor: the one with the fewest bytes so far.
std::vector<int> writers(const std::vector<TensorToSave>& tensors, int ranks) {
  std::vector<int> of;
  std::vector<std::int64_t> bytes(static_cast<std::size_t>(ranks), 0);
  for (const TensorToSave& t : tensors) {
    const auto least = std::ranges::min_element(bytes);
    of.push_back(static_cast<int>(least - bytes.begin()));
    std::int64_t n = static_cast<std::int64_t>(size_of(t.dtype));
    for (const std::int64_t extent : t.shape) n *= extent;
    *least += n;
  }
  return of;
}

// The first exception of several actions, each of which runs unless there is one: a rank that cannot write its file
// takes part in the exchanges all the same.
class Attempts {
 public:
  template <class F>
  void operator()(const F& f) try {
    if (!wrong_) f();
  } catch (...) {
    wrong_ = std::current_exception();
  }
  void raise() const {
    if (wrong_) std::rethrow_exception(wrong_);
  }

 private:
  std::exception_ptr wrong_;
};

}  // namespace

bool Trainer::is_divided(const Stored& s) const {
  if (!ranks_) return false;
  std::size_t whole = size_of(s.dtype);
  for (const std::int64_t extent : s.shape) whole *= static_cast<std::size_t>(extent);
  return bytes(s.name).size() != whole;
}

ArrayPart Trainer::part(const Stored& s, const ArrayView& whole) const {
  const Mesh mesh = ranks_ ? ranks_->collectives.mesh() : Mesh();
  return part_of(mesh, ranks_ ? ranks_->collectives.rank() : 0, ranks_ ? ranks_->specs : ShardSpecs(), s.name, whole);
}

ArrayPart Trainer::whole(const Stored& s) const {
  std::vector<std::int64_t> shape;  // nothing looks at the part's shape
  return whole_of(ranks_->collectives, ranks_->specs, s.name, {s.dtype, std::move(shape), bytes(s.name)}, s.shape);
}

// ---- rank 0 asks, the others answer ------------------------------------------------------------------------------

// Sends a number from rank 0 to all.
std::int64_t Trainer::requested(std::int64_t what) const {
  std::int64_t told = what;
  ranks_->collectives.run(Collective::Operation::Broadcast, {}, DType::I64, 1, &what, &told);
  return told;
}

void Trainer::serve() const {
  for (std::int64_t k = requested(0); k != kDone; k = requested(0)) whole(all_[static_cast<std::size_t>(k)]);
}

void Trainer::on_rank_0(const std::function<void()>& f) const {
  if (!ranks_ || serving_) return f();
  Attempts attempt;
  if (ranks_->collectives.rank() == 0) {
    serving_ = true;
    attempt(f);
    serving_ = false;
    last_ = {};
    requested(kDone);
  } else {
    serve();
  }
  ranks_->collectives.together([&] { attempt.raise(); });
}

std::span<const std::byte> Trainer::gathered(const Stored& s, ArrayPart& kept) const {
  if (!is_divided(s)) return bytes(s.name);
  if (!serving_)
    throw Error("trainer", str_cat(in_quotes(s.name), " is divided among ranks: rank 0 reads it, within on_rank_0()"));
  requested(std::ranges::find(all_, s.name, &Stored::name) - all_.begin());
  kept = whole(s);
  return kept.bytes;
}

std::span<const float> Trainer::values(const std::string& name) const {
  const auto b = gathered(parameter(name), last_);
  return {reinterpret_cast<const float*>(b.data()), b.size() / sizeof(float)};
}

std::vector<float> Trainer::copied(const std::string& name) const {
  const std::span<const float> v = values(name);
  return {v.begin(), v.end()};
}

std::vector<float> Trainer::merged(const std::string& weight) const {
  std::vector<float> w = copied(weight);
  const auto adapter = std::ranges::find(adapters_, weight, &nn::Adapter::weight);
  if (adapter == adapters_.end()) return w;
  const std::vector<float> a = copied(adapter->a), b = copied(adapter->b);
  const auto in = static_cast<std::size_t>(parameter(weight).shape[1]);
  const std::size_t rank = a.size() / in, out = w.size() / in;
  for (std::size_t o = 0; o < out; ++o)
    for (std::size_t r = 0; r < rank; ++r) {
      const float by = b[o * rank + r] * static_cast<float>(adapter->scale);
      for (std::size_t i = 0; i < in; ++i) w[o * in + i] += by * a[r * in + i];
    }
  return w;
}

// ---- checkpoints -------------------------------------------------------------------------------------------------

std::vector<TensorToSave> Trainer::to_save(const std::vector<Stored>& what, const std::string& prefix) {
  std::vector<TensorToSave> tensors;
  for (const Stored& s : what) tensors.push_back({prefix + s.name, s.dtype, s.shape, {}});
  return tensors;
}

// Each rank writes the tensors that are its own, whole. The index is replaced when all files are on the disk.
void Trainer::save_parts(const std::string& path, const std::map<std::string, std::string>& metadata) const {
  const Collectives& c = ranks_->collectives;
  const std::vector<TensorToSave> all = in_file_order(to_save(all_));
  const int ranks = c.mesh().size();
  const std::vector<int> writer = writers(all, ranks);
  std::vector<TensorToSave> mine;
  for (std::size_t k = 0; k < all.size(); ++k)
    if (writer[k] == c.rank()) mine.push_back(all[k]);
  std::int64_t set = 0;
  c.together([&] {
    if (c.rank() == 0) set = io::free_set(path);
  });
  set = requested(set);
  const auto file_of = [&](int rank) { return io::part_file(path, static_cast<char>(set), rank, ranks); };
  std::optional<SafetensorsWriter> file;
  Attempts attempt;
  if (!mine.empty()) attempt([&] { file.emplace(file_of(c.rank()), mine, metadata); });
  for (std::size_t k = 0; k < all.size(); ++k) {
    const Stored& s = *std::ranges::find(all_, all[k].name, &Stored::name);
    const ArrayPart joined = is_divided(s) ? whole(s) : ArrayPart();
    if (writer[k] == c.rank()) attempt([&] { file->write(is_divided(s) ? joined.bytes : bytes(s.name)); });
  }
  if (!mine.empty()) attempt([&] { file->commit(); });
  c.together([&] { attempt.raise(); });
  c.together([&] {
    if (c.rank() != 0) return;
    std::map<std::string, std::string> files;
    std::size_t bytes = 0;
    for (std::size_t k = 0; k < all.size(); ++k) {
      files[all[k].name] = file_of(writer[k]);
      std::size_t n = size_of(all[k].dtype);
      for (const std::int64_t extent : all[k].shape) n *= static_cast<std::size_t>(extent);
      bytes += n;
    }
    io::write_index(path, files, bytes);
    io::remove_older_than_index(path);
  });
}

}  // namespace lc
