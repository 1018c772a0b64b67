// When collective operations begin, which are one, and in which type they are: what shard() does behind the division of
// the graph.
#pragma once

#include <cstddef>

#include "lightcone/distributed/collectives.h"
#include "lightcone/passes/compiler.h"

namespace lc {

struct ExchangeOptions {
  // Several small operations of one kind become one of up to so many bytes: DDP's bucket_cap_mb, the thresholds of
  // XLA's all-reduce combiner. 0: each stays alone. What is larger stays alone, too.
  std::size_t bucket_bytes = std::size_t{4} << 20;
};

// Returns the pass "combine-exchanges", for graphs with collectives of `ranks`. It puts each operation where its
// operand is ready, together with those of its kind that become ready later, but not so late that a reader waits for
// them. What parameters alone make (gathers of ZeRO 3) comes a bucket before it is needed: while one is used, the next
// is under way, and no more. Devices let kernels run between the start of an operation and its first reader ("overlap-
// exchanges"). Results keep their bits.
//
// shard() contains it. Operations that were written by hand begin where they stand without it.
Compiler combine_exchanges(const Collectives& ranks, const ExchangeOptions& o = {});

// Returns the pass "narrow-exchanges": what was rounded to a narrower float and widened again, as autocast() does to
// the operands of products, is moved as the narrow float (FSDP's MixedPrecisionPolicy::param_dtype). Sums are not:
// they would round once more. Results keep their bits. shard() contains it.
Compiler narrow_exchanges(const Collectives& ranks);

}  // namespace lc
