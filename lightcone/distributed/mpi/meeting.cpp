#include "lightcone/distributed/mpi/meeting.h"

#include <algorithm>
#include <cstring>

#include "lightcone/base/error.h"

namespace lc::distributed {
namespace {

using Operation = Collective::Operation;
using Tag = Traffic::Tag;

// Arrays of so many bytes, all ranks' together, are sent whole to everybody: one message less to wait for.
constexpr std::size_t kSmall = std::size_t{1} << 15;

std::uint64_t mixed(std::uint64_t hash, std::span<const int> numbers) {  // FNV-1a
  for (const int n : numbers) hash = (hash ^ static_cast<std::uint32_t>(n)) * 0x100000001b3u;
  return hash;
}

Traffic::Header header(const Collective& c) {
  return {static_cast<std::uint64_t>(c.operation) | static_cast<std::uint64_t>(c.reduction) << 8,
          static_cast<std::uint64_t>(c.dtype),
          c.n,
          c.group.size(),
          static_cast<std::uint64_t>(c.root),
          c.tag,
          mixed(0xcbf29ce484222325u, c.group),
          mixed(0xcbf29ce484222325u, c.source)};
}

// What a header says, as str() says it. What no version of this library sends is "something else".
std::string said(const Traffic::Header& h) {
  if ((h[0] & 255) > static_cast<std::uint64_t>(Operation::Send) || h[0] >> 8 > 1 ||
      h[1] > static_cast<std::uint64_t>(DType::Bool) || h[3] > std::uint64_t{1} << 20)
    return "something else";
  const std::vector<int> group(static_cast<std::size_t>(h[3]));
  return str(Collective{.operation = static_cast<Operation>(h[0] & 255),
                        .reduction = static_cast<ReduceOp>(h[0] >> 8),
                        .dtype = static_cast<DType>(h[1]),
                        .n = static_cast<std::size_t>(h[2]),
                        .group = group,
                        .tag = h[5]});
}

}  // namespace

template <class F>
void Meeting::for_others(F&& f) const {
  for (int k = 1; k < ranks(); ++k) f((c_.place + k) % ranks());  // each begins with its neighbour
}

Meeting::Part Meeting::part(int place) const {
  const auto p = static_cast<std::size_t>(ranks()), each = (c_.n + p - 1) / p;
  const std::size_t begin = std::min(c_.n, static_cast<std::size_t>(place) * each), end = std::min(c_.n, begin + each);
  return {begin * size_of(c_.dtype), (end - begin) * size_of(c_.dtype)};
}

void Meeting::send(int place, const std::byte* from, std::size_t bytes) {
  traffic_.send(traffic_.data, from, bytes, c_.group[static_cast<std::size_t>(place)], Tag::Data);
}
void Meeting::receive(int place, std::byte* to, std::size_t bytes) {
  traffic_.receive(traffic_.data, to, bytes, c_.group[static_cast<std::size_t>(place)], Tag::Data);
}
void Meeting::send_to_all(const std::byte* from, std::size_t bytes) {
  for_others([&](int k) { send(k, from, bytes); });
}
void Meeting::copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes) std::memcpy(to, from, bytes);
}

void Meeting::fail() {
  traffic_.fail(traffic_.failure());
  throw Error(name(c_.operation), str_cat(traffic_.failure(), " (", str(c_), ")"));
}

void Meeting::run() {
  if (!traffic_.failure().empty()) fail();
  traffic_.heads.assign(c_.group.size(), header(c_));
  for_others([&](int k) {
    const int rank = c_.group[static_cast<std::size_t>(k)];
    auto& heads = traffic_.heads;
    traffic_.receive(traffic_.headers, &heads[static_cast<std::size_t>(k)], sizeof(Traffic::Header), rank, Tag::Header);
    traffic_.send(traffic_.headers, &heads[static_cast<std::size_t>(c_.place)], sizeof(Traffic::Header), rank,
                  Tag::Header);
  });
  switch (c_.operation) {
    case Operation::AllReduce: return all_reduce();
    case Operation::AllGather: return all_gather();
    case Operation::ReduceScatter: return reduce_scatter();
    case Operation::AllToAll: return all_to_all();
    case Operation::Broadcast: return broadcast();
    case Operation::Permute: return permute();
    case Operation::Send: return message();
  }
}

void Meeting::meet() {
  if (!traffic_.wait(traffic_.headers, Traffic::Patience::Whole)) fail();
  const auto& heads = traffic_.heads;
  for (std::size_t k = 1; k < heads.size(); ++k) {
    if (heads[k] == heads[0]) continue;
    const bool alike = said(heads[0]) == said(heads[k]);  // but for a root, or a group
    traffic_.fail(str_cat("ranks run different operations: rank ", c_.group[0], " ", said(heads[0]), ", rank ",
                          c_.group[k], " ", said(heads[k]), alike ? " between other places" : "",
                          "; they need the same model, mesh and version"));
    fail();
  }
}

