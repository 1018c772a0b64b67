// lightcone bench: how close to this machine's limits the library runs. Every figure is a ratio of two things measured
// in turn within one run; a single time on a shared machine means little.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <thread>

#include <nlohmann/json.hpp>

#include "command.h"
#include "commands.h"
#include "explain.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/backends/cpu/machine.h"
#include "lightcone/backends/cpu/target/limits.h"
#include "lightcone/backends/cpu/threads/thread_pool.h"
#include "lightcone/base/error.h"
#include "lightcone/base/numbers.h"
#include "lightcone/device/memory.h"
#include "lightcone/formats/block_formats.h"
#include "lightcone/models/llama/llama_graph.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"
#include "scale.h"

namespace lc::tool {
namespace {

using Json = nlohmann::ordered_json;

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}
double seconds(const std::function<void()>& f) {
  const double t = now();
  f();
  return now() - t;
}

// The device under measurement: the CPU, or a GPU, for which no limits are known and no library of the CPU is compared.
class Where {
 public:
  explicit Where(const BenchOptions& o, const std::string& cache = "") : o_(o), device_(open_device(o.device, cache)) {}
  bool is_cpu() const { return !device_; }
  std::string name() const { return device_ ? device_->name() : cpu_name(); }
  Compiler compiler(CpuOptions options) const {
    options.threads = o_.threads;
    return compiler_for(device_, options);
  }
  // Runs and waits, because a GPU may still be at work when run() returns.
  void run(Context& c) const {
    c.run();
    if (device_) device_->synchronise();
  }
  // Binds an input. The CPU reads the values in place.
  void give(Context& c, const std::string& input, const Memory& values) const {
    if (device_) c.set_bytes(input, values.data(), values.size());
    else c.use(input, const_cast<std::byte*>(values.data()), values.size());
  }
  Json explain(const std::string& title, const Program& p, Context& c, const std::function<void()>& step) const {
    if (!o_.explain.wanted()) return {};
    return tool::explain(title, p, c, measure_limits(o_.threads, o_.device), step, o_.explain, o_.json);
  }

