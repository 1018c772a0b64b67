// Files of torch.save() as Weights.
#include "lightcone/base/error.h"
#include "lightcone/io/checkpoints/torch/torch_file.h"
#include "lightcone/io/checkpoints/weights_internal.h"
#include "lightcone/io/printable.h"

namespace lc {

class TorchReader {
 public:
  TorchReader(Weights& w, Budget& budget) : w_(w), budget_(budget) {}
  void add(const std::shared_ptr<const MappedFile>& file);

 private:
  Weights& w_;
  Budget& budget_;
};

void TorchReader::add(const std::shared_ptr<const MappedFile>& file) {
  io::TorchFile read = io::read_torch(*file, budget_);
  for (auto& [name, t] : read.tensors) {
    io::take_tensor(budget_, name.size(), t.shape.size());
    StoredTensor stored{.shape = std::move(t.shape), .type = std::string(t.type), .bytes = t.bytes, .dtype = t.dtype};
    if (!w_.tensors_.emplace(name, std::move(stored)).second)
      throw file_error("load", file->path(), "tensor ", in_quotes(name), " is in another shard, too");
  }
  w_.metadata_.merge(read.metadata);
  w_.modules_.merge(read.modules);
  w_.owners_.insert(w_.owners_.end(), read.owners.begin(), read.owners.end());
  w_.format_ = "PyTorch";
  w_.files_.push_back(file);
}

void io::add_torch(Weights& w, const std::shared_ptr<const MappedFile>& file, Budget& budget) {
  TorchReader(w, budget).add(file);
}

}  // namespace lc
