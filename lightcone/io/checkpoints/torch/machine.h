// Python's pickle machine (protocols 0 to 5, PEP 307, 3154 and 574) without Python: it makes values of an arena and
// runs nothing (calls.h has the rule). Its time and memory are proportional to the pickle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "lightcone/io/checkpoints/torch/calls.h"
#include "lightcone/io/checkpoints/torch/values.h"

namespace lc::io::torch {

// Reads one pickle.
class Machine {
 public:
  // The bytes begin with the pickle and may go on behind it. They must outlive the values, which refer to them.
  Machine(std::span<const std::byte> bytes, Values& values);
  // Returns what the pickle describes. Throws Error for a damaged one and for calls that are refused.
  Id run();
  std::size_t length() const { return at_; }  // bytes of the pickle, after run()

 private:
  bool constant(std::uint8_t op);
  bool text(std::uint8_t op);
  bool text_line(std::uint8_t op);
  bool container(std::uint8_t op);
  bool memo(std::uint8_t op);
  bool object(std::uint8_t op);

  [[noreturn]] void wrong(std::string_view what) const;
  std::string_view take(std::uint64_t n);
  std::uint64_t number(int bytes);
  std::string_view line();
  void push(Id id) { append(stack_, id, v_.budget()); }
  Id pop();
  Id top() const;
  std::span<const Id> above_mark() const;
  void drop_mark();
  void collect(Kind kind);
  void collect_last(std::size_t n);
  void add_items(Id to, std::span<const Id> items);
  void set_items(Id to, std::span<const Id> pairs);
  void remember(std::uint64_t key);
  void recall(std::uint64_t key);
  std::uint64_t key_of(std::string_view digits) const;
  void push_global(std::string_view module, std::string_view name);
  void instantiate(Id of, Id arguments);
  void push_long(std::string_view little_endian);
  void push_integer_line(std::string_view digits);

  std::string_view bytes_;
  std::size_t at_ = 0;
  Values& v_;
  Calls calls_;
  std::vector<Id> stack_, memo_;
  std::vector<std::size_t> marks_;
};

}  // namespace lc::io::torch
