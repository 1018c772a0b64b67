// ConfigText: a config.json in the making.
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lc {

// An object of JSON that is written key by key. Keys and texts are names of our own, in which nothing needs escaping.
class ConfigText {
 public:
  ConfigText& set(std::string_view key, std::string_view text) { return raw(key, quoted(text)); }
  ConfigText& set(std::string_view key, const char* text) { return set(key, std::string_view(text)); }
  ConfigText& set(std::string_view key, bool on) { return raw(key, on ? "true" : "false"); }
  ConfigText& set(std::string_view key, std::integral auto n) { return raw(key, std::to_string(n)); }
  ConfigText& set(std::string_view key, double x) { return raw(key, number(x)); }
  ConfigText& set(std::string_view key, const ConfigText& object) { return raw(key, object.str()); }
  ConfigText& set(std::string_view key, const std::vector<double>& all) {
    return list(key, all, [](double x) { return number(x); });
  }
  ConfigText& set(std::string_view key, const std::vector<std::string>& all) {
    return list(key, all, [](const std::string& t) { return quoted(t); });
  }
  ConfigText& null(std::string_view key) { return raw(key, "null"); }
  std::string str() const { return "{" + inner_ + "}"; }

 private:
  static std::string quoted(std::string_view text) { return '"' + std::string(text) + '"'; }
  // Numbers that were rounded to f32 are written as short as they were meant: 1e-5, and not 9.9999997e-06.
  static std::string number(double x) {
    char digits[64];
    const auto narrow = static_cast<float>(x);
    const auto end = static_cast<double>(narrow) == x ? std::to_chars(digits, digits + sizeof digits, narrow)
                                                      : std::to_chars(digits, digits + sizeof digits, x);
    return x - x == 0 ? std::string(digits, end.ptr) : "null";  // JSON has no infinities
  }
  template <class T, class Write>
  ConfigText& list(std::string_view key, const std::vector<T>& all, Write write) {
    std::string text;
    for (const T& x : all) text += (text.empty() ? "" : ", ") + write(x);
    return raw(key, "[" + text + "]");
  }
  ConfigText& raw(std::string_view key, std::string_view value) {
    inner_ += (inner_.empty() ? "" : ", ") + quoted(key) + ": ";
    inner_ += value;
    return *this;
  }
  std::string inner_;
};

}  // namespace lc
