// Inputs between two inaccessible pages, so that a kernel that reads one element outside its input crashes in the test.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <list>
#include <map>
#include <stdexcept>
#include <string>

#include "lightcone/runtime/program.h"
#include "lightcone/verify/verify.h"

namespace lc::test {

enum class Against { Front, Back };  // which guard page the data touches

class Guarded {
 public:
  Guarded(std::size_t bytes, Against side) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const std::size_t body = std::max<std::size_t>(1, (bytes + page - 1) / page) * page;
    size_ = body + 2 * page;
    void* all = ::mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) throw std::runtime_error("no address space for a guarded buffer");
    base_ = static_cast<std::byte*>(all);
    ::mprotect(base_ + page, body, PROT_READ | PROT_WRITE);
    data_ = side == Against::Front ? base_ + page : base_ + page + body - bytes;
  }
  Guarded(const Guarded&) = delete;
  ~Guarded() { ::munmap(base_, size_); }
  std::byte* data() { return data_; }

 private:
  std::byte *base_ = nullptr, *data_ = nullptr;
  std::size_t size_ = 0;
};

// Passed to `Context::use` as the capacity, which claims space for the largest size although there is none.
inline constexpr auto kAnySize = static_cast<std::size_t>(-1);

// Does what `run_values` does, with guarded inputs.
inline Results run_guarded(const Graph& g, const std::map<std::string, Value>& inputs, const Bindings& env,
                           Against side) {
  Program p = compile(g);
  std::map<std::string, Guarded> buffers;
  for (const std::string& name : p.inputs()) {
    const Value& v = inputs.at(name);
    const std::size_t bytes = v.size() * size_of(v.dtype);
    Guarded& b = buffers.try_emplace(name, bytes, side).first->second;
    write_value(v, b.data());
    if (p.is_parameter(name)) p.load(name, b.data(), bytes);
  }
  Context c(p);
  for (const auto& [name, v] : env)
    if (p.has_symbol(name)) c.bind(name, v);
  for (auto& [name, b] : buffers)
    if (!p.is_parameter(name)) c.use(name, b.data(), kAnySize);
  return results(p, c.run());
}

}  // namespace lc::test
