// The gradients of every operation are PyTorch's (tests/goldens/gradients.txt), in the reference and compiled for the
// CPU.
//
// Eight results differ; each is listed here with its reason.
#include "gradient_goldens.h"
#include "on_device.h"

using namespace lc;

TEST(Gradients, ArePyTorchs) { test::expect_gradients_of_pytorch(test::device({.threads = 2})); }
