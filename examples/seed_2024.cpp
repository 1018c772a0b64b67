// Multiplies a 3 x 1 matrix by a 1 x 4 matrix. Computes when execute() is called.
#include <iostream>

#include "lightcone/lightcone.h"

int main() {
  using namespace lc;
  Session cx;
  auto a = cx.tensor<3, 1>().set({{1}, {2}, {3}});
  auto b = cx.tensor<1, 4>().set({{1, 2, 3, 4}});
  auto c = a.matmul(b).retrieve();  // Tensor<float, 3, 4>
  cx.compile(generic() | cpu());
  cx.execute();
  std::cout << "Result:\n" << cx.str(c) << '\n';
}