void Meeting::wait() {
  if (!traffic_.wait(traffic_.data, Traffic::Patience::EachMessage)) fail();
}

// ---- sums: MPI's own add in an order of their choice ----------------------------------------------------------------

void Meeting::receive_rows(std::size_t elements) {
  const std::size_t row = elements * size_of(c_.dtype);
  traffic_.rows.resize(row * c_.group.size());
  for_others([&](int k) { receive(k, traffic_.rows.data() + static_cast<std::size_t>(k) * row, row); });
}

void Meeting::reduce(const std::byte* mine, std::byte* to, std::size_t elements) {
  auto& rows = traffic_.all_rows;  // kept between operations: they are not allocated again
  rows.clear();
  for (int k = 0; k < ranks(); ++k) {
    const std::byte* theirs = traffic_.rows.data() + static_cast<std::size_t>(k) * elements * size_of(c_.dtype);
    rows.push_back(k == c_.place ? mine : theirs);
  }
  reduce_rows(c_.dtype, c_.reduction, rows, to, 0, elements);
}

void Meeting::reduce_together() {
  send_to_all(in_, bytes());
  meet();
  receive_rows(c_.n);
  wait();
  reduce(in_, out_, c_.n);
}

// Each rank reduces a part, and sends it to all.
void Meeting::all_reduce() {
  if (bytes() * c_.group.size() <= kSmall) return reduce_together();
  for_others([&](int k) { send(k, in_ + part(k).begin, part(k).bytes); });
  meet();
  const Part mine = part(c_.place);
  receive_rows(mine.bytes / size_of(c_.dtype));
  wait();
  reduce(in_ + mine.begin, out_ + mine.begin, mine.bytes / size_of(c_.dtype));
  send_to_all(out_ + mine.begin, mine.bytes);
  for_others([&](int k) { receive(k, out_ + part(k).begin, part(k).bytes); });
  wait();
}

void Meeting::reduce_scatter() {
  for_others([&](int k) { send(k, in_ + static_cast<std::size_t>(k) * bytes(), bytes()); });
  meet();
  receive_rows(c_.n);
  wait();
  reduce(in_ + static_cast<std::size_t>(c_.place) * bytes(), out_, c_.n);
}

// ---- copies ---------------------------------------------------------------------------------------------------------

void Meeting::all_gather() {
  send_to_all(in_, bytes());
  meet();
  for_others([&](int k) { receive(k, out_ + static_cast<std::size_t>(k) * bytes(), bytes()); });
  copy(out_ + static_cast<std::size_t>(c_.place) * bytes(), in_, bytes());
  wait();
}

void Meeting::all_to_all() {
  const auto row = [&](int k) { return static_cast<std::size_t>(k) * bytes(); };
  for_others([&](int k) { send(k, in_ + row(k), bytes()); });
  meet();
  for_others([&](int k) { receive(k, out_ + row(k), bytes()); });
  copy(out_ + row(c_.place), in_ + row(c_.place), bytes());
  wait();
}

void Meeting::broadcast() {
  if (bytes() > kSmall && ranks() > 2) return broadcast_in_parts();
  const bool root = c_.place == c_.root;
  if (root) send_to_all(in_, bytes());
  meet();
  if (!root) receive(c_.root, out_, bytes());
  if (root) copy(out_, in_, bytes());
  wait();
}

// The root sends a part to each, and its own one to all; the others pass on what they got. Nobody sends more than two
// arrays, however many ranks there are.
void Meeting::broadcast_in_parts() {
  const bool root = c_.place == c_.root;
  const Part mine = part(c_.place), first = part(c_.root);
  if (root) {
    for_others([&](int k) { send(k, in_ + part(k).begin, part(k).bytes); });
    send_to_all(in_ + first.begin, first.bytes);
  }
  meet();
  if (root) {
    copy(out_, in_, bytes());
    return wait();
  }
  receive(c_.root, out_ + mine.begin, mine.bytes);
  receive(c_.root, out_ + first.begin, first.bytes);
  wait();
  for_others([&](int k) {
    if (k == c_.root) return;
    send(k, out_ + mine.begin, mine.bytes);
    receive(k, out_ + part(k).begin, part(k).bytes);
  });
  wait();
}

void Meeting::permute() {
  for_others([&](int k) {
    if (c_.source[static_cast<std::size_t>(k)] == c_.place) send(k, in_, bytes());
  });
  meet();
  const int from = c_.source[static_cast<std::size_t>(c_.place)];
  if (from == c_.place) copy(out_, in_, bytes());
  else if (from >= 0) receive(from, out_, bytes());
  else if (bytes()) std::memset(out_, 0, bytes());
  wait();
}

void Meeting::message() {
  if (c_.place == 0) send(1, in_, bytes());
  meet();
  if (c_.place == 1) receive(0, out_, bytes());
  wait();
}

}  // namespace lc::distributed
