// lightcone_bench_workload: Lightcone's side of bench/compare. Reads commands on stdin, a line each, and answers
// each with a line of JSON:
//
//   load {"kind": "gemm", ...}   builds and warms up: {"ok": true, "answer": ..., "build_s": ..., ...}
//   go {"seconds": 0.2}          runs for about so long: {"s": seconds a call, "calls": n}
//   write {"path": ..., ...}     writes a checkpoint: {"ok": true}
//   quit
//
// Between commands it blocks in a read, so that it takes nothing from whoever has the turn.
#include "workload.h"

#include <sys/resource.h>

#include <chrono>
#include <fstream>
#include <iostream>

namespace lc::bench {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double peak_rss_bytes() {
  rusage u{};
  ::getrusage(RUSAGE_SELF, &u);
  return static_cast<double>(u.ru_maxrss) * 1024;
}

double Workload::timed_call() {
  const double t = now();
  call();
  return now() - t;
}

std::uint32_t seed_of(std::string_view name) {
  std::uint32_t h = 2166136261u;
  for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 16777619u;
  return h;
}

std::vector<float> input_values(const std::string& name, std::size_t count, float scale) {
  const std::uint32_t seed = seed_of(name);
  std::vector<float> v(count);
  for (std::size_t i = 0; i < count; ++i) v[i] = uniform(seed, static_cast<std::uint32_t>(i)) * scale;
  return v;
}

std::vector<float> parameter_values(const std::string& name, const std::vector<std::int64_t>& shape) {
  std::size_t count = 1;
  for (const std::int64_t n : shape) count *= static_cast<std::size_t>(n);
  if (shape.size() < 2) {
    const bool around_one = name.ends_with("norm.weight") || name.ends_with("running_var");
    std::vector<float> v = input_values(name, count, 0.1f);
    if (around_one)
      for (float& x : v) x += 1;
    return v;
  }
  // variance 2 / fan_in (He): signals neither die nor explode behind ReLU
  const float fan_in = static_cast<float>(count / static_cast<std::size_t>(shape[0]));
  return input_values(name, count, std::sqrt(6.0f / fan_in));
}

Json summary(std::span<const float> values) {
  constexpr std::size_t kSamples = 32;
  double square = 0;
  for (const float v : values) square += static_cast<double>(v) * static_cast<double>(v);
  Json samples = Json::array();
  for (std::size_t k = 0; k < kSamples; ++k) samples.push_back(values[k * 2654435761u % values.size()]);
  return {{"count", values.size()},
          {"rms", std::sqrt(square / static_cast<double>(values.size()))},
          {"samples", samples}};
}

CpuOptions cpu_options(const Json& w) { return {.threads = w.at("threads").get<int>()}; }

// ---- a net ------------------------------------------------------------------------------------------------------
namespace {

class Compiled final : public Workload {
 public:
  Compiled(Program p, std::vector<Memory> memory) : program_(std::move(p)), memory_(std::move(memory)), c_(program_) {}
  Context& context() { return c_; }
  void call() override { c_.run(); }
  Json answer() override { return summary(c_.get("y")); }
  Json facts() override {
    return {{"kernels", program_.kernels()}, {"interpreted", program_.interpreted()}, {"arena", program_.plan().arena_bytes}};
  }

