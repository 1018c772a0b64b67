#include "driver/driver.h"

using namespace lc::simulators::cuda;

FAKE_CUDA_API int fake_cuda_library_call() {
  return driver_call(kCurrentContext, [](Driver&) { return kSuccess; });
}

FAKE_CUDA_API int fake_cuda_library_work(void* stream, const LibraryWork* work) {
  return driver_call(kCurrentContext, [&](Driver& d) -> Code {
    const std::shared_ptr<Stream> s = d.stream(stream);
    return s == nullptr ? kInvalidHandle : d.submit(*s, Node(std::make_shared<const LibraryWork>(*work)));
  });
}

namespace lc::simulators::cuda {

bool Driver::is_ready(const Node& node) {
  const auto* work = std::get_if<std::shared_ptr<const LibraryWork>>(&node);
  if (work == nullptr || !(*work)->ready || fault != kSuccess) return true;
  return (*work)->ready([](std::uint64_t a, std::size_t bytes) { return driver().on_device(a, bytes); });
}

void Driver::run(const std::shared_ptr<const LibraryWork>& work) {
  const auto on_device = [](std::uint64_t a, std::size_t bytes) { return driver().on_device(a, bytes); };
  if (std::string words = work->run(on_device); !words.empty()) set_fault(kIllegalAddress, std::move(words));
}

}  // namespace lc::simulators::cuda
