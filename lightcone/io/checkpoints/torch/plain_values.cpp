#include "lightcone/io/checkpoints/torch/paths.h"

#include "lightcone/base/error.h"
#include "lightcone/base/numbers.h"

namespace lc::io::torch {
namespace {

constexpr std::size_t kDeepestText = 16;     // nested containers of one text
constexpr std::size_t kLongestText = 16384;  // bytes of one text
constexpr std::size_t kLongestName = 1000;
constexpr std::size_t kStepsFromRoot = 2;
// More than that is left out: plain values are for people, and the tensors are what a file is read for.
constexpr std::size_t kMostTexts = 1000, kMostBytes = 1u << 20, kMostVisited = 1u << 20;

using DescribeTensor = std::function<std::string(std::size_t)>;

// Writes a value as JSON. What JSON has no word for is a text between < and >. Each value writes at least one byte, so
// that the limit of the length is one of the time as well.
class JsonText {
 public:
  JsonText(const Values& v, const DescribeTensor& describe) : v_(v), describe_(describe) {}
  std::string of(Id id) {
    if (v_.is(id, Kind::Text)) s_ = std::string(v_.text(id).substr(0, kLongestText + 1));
    else write(id, 0);
    if (s_.size() > kLongestText) s_ = s_.substr(0, kLongestText) + "...";
    return std::move(s_);
  }

 private:
  bool full() const { return s_.size() > kLongestText; }
  void quoted(std::string_view text) {
    s_ += '"';
    for (char c : text.substr(0, kLongestText)) {
      if (c == '"' || c == '\\') s_ += '\\';
      if (static_cast<unsigned char>(c) < 0x20) s_ += formatted("\\u%04x", static_cast<unsigned>(c));
      else s_ += c;
    }
    s_ += '"';
  }
  void key(const Child& c, bool named) {
    if (!named) return;
    if (c.name.empty()) quoted(str_cat(c.place));
    else quoted(c.name);
    s_ += ": ";
  }
  void children(Id id, bool named, std::size_t depth, std::string_view first) {
    s_ += named ? "{" : "[";
    s_ += first;
    bool begun = !first.empty();
    visit_children(v_, id, true, [&](const Child& c) {
      if (begun) s_ += ", ";
      begun = true;
      key(c, named);
      write(c.value, depth + 1);
      return !full();
    });
    s_ += named ? "}" : "]";
  }
  void write(Id id, std::size_t depth) {
    if (full()) return;
    if (depth > kDeepestText) return static_cast<void>(s_ += "\"...\"");
    const Value& value = v_[id];
    switch (value.kind) {
      case Kind::None: s_ += "null"; break;
      case Kind::Bool: s_ += value.integer ? "true" : "false"; break;
      case Kind::Int: s_ += str_cat(value.integer); break;
      case Kind::Real: s_ += str_cat(v_.real_number(id)); break;
      case Kind::BigInt: s_ += "\"<whole number beyond 64 bits>\""; break;
      case Kind::Text:
      case Kind::Global: quoted(v_.text(id)); break;
      case Kind::Bytes: s_ += str_cat("\"<", value.length, " bytes>\""); break;
      case Kind::Tuple:
      case Kind::List:
      case Kind::Set: children(id, false, depth, ""); break;
      case Kind::Dict: children(id, true, depth, ""); break;
      case Kind::Object: object(id, depth); break;
      case Kind::Storage: s_ += "\"<storage>\""; break;
      case Kind::Tensor: s_ += describe_(static_cast<std::size_t>(value.integer)); break;
    }
  }
  void object(Id id, std::size_t depth) {
    JsonText of(v_, describe_);
    of.quoted(v_.text(v_[id].of));
    children(id, true, depth, "\"class\": " + of.s_);
  }
  const Values& v_;
  const DescribeTensor& describe_;
  std::string s_;
};

class PlainValues {
 public:
  PlainValues(Values& v, const std::vector<bool>& has_tensor, const DescribeTensor& describe)
      : v_(v), has_tensor_(has_tensor), describe_(describe) {}
  void below(Id id, const std::string& prefix, std::size_t steps) {
    const auto visit = [&](const Child& c) {
      if (bytes_ > kMostBytes || found_.size() == kMostTexts || ++visited_ > kMostVisited) return false;
      if (!v_.is(c.value, Kind::Tensor) || !has_tensor_[c.value]) visit_one(c, prefix, steps);  // others are tensors
      return true;
    };
    visit_children(v_, id, false, visit);
    if (v_.is(id, Kind::Object)) visit_children(v_, id, true, visit);
  }
  void add(const std::string& path, std::string text) {
    const std::size_t bytes = 160 + path.size() + text.size();
    v_.budget().take(bytes);
    bytes_ += bytes;
    found_.try_emplace(path, std::move(text));
  }
  std::map<std::string, std::string> found_;

 private:
  void visit_one(const Child& c, const std::string& prefix, std::size_t steps) {
    const std::string path = prefix + (c.name.empty() ? str_cat(c.place) : std::string(c.name.substr(0, kLongestName)));
    if (!has_tensor_[c.value]) return add(path, JsonText(v_, describe_).of(c.value));
    if (v_.is(c.value, Kind::Object)) add(path, str_cat("<", v_.text(v_[c.value].of), ">"));
    if (steps < kStepsFromRoot) below(c.value, path + ".", steps + 1);
  }
  std::size_t bytes_ = 0, visited_ = 0;
  Values& v_;
  const std::vector<bool>& has_tensor_;
  const DescribeTensor& describe_;
};

}  // namespace

std::map<std::string, std::string> plain_values(Values& v, Id root, const std::vector<bool>& has_tensor,
                                                const DescribeTensor& describe_tensor) {
  PlainValues plain(v, has_tensor, describe_tensor);
  if (v.is(root, Kind::Object)) plain.add("class", std::string(v.text(v[root].of)));
  plain.below(root, "", 1);
  return std::move(plain.found_);
}

}  // namespace lc::io::torch
