#include "lightcone/io/read_options.h"

#include "lightcone/io/printable.h"

namespace lc {

void Budget::take(std::size_t count, std::size_t each) {
  std::size_t more;
  if (__builtin_mul_overflow(count, each, &more) || __builtin_add_overflow(taken_, more, &more) || more > limit()) {
    refused_ = true;
    throw file_error("load", path_, "reading it takes more than ", limit(), " bytes of memory, ",
                     limit_ ? "as many as ReadOptions::memory allows"
                            : "far more than a file of its size should: ReadOptions::memory allows more");
  }
  taken_ = more;
}

}  // namespace lc
