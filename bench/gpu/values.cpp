// Checks that a GPU must pass once and that are no speeds: all variants of a product give the same values, and a
// process survives a kernel that brings the device down.
#include <algorithm>
#include <cmath>

#include "bench/runner/protocol.h"
#include "lightcone/backends/cuda/cuda.h"
#include "lightcone/base/error.h"
#include "lightcone/codegen/simt/dialect.h"
#include "lightcone/ops/ops.h"
#include "lightcone/passes/passes.h"
#include "rows.h"

namespace lc::gpu_bench {
namespace {

using i64 = std::int64_t;

struct Sizes {
  i64 m, n, k;
};

CudaOptions by(bool cublas_lt, bool warpgroups) {
  CudaOptions o;
  o.cache = "off", o.cublas_lt = cublas_lt, o.cublas_lt_least = 1, o.warpgroups = warpgroups;
  if (!cublas_lt) o.cublas_lt_library = "off";
  return o;
}

struct Made {
  std::vector<float> values;
  std::vector<std::string> notes;
};

Made product_by(const CudaOptions& options, const Sizes& z, DType type) {
  Graph g;
  g.output("y", to(matmul(g.input("x", {z.m, z.k}, type), g.input("w", {z.n, z.k}, type).transpose(0, 1)), DType::F32));
  const Program p = compile(g, generic() | backends::gpu::compiler(backends::cuda::open_device(options)));
  Context c(p);
  for (const auto& [name, rows] : {std::pair<const char*, i64>{"x", z.m}, {"w", z.n}})
    c.set(name, bench::input_values(name, static_cast<std::size_t>(rows * z.k)));
  c.run();
  return {c.get("y"), p.notes()};
}

// Returns the largest difference between two variants, as a fraction of the root mean square of the values.
Json compared(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 0, squares = 0;
  bool numbers = a.size() == b.size();
  for (std::size_t k = 0; k < std::min(a.size(), b.size()); ++k) {
    numbers = numbers && std::isfinite(a[k]) && std::isfinite(b[k]);
    largest = std::max(largest, std::abs(double{a[k]} - b[k])), squares += double{a[k]} * a[k];
  }
  if (!numbers) return "not numbers";
  return largest / std::sqrt(squares / static_cast<double>(a.size()));
}

Row ways(std::string name, Sizes size, DType type) {
  return {std::move(name), [=](const Setting& s) -> Json {
            const Sizes z = s.tiny ? Sizes{64, 64, 64} : size;
            const Made warps = product_by(by(false, false), z, type), groups = product_by(by(false, true), z, type);
            Json said{{"warpgroups", compared(warps.values, groups.values)}};
            if (!s.tiny) {
              const Made library = product_by(by(true, false), z, type);
              said["cublas_lt"] = compared(warps.values, library.values);
              said["notes"] = library.notes;
            }
            return said;
          }};
}

// Launches a kernel that writes outside of memory; then opens the device once more, and adds.
Json lost(const Setting& s) {
  const codegen::simt::Language l = s.device->limits().language;
  const std::vector<codegen::simt::Parameter> places = {{"float", "out", true}};
  const std::string text = codegen::simt::prelude(l) + codegen::simt::begin_kernel(l, "astray", 32, places, 1, "long") +
                           "  out[n0] = 1.0f;\n}\n";
  Json said;
  try {
    const auto memory = s.device->allocate(256);
    const auto code = s.device->compile(text, {"astray"});
    const BufferSlice at{memory.get(), 0};
    const std::int64_t far = std::int64_t{1} << 44;
    s.device->launch_kernel(
        {.code = code.get(), .grid_size = 1, .block_size = 32, .buffers = {&at, 1}, .sizes = {&far, 1}});
    s.device->synchronise();
    said["lost"] = "no";
  } catch (const Error& e) {
    said["lost"] = e.what();
  }
  try {
    Graph g;
    g.output("y", g.input("x", {4}) + 1.0);
    const Program p = compile(g, generic() | backends::gpu::compiler(backends::cuda::open_device({.cache = "off"})));
    Context c(p);
    c.set("x", std::vector<float>{1, 2, 3, 4}).run();
    said["opened_anew"] = c.get("y") == std::vector<float>{2, 3, 4, 5};
  } catch (const Error& e) {
    said["opened_anew"] = e.what();
  }
  return said;
}

}  // namespace

std::vector<Row> values() {
  return {ways("values bf16 512 x 4096 x 4096", {512, 4096, 4096}, DType::BF16),
          ways("values f16 2048 x 2304 x 1000", {2048, 2304, 1000}, DType::F16),
          ways("values bf16 4096^3", {4096, 4096, 4096}, DType::BF16)};
}

std::vector<Row> faults() { return {{"lost device", lost}}; }

}  // namespace lc::gpu_bench
