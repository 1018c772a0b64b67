// Large products by cuBLASLt. The library is optional: it is loaded if it is found, and nothing is linked.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "lightcone/backends/cuda/cublas_lt_api.h"
#include "lightcone/backends/cuda/cuda.h"
#include "lightcone/backends/cuda/stream.h"
#include "lightcone/cache/object_cache.h"

namespace lc::backends::cuda {

// The library's file. It is loaded once a process and stays.
struct CublasLtLibrary {
  api::Lt api;
  std::size_t version = 0;  // 130100 for 13.1
};

// The library's handle for one device.
class CublasLt : public std::enable_shared_from_this<CublasLt> {
 public:
  // Returns null if the library is not wanted or not found; if it was asked for, `problem` gives the reason.
  static std::shared_ptr<CublasLt> open(const CudaOptions& options, const std::shared_ptr<Context>& context,
                                        std::string& problem);
  ~CublasLt();

  // Returns null if the library does not take the product.
  std::shared_ptr<const gpu::LibraryProduct> product(const gpu::MatrixProduct& p);
  // As GpuDevice::prefers(). A measurement is kept for this device and, in the cache, for the same device, driver and
  // libraries in other processes, so that each run has the same bits.
  bool prefers(const std::string& text, const cache::ObjectCache& cache, const std::string& made_by,
               const std::function<std::optional<double>()>& measure);
  std::string name() const;

 private:
  friend class CublasLtProduct;
  CublasLt(std::shared_ptr<Context> context, const CublasLtLibrary& library);

  const CublasLtLibrary& library_;
  std::shared_ptr<Context> context_;
  api::LtHandle* handle_ = nullptr;
  std::mutex mutex_;                     // guards the fields below
  std::map<std::string, bool> decided_;  // by the text of our kernel: whether the library is taken
};

// A description that the library owns; destroyed with this object.
template <class T>
class LtObject {
 public:
  explicit LtObject(api::LtStatus (*destroy)(T*)) : destroy_(destroy) {}
  ~LtObject() {
    if (it_) destroy_(it_);
  }
  LtObject(const LtObject&) = delete;
  LtObject& operator=(const LtObject&) = delete;
  T** to() { return &it_; }
  T* get() const { return it_; }

 private:
  api::LtStatus (*destroy_)(T*);
  T* it_ = nullptr;
};

// A product with its algorithm.
class CublasLtProduct final : public gpu::LibraryProduct, public StreamCall {
 public:
  // Throws Error if the library fails or has no algorithm.
  CublasLtProduct(std::shared_ptr<CublasLt> lt, const gpu::MatrixProduct& p);
  std::string library() const override { return lt_->name(); }
  std::size_t scratch_bytes() const override;
  CublasLt& lt() const { return *lt_; }

  void enqueue(const Context& context, api::Stream* stream, std::span<const std::uint64_t> words) const override;

 private:
  void describe(const gpu::MatrixProduct& p);
  void choose();

  std::shared_ptr<CublasLt> lt_;
  std::size_t a_offset_, b_offset_;  // bytes
  LtObject<api::LtProduct> product_;
  LtObject<api::LtLayout> a_, b_, to_;
  api::LtAlgorithm algorithm_;
  std::size_t workspace_ = 0;
};

}  // namespace lc::backends::cuda
