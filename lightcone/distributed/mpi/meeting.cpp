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

Traffic::Header header(const Collective& c, std::span<const Piece> pieces) {
  std::uint64_t places = mixed(0xcbf29ce484222325u, c.source);
  for (const Piece& p : pieces) places = (places ^ p.n) * 0x100000001b3u;
  return {static_cast<std::uint64_t>(c.operation) | static_cast<std::uint64_t>(c.reduction) << 8,
          static_cast<std::uint64_t>(c.dtype),
          c.n,
          c.group.size(),
          static_cast<std::uint64_t>(c.root),
          c.tag,
          mixed(0xcbf29ce484222325u, c.group),
          places};
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

Meeting::Part Meeting::part(const Piece& piece, int place) const {
  const auto p = static_cast<std::size_t>(ranks()), each = (piece.n + p - 1) / p;
  const std::size_t begin = std::min(piece.n, static_cast<std::size_t>(place) * each),
                    end = std::min(piece.n, begin + each);
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
  traffic_.heads.assign(c_.group.size(), header(c_, pieces_));
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

template <class Elements>
void Meeting::receive_rows(const Elements& elements) {
  std::size_t all = 0, at = 0;
  for (const Piece& p : pieces_) all += elements(p) * size_of(c_.dtype) * c_.group.size();
  if (traffic_.rows.size() < all) traffic_.rows.resize(all);
  for (const Piece& p : pieces_) {
    const std::size_t row = elements(p) * size_of(c_.dtype);
    for_others([&](int k) { receive(k, traffic_.rows.data() + at + static_cast<std::size_t>(k) * row, row); });
    at += row * c_.group.size();
  }
}

template <class Elements, class Mine, class To>
void Meeting::reduce(const Elements& elements, const Mine& mine, const To& to) {
  auto& rows = traffic_.all_rows;  // kept between operations: they are not allocated again
  const std::byte* theirs = traffic_.rows.data();
  for (const Piece& p : pieces_) {
    const std::size_t n = elements(p);
    rows.clear();
    for (int k = 0; k < ranks(); ++k, theirs += n * size_of(c_.dtype)) rows.push_back(k == c_.place ? mine(p) : theirs);
    reduce_rows(c_.dtype, c_.reduction, rows, to(p), 0, n);
  }
}

void Meeting::reduce_together() {
  const auto elements = [](const Piece& p) { return p.n; };
  for (const Piece& p : pieces_) send_to_all(in(p), bytes(p));
  meet();
  receive_rows(elements);
  wait();
  reduce(elements, in, out);
}

// Each rank reduces a part, and sends it to all.
void Meeting::all_reduce() {
  if (bytes() * c_.group.size() <= kSmall) return reduce_together();
  for (const Piece& p : pieces_) for_others([&](int k) { send(k, in(p) + part(p, k).begin, part(p, k).bytes); });
  meet();
  const auto mine = [&](const Piece& p) { return part(p, c_.place); };
  const auto elements = [&](const Piece& p) { return mine(p).bytes / size_of(c_.dtype); };
  receive_rows(elements);
  wait();
  reduce(
      elements, [&](const Piece& p) { return in(p) + mine(p).begin; },
      [&](const Piece& p) { return out(p) + mine(p).begin; });
  for (const Piece& p : pieces_) {
    send_to_all(out(p) + mine(p).begin, mine(p).bytes);
    for_others([&](int k) { receive(k, out(p) + part(p, k).begin, part(p, k).bytes); });
  }
  wait();
}

void Meeting::reduce_scatter() {
  const auto elements = [](const Piece& p) { return p.n; };
  const auto row = [&](const Piece& p, int k) { return in(p) + static_cast<std::size_t>(k) * bytes(p); };
  for (const Piece& p : pieces_) for_others([&](int k) { send(k, row(p, k), bytes(p)); });
  meet();
  receive_rows(elements);
  wait();
  reduce(
      elements, [&](const Piece& p) { return row(p, c_.place); }, out);
}

// ---- copies ---------------------------------------------------------------------------------------------------------

void Meeting::all_gather() {
  for (const Piece& p : pieces_) send_to_all(in(p), bytes(p));
  meet();
  for (const Piece& p : pieces_) {
    const auto row = [&](int k) { return out(p) + static_cast<std::size_t>(k) * bytes(p); };
    for_others([&](int k) { receive(k, row(k), bytes(p)); });
    copy(row(c_.place), in(p), bytes(p));
  }
  wait();
}

void Meeting::all_to_all() {
  const auto row = [&](const Piece& p, int k) { return static_cast<std::size_t>(k) * bytes(p); };
  for (const Piece& p : pieces_) for_others([&](int k) { send(k, in(p) + row(p, k), bytes(p)); });
  meet();
  for (const Piece& p : pieces_) {
    for_others([&](int k) { receive(k, out(p) + row(p, k), bytes(p)); });
    copy(out(p) + row(p, c_.place), in(p) + row(p, c_.place), bytes(p));
  }
  wait();
}

void Meeting::broadcast() {
  if (bytes() > kSmall && ranks() > 2) return broadcast_in_parts();
  const bool root = c_.place == c_.root;
  for (const Piece& p : pieces_)
    if (root) send_to_all(in(p), bytes(p));
  meet();
  for (const Piece& p : pieces_) {
    if (!root) receive(c_.root, out(p), bytes(p));
    if (root) copy(out(p), in(p), bytes(p));
  }
  wait();
}

// The root sends a part to each, and its own one to all; the others pass on what they got. Nobody sends more than two
// arrays, however many ranks there are.
void Meeting::broadcast_in_parts() {
  const bool root = c_.place == c_.root;
  const auto mine = [&](const Piece& p) { return part(p, c_.place); };
  const auto first = [&](const Piece& p) { return part(p, c_.root); };
  for (const Piece& p : pieces_) {
    if (!root) continue;
    for_others([&](int k) { send(k, in(p) + part(p, k).begin, part(p, k).bytes); });
    send_to_all(in(p) + first(p).begin, first(p).bytes);
  }
  meet();
  if (root) {
    for (const Piece& p : pieces_) copy(out(p), in(p), bytes(p));
    return wait();
  }
  for (const Piece& p : pieces_) {
    receive(c_.root, out(p) + mine(p).begin, mine(p).bytes);
    receive(c_.root, out(p) + first(p).begin, first(p).bytes);
  }
  wait();
  for (const Piece& p : pieces_)
    for_others([&](int k) {
      if (k == c_.root) return;
      send(k, out(p) + mine(p).begin, mine(p).bytes);
      receive(k, out(p) + part(p, k).begin, part(p, k).bytes);
    });
  wait();
}

void Meeting::permute() {
  for (const Piece& p : pieces_)
    for_others([&](int k) {
      if (c_.source[static_cast<std::size_t>(k)] == c_.place) send(k, in(p), bytes(p));
    });
  meet();
  const int from = c_.source[static_cast<std::size_t>(c_.place)];
  for (const Piece& p : pieces_) {
    if (from == c_.place) copy(out(p), in(p), bytes(p));
    else if (from >= 0) receive(from, out(p), bytes(p));
    else if (bytes(p)) std::memset(out(p), 0, bytes(p));
  }
  wait();
}

void Meeting::message() {
  for (const Piece& p : pieces_)
    if (c_.place == 0) send(1, in(p), bytes(p));
  meet();
  for (const Piece& p : pieces_)
    if (c_.place == 1) receive(0, out(p), bytes(p));
  wait();
}

}  // namespace lc::distributed
