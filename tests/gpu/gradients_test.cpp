// The derivatives of all operations are PyTorch's on every GPU device.
#include "gpu_devices.h"
#include "gradient_goldens.h"
#include "lightcone/backends/cpu/cpu.h"

using namespace lc;

namespace {

class Gradients : public test::OnGpu {};
LIGHTCONE_ON_GPUS(Gradients);

}  // namespace

// The gradients are f64. Metal has no f64, so there the transfers to the host and back are tested.
TEST_P(Gradients, ArePyTorchs) {
  test::expect_gradients_of_pytorch(compiler({.fallback = cpu({.threads = 1, .compiler = false})}));
}
