// DataLoader: the batches of a data set, epoch after epoch, prepared by a thread of their own during the steps.
//
//   DataLoader batches(data, {.batch_size = 128, .shuffle = true, .seed = 1,
//                             .transforms = {{"image", {RandomCrop{32, 32, 4}, RandomHorizontalFlip{}, ToFloat{}}}}});
//   for (int step = 0; step < 1000; ++step) {
//     const Batch b = batches.next();
//     context.set("x", b.at("image"));  // f32 [128, 3, 32, 32]
//     ...
//   }
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/io/data/dataset.h"
#include "lightcone/io/data/transforms.h"

namespace lc {

// Policy for the samples that do not fill a batch at the end of an epoch. All batches have one size, because graphs do.
enum class Rest {
  Drop,  // leaves them out: DataLoader(drop_last=True)
  Wrap   // fills the batch with the first samples of the epoch
};

// Options of a DataLoader.
struct LoaderOptions {
  std::int64_t batch_size = 1;
  bool shuffle = false;  // in a new order each epoch, determined by seed and epoch
  Rest rest = Rest::Drop;
  std::uint64_t seed = 0;
  std::int64_t prefetch = 2;  // batches prepared ahead by one thread; 0: next() makes each itself
  // The part of each batch that is made: its first sample, and how many; 0: all from there on. A rank of several makes
  // its own part alone.
  std::int64_t part_begin = 0, part_size = 0;
  // The transforms of the samples of an array, by the name of the array, in order.
  std::map<std::string, std::vector<Transform>> transforms = {};
};

// A position in the sequence of batches. With the same data and options it determines every bit of its batch and of all
// later ones. Training resumes at a position saved with a checkpoint.
struct LoaderPosition {
  std::int64_t epoch = 0, batch = 0;
  bool operator==(const LoaderPosition&) const = default;
};

// A batch of samples.
struct Batch {
  LoaderPosition position;
  std::vector<std::int64_t> samples;  // their indices in the data set
  Arrays arrays;                      // each [batch_size, ...], or [part_size, ...]
  // Returns the array of this name. Throws Error if there is none.
  const Array& at(std::string_view name) const;
};

// An endless sequence of batches. Not thread-safe.
class DataLoader {
 public:
  // Throws Error if the data set has no batch, if the options do not fit it, or if the position does not exist.
  DataLoader(std::shared_ptr<const Dataset> data, LoaderOptions options, LoaderPosition start = {});
  DataLoader(DataLoader&&) noexcept;
  DataLoader& operator=(DataLoader&&) noexcept;
  ~DataLoader();  // waits for the batch in preparation

  std::int64_t batches() const;  // per epoch
  // Returns the batch at position() and advances. After the last batch of an epoch comes the first one of the next,
  // without end. An exception in the preparation of the batch is thrown here, at every call until seek().
  Batch next();
  LoaderPosition position() const;  // position of the next batch; to be saved
  // Continues at another position. Throws Error if it does not exist.
  void seek(LoaderPosition to);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lc
