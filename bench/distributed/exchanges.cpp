#include "bench/distributed/exchanges.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace lc::bench {
namespace {

using Operation = Collective::Operation;

bool takes_rows(Operation k) { return k == Operation::ReduceScatter || k == Operation::AllToAll; }
bool gives_rows(Operation k) { return k == Operation::AllGather || k == Operation::AllToAll; }

}  // namespace

void Recorder::run(const Collective& c, const void* in, void* out) {
  note(c, {c.n});
  to_->run(c, in, out);
}

void Recorder::run_together(const Collective& c, std::span<const Piece> pieces) {
  std::vector<std::size_t> elements;
  for (const Piece& p : pieces) elements.push_back(p.n);
  note(c, std::move(elements));
  to_->run_together(c, pieces);
}

void Recorder::note(const Collective& c, std::vector<std::size_t> elements) {
  if (on_) all_.push_back({c, {c.group.begin(), c.group.end()}, std::move(elements)});
}

void Alone::run(const Collective& c, const void* in, void* out) {
  const std::size_t bytes = c.n * size_of(c.dtype), rows = gives_rows(c.operation) ? c.group.size() : 1;
  for (std::size_t k = 0; k < rows && bytes; ++k) {
    const std::size_t from = !takes_rows(c.operation) ? 0 : rows > 1 ? k : static_cast<std::size_t>(c.place);
    std::memcpy(static_cast<std::byte*>(out) + k * bytes, static_cast<const std::byte*>(in) + from * bytes, bytes);
  }
}

void Alone::run_together(const Collective& c, std::span<const Piece> pieces) {
  for (const Piece& p : pieces) {
    Collective one = c;
    one.n = p.n;
    run(one, p.in, p.out);
  }
}

void meet(Communicator& ranks) {
  std::vector<int> all(static_cast<std::size_t>(ranks.size()));
  std::iota(all.begin(), all.end(), 0);
  const float one = 1;
  float sum = 0;
  ranks.run({.dtype = DType::F32, .n = 1, .group = all, .place = ranks.rank()}, &one, &sum);
}

Replay::Replay(std::shared_ptr<Communicator> ranks, std::vector<Exchanged> all)
    : ranks_(std::move(ranks)), all_(std::move(all)) {
  std::size_t in = 0, out = 0;
  for (Exchanged& e : all_) {
    e.collective.group = e.group;
    const std::size_t bytes = e.collective.n * size_of(e.collective.dtype), rows = e.group.size();
    in = std::max(in, bytes * (takes_rows(e.collective.operation) ? rows : 1));
    out = std::max(out, bytes * (gives_rows(e.collective.operation) ? rows : 1));
  }
  in_.resize(in), out_.resize(out);
}

double Replay::run() {
  meet(*ranks_);
  const double begin = now();
  for (const Exchanged& e : all_) run(e);
  return now() - begin;
}

Json Replay::summary() const {
  Json all = Json::object();
  for (const Exchanged& e : all_) {
    Json& one = all[std::string(name(e.collective.operation))];
    if (one.is_null()) one = {{"calls", 0}, {"bytes", 0}};
    one["calls"] = one["calls"].get<int>() + 1;
    one["bytes"] = one["bytes"].get<std::size_t>() + e.collective.n * size_of(e.collective.dtype);
  }
  return all;
}

void Replay::run(const Exchanged& e) {
  const std::size_t rows = e.group.size(), size = size_of(e.collective.dtype);
  std::size_t in = 0, out = 0;
  pieces_.clear();
  for (const std::size_t n : e.elements) {
    pieces_.push_back({in_.data() + in, out_.data() + out, n});
    in += n * size * (takes_rows(e.collective.operation) ? rows : 1);
    out += n * size * (gives_rows(e.collective.operation) ? rows : 1);
  }
  if (pieces_.size() == 1) ranks_->run(e.collective, pieces_[0].in, pieces_[0].out);
  else ranks_->run_together(e.collective, pieces_);
}

bool is_exchange(const KernelProfile& k) {
  const auto named = [&](const char* word) { return k.name.find(word) != std::string::npos; };
  return named("all_reduce") || named("all_gather") || named("reduce_scatter");
}

}  // namespace lc::bench
