// The gradients of every operation against PyTorch's, by the reference and compiled for the CPU.
#include "gradient_goldens.h"
#include "on_device.h"

using namespace lc;

TEST(Gradients, ArePyTorchs) { test::expect_gradients_of_pytorch(test::device({.threads = 2})); }
