#include <cstdio>

#include <lightcone/lightcone.h>

// Building for GPUs needs nothing installed; a device is opened when something is first compiled for it.
const lc::Compiler gpus[] = {lc::cuda(), lc::opencl(), lc::metal()};

int main() {
  lc::Session cx;
  auto a = cx.tensor<2, 2>().set({{1, 2}, {3, 4}});
  const auto b = a.matmul(a).retrieve();
  cx.compile(lc::generic() | lc::cpu()).execute();
  std::puts(cx.str(b).c_str());
  return cx.data(b)[3] == 22 ? 0 : 1;
}
