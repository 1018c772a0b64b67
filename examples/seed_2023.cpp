// The graph first, its inputs afterwards; results as plain data.
#include <array>
#include <iostream>
#include <vector>

#include "lightcone/lightcone.h"

int main() {
  using namespace lc;
  Session cx;
  auto a = cx.tensor<3, 1>();
  auto b = cx.tensor<1, 4>();
  auto c = a.matmul(b).retrieve();
  a.set(std::vector{1.f, 2.f, 3.f});
  b.set(std::array{1.f, 2.f, 3.f, 3.f});
  cx.compile(generic());  // no device: the reference interpreter runs it
  cx.execute();
  for (float x : cx.data(c)) std::cout << x << ' ';
  std::cout << '\n';
}