 private:
  const BenchOptions& o_;
  std::shared_ptr<backends::gpu::GpuDevice> device_;
};

// Fills a weight with random bytes that are valid for its format, and small enough that nothing overflows.
void fill(std::byte* p, std::size_t bytes, DType dtype, std::optional<QuantFormat> quant, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  if (quant) {
    const auto block = static_cast<std::size_t>(info(*quant).bytes);
    for (std::size_t at = 0; at < bytes; at += 8) {
      const std::uint64_t r = random();
      std::memcpy(p + at, &r, std::min<std::size_t>(8, bytes - at));
    }
    for (std::size_t at = 0; at + block <= bytes; at += block)
      put_quant_scales(*quant, 2e-4, [&](int i, int byte) { p[at + static_cast<std::size_t>(i)] = std::byte(byte); });
    return;
  }
  for (std::size_t i = 0, n = bytes / size_of(dtype); i < n; ++i)
    store_f64(p, dtype, i, (static_cast<double>(random() >> 11) * 0x1p-53 - 0.5) * 0.04);
}

struct TempDir {
  std::string path = (std::filesystem::temp_directory_path() / "lightcone-bench-XXXXXX").string();
  TempDir() {
    if (!::mkdtemp(path.data())) throw Error("bench", "cannot make a temporary folder");
  }
  ~TempDir() { std::filesystem::remove_all(path); }
};

Json decode(const BenchOptions& o, std::optional<QuantFormat> format) {
  const std::string kind(format ? info(*format).ggml_name : "BF16");
  const LlamaConfig config = LlamaConfig::tinyllama();
  const LlamaShape shape{.context = o.past + 448, .chunk = 64, .cache = o.kv_cache};
  std::vector<std::pair<std::string, Memory>> weights;
  std::size_t read_per_token = 0;
  const Graph g = llama_graph(config, shape, [&](Graph& graph, const std::string& path, Shape s) -> nn::Parameter {
    if (path.ends_with(".bias") || path.ends_with("_norm.weight")) return {};
    const bool matrix = s.size() == 2;
    const auto quant = matrix ? format : std::nullopt;
    const DType dtype = matrix ? DType::BF16 : DType::F32;
    const nn::Parameter p = nn::parameter(graph, path, s, dtype, quant);
    const auto bytes = static_cast<std::size_t>(*product(p.stored.shape()).constant()) * size_of(p.stored.dtype());
    weights.emplace_back(path, Memory(bytes));
    fill(weights.back().second.data(), bytes, dtype, quant, weights.size());
    if (path != "model.embed_tokens.weight") read_per_token += bytes;
    return p;
  });
  const TempDir cache;
  const Where where(o, cache.path);
  const Compiler compiler =
      where.compiler({.precision = format ? Precision::Medium : Precision::Highest, .jit = {.cache_dir = cache.path}});
  Program p;
  const double cold = seconds([&] { p = compile(g, compiler); });
  const double warm = seconds([&] { p = compile(g, compiler); });
  print_notes(p);
  for (auto& [name, m] : weights) {
    p.load(name, m.data(), m.size());
    if (!p.resident(name)) m = Memory();
  }
  p.load("rope.frequencies", config.rope_frequencies.data(), config.rope_frequencies.size() * 8);
  Context c(p);
  const std::vector<std::int64_t> prompt(64, 7), one(1, 9);
  const auto feed = [&](const std::vector<std::int64_t>& tokens, std::int64_t past) {
    where.run(c.bind("seq", static_cast<std::int64_t>(tokens.size())).bind("past", past).set("tokens", tokens));
  };
  const double prefill = seconds([&] { feed(prompt, 0); });
  auto pool = backends::cpu::threads(o.threads);
  std::vector<double> rate, limit;
  std::int64_t past = o.past;
  double peak = 0;
  for (int round = 0; round < 6; ++round) {
    const double t = seconds([&] {
      for (int i = 0; i < 8; ++i) feed(one, past++);
    });
    rate.push_back(8 / t);
    if (round == 0) peak = peak_rss_bytes();  // measured without the memory of the bandwidth test
    if (where.is_cpu()) limit.push_back(backends::cpu::read_bandwidth(*pool, 512u << 20, 0.2));
  }
  const Json why = where.explain("decode " + kind, p, c, [&] { feed(one, past++); });
  const MemoryPlan& plan = p.plan();
  const auto planned = static_cast<double>(plan.total_bytes());
  const double used = median(rate) * static_cast<double>(read_per_token);
  Json j{{"model", "TinyLlama 1.1B, " + kind},
         {"kv_cache", str_cat(name(o.kv_cache), " from ", o.past, ", ", plan.state_bytes, " bytes")},
         {"tok_per_s", median(rate)},
         {"prefill_tok_per_s", 64 / prefill},
         {"read_GB_per_s", used / 1e9}};
  if (where.is_cpu()) j["limit_GB_per_s"] = median(limit) / 1e9, j["share_of_limit"] = used / median(limit);
  j["compile_cold_s"] = cold, j["compile_warm_s"] = warm;
  if (where.is_cpu()) j["peak_rss_over_plan"] = peak / planned;
  if (!why.is_null()) j["explain"] = why;
  return j;
}

// Returns a routine of another library, or null if that is not installed.
template <class F>
F peer(const char* library, const char* function) {
  void* h = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
  return h ? reinterpret_cast<F>(::dlsym(h, function)) : nullptr;
}
using CblasSgemm = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*,
                            int);
using DnnlSgemm = int (*)(char, char, std::int64_t, std::int64_t, std::int64_t, float, const float*, std::int64_t,
                          const float*, std::int64_t, float, float*, std::int64_t);

// Returns the seconds of one warm call. It sleeps first, because idle threads of some libraries spin for a while after
// their work, and then warms up, because a processor that slept is slow: neither may count.
double warm_seconds(const std::function<void()>& f) {
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  for (const double begin = now(); now() - begin < 0.04;) f();
  const double begin = now();
  int calls = 0;
  do f(), ++calls;
  while (now() - begin < 0.08);
  return (now() - begin) / calls;
}

