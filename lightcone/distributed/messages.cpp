// Messages between two ranks, as composites.
#include <array>
#include <cstring>

#include "lightcone/base/error.h"
#include "lightcone/device/halves.h"
#include "lightcone/device/host_kernel.h"
#include "lightcone/device/kernel_rule.h"
#include "lightcone/distributed/collectives.h"
#include "lightcone/distributed/exchange.h"
#include "lightcone/reference/internal.h"
#include "lightcone/reference/rule.h"

namespace lc {
namespace {

using distributed::Call;
using distributed::DeviceCollectives;
using distributed::Exchange;
using distributed::Exchanged;

const TensorType kToken{DType::U8, {Dim(1)}};

struct Message {
  int rank;
  std::uint64_t number;
  explicit Message(const Attributes& a)
      : rank(static_cast<int>(a.integer("rank"))), number(static_cast<std::uint64_t>(a.integer("message"))) {}
};

TensorType received_type(const Attributes& a) { return {static_cast<DType>(a.integer("dtype")), extents(a)}; }

// What a device without a kernel for messages would have to compute.
std::vector<Tensor> no_definition(const Attributes&, std::span<const Tensor>) {
  throw Error("", "two ranks exchange a message here, for which this device has no kernel");
}

class MessageKernel : public HostKernel, public distributed::ExchangingKernel {
 public:
  MessageKernel(std::shared_ptr<Exchange> exchange, const Message& m, const TensorType& type)
      : exchange_(std::move(exchange)), message_(m), type_(type) {}
  std::vector<Dim> sizes() const override { return {product(type_.shape)}; }
  bool same_every_run() const override { return false; }

 protected:
  Exchanged seen(bool sends, Exchanged::Half half) const {
    return {exchange_->message(message_.rank, sends, message_.number), type_.dtype, sizes(), half};
  }
  std::shared_ptr<Exchange> exchange_;
  Message message_;
  TensorType type_;
};

// The rank goes on while the other one fetches the message.
class SendKernel final : public MessageKernel, public Splittable, public std::enable_shared_from_this<SendKernel> {
 public:
  SendKernel(const std::shared_ptr<Exchange>& exchange, const Message& m, const TensorType& type)
      : MessageKernel(exchange, m, type), pair_{exchange->rank(), m.rank} {}
  std::string name() const override { return "send"; }
  void run(const HostLaunch& l) const override {
    exchange_->send(message_.rank, message_.number, type_.dtype, static_cast<std::size_t>(l.sizes[0]), l.in[0]);
    *static_cast<std::uint8_t*>(l.out) = 0;
  }
  std::optional<Halves> halves() const override;
  Exchanged exchanged() const override { return seen(true, Exchanged::Half::Both); }

 private:
  class Part;
  std::array<int, 2> pair_;
};

class SendKernel::Part final : public HostKernel, public Half, public distributed::ExchangingKernel {
 public:
  Part(std::shared_ptr<const SendKernel> of, bool waits) : of_(std::move(of)), waits_(waits) {}
  std::string name() const override { return waits_ ? "send_wait" : "send_start"; }
  std::vector<Dim> sizes() const override { return of_->sizes(); }
  bool in_place(std::size_t k) const override { return waits_ && k == 0; }
  bool same_every_run() const override { return false; }
  bool is_wait() const override { return waits_; }
  Exchanged exchanged() const override {
    return of_->seen(true, waits_ ? Exchanged::Half::Wait : Exchanged::Half::Start);
  }
  void abandon() const override { of_->exchange_->finish(); }
  void run(const HostLaunch& l) const override {
    *static_cast<std::uint8_t*>(l.out) = 0;
    if (waits_) return of_->exchange_->wait(of_.get());
    of_->exchange_->start_send(of_.get(), of_->pair_, of_->message_.number, of_->type_.dtype,
                               static_cast<std::size_t>(l.sizes[0]), l.in[0]);
  }

