// DataLoader: the batches of a data set, epoch after epoch, made on a thread of their own while a step runs.
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

// What becomes of samples that fill no batch at the end of an epoch: batches have one size, because graphs do.
enum class Rest {
  Drop,  // they are left out: DataLoader(drop_last=True)
  Wrap   // the batch is filled with the first samples of the epoch, again
};

struct LoaderOptions {
  std::int64_t batch_size = 1;
  bool shuffle = false;  // another order each epoch, from the seed and the epoch
  Rest rest = Rest::Drop;
  std::uint64_t seed = 0;
  std::int64_t prefetch = 2;  // batches made ahead, by one thread; 0: each is made within next()
  // What is done to the samples of an array, by its name, in order.
  std::map<std::string, std::vector<Transform>> transforms = {};
};

// A place in the sequence of batches. With the same data and options it determines every bit of the batch there and of
// all that follow: saved with a checkpoint, it is where training goes on.
struct LoaderPosition {
  std::int64_t epoch = 0, batch = 0;
  bool operator==(const LoaderPosition&) const = default;
};

struct Batch {
  LoaderPosition position;
  std::vector<std::int64_t> samples;             // their numbers in the data set
  Arrays arrays;                                 // [batch_size, ...] each
  const Array& at(std::string_view name) const;  // Error when it is not there
};

// To be used by one thread at a time.
class DataLoader {
 public:
  // Error when the data has no batch, the options do not fit it, or the position is none.
  DataLoader(std::shared_ptr<const Dataset> data, LoaderOptions options, LoaderPosition start = {});
  DataLoader(DataLoader&&) noexcept;
  DataLoader& operator=(DataLoader&&) noexcept;
  ~DataLoader();  // waits for the batch that is being made

  std::int64_t batches() const;  // in an epoch
  // The batch at position(), which then moves on: behind the last of an epoch comes the first of the next, without end.
  // What went wrong while it was made is thrown here, each time, until seek().
  Batch next();
  LoaderPosition position() const;  // of what next() gives: the one to save
  void seek(LoaderPosition to);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lc
