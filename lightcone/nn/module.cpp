#include "lightcone/nn/module.h"

#include <algorithm>
#include <cmath>

#include "lightcone/runtime/program.h"

namespace lc::nn {
namespace {

std::int64_t extent(const Dim& d, const std::string& name) {
  const auto n = d.constant();
  if (!n) throw Error("parameter", str_cat("'", name, "' has an extent ", d, ": those of parameters are numbers"));
  return *n;
}

init::Extents extents(const Entry& e) {
  init::Extents s;
  for (const Dim& d : e.tensor.shape()) s.push_back(extent(d, e.name));
  return s;
}

std::int64_t elements(const Entry& e) {
  std::int64_t n = 1;
  for (const auto d : extents(e)) n *= d;
  return n;
}

const char* word(Entry::Kind k) {
  return k == Entry::Kind::Parameter ? "" : k == Entry::Kind::Frozen ? "  frozen" : "  buffer";
}

}  // namespace

Init uniform_init(double bound) {
  return [bound](const init::Extents& s, const init::Source& from) { return init::uniform(s, from, -bound, bound); };
}
Init constant_init(float value) {
  return [value](const init::Extents& s, const init::Source&) { return init::constant(s, value); };
}

std::size_t Visitor::enter(const std::string& name) {
  const std::size_t length = path_.size();
  path_ += (path_.empty() || name.empty() ? "" : ".") + name;
  return length;
}

void Visitor::add(const std::string& name, Tensor& slot, Shape shape, Init init, DType dtype, Entry::Kind kind) {
  const std::size_t length = enter(name);
  for (const Dim& d : shape) extent(d, path_);
  slot = g_.parameter(path_, std::move(shape), dtype, at_);
  entries_.push_back({path_, slot, std::move(init), kind});
  path_.resize(length);
}

namespace {

// True for the path "model.layers.0.self_attn.q_proj.weight" and the targets "q_proj" and "self_attn.q_proj".
bool is_weight_of(std::string_view path, std::string_view target) {
  constexpr std::string_view kWeight = ".weight";
  if (!path.ends_with(kWeight)) return false;
  path.remove_suffix(kWeight.size());
  return path.ends_with(target) && (path.size() == target.size() || path[path.size() - target.size() - 1] == '.');
}

}  // namespace

Visitor::ScopedLora::ScopedLora(Visitor& v, const LoraOptions& o)
    : v_(v), freezing_(v), first_(v.adapters_.size()), before_(std::exchange(v.lora_, &o)) {
  if (o.rank < 1 || o.targets.empty())
    throw Error("Lora",
                str_cat("a rank of ", o.rank, " and ", o.targets.size(), " targets: there is nothing to train"));
}

void Visitor::ScopedLora::require_all() const {
  for (const std::string& target : v_.lora_->targets)
    if (std::none_of(v_.adapters_.begin() + static_cast<std::ptrdiff_t>(first_), v_.adapters_.end(),
                     [&](const Adapter& a) { return is_weight_of(a.weight, target); }))
      throw Error("Lora", str_cat("no layer is called '", target, "', or its weight is no matrix"));
}

void Visitor::adapt(const std::string& name, Tensor& slot) {
  const std::size_t length = enter(name);
  const std::string weight = path_;
  path_.resize(length);
  if (std::ranges::none_of(lora_->targets, [&](const std::string& t) { return is_weight_of(weight, t); })) return;
  const std::string layer = name.substr(0, name.size() - std::string_view("weight").size());
  const Dim out = slot.extent(0), in = slot.extent(1), rank(lora_->rank);
  const double scale = lora_->alpha / static_cast<double>(lora_->rank);
  Tensor a, b;
  const auto uniform = [](const init::Extents& s, const init::Source& from) {
    return init::kaiming_uniform(s, from, {.a = std::sqrt(5.0)});
  };
  add(layer + "lora_A.weight", a, {rank, in}, uniform, DType::F32, Entry::Kind::Parameter);
  add(layer + "lora_B.weight", b, {out, rank}, constant_init(0), DType::F32, Entry::Kind::Parameter);
  slot = slot + matmul(b, a) * scale;
  const std::string before = weight.substr(0, weight.size() - std::string_view("weight").size());
  adapters_.push_back({weight, before + "lora_A.weight", before + "lora_B.weight", scale});
}

bool Visitor::add_stored(const std::string& name, Tensor& slot, const Shape& shape, const Init& init) {
  if (!storage_ || !*storage_) return false;
  const std::size_t length = enter(name);
  const std::string path = path_;
  path_.resize(length);
  const Storage s = (*storage_)(path, shape);
  if (s.dtype == DType::F32 && !s.quant) return false;
  for (const Dim& d : shape) extent(d, path);
  if (!s.quant && !is_float(s.dtype))
    throw Error("parameter", str_cat("'", path, "' cannot be stored as ", lc::name(s.dtype), ", which is no float"));
  const Parameter p = nn::parameter(g_, path, shape, s.dtype, s.quant);
  entries_.push_back({path, p.stored, s.quant ? Init{} : init, Entry::Kind::Frozen});
  slot = p.value();
  return true;
}

Visitor& Visitor::parameter(const std::string& name, Tensor& slot, Shape shape, Init init) {
  const Init& first = shape.size() > 1 ? first_.matrices : name == "bias" ? first_.biases : first_.scales;
  if (first) init = first;
  if (!add_stored(name, slot, shape, init))
    add(name, slot, std::move(shape), std::move(init), DType::F32,
        frozen_ ? Entry::Kind::Frozen : Entry::Kind::Parameter);
  if (lora_ && slot.rank() == 2) adapt(name, slot);
  return *this;
}
Visitor& Visitor::buffer(const std::string& name, Tensor& slot, Shape shape, Init init, DType dtype) {
  add(name, slot, std::move(shape), std::move(init), dtype, Entry::Kind::Buffer);
  return *this;
}

void require_visited(std::string_view layer, const Tensor& parameter) {
  if (!parameter.defined())
    throw Error(layer, "its parameters were never visited: name the layer in visit(), and call it through its Model");
}

std::vector<Tensor> ModelBase::parameters() const {
  return parameters([](std::string_view) { return true; });
}
std::vector<Tensor> ModelBase::parameters(const std::function<bool(std::string_view name)>& wanted) const {
  std::vector<Tensor> all;
  for (const Entry& e : entries_)
    if (e.kind == Entry::Kind::Parameter && wanted(e.name)) all.push_back(e.tensor);
  return all;
}

std::int64_t ModelBase::count() const {
  std::int64_t n = 0;
  for (const Entry& e : entries_)
    if (e.kind == Entry::Kind::Parameter) n += elements(e);
  return n;
}

std::string ModelBase::summary() const {
  std::size_t width = 4, shapes = 5;
  for (const Entry& e : entries_) {
    width = std::max(width, e.name.size());
    shapes = std::max(shapes, str(e.tensor.shape()).size());
  }
  std::string s;
  const auto column = [&](std::string text, std::size_t w) { s += text + std::string(w + 2 - text.size(), ' '); };
  for (const Entry& e : entries_) {
    column(e.name, width), column(str(e.tensor.shape()), shapes);
    s += str_cat(elements(e), word(e.kind), "\n");
  }
  return s + str_cat(count(), " trained elements\n");
}

ModelBase::FirstValue ModelBase::first_value(const Entry& e, std::int64_t seed) {
  if (!e.init) throw Error("initialise", str_cat("'", e.name, "' is stored in quantised blocks: load it from a file"));
  init::Values v = e.init(extents(e), {.seed = seed, .parameter = e.name});
  if (e.tensor.dtype() == DType::F32) {
    const auto kept = std::make_shared<const init::Values>(std::move(v));
    return {kept, std::as_bytes(std::span(*kept))};
  }
  Value value = make_value(e.tensor.dtype(), extents(e));
  for (std::size_t k = 0; k < v.size(); ++k)
    if (is_float(value.dtype)) value.f[k] = v[k];
    else value.i[k] = static_cast<std::int64_t>(v[k]);
  const auto kept = std::make_shared<std::vector<std::byte>>(value.size() * size_of(value.dtype));
  write_value(value, kept->data());
  return {kept, *kept};
}

void ModelBase::initialise(Program& p, std::int64_t seed) const {
  for (const Entry& e : entries_) {
    const FirstValue v = first_value(e, seed);
    p.load(e.name, v.bytes.data(), v.bytes.size(), v.owner);
  }
}

Random& Training::random() const { return model_.random(); }

void ModelBase::check_not_traced(const At& at) const {
  if (traces_ > 0)
    throw Error("trace", "the function calls the model itself, which is inference: call its first argument",
                Location::here(at, "trace"));
}

Random& ModelBase::random() {
  if (!random_) random_ = std::make_unique<Random>(graph_, seed_);
  return *random_;
}

}  // namespace lc::nn
