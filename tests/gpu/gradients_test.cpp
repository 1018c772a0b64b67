// The derivatives of all operations are PyTorch's on every GPU device.
#include "gpu_devices.h"
#include "gradient_goldens.h"
#include "lightcone/backends/cpu/cpu.h"

using namespace lc;

namespace {

class Gradients : public test::OnGpu {};
LIGHTCONE_ON_GPUS(Gradients);

}  // namespace

// They are of f64, which Metal has not: there it is the way to the host and back that is tested.
TEST_P(Gradients, ArePyTorchs) {
  test::expect_gradients_of_pytorch(compiler({.fallback = cpu({.threads = 1, .compiler = false})}));
}