 private:
  std::shared_ptr<const SendKernel> of_;
  bool waits_;
};

std::optional<Halves> SendKernel::halves() const {
  return Halves{std::make_shared<Part>(shared_from_this(), false), std::make_shared<Part>(shared_from_this(), true)};
}

class ReceiveKernel final : public MessageKernel {
 public:
  using MessageKernel::MessageKernel;
  std::string name() const override { return "receive"; }
  Exchanged exchanged() const override { return seen(false, Exchanged::Half::Both); }
  void run(const HostLaunch& l) const override {
    exchange_->receive(message_.rank, message_.number, type_.dtype, static_cast<std::size_t>(l.sizes[0]), l.out);
  }
};

class OrderedKernel final : public HostKernel {
 public:
  explicit OrderedKernel(const TensorType& type) : type_(type) {}
  std::string name() const override { return "ordered"; }
  std::vector<Dim> sizes() const override { return {product(type_.shape)}; }
  bool in_place(std::size_t k) const override { return k == 0; }
  bool same_every_run() const override { return false; }
  void run(const HostLaunch& l) const override {
    const std::size_t bytes = static_cast<std::size_t>(l.sizes[0]) * size_of(type_.dtype);
    if (bytes && l.out != l.in[0]) std::memcpy(l.out, l.in[0], bytes);
  }

