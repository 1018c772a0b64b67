// Products by a library of the device's vendor, if it takes them and is preferred to our kernels.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

#include "lightcone/backends/gpu/product_kernel.h"
#include "lightcone/base/error.h"

namespace lc::backends::gpu {
namespace {

constexpr int kRunsAtOnce = 8, kRounds = 3;
constexpr std::int64_t kAlign = 256;  // bytes, of slices of scratch memory

std::int64_t rounded_up(std::int64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

// Returns the seconds of one run: the best of kRounds means over kRunsAtOnce runs.
template <class Run>
double seconds(GpuDevice& device, const Run& run) {
  using Clock = std::chrono::steady_clock;
  run();  // a first run loads what is loaded lazily
  device.synchronise();
  double best = 1e30;
  for (int round = 0; round < kRounds; ++round) {
    const auto begin = Clock::now();
    for (int k = 0; k < kRunsAtOnce; ++k) run();
    device.synchronise();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - begin).count() / kRunsAtOnce);
  }
  return best;
}

// Fills memory with numbers of both signs between 2^-7 and 2, read as f32, bf16 or f16. A device takes less power for
// zeros, and so has another clock: on an H200 our kernel beat the library on zeros and was 0.88 of it on numbers.
void fill_with_numbers(GpuDevice& device, BufferSlice to, std::size_t bytes) {
  std::vector<std::uint16_t> words(std::min<std::size_t>(bytes, std::size_t{1} << 20) / 2);
  std::uint32_t state = 1;
  for (std::uint16_t& w : words) {
    state = state * 1664525u + 1013904223u;
    w = static_cast<std::uint16_t>((state >> 31) << 15 | 0x3c00u | (state >> 12 & 0x3ffu));
  }
  std::size_t there = words.size() * 2;
  device.copy_in(to, words.data(), there);
  for (std::size_t n; there && there < bytes; there += n)
    device.copy({to.buffer, to.offset + there}, to, n = std::min(there, bytes - there));
}

}  // namespace

void ProductKernel::offer(GpuDevice& device, Precision precision, std::vector<Dim> operand_bytes) {
  const auto known = [](const std::vector<Dim>& all) {
    return std::ranges::all_of(all, [](const Dim& d) { return d.constant().has_value(); });
  };
  auto m = as_matrices(p_, precision);
  if (!m || !known(operand_bytes) || !known(sizes_)) return;
  const bool direct =
      epilogue_.only_rounds() && (epilogue_.result == DType::F32 || epilogue_.result == m->product.type);
  if (direct) m->product.result = epilogue_.result;
  auto product = device.library_product(m->product);
  if (!product) return;
  library_ = {std::move(product), *m, std::move(operand_bytes), direct, false};
  if (!direct && !add_parts_) add_parts_ = add(whole_.add_parts());
}

std::int64_t ProductKernel::sums_bytes() const { return library_->direct ? 0 : rounded_up(4 * *results_.constant()); }

// If the library does not write the result itself, its sums are one part, and our kernel that adds parts finishes them.
void ProductKernel::enqueue_library(const Launch& l, GpuDevice& device) const {
  const std::size_t a = library_->matrices.swapped ? 1 : 0;
  const auto sums = static_cast<std::size_t>(sums_bytes());
  const BufferSlice to = library_->direct ? l.out : l.scratch;
  const BufferSlice scratch =
      library_->product->scratch_bytes() ? BufferSlice{l.scratch.buffer, l.scratch.offset + sums} : BufferSlice{};
  device.call(*library_->product, std::array{l.in[a], l.in[1 - a], to, scratch});
  if (library_->direct) return;
  std::array<BufferSlice, kMaxBuffers> buffers;
  check(l.in.size() <= buffers.size(), "a product with too many operands");
  std::size_t count = 0;
  buffers[count++] = l.scratch;
  for (std::size_t k = 2; k < l.in.size(); ++k) buffers[count++] = l.in[k];
  buffers[count++] = l.out;
  const std::int64_t columns = functions_[*add_parts_].k.columns;
  run(l, device, *add_parts_, {buffers.data(), count}, (*results_.constant() + columns - 1) / columns, {1, l.sizes[3]});
}

// Returns the fraction of our kernel's time that the library takes; nullopt if there is not enough memory.
std::optional<double> ProductKernel::measure(GpuDevice& device) const {
  try {
    std::vector<std::unique_ptr<Buffer>> buffers;
    std::vector<BufferSlice> in;
    const auto new_buffer = [&](std::int64_t bytes) {
      return BufferSlice{buffers.emplace_back(device.allocate(static_cast<std::size_t>(bytes))).get(), 0};
    };
    for (const Dim& bytes : library_->operand_bytes) {
      in.push_back(new_buffer(*bytes.constant()));
      fill_with_numbers(device, in.back(), static_cast<std::size_t>(*bytes.constant()));
    }
    const BufferSlice out = new_buffer(*results_.constant() * static_cast<std::int64_t>(size_of(epilogue_.result)));
    const std::int64_t own = *scratch_bytes(1).constant(),
                       theirs = sums_bytes() + static_cast<std::int64_t>(library_->product->scratch_bytes());
    std::vector<std::int64_t> sizes;
    for (const Dim& d : sizes_) sizes.push_back(*d.constant());
    const Launch l{this, in, out, sizes, new_buffer(std::max(own, theirs)), false};
    const double ours = seconds(device, [&] { enqueue_own(l, device); });
    return seconds(device, [&] { enqueue_library(l, device); }) / std::max(ours, 1e-9);
  } catch (const Error&) {  // if the device is lost, the next call reports it
    return std::nullopt;
  }
}

ProductKernel::LibraryChoice ProductKernel::choose_library(GpuDevice& device) {
  if (!library_) return {};
  LibraryChoice s;
  library_->taken = device.prefers(*library_->product, text("@"), [&] { return s.part = measure(device); });
  const MatrixProduct& m = library_->matrices.product;
  s.words = str_cat(m.batches == 1 ? "" : str_cat(m.batches, " x "), "[", m.rows, ", ", m.sum, "] x [", m.sum, ", ",
                    m.columns, "] of ", info(m.type).name, library_->taken ? " by " : " not by ",
                    library_->product->library());
  if (!library_->taken) library_.reset();
  return s;
}

void choose_libraries(std::span<const std::shared_ptr<TextKernel>> kernels, GpuDevice& device, PassLog& log) {
  if (std::string problem = device.library_problem(); !problem.empty()) log.notes.push_back(std::move(problem));
  struct Notice {
    int times = 0;
    std::optional<double> part;
  };
  std::map<std::string, Notice> said;
  for (const auto& k : kernels) {
    auto* product = dynamic_cast<ProductKernel*>(k.get());
    if (!product) continue;
    const ProductKernel::LibraryChoice settled = product->choose_library(device);
    if (settled.words.empty()) continue;
    Notice& s = said[settled.words];
    ++s.times;
    if (settled.part) s.part = settled.part;
    if (product->by_library()) ++log.fired["products by library"];
  }
  for (const auto& [words, s] : said)
    log.notes.push_back(
        str_cat(s.times, s.times == 1 ? " product " : " products ", words,
                s.part ? str_cat(", which takes ", std::round(*s.part * 100) / 100, " of our kernel's time") : ""));
}

}  // namespace lc::backends::gpu
