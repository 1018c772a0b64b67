#include "lightcone/distributed/collectives.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "lightcone/base/error.h"
#include "lightcone/device/halves.h"
#include "lightcone/device/host_kernel.h"
#include "lightcone/device/kernel_rule.h"
#include "lightcone/distributed/exchange.h"
#include "lightcone/reference/internal.h"
#include "lightcone/reference/rule.h"

namespace lc {

using Operation = Collective::Operation;

struct Collectives::Impl {
  Mesh mesh;
  std::shared_ptr<Communicator> communicator;
  std::array<CompositeRef, 6> composites;
  std::shared_ptr<distributed::Exchange> exchange;
};

namespace {

using distributed::Call;
using distributed::Exchange;

bool takes_rows(Operation k) { return k == Operation::ReduceScatter || k == Operation::AllToAll; }
bool gives_rows(Operation k) { return k == Operation::AllGather || k == Operation::AllToAll; }

TensorType infer_one(Operation operation, std::int64_t ranks, TensorType t) {
  if (takes_rows(operation)) {
    if (t.shape.empty() || !(t.shape[0] == Dim(ranks)))
      throw Error("", str_cat(str(t.shape), " does not have a row for each of ", ranks, " ranks"));
    t.shape.erase(t.shape.begin());
  }
  if (gives_rows(operation)) t.shape.insert(t.shape.begin(), Dim(ranks));
  return t;
}
std::vector<TensorType> infer(Operation operation, const Exchange& exchange, const Attributes& a,
                              std::span<const TensorType> in) {
  const auto ranks = static_cast<std::int64_t>(exchange.call(operation, a).group.size());
  std::vector<TensorType> all;
  for (const TensorType& t : in) {
    if (t.dtype != in[0].dtype) throw Error("", "arrays that are exchanged together have one element type");
    all.push_back(infer_one(operation, ranks, t));
  }
  return all;
}

CompositeRef composite_of(Operation operation, const std::shared_ptr<Exchange>& exchange, std::size_t arrays = 1);

// One rank alone exchanges nothing. Several arrays are exchanged one by one where a device has no kernel for them.
std::vector<Tensor> define(Operation operation, const std::shared_ptr<Exchange>& exchange, const Attributes& a,
                           std::span<const Tensor> in) {
  const Call c = exchange->call(operation, a);
  const bool alone = c.group.size() == 1;
  if (!alone && in.size() == 1)
    throw Error("", str_cat(c.group.size(), " ranks exchange numbers here, for which this device has no kernel"));
  std::vector<Tensor> all;
  for (const Tensor& x : in) {
    if (!alone) all.push_back(call(composite_of(operation, exchange), {x}, a)[0]);
    else if (operation == Operation::AllGather) all.push_back(x.unsqueeze(0));
    else if (operation == Operation::ReduceScatter) all.push_back(x.squeeze(0));
    else all.push_back(x);
  }
  return all;
}

// Runs a collective on the host.
class CollectiveKernel final : public HostKernel,
                               public Splittable,
                               public std::enable_shared_from_this<CollectiveKernel> {
 public:
  // The elements of one row of each operand, where the results lie, and how many bytes they are.
  CollectiveKernel(std::shared_ptr<Exchange> exchange, Call call, DType type, std::vector<Dim> elements,
                   std::vector<std::int64_t> offsets, Dim bytes)
      : exchange_(std::move(exchange)),
        call_(std::move(call)),
        type_(type),
        elements_(std::move(elements)),
        offsets_(std::move(offsets)),
        bytes_(std::move(bytes)) {}
  std::string name() const override {
    const auto operation = lc::name(call_.operation);
    return elements_.size() == 1 ? std::string(operation) : str_cat(operation, "_x", elements_.size());
  }
  std::vector<Dim> sizes() const override { return elements_; }
  bool same_every_run() const override { return false; }  // others' numbers change
  void run(const HostLaunch& l) const override { exchange_->run(call_, type_, pieces(l.in, l)); }
  std::optional<Halves> halves() const override;

 private:
  class Start;
  class Wait;
  std::span<const Piece> pieces(std::span<const void* const> in, const HostLaunch& l) const {
    const auto all = exchange_->pieces(in.size());
    for (std::size_t k = 0; k < in.size(); ++k)
      all[k] = {in[k], static_cast<std::byte*>(l.out) + offsets_[k], static_cast<std::size_t>(l.sizes[k])};
    return all;
  }

  std::shared_ptr<Exchange> exchange_;
  Call call_;
  DType type_;
  std::vector<Dim> elements_;
  std::vector<std::int64_t> offsets_;
  Dim bytes_;
};

class CollectiveKernel::Start final : public HostKernel, public Half {
 public:
  explicit Start(std::shared_ptr<const CollectiveKernel> of) : of_(std::move(of)) {}
  std::string name() const override { return of_->name() + "_start"; }
  std::vector<Dim> sizes() const override { return of_->sizes(); }
  bool same_every_run() const override { return false; }
  void run(const HostLaunch& l) const override {
    of_->exchange_->start(of_.get(), of_->call_, of_->type_, of_->pieces(l.in, l));
  }
  bool is_wait() const override { return false; }
  void abandon() const override { of_->exchange_->finish(); }

