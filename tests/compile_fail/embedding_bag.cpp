// expect: embedding_bag: ids are [b, n], or [n] with offsets; not [7]
#include "lightcone/lightcone.h"
#include "lightcone/ops/typed/vocabulary.h"
using namespace lc::typed;

void wrong(lc::Graph& g) {
  static_cast<void>(g);
  embedding_bag(input<std::int64_t, 7>(g, "i"), input<float, 10, 4>(g, "w"));
}