 private:
  TensorType type_;
};

// The kernels of a composite: the host's, and what `by` makes where ranks' devices exchange arrays by themselves.
template <class Host, class Device>
std::vector<std::shared_ptr<const KernelRule>> kernels(const std::shared_ptr<Exchange>& exchange, Host host,
                                                       Device by) {
  std::vector rules{std::make_shared<const KernelRule>(KernelRule{"cpu", std::move(host)})};
  if (const auto device = exchange->on_device())
    rules.push_back(std::make_shared<const KernelRule>(
        KernelRule{device->device(), [device, by](const Node& n, std::span<const TensorType> in) {
                     return std::shared_ptr<Kernel>(by(*device, n, in));
                   }}));
  return rules;
}

Call call_of(const Exchange& exchange, const Node& n, bool sends) {
  const Message m(n.attributes);
  return exchange.message(m.rank, sends, m.number);
}

// ---- the reference: numbers travel in f64, or in i64, and each sample of them by itself -----------------------------

using Way = void (*)(Exchange&, const Message&, DType, std::size_t, void*);
void sent(Exchange& x, const Message& m, DType type, std::size_t n, void* data) {
  x.send(m.rank, m.number, type, n, data);
}
void received(Exchange& x, const Message& m, DType type, std::size_t n, void* data) {
  x.receive(m.rank, m.number, type, n, data);
}

void exchange_value(Exchange& x, const Message& m, Value& v, bool samples, Way way) {
  if (!is_float(v.dtype)) return way(x, m, DType::I64, v.size(), v.i.data());
  way(x, m, DType::F64, v.size(), v.f.data());
  if (!samples) return;
  std::vector<double> one(v.size());
  for (int s = 0; s < kSamples; ++s) {
    for (std::size_t k = 0; k < one.size(); ++k) one[k] = v.shift.empty() ? 0 : v.shift[k][s];
    way(x, m, DType::F64, one.size(), one.data());
    if (way != received) continue;
    v.shift.resize(one.size());
    for (std::size_t k = 0; k < one.size(); ++k) v.shift[k][s] = one[k];
  }
}

std::vector<Value> evaluate_send(Exchange& x, const Evaluation& e) {
  Value v = *e.in[0];
  exchange_value(x, Message(e.node.attributes), v, e.noise != 0, sent);
  return {make_value(DType::U8, e.shape)};
}
std::vector<Value> evaluate_receive(Exchange& x, const Evaluation& e) {
  Value v = make_value(e.node.dtype, e.shape);
  exchange_value(x, Message(e.node.attributes), v, e.noise != 0, received);
  return {v};
}

std::shared_ptr<const ReferenceRule> by(const std::shared_ptr<Exchange>& exchange,
                                        std::vector<Value> (*evaluate)(Exchange&, const Evaluation&)) {
  return std::make_shared<const ReferenceRule>(
      ReferenceRule{[exchange, evaluate](const Evaluation& e) { return evaluate(*exchange, e); }});
}

// ---- the composites -------------------------------------------------------------------------------------------------

using Types = std::span<const TensorType>;

CompositeRef make_send(const std::shared_ptr<Exchange>& exchange) {
  const auto on_host = [exchange](const Node& n, Types in) -> std::shared_ptr<Kernel> {
    return std::make_shared<SendKernel>(exchange, Message(n.attributes), in[0]);
  };
  const auto on_device = [exchange](const DeviceCollectives& device, const Node& n, Types in) {
    return device.kernel(call_of(*exchange, n, true), in[0].dtype, product(in[0].shape));
  };
  return std::make_shared<const Composite>(
      Composite{.name = "send",
                .arity = 2,
                .infer = [](const Attributes&, Types) { return std::vector{kToken}; },
                .define = no_definition,
                .reference = by(exchange, evaluate_send),
                .kernels = kernels(exchange, on_host, on_device)});
}

CompositeRef make_receive(const std::shared_ptr<Exchange>& exchange) {
  const auto on_host = [exchange](const Node& n, Types) -> std::shared_ptr<Kernel> {
    return std::make_shared<ReceiveKernel>(exchange, Message(n.attributes), received_type(n.attributes));
  };
  const auto on_device = [exchange](const DeviceCollectives& device, const Node& n, Types) {
    return device.kernel(call_of(*exchange, n, false), n.dtype, product(n.shape));
  };
  return std::make_shared<const Composite>(
      Composite{.name = "receive",
                .infer = [](const Attributes& a, Types) { return std::vector{received_type(a)}; },
                .define = no_definition,
                .reference = by(exchange, evaluate_receive),
                .kernels = kernels(exchange, on_host, on_device)});
}

CompositeRef make_ordered(const std::shared_ptr<Exchange>& exchange) {
  const auto on_host = [](const Node&, Types in) -> std::shared_ptr<Kernel> {
    return std::make_shared<OrderedKernel>(in[0]);
  };
  const auto on_device = [](const DeviceCollectives& device, const Node& n, Types) {
    return device.ordered(product(n.shape) * Dim(static_cast<std::int64_t>(size_of(n.dtype))));
  };
  return std::make_shared<const Composite>(
      Composite{.name = "ordered",
                .arity = 2,
                .infer = [](const Attributes&, Types in) { return std::vector{in[0]}; },
                .define = no_definition,
                .reference = std::make_shared<const ReferenceRule>(
                    ReferenceRule{[](const Evaluation& e) { return std::vector<Value>{*e.in[0]}; }}),
                .kernels = kernels(exchange, on_host, on_device)});
}

CompositeRef known(std::weak_ptr<const Composite>& place, const std::shared_ptr<Exchange>& exchange,
                   CompositeRef (*make)(const std::shared_ptr<Exchange>&)) {
  CompositeRef c = place.lock();
  if (!c) place = c = make(exchange);
  return c;
}

}  // namespace

Tensor Collectives::send(Operand x, int to, std::int64_t message, Operand after) const {
  const auto& e = exchange();
  return call(known(e->messages[0], e, make_send), {x.tensor, after.tensor},
              {{"rank", std::int64_t{to}}, {"message", message}}, x.at)[0];
}

Tensor Collectives::receive(const TensorType& type, int from, std::int64_t message, Operand after) const {
  const auto& e = exchange();
  std::vector<Attributes::Entry> a{
      {"rank", std::int64_t{from}}, {"message", message}, {"dtype", static_cast<std::int64_t>(type.dtype)}};
  for (const Dim& d : type.shape) a.push_back({"extent", d});
  return call(known(e->messages[1], e, make_receive), {after.tensor}, Attributes(std::move(a)), after.at)[0];
}

Tensor Collectives::ordered(Operand x, Operand after) const {
  const auto& e = exchange();
  return call(known(e->messages[2], e, make_ordered), {x.tensor, after.tensor}, {}, x.at)[0];
}

}  // namespace lc