 private:
  std::shared_ptr<const CollectiveKernel> of_;
};

class CollectiveKernel::Wait final : public HostKernel, public Half {
 public:
  explicit Wait(std::shared_ptr<const CollectiveKernel> of) : of_(std::move(of)) {}
  std::string name() const override { return of_->name() + "_wait"; }
  std::vector<Dim> sizes() const override { return {of_->bytes_}; }
  bool in_place(std::size_t k) const override { return k == 0; }
  bool same_every_run() const override { return false; }
  bool is_wait() const override { return true; }
  void abandon() const override { of_->exchange_->finish(); }
  void run(const HostLaunch& l) const override {
    of_->exchange_->wait(of_.get());
    if (l.out != l.in[0] && l.sizes[0] > 0) std::memcpy(l.out, l.in[0], static_cast<std::size_t>(l.sizes[0]));
  }

 private:
  std::shared_ptr<const CollectiveKernel> of_;
};

std::optional<Halves> CollectiveKernel::halves() const {
  if (!Exchange::meets(call_)) return std::nullopt;
  return Halves{std::make_shared<Start>(shared_from_this()), std::make_shared<Wait>(shared_from_this())};
}

Dim row_elements(Operation operation, const Shape& operand) {
  return product(takes_rows(operation) ? Shape(operand.begin() + 1, operand.end()) : operand);
}

std::vector<std::shared_ptr<const KernelRule>> kernels(Operation operation, const std::shared_ptr<Exchange>& exchange) {
  const auto make = [operation, exchange](const Node& n, std::span<const TensorType> in) -> std::shared_ptr<Kernel> {
    std::vector<Dim> elements;
    for (const TensorType& t : in) elements.push_back(row_elements(operation, t.shape));
    const bool one = n.results.empty();
    return std::make_shared<CollectiveKernel>(exchange, exchange->call(operation, n.attributes), in[0].dtype,
                                              std::move(elements),
                                              one ? std::vector<std::int64_t>{0} : result_offsets(n.results),
                                              product(n.shape) * Dim(static_cast<std::int64_t>(size_of(n.dtype))));
  };
  return {std::make_shared<const KernelRule>(KernelRule{"cpu", make})};
}

std::vector<Tensor> derivative(Operation operation, const std::shared_ptr<Exchange>& exchange, const VjpCall& c) {
  const auto apply = [&](Operation k, Attributes a) {
    return std::vector<Tensor>{call(composite_of(k, exchange), {c.g()}, std::move(a))[0]};
  };
  const Call of = exchange->call(operation, c.attributes);
  if (of.reduction == ReduceOp::Max) throw Error(name(operation), "the maximum over ranks has no derivative here");
  switch (operation) {
    case Operation::AllReduce:
    case Operation::AllToAll: return apply(operation, c.attributes);
    case Operation::AllGather: return apply(Operation::ReduceScatter, c.attributes);
    case Operation::ReduceScatter: return apply(Operation::AllGather, c.attributes);
    case Operation::Broadcast:  // every rank takes part in the sum that one of them needs
      return apply(Operation::AllReduce, {{"axes", c.attributes.text("axes")}, {"only", c.attributes.integer("root")}});
    case Operation::Permute: return apply(operation, Exchange::reversed(c.attributes));
    case Operation::Send: break;  // messages.cpp
  }
  return {};
}

// The ranks' values in f64, or i64, and each sample of them as a number of its own.
std::vector<Value> evaluate(Operation operation, Exchange& exchange, const Evaluation& e) {
  const Call c = exchange.call(operation, e.node.attributes);
  const Value& x = *e.in[0];
  Value y = make_value(x.dtype, e.shape);
  const std::size_t rows = takes_rows(operation) ? c.group.size() : 1, n = x.size() / rows;
  if (!is_float(x.dtype)) {
    const DType stored = x.dtype == DType::U64 ? DType::U64 : DType::I64;  // maxima depend on the sign
    exchange.run(c, stored, n, x.i.data(), y.i.data());
    for (auto& v : y.i) v = x.dtype == DType::Bool ? v != 0 : wrapped(x.dtype, v);
    return {y};
  }
  exchange.run(c, DType::F64, n, x.f.data(), y.f.data());
  if (e.noise) {
    y.shift.resize(y.size());
    std::vector<double> from(x.size()), to(y.size());
    for (int s = 0; s < kSamples; ++s) {
      for (std::size_t k = 0; k < from.size(); ++k) from[k] = x.f[k] + (x.shift.empty() ? 0 : x.shift[k][s]);
      exchange.run(c, DType::F64, n, from.data(), to.data());
      for (std::size_t k = 0; k < to.size(); ++k) y.shift[k][s] = deviation(to[k], y.f[k]);
    }
  }
  for (double& v : y.f) v = rounded(y.dtype, v, e.rounding);
  return {y};
}

// Returns the composite, which is one object as long as anything uses it. That of several arrays is its definition for
// derivatives and for the reference.
CompositeRef composite_of(Operation operation, const std::shared_ptr<Exchange>& exchange, std::size_t arrays) {
  auto& known = exchange->composites[{operation, arrays}];
  CompositeRef made = known.lock();
  if (made) return made;
  Composite c{
      .name = std::string(name(operation)),
      .arity = static_cast<int>(arrays),
      .infer = [=](const Attributes& a, std::span<const TensorType> in) { return infer(operation, *exchange, a, in); },
      .define = [=](const Attributes& a, std::span<const Tensor> in) { return define(operation, exchange, a, in); },
      .kernels = kernels(operation, exchange)};
  if (arrays == 1) {
    c.reference = std::make_shared<const ReferenceRule>(
        ReferenceRule{[=](const Evaluation& e) { return evaluate(operation, *exchange, e); }});
    c.vjp = [=](const VjpCall& v) { return derivative(operation, exchange, v); };
  }
  made = std::make_shared<const Composite>(std::move(c));
  known = made;
  return made;
}

}  // namespace

Collectives::Collectives(Mesh mesh, std::shared_ptr<Communicator> communicator) {
  if (!communicator) throw Error("collectives", "there is no communicator");
  if (mesh.size() != communicator->size())
    throw Error("collectives",
                str_cat("the mesh (", mesh, ") has ", mesh.size(), " ranks, and there are ", communicator->size()));
  impl_ = std::make_shared<Impl>();
  impl_->mesh = mesh;
  impl_->communicator = communicator;
  const auto exchange = impl_->exchange = std::make_shared<Exchange>(std::move(mesh), communicator);
  for (std::size_t k = 0; k < impl_->composites.size(); ++k)
    impl_->composites[k] = composite_of(static_cast<Operation>(k), exchange);
}

const Mesh& Collectives::mesh() const { return impl_->mesh; }
int Collectives::rank() const { return impl_->communicator->rank(); }
Communicator& Collectives::communicator() const { return *impl_->communicator; }
const std::shared_ptr<Exchange>& Collectives::exchange() const { return impl_->exchange; }
const CompositeRef& Collectives::composite(Operation operation) const {
  return impl_->composites[static_cast<std::size_t>(operation)];
}
CompositeRef Collectives::composite(Operation operation, std::size_t arrays) const {
  return composite_of(operation, impl_->exchange, arrays);
}

namespace {

Tensor apply(const Collectives& c, Operation operation, const Operand& x, std::vector<Attributes::Entry> entries) {
  return call(c.composite(operation), {x}, Attributes(std::move(entries)), x.at)[0];
}
std::vector<Attributes::Entry> over(const Collectives& c, const std::vector<std::string>& axes) {
  std::string text;
  for (const std::string& a : axes) c.mesh().axis(a), text += (text.empty() ? "" : "+") + a;
  return {{"axes", text}};
}

}  // namespace

Tensor Collectives::all_reduce(Operand x, const std::vector<std::string>& axes, ReduceOp r) const {
  auto a = over(*this, axes);
  a.push_back({"reduction", static_cast<std::int64_t>(r)});
  return apply(*this, Operation::AllReduce, x, std::move(a));
}
Tensor Collectives::all_gather(Operand x, const std::vector<std::string>& axes) const {
  return apply(*this, Operation::AllGather, x, over(*this, axes));
}
Tensor Collectives::reduce_scatter(Operand x, const std::vector<std::string>& axes, ReduceOp r) const {
  auto a = over(*this, axes);
  a.push_back({"reduction", static_cast<std::int64_t>(r)});
  return apply(*this, Operation::ReduceScatter, x, std::move(a));
}
Tensor Collectives::all_to_all(Operand x, const std::vector<std::string>& axes) const {
  return apply(*this, Operation::AllToAll, x, over(*this, axes));
}
Tensor Collectives::broadcast(Operand x, const std::vector<std::string>& axes, int root) const {
  auto a = over(*this, axes);
  const auto ranks = impl_->exchange->call(Operation::Broadcast, Attributes(a)).group.size();
  if (root < 0 || static_cast<std::size_t>(root) >= ranks)
    throw Error("broadcast", str_cat("there is no place ", root, " among ", ranks, " ranks"));
  a.push_back({"root", std::int64_t{root}});
  return apply(*this, Operation::Broadcast, x, std::move(a));
}
Tensor Collectives::shift(Operand x, const std::string& axis, int by, bool ring) const {
  auto a = over(*this, {axis});
  a.push_back({"by", std::int64_t{by}}), a.push_back({"ring", std::int64_t{ring}});
  return apply(*this, Operation::Permute, x, std::move(a));
}

void Collectives::check_same(const std::string& what, const std::string& text) const {
  const Call all = impl_->exchange->everybody();
  const auto sizes = impl_->exchange->gather(all, text.size());
  std::string padded = text;
  padded.resize(*std::ranges::max_element(sizes));
  std::vector<char> texts(padded.size() * sizes.size());
  Call c = all;
  c.operation = Operation::AllGather;
  impl_->exchange->run(c, DType::U8, padded.size(), padded.data(), texts.data());
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    const std::string_view theirs(texts.data() + k * padded.size(), sizes[k]);
    const std::string_view first(texts.data(), sizes[0]);
    if (theirs != first)
      throw Error("distributed", str_cat("ranks differ in ", what, ": rank 0 has ", first.substr(0, 200), ", rank ", k,
                                         " has ", theirs.substr(0, 200)));
  }
}

}  // namespace lc