Json matmuls(const BenchOptions& o) {
  const int threads = o.threads > 0 ? o.threads : backends::cpu::available_cores();
  for (const char* name : {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OPENBLAS_VERBOSE", "ONEDNN_MAX_CPU_ISA"})
    ::unsetenv(name);  // a machine image may slow a peer down by these
  ::setenv("OMP_NUM_THREADS", std::to_string(threads).c_str(), 1);
  const Where where(o);
  const auto blas = where.is_cpu() ? peer<CblasSgemm>("libopenblas.so.0", "cblas_sgemm") : nullptr;
  DnnlSgemm dnnl = nullptr;
  for (const char* name : {"libdnnl.so.3", "libdnnl.so.2", "libdnnl.so"})
    if (!dnnl && where.is_cpu()) dnnl = peer<DnnlSgemm>(name, "dnnl_sgemm");
  if (const auto set = peer<void (*)(int)>("libopenblas.so.0", "openblas_set_num_threads")) set(threads);
  Json all = Json::array();
  for (int n : {512, 1024, 2048}) {
    Graph g;
    const Tensor a = g.input("a", {n, n}), b = g.input("b", {n, n});
    g.output("c", matmul(a, b));
    const Program p = compile(g, where.compiler({}));
    print_notes(p);
    Context c(p);
    const auto count = static_cast<std::size_t>(n) * static_cast<std::size_t>(n);
    const Memory a_bytes(count * 4), b_bytes(count * 4);
    fill(a_bytes.data(), count * 4, DType::F32, {}, 1);
    fill(b_bytes.data(), count * 4, DType::F32, {}, 2);
    const auto* const x = reinterpret_cast<const float*>(a_bytes.data());
    const auto* const y = reinterpret_cast<const float*>(b_bytes.data());
    std::vector<float> z(count);
    where.give(c, "a", a_bytes), where.give(c, "b", b_bytes);
    where.run(c);
    std::vector<double> ours, theirs[2];
    for (int round = 0; round < 5; ++round) {
      ours.push_back(warm_seconds([&] { where.run(c); }));
      if (blas) theirs[0].push_back(warm_seconds([&] { blas(101, 111, 111, n, n, n, 1, x, n, y, n, 0, z.data(), n); }));
      if (dnnl) theirs[1].push_back(warm_seconds([&] { dnnl('N', 'N', n, n, n, 1, x, n, y, n, 0, z.data(), n); }));
    }
    const double work = 2.0 * n * n * n / 1e9;
    Json j{{"n", n}, {"GFLOP_per_s", work / median(ours)}};
    double best = 0;
    if (blas) j["openblas"] = work / median(theirs[0]), best = std::max(best, work / median(theirs[0]));
    if (dnnl) j["onednn"] = work / median(theirs[1]), best = std::max(best, work / median(theirs[1]));
    if (best > 0) j["share_of_best"] = work / median(ours) / best;
    if (Json why = where.explain(str_cat("matmul ", n), p, c, [&] { c.run(); }); !why.is_null()) j["explain"] = why;
    all.push_back(j);
  }
  return all;
}

Json fused(const BenchOptions& o) {
  struct Case {
    const char* name;
    std::function<Tensor(Tensor)> f;
  };
  const Case cases[] = {{"softmax", [](Tensor x) { return softmax(x, -1); }},
                        {"layer_norm", [](Tensor x) { return layer_norm(x, {x.extent(-1)}); }},
                        {"gelu", [](Tensor x) { return gelu(x); }}};
  auto pool = backends::cpu::threads(o.threads);
  const Where where(o);
  Json all = Json::array();
  for (const Case& k : cases) {
    Graph g;
    g.output("y", k.f(g.input("x", {4096, 4096})));
    const Program p = compile(g, where.compiler({}));
    print_notes(p);
    Context c(p);
    const std::size_t n = 4096 * 4096;
    const Memory x(n * 4);
    fill(x.data(), n * 4, DType::F32, {}, 3);
    where.give(c, "x", x);
    where.run(c);
    std::vector<double> rate, limit;
    for (int round = 0; round < 7; ++round) {
      rate.push_back(2.0 * static_cast<double>(n) * 4 / seconds([&] { where.run(c); }));
      if (where.is_cpu()) limit.push_back(backends::cpu::copy_bandwidth(*pool, 128u << 20, 0.05));
    }
    Json row{{"op", k.name}, {"kernels", p.kernels()}, {"GB_per_s", median(rate) / 1e9}};
    if (where.is_cpu()) row["copy_GB_per_s"] = median(limit) / 1e9, row["share_of_copy"] = median(rate) / median(limit);
    if (Json why = where.explain(k.name, p, c, [&] { c.run(); }); !why.is_null()) row["explain"] = why;
    all.push_back(row);
  }
  return all;
}

// Layers of ResNet-50 and of MobileNet. The algorithm of each is chosen as in a program; --explain says why.
Json convolutions(const BenchOptions& o) {
  struct Layer {
    const char* name;
    int channels, size, filters, side;
    ConvOptions options;
  };
  const Layer layers[] = {{"7x7 stride 2", 3, 224, 64, 7, {.stride = {2}, .padding = {3}}},
                          {"3x3", 64, 56, 64, 3, {.padding = {1}}},
                          {"3x3 stride 2", 128, 56, 128, 3, {.stride = {2}, .padding = {1}}},
                          {"1x1", 256, 56, 64, 1, {}},
                          {"3x3 depthwise", 144, 56, 144, 3, {.padding = {1}, .groups = 144}}};
  auto pool = backends::cpu::threads(o.threads);
  const Where where(o);
  Json all = Json::array();
  for (const Layer& k : layers) {
    Graph g;
    const int depth = k.channels / k.options.groups;
    const Tensor w = g.parameter("w", {k.filters, depth, k.side, k.side}, DType::F32);
    const Tensor y = conv(g.input("x", {1, k.channels, k.size, k.size}), w, k.options);
    g.output("y", y);
    const double work = 2.0 * depth * k.side * k.side * static_cast<double>(*product(y.shape()).constant());
    Program p = compile(g, where.compiler({}));
    print_notes(p);
    const auto x_bytes = static_cast<std::size_t>(k.channels * k.size * k.size) * 4;
    const auto w_bytes = static_cast<std::size_t>(k.filters * depth * k.side * k.side) * 4;
    const Memory x(x_bytes), filters(w_bytes);
    fill(x.data(), x_bytes, DType::F32, {}, 4);
    fill(filters.data(), w_bytes, DType::F32, {}, 5);
    p.load("w", filters.data(), w_bytes);
    Context c(p);
    where.give(c, "x", x);
    where.run(c);
    std::vector<double> rate, limit;
    for (int round = 0; round < 5; ++round) {
      rate.push_back(work / warm_seconds([&] { where.run(c); }));
      if (where.is_cpu()) limit.push_back(backends::cpu::fma_rate(*pool, 0.05));
    }
    Json row{{"layer", k.name}, {"kernels", p.kernels()}, {"GFLOP_per_s", median(rate) / 1e9}};
    if (where.is_cpu())
      row["peak_GFLOP_per_s"] = median(limit) / 1e9, row["share_of_peak"] = median(rate) / median(limit);
    if (Json why = where.explain(k.name, p, c, [&] { c.run(); }); !why.is_null()) row["explain"] = why;
    all.push_back(row);
  }
  return all;
}

// Measures how compiling grows with the graph. It counts processor time, which excludes other work on the machine, and
// the C compiler's processes, too; the wall time includes these.
Json compiling(const BenchOptions& o) {
  const auto processor = [] {
    timespec t{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  };
  Json all = Json::array();
  for (const ScaledGraph& s : scaled_graphs())
    for (const std::size_t nodes : o.nodes) {
      const TempDir cache;
      const Where where(o, "off");
      const Graph g = s.make(nodes);
      Program p;
      const double before = processor();
      const double wall = seconds([&] { p = compile(g, where.compiler({.jit = {.cache_dir = cache.path}})); });
      const double used = processor() - before;
      print_notes(p);
      all.push_back({{"graph", s.name},
                     {"nodes", g.size()},
                     {"kernels", p.kernels()},
                     {"processor_s", used},
                     {"wall_s", wall},
                     {"us_per_node", 1e6 * used / static_cast<double>(g.size())}});
    }
  return all;
}

void print_table(const Json& j) {
  std::string s = j["machine"].get<std::string>() + "\n";
  for (const auto& [part, rows] : j.items()) {
    if (!rows.is_array()) continue;
    s += part + "\n";
    for (const Json& row : rows) {
      s += " ";
      for (const auto& [key, v] : row.items()) {
        s += "  " + key + " " +
             (v.is_number_float() ? formatted("%.3g", v.get<double>())
              : v.is_string()     ? v.get<std::string>()
                                  : v.dump());
      }
      s += "\n";
    }
  }
  write_stdout(s);
}

}  // namespace

void bench(const BenchOptions& o) {
  if (o.machine) return write_stdout(str(backends::cpu::this_machine()));
  const int threads = o.threads > 0 ? o.threads : backends::cpu::available_cores();
  Json j{{"machine", o.device.is_cpu() ? str_cat(cpu_name(), ", ", threads, " threads") : Where(o).name()}};
  const auto wanted = [&](const char* part) { return o.what == "all" || o.what == part; };
  for (const QuantFormat f :
       {QuantFormat::Q4_K, QuantFormat::Q8_0})  // the smaller first, because memory is measured by its peak
    if (wanted("decode")) j["decode"].push_back(decode(o, f));
  for (const QuantInfo& q : kQuantFormats)
    if (o.what == "decode-" + std::string(q.name)) j["decode"].push_back(decode(o, q.format));
  if (wanted("decode") || o.what == "decode-bf16") j["decode"].push_back(decode(o, std::nullopt));
  if (wanted("fused")) j["fused"] = fused(o);
  if (wanted("conv")) j["conv"] = convolutions(o);
  if (wanted("compile")) j["compile"] = compiling(o);
  if (wanted("matmul")) j["matmul"] = matmuls(o);  // last, because the other libraries leave busy threads
  if (o.json) write_stdout(j.dump(2) + "\n");
  else print_table(j);
}

}  // namespace lc::tool
