// The values that a pickle describes, in one arena: numbers of values instead of pointers, so that nothing recurses
// when it is read or freed, however deeply a file nests them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/core/dtype.h"
#include "lightcone/io/read_options.h"

namespace lc::io::torch {

// The number of a value in its arena.
using Id = std::uint32_t;

// An element type of PyTorch or NumPy.
struct ElementType {
  std::string_view name;          // as safetensors writes it, where it does: "F32"
  std::string_view dtype_name;    // torch.float32
  std::string_view storage_name;  // torch.FloatStorage; "" if none has a name of its own
  std::size_t bytes;
  std::optional<DType> dtype = {};  // nullopt: no graph reads it
  std::size_t word = bytes;         // bytes whose order depends on the machine: half of a complex number
};
// Returns the type whose storage or dtype has this name ("FloatStorage", "float32"), or null.
const ElementType* type_of_storage(std::string_view name);
const ElementType* type_of_dtype(std::string_view name);
const ElementType* type_of(DType type);

enum class Kind : std::uint8_t {
  None,
  Bool,
  Int,
  BigInt,  // beyond 64 bits, as its bytes or digits
  Real,
  Text,
  Bytes,
  Tuple,
  List,
  Set,
  Dict,
  Global,   // a name of a module and a name in it, joined by a dot; never looked up
  Object,   // an instance of a class, of which only name and state are known
  Storage,  // Values::storages
  Tensor    // Values::tensors
};

// Items of a Dict are key, value, key, value, ... An Object has its arguments, its state, then keys and values that
// were set, as those of a dict; the key of an element that was appended is kNoKey.
struct Value {
  Kind kind = Kind::None;
  std::uint32_t length = 0;    // bytes of a text
  std::uint32_t items = 0;     // 1 + the place of its items; 0: it has none
  Id of = 0;                   // an Object's class
  std::int64_t integer = 0;    // a Bool or an Int, a Real's bits, the place of a storage or a tensor
  const char* text = nullptr;  // where a text begins
};

struct StorageRecord {
  const ElementType* type;
  std::string_view key;
  std::int64_t elements;
  std::int64_t first = 0;                     // where a view of another storage begins, as old files have it
  std::span<const std::byte> in_pickle = {};  // an array of NumPy's; otherwise the file has the bytes elsewhere
  bool is_in_pickle = false, big_endian = false;
};

// A strided view of a storage, as the file states it: unchecked. Offset and strides count elements.
struct TensorRecord {
  const ElementType* type;
  std::uint32_t storage;
  std::int64_t offset;
  std::vector<std::int64_t> shape, strides;
};

// Appends to a vector whose memory comes from the budget.
template <class T>
void append(std::vector<T>& to, T item, Budget& budget) {
  if (to.size() == to.capacity()) {
    const std::size_t room = std::max<std::size_t>(4, 2 * to.capacity());
    budget.take(room, sizeof(T));  // in all twice the last capacity, as much as is in use while it moves
    to.reserve(room);
  }
  to.push_back(std::move(item));
}

// The arena. `where` begins the message of every Error.
class Values {
 public:
  static constexpr Id kNone = 0, kFalse = 1, kTrue = 2, kNoKey = 3, kEmptyTuple = 4;

  Values(std::string where, Budget& budget);
  const Value& operator[](Id id) const { return values_[id]; }
  Value& operator[](Id id) { return values_[id]; }
  std::size_t size() const { return values_.size(); }

  Id add(Value v);
  Id container(Kind kind) { return add({.kind = kind}); }
  Id container(Kind kind, std::span<const Id> items);
  Id integer(std::int64_t v);
  Id real(double v);
  Id text(Kind kind, std::string_view view);  // the characters must outlive the arena
  Id object(Id of, Id arguments);
  Id tensor(TensorRecord t);
  Id storage(StorageRecord s);
  void push(Id container, Id item);
  // Keeps a text that is in no file.
  std::string_view keep(std::string s);

  std::span<const Id> items(Id id) const;
  void set_state(Id object, Id state);
  // The characters of a Text, Bytes, BigInt or Global; "" of another kind.
  std::string_view text(Id id) const;
  bool is(Id id, Kind kind) const { return values_[id].kind == kind; }
  double real_number(Id id) const;                 // a Real's value
  std::optional<std::int64_t> whole(Id id) const;  // nullopt: no Int or Bool
  // The value of a key of a Dict, if it is among the first few hundred; kNoKey: it is not.
  Id at(Id dict, std::string_view key) const;
  Id arguments(Id object) const { return items(object)[0]; }
  Id state(Id object) const { return items(object)[1]; }

  std::deque<StorageRecord> storages;
  std::deque<TensorRecord> tensors;
  Budget& budget() { return budget_; }
  const std::string& where() const { return where_; }
  [[noreturn]] void wrong(std::string_view what) const;

 private:
  std::string where_;
  Budget& budget_;
  std::deque<Value> values_;
  std::deque<std::vector<Id>> lists_;
  std::deque<std::string> texts_;
  std::vector<Id> small_;  // integers from 0, which are shared
};

}  // namespace lc::io::torch
