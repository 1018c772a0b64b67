#include "compiling_device.h"

#include <filesystem>
#include <fstream>

#include "lightcone/base/error.h"

namespace lc::gpu_kernels {
namespace {

constexpr std::size_t kKb = 1024;

struct Cubin final : backends::gpu::Code {
  std::string file;
  std::vector<std::string> functions;
};

struct NoMemory final : Buffer {
  explicit NoMemory(std::size_t bytes) : Buffer(bytes) {}
};

}  // namespace

const std::vector<Gpu>& gpus() {
  static const std::vector<Gpu> all = {{"NVIDIA T4", 7, 5, 40, 64 * kKb},
                                       {"NVIDIA A100", 8, 0, 108, 163 * kKb},
                                       {"NVIDIA H200", 9, 0, 132, 227 * kKb},
                                       {"NVIDIA B200", 10, 0, 148, 227 * kKb},
                                       {"NVIDIA GeForce RTX 5090", 12, 0, 170, 99 * kKb}};
  return all;
}

CompilingDevice::CompilingDevice(std::shared_ptr<const backends::cuda::Compiler> compiler, const Gpu& gpu,
                                 std::string folder, bool warpgroups)
    : compiler_(std::move(compiler)), folder_(std::move(folder)) {
  std::filesystem::create_directories(folder_);
  limits_.name = gpu.name;
  limits_.architecture = backends::cuda::architecture_for(*compiler_, gpu.major, gpu.minor);
  limits_.driver = "NVRTC " + backends::cuda::version_text(compiler_->version());
  limits_.language = backends::gpu::Language::Cuda;
  limits_.max_block_size = 1024;
  limits_.warp = 32;
  limits_.shared = gpu.shared;
  limits_.multiprocessors = gpu.multiprocessors;
  limits_.memory = std::size_t{16} << 30;
  limits_.warpgroups = warpgroups && limits_.architecture == "sm_90a";
}

std::unique_ptr<Buffer> CompilingDevice::allocate(std::size_t bytes) { return std::make_unique<NoMemory>(bytes); }

void CompilingDevice::copy_out(void*, BufferSlice, std::size_t) {
  throw Error("gpu_kernels", "a kernel wants to see what another one made, and nothing runs here");
}

std::shared_ptr<const backends::gpu::Code> CompilingDevice::compile(const std::string& text,
                                                                    const std::vector<std::string>& kernels) {
  const std::string code = backends::cuda::compile_cubin(*compiler_, text, kernels, limits_.architecture).code;
  auto cubin = std::make_shared<Cubin>();
  cubin->functions = kernels;
  {
    const std::lock_guard lock(mutex_);
    cubin->file = str_cat(folder_, "/", limits_.architecture, ".", files_++, ".cubin");
  }
  std::ofstream(cubin->file, std::ios::binary) << code;
  return cubin;
}

void CompilingDevice::launch_kernel(const backends::gpu::KernelLaunch& s) {
  const auto& cubin = static_cast<const Cubin&>(*s.code);
  started_.push_back({cubin.functions.at(s.function), cubin.file, s.grid_size, s.block_size, s.shared});
}

std::vector<CompilingDevice::Started> CompilingDevice::started(const Launch& l) {
  started_.clear();
  launch(l);
  return started_;
}

}  // namespace lc::gpu_kernels
