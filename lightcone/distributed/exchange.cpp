#include "lightcone/distributed/exchange.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

namespace lc::distributed {

using Operation = Collective::Operation;

namespace {

std::int64_t integer_or(const Attributes& a, std::string_view name, std::int64_t otherwise) {
  const bool there = std::ranges::any_of(a.entries(), [&](const auto& e) { return e.name == name; });
  return there ? a.integer(name) : otherwise;
}

}  // namespace

Call Exchange::call(Operation operation, const Attributes& a) const {
  Call c;
  c.operation = operation;
  std::vector<int> axes;
  std::string_view text = a.text("axes");
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('+'), text.size());
    axes.push_back(mesh_.axis(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  const int rank = communicator_->rank();
  c.group = mesh_.group(rank, axes);
  c.place = mesh_.place(rank, axes);
  c.reduction = static_cast<ReduceOp>(integer_or(a, "reduction", 0));
  c.root = static_cast<int>(integer_or(a, "root", 0));
  if (operation == Operation::AllReduce) c.only = static_cast<int>(integer_or(a, "only", -1));
  if (operation == Operation::Permute) {
    const auto n = static_cast<int>(c.group.size()), by = static_cast<int>(a.integer("by"));
    for (int k = 0; k < n; ++k) {
      const int from = k - by;
      const bool inside = from >= 0 && from < n;
      c.source.push_back(inside || a.integer("ring") ? (from % n + n) % n : -1);
    }
  }
  return c;
}

Call Exchange::everybody() const {
  Call c;
  c.operation = Operation::AllGather;
  c.group.resize(static_cast<std::size_t>(communicator_->size()));
  std::iota(c.group.begin(), c.group.end(), 0);
  c.place = communicator_->rank();
  return c;
}

Attributes Exchange::reversed(const Attributes& a) {
  std::vector<Attributes::Entry> entries = a.entries();
  for (Attributes::Entry& e : entries)
    if (e.name == "by") e.value = -std::get<std::int64_t>(e.value);
  return Attributes(std::move(entries));
}

void Exchange::run(const Call& c, DType type, std::size_t n, const void* in, void* out) {
  if (c.group.size() == 1 && !(c.operation == Operation::Permute && c.source[0] < 0)) {
    if (n) std::memcpy(out, in, n * size_of(type));
    return;
  }
  communicator_->run({c.operation, c.reduction, type, n, c.group, c.place, c.root, c.source, ++operations_}, in, out);
  if (c.only >= 0 && c.only != c.place && n) std::memset(out, 0, n * size_of(type));
}

// The numbers of messages differ from those of collectives, which a pipeline's stages count differently.
constexpr std::uint64_t kMessages = std::uint64_t{1} << 62;

void Exchange::send(int to, std::uint64_t message, DType type, std::size_t n, const void* in) {
  const std::array<int, 2> pair{communicator_->rank(), to};
  communicator_->run({.operation = Operation::Send, .dtype = type, .n = n, .group = pair, .tag = kMessages + message},
                     in, nullptr);
}
void Exchange::receive(int from, std::uint64_t message, DType type, std::size_t n, void* out) {
  const std::array<int, 2> pair{from, communicator_->rank()};
  communicator_->run(
      {.operation = Operation::Send, .dtype = type, .n = n, .group = pair, .place = 1, .tag = kMessages + message},
      nullptr, out);
}

std::vector<std::size_t> Exchange::gather(const Call& group, std::size_t number) {
  const auto mine = static_cast<std::int64_t>(number);
  std::vector<std::int64_t> all(group.group.size());
  run(group, DType::I64, 1, &mine, all.data());
  return {all.begin(), all.end()};
}

}  // namespace lc::distributed
