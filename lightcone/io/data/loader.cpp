#include "lightcone/io/data/loader.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include "lightcone/io/printable.h"

namespace lc {

// Makes the batch of any position as a function of the data and the options only.
class BatchMaker {
 public:
  BatchMaker(std::shared_ptr<const Dataset> data, const LoaderOptions& o);
  std::int64_t batches() const {
    const std::int64_t whole = data_->size() / o_.batch_size;
    return whole + (o_.rest == Rest::Wrap && data_->size() % o_.batch_size != 0);
  }
  void check(LoaderPosition p) const {
    if (p.epoch < 0 || p.batch < 0 || p.batch >= batches())
      throw Error("data loader",
                  str_cat("there is no batch ", p.batch, " of epoch ", p.epoch, ": an epoch has ", batches()));
  }
  LoaderPosition after(LoaderPosition p) const {
    return p.batch + 1 < batches() ? LoaderPosition{p.epoch, p.batch + 1} : LoaderPosition{p.epoch + 1, 0};
  }
  Batch make(LoaderPosition p);

 private:
  std::int64_t sample(std::int64_t epoch, std::int64_t place);
  std::shared_ptr<const Dataset> data_;
  LoaderOptions o_;
  std::map<std::string, Transforms, std::less<>> transforms_;  // by array, for all arrays
  std::int64_t shuffled_ = -1;                                 // the epoch of order_
  std::vector<std::int64_t> order_;
};

BatchMaker::BatchMaker(std::shared_ptr<const Dataset> data, const LoaderOptions& o) : data_(std::move(data)), o_(o) {
  if (!data_ || data_->size() == 0) throw Error("data loader", "the data set has no samples");
  if (o.batch_size < 1) throw Error("data loader", str_cat("a batch of ", o.batch_size, " samples"));
  if (o_.part_size == 0) o_.part_size = o.batch_size - o.part_begin;
  if (o.part_begin < 0 || o_.part_size < 1 || o_.part_size > o.batch_size - o.part_begin)
    throw Error("data loader", str_cat("a batch of ", o.batch_size, " has no part of ", o.part_size, " samples from ",
                                       o.part_begin, " on"));
  if (o.prefetch < 0) throw Error("data loader", str_cat("prefetch is ", o.prefetch, ", it must be 0 or more"));
  if (batches() == 0)
    throw Error("data loader", str_cat("a batch of ", o.batch_size, " is more than the ", data_->size(),
                                       " samples there are: Rest::Wrap would repeat them"));
  for (const auto& [name, list] : o.transforms) data_->at(name);
  for (const auto& [name, a] : data_->arrays()) {
    const auto list = o.transforms.find(name);
    transforms_.emplace(name, Transforms(list == o.transforms.end() ? std::vector<Transform>() : list->second, a.dtype,
                                         {a.shape.begin() + 1, a.shape.end()}));
  }
}

// Returns the sample at a position of an epoch. Positions after the last one wrap around.
std::int64_t BatchMaker::sample(std::int64_t epoch, std::int64_t place) {
  place %= data_->size();
  if (!o_.shuffle) return place;
  if (shuffled_ != epoch) {
    order_ = random_permutation(data_->size(), SeededRandom({o_.seed, static_cast<std::uint64_t>(epoch)}));
    shuffled_ = epoch;
  }
  return order_[static_cast<std::size_t>(place)];
}

Batch BatchMaker::make(LoaderPosition p) {
  Batch b;
  b.position = p;
  for (std::int64_t i = 0; i < o_.part_size; ++i)
    b.samples.push_back(sample(p.epoch, p.batch * o_.batch_size + o_.part_begin + i));
  for (auto& [name, transforms] : transforms_) {
    const Array& all = data_->at(name);
    std::vector<std::int64_t> shape = transforms.shape();
    shape.insert(shape.begin(), o_.part_size);
    Array& a = b.arrays.emplace(name, Array::zeros(transforms.dtype(), std::move(shape))).first->second;
    std::byte* to = a.bytes.data();
    for (std::int64_t s : b.samples) {
      const auto number = static_cast<std::uint64_t>(s);
      transforms.apply(all.bytes.data() + number * all.row_bytes(), to,
                       {o_.seed, static_cast<std::uint64_t>(p.epoch), number});
      to += transforms.bytes();
    }
  }
  return b;
}

const Array& Batch::at(std::string_view name) const {
  const auto it = arrays.find(name);
  if (it == arrays.end()) throw Error("batch", str_cat("it has no array ", in_quotes(name)));
  return it->second;
}

// The thread makes batches from `next` on while fewer than `prefetch` are waiting; the user of the loader takes the
// first one.
struct DataLoader::Impl {
  Impl(std::shared_ptr<const Dataset> data, const LoaderOptions& o, LoaderPosition start)
      : maker(std::move(data), o), prefetch(static_cast<std::size_t>(o.prefetch)), next(start) {
    maker.check(start);
  }
  ~Impl() { stop(); }

  void start() {
    try {
      thread = std::thread([this, from = next] { make_from(from); });
    } catch (const std::system_error& e) {
      throw Error("data loader", str_cat("no thread can be started: ", e.what(), "; with prefetch = 0 none is needed"));
    }
  }
  void stop() {
    if (!thread.joinable()) return;
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    room.notify_one();
    thread.join();
    stopping = false;
    made.clear();
    failure = nullptr;
  }

  // Runs on the thread.
  void make_from(LoaderPosition p) {
    for (;; p = maker.after(p)) {
      std::unique_lock lock(mutex);
      room.wait(lock, [&] { return stopping || made.size() < prefetch; });
      if (stopping) return;
      lock.unlock();
      try {
        Batch b = maker.make(p);
        lock.lock();
        made.push_back(std::move(b));
      } catch (...) {
        if (!lock.owns_lock()) lock.lock();
        failure = std::current_exception();
      }
      ready.notify_one();
      if (failure) return;
    }
  }

  Batch take() {
    if (!thread.joinable()) start();
    std::unique_lock lock(mutex);
    ready.wait(lock, [&] { return !made.empty() || failure; });
    if (made.empty()) std::rethrow_exception(failure);  // all batches made before the failure were taken
    Batch b = std::move(made.front());
    made.pop_front();
    room.notify_one();
    return b;
  }

  BatchMaker maker;  // used by the thread while it runs
  const std::size_t prefetch;
  LoaderPosition next;
  std::mutex mutex;
  std::condition_variable room, ready;  // signalled when there is room for another batch, and when a batch is ready
  std::deque<Batch> made;
  std::exception_ptr failure;
  bool stopping = false;
  std::thread thread;
};

DataLoader::DataLoader(std::shared_ptr<const Dataset> data, LoaderOptions options, LoaderPosition start)
    : impl_(std::make_unique<Impl>(std::move(data), options, start)) {}
DataLoader::DataLoader(DataLoader&&) noexcept = default;
DataLoader& DataLoader::operator=(DataLoader&&) noexcept = default;
DataLoader::~DataLoader() = default;

std::int64_t DataLoader::batches() const { return impl_->maker.batches(); }
LoaderPosition DataLoader::position() const { return impl_->next; }

Batch DataLoader::next() {
  Batch b = impl_->prefetch ? impl_->take() : impl_->maker.make(impl_->next);
  impl_->next = impl_->maker.after(impl_->next);
  return b;
}

void DataLoader::seek(LoaderPosition to) {
  impl_->maker.check(to);
  impl_->stop();
  impl_->next = to;
}

}  // namespace lc