 private:
  Program program_;
  std::vector<Memory> memory_;
  Context c_;
};

}  // namespace

Net::Net(const Json& w)
    : options_(cpu_options(w)), dtype_(w.value("dtype", "f32") == "bf16" ? DType::BF16 : DType::F32) {}

Tensor Net::parameter(const std::string& name, std::vector<std::int64_t> shape) {
  const DType stored = shape.size() > 1 ? dtype_ : DType::F32;
  given_.push_back({name, stored, parameter_values(name, shape), true});
  return nn::parameter(graph_, name, Shape(shape.begin(), shape.end()), stored).value();
}

Tensor Net::input(const std::string& name, std::vector<std::int64_t> shape, float scale) {
  std::size_t count = 1;
  for (const std::int64_t n : shape) count *= static_cast<std::size_t>(n);
  given_.push_back({name, DType::F32, input_values(name, count, scale), false});
  return graph_.input(name, Shape(shape.begin(), shape.end()));
}

std::unique_ptr<Workload> Net::finish(Tensor y) {
  graph_.output("y", y);
  Program p = compile(graph_, generic() | cpu(options_));
  std::vector<Memory> memory;
  std::vector<std::pair<std::string, std::size_t>> inputs;
  for (const Given& v : given_) {
    Memory m(v.values.size() * size_of(v.dtype));
    if (v.dtype == DType::F32) std::memcpy(m.data(), v.values.data(), m.size());
    else
      for (std::size_t i = 0; i < v.values.size(); ++i) store_f64(m.data(), v.dtype, i, static_cast<double>(v.values[i]));
    if (v.weight) p.load(v.name, m.data(), m.size());
    else inputs.emplace_back(v.name, memory.size());
    memory.push_back(std::move(m));
  }
  std::vector<std::pair<std::string, std::pair<void*, std::size_t>>> use;
  for (const auto& [name, at] : inputs) use.push_back({name, {memory[at].data(), memory[at].size()}});
  auto done = std::make_unique<Compiled>(std::move(p), std::move(memory));
  for (const auto& [name, bytes] : use) done->context().use(name, bytes.first, bytes.second);
  given_.clear();
  return done;
}

// ---- the loop ---------------------------------------------------------------------------------------------------
namespace {

std::unique_ptr<Workload> make(const Json& w) {
  const auto kind = w.at("kind").get<std::string>();
  if (kind == "gemm") return make_gemm(w);
  if (kind == "fused") return make_fused(w);
  if (kind == "decode" || kind == "prompt") return make_llama(w);
  if (kind.starts_with("compile")) return make_compile(w);
  if (kind == "limit") return make_limit(w);
  return make_net(w);
}

Json load(std::unique_ptr<Workload>& workload, const Json& w) {
  const double begin = now();
  workload = make(w);
  const double build = now() - begin;
  workload->call();
  Json reply{{"ok", true}, {"build_s", build}, {"first_s", now() - begin - build}, {"answer", workload->answer()}};
  reply["facts"] = workload->facts();
  reply["peak_rss"] = peak_rss_bytes();
  return reply;
}

// A core that slept is slow at first: short calls get a few milliseconds that are not counted.
Json go(Workload& workload, const Json& o) {
  const double slice = o.value("seconds", 0.2), warm = std::min(0.03, slice / 4);
  double one = workload.timed_call(), total = one;
  if (one > slice) return {{"s", one}, {"calls", 1}};
  for (const double begin = now(); now() - begin < warm;) workload.timed_call();
  int calls = 0;
  for (total = 0; total < slice || calls == 0; ++calls) total += workload.timed_call();
  return {{"s", total / calls}, {"calls", calls}};
}

int serve() {
  std::unique_ptr<Workload> workload;
  for (std::string line; std::getline(std::cin, line);) {
    const std::size_t space = line.find(' ');
    const std::string command = line.substr(0, space);
    if (command == "quit") break;
    Json reply;
    try {
      const Json o = space == std::string::npos ? Json::object() : Json::parse(line.substr(space + 1));
      if (command == "load") reply = load(workload, o);
      else if (command == "write") write_model(o), reply = {{"ok", true}};
      else if (command == "go" && workload) reply = go(*workload, o);
      else reply = {{"missing", "no such command: " + line}};
    } catch (const std::exception& e) {
      reply = {{"missing", e.what()}};
    }
    reply["peak_rss"] = peak_rss_bytes();
    std::cout << reply.dump() << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace lc::bench

int main() { return lc::bench::serve(); }
