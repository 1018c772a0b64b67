// A writer of files of torch.save() whose every part a test can falsify: pickles of protocol 2, the zip form and the
// one of PyTorch before 1.6.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "zip_writer.h"

namespace made {

inline std::string pickled_text(const std::string& s) { return "X" + little(s.size(), 4) + s; }
inline std::string pickled(std::int64_t n) {
  return n >= INT32_MIN && n <= INT32_MAX ? "J" + little(static_cast<std::uint64_t>(n), 4)
                                          : "\x8a\x08" + little(static_cast<std::uint64_t>(n), 8);
}
inline std::string pickled_name(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}
inline std::string pickled_tuple(const std::vector<std::int64_t>& numbers) {
  std::string s = "(";
  for (std::int64_t n : numbers) s += pickled(n);
  return s + "t";
}
using Pairs = std::vector<std::pair<std::string, std::string>>;
// A dict from texts to pickled values.
inline std::string pickled_dict(const Pairs& pairs) {
  std::string s = "}(";
  for (const auto& [key, value] : pairs) s += pickled_text(key) + value;
  return s + "u";
}
inline std::string pickled_storage(const std::string& type, const std::string& key, std::int64_t elements) {
  return "(" + pickled_text("storage") + pickled_name("torch", type) + pickled_text(key) + pickled_text("cpu") +
         pickled(elements) + "tQ";
}
inline std::string pickled_tensor(const std::string& storage, std::int64_t offset,
                                  const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& strides) {
  return pickled_name("torch._utils", "_rebuild_tensor_v2") + "(" + storage + pickled(offset) + pickled_tuple(shape) +
         pickled_tuple(strides) + "\x89}tR";
}
// A call of a function with a tuple of arguments that are pickled already.
inline std::string pickled_call(const std::string& module, const std::string& name, const std::string& arguments) {
  return pickled_name(module, name) + "(" + arguments + "tR";
}
// An object of a class with a state.
inline std::string pickled_object(const std::string& module, const std::string& name, const std::string& state) {
  return pickled_name(module, name) + ")\x81" + state + "b";
}
inline std::string whole_pickle(const std::string& value) { return "\x80\x02" + value + "."; }

struct TorchStorage {
  std::string key, bytes;
  std::int64_t elements = 0;  // as the older form states them
};

inline std::string torch_zip(const std::string& pickle, const std::vector<TorchStorage>& storages,
                             const std::string& byte_order = "little", bool deflate = false,
                             const std::string& version = "3\n") {
  std::vector<Member> members;
  members.emplace_back("x/data.pkl", pickle, deflate);
  members.emplace_back("x/byteorder", byte_order, deflate);
  for (const TorchStorage& s : storages) members.emplace_back("x/data/" + s.key, s.bytes, deflate);
  members.emplace_back("x/version", version, deflate);
  return zip(members);
}

inline std::string torch_old(const std::string& pickle, const std::vector<TorchStorage>& storages) {
  std::string keys = "](";
  for (const TorchStorage& s : storages) keys += pickled_text(s.key);
  std::string file = whole_pickle("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19") + whole_pickle(pickled(1001)) +
                     whole_pickle("}") + pickle + whole_pickle(keys + "e");
  for (const TorchStorage& s : storages) file += little(static_cast<std::uint64_t>(s.elements), 8) + s.bytes;
  return file;
}

}  // namespace made
