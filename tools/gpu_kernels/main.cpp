// Compiles the kernels of a list of models for several GPUs and describes them as JSON: what each computes, where its
// machine code is, and how it would be launched. Needs NVRTC and no GPU. table.py makes a table of it.
//   lightcone_gpu_kernels FOLDER [--only PREFIX]
#include <cstdio>

#include <nlohmann/json.hpp>

#include "cases.h"
#include "compiling_device.h"
#include "lightcone/backends/gpu/gpu.h"
#include "lightcone/base/error.h"
#include "lightcone/passes/passes.h"

namespace lc::gpu_kernels {
namespace {

using Json = nlohmann::json;

Dim bytes_of(const Node& n) { return product(n.shape) * Dim(static_cast<std::int64_t>(size_of(n.dtype))); }

// Returns the bytes that a kernel reads: each of its operands once, even if the kernel reads it several times.
Dim bytes_read(const Graph& g, const Node& n) {
  std::map<NodeId, Dim> reads;
  for (std::size_t k = 0; k < n.in.size(); ++k) {
    const Dim all = bytes_of(g[n.in[k].node]);
    reads[n.in[k].node] = min(reads[n.in[k].node] + n.kernel->bytes_read(k).value_or(all), all);
  }
  Dim sum = 0;
  for (const auto& [in, bytes] : reads) sum = sum + bytes;
  return sum;
}

int scalars(const Graph& g, const Node& n) {
  int count = 0;
  for (const Edge& e : n.in) count += product(g[e.node].shape) == Dim(1);
  return count;
}

// Returns the launches of one node's kernel with these sizes.
std::vector<CompilingDevice::Started> starts(const Graph& g, const Node& n, const Bindings& sizes,
                                             CompilingDevice& device) {
  std::vector<std::int64_t> values;
  for (const Dim& d : n.kernel->sizes()) values.push_back(d.eval(sizes));
  std::vector<std::unique_ptr<Buffer>> buffers;
  const auto place = [&](const Dim& bytes) {
    buffers.push_back(device.allocate(static_cast<std::size_t>(bytes.eval(sizes))));
    return BufferSlice{buffers.back().get(), 0};
  };
  std::vector<BufferSlice> in;
  for (const Edge& e : n.in) in.push_back(place(bytes_of(g[e.node])));
  const bool over = !in.empty() && n.kernel->in_place(0);
  const BufferSlice out = over ? in[0] : place(bytes_of(n)), scratch = place(n.kernel->scratch_bytes(1));
  return device.started({n.kernel.get(), in, out, values, scratch});
}

Json kernels_of(const Case& c, const Graph& g, CompilingDevice& device) {
  const std::vector<bool> live = g.live();
  Json rows = Json::array();
  for (NodeId id = 0; id < g.size(); ++id) {
    const Node& n = g[id];
    if (!live[id] || n.op != Op::Kernel || n.kernel->part()) continue;
    Json uses = Json::array(), functions = Json::array();
    for (const auto& [use, sizes] : c.uses) {
      Json groups = Json::array();
      functions.clear();
      for (const auto& s : starts(g, n, sizes, device)) {
        functions.push_back({{"name", s.function}, {"file", s.file}, {"threads", s.threads}, {"shared", s.shared}});
        groups.push_back(s.groups);
      }
      uses.push_back({{"use", use},
                      {"groups", groups},
                      {"read", bytes_read(g, n).eval(sizes)},
                      {"written", n.kernel->bytes_written().value_or(bytes_of(n)).eval(sizes)},
                      {"flops", n.kernel->flops().eval(sizes)}});
    }
    rows.push_back({{"case", c.name},
                    {"architecture", device.limits().architecture},
                    {"words", describe(n.kernel->origin)},
                    {"dtype", info(n.dtype).name},
                    {"result", str(n.shape)},
                    {"scalars", scalars(g, n)},
                    {"functions", functions},
                    {"uses", uses}});
  }
  return rows;
}

// Options under which products and attention are compiled, besides the defaults.
struct Variant {
  const char* words;  // after the case's name
  const char* of;     // cases whose names begin with it
  bool warpgroups;
  Precision precision;
};
constexpr Variant kVariants[] = {{", by warpgroups", "product", true, Precision::Highest},
                                 {", medium", "product f8", false, Precision::Medium},
                                 {", medium, by warpgroups", "product f8", true, Precision::Medium},
                                 {", medium", "attention", false, Precision::Medium}};

void add_variants(const std::shared_ptr<const backends::cuda::Compiler>& compiler, const Gpu& gpu,
                  const std::string& folder, std::span<const Case> cases, std::span<const Graph* const> graphs,
                  Json& rows) {
  for (const Variant& v : kVariants) {
    const auto device =
        std::make_shared<CompilingDevice>(compiler, gpu, str_cat(folder, "/", &v - kVariants), v.warpgroups);
    if (v.warpgroups && !device->limits().warpgroups) continue;
    for (std::size_t k = 0; k < cases.size(); ++k) {
      if (!cases[k].name.starts_with(v.of)) continue;
      const std::vector<Graph> compiled =
          backends::gpu::compile_batch(graphs.subspan(k, 1), device, {.precision = v.precision});
      Case named = cases[k];
      named.name += v.words;
      for (Json& row : kernels_of(named, compiled[0], *device)) rows.push_back(std::move(row));
    }
  }
}

int run(const std::string& folder, const std::string& only) {
  const auto compiler = backends::cuda::Compiler::open();
  Json out{{"compiler", "NVRTC " + backends::cuda::version_text(compiler->version())}, {"kernels", Json::array()}};
  std::vector<Case> cases = all_cases(LIGHTCONE_STORY_MODEL);
  std::erase_if(cases, [&](const Case& c) { return !c.name.starts_with(only); });
  std::vector<Graph> graphs;
  std::vector<const Graph*> all;
  for (const Case& c : cases) graphs.push_back(transform(c.graph(), generic()).graph);
  for (const Graph& g : graphs) all.push_back(&g);
  for (const Gpu& gpu : gpus()) {
    const auto device = std::make_shared<CompilingDevice>(compiler, gpu, folder);
    const std::vector<Graph> compiled = backends::gpu::compile_batch(all, device);
    for (std::size_t k = 0; k < cases.size(); ++k)
      for (Json& row : kernels_of(cases[k], compiled[k], *device)) out["kernels"].push_back(std::move(row));
    add_variants(compiler, gpu, folder, cases, all, out["kernels"]);
    out["gpus"].push_back(
        {{"name", gpu.name}, {"architecture", device->limits().architecture}, {"processors", gpu.multiprocessors}});
  }
  std::puts(out.dump(1).c_str());
  return 0;
}

}  // namespace
}  // namespace lc::gpu_kernels

int main(int argc, char** argv) try {
  const std::vector<std::string> a(argv + 1, argv + argc);
  const bool filtered = a.size() == 3 && a[1] == "--only";
  if (a.size() != 1 && !filtered) {
    std::fputs("usage: lightcone_gpu_kernels FOLDER [--only PREFIX]\n", stderr);
    return 2;
  }
  return lc::gpu_kernels::run(a[0], filtered ? a[2] : "");
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
