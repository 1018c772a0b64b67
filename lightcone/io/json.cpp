#include <algorithm>
#include <bit>
#include <limits>

#include <nlohmann/json.hpp>

#include "lightcone/base/numbers.h"
#include "lightcone/io/json_internal.h"
#include "lightcone/io/mapped_file.h"
#include "lightcone/io/printable.h"

namespace lc::io {

using Kind = Json::Kind;
constexpr std::size_t kMaxDepth = 64, kMaxFile = 256u << 20;

// Receives the events of nlohmann's parser.
class JsonBuilder {
 public:
  JsonBuilder(JsonDocument& d, std::string_view path) : d_(d), path_(path) {}

  bool null() { return put(Kind::Null, 0); }
  bool boolean(bool v) { return put(Kind::Bool, v); }
  bool number_integer(std::int64_t v) { return put(Kind::Integer, static_cast<std::uint64_t>(v)); }
  bool number_unsigned(std::uint64_t v) {
    return put(
        v > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) ? Kind::TooLarge : Kind::Integer, v);
  }
  // The parser replaces the decimal point by the one of the C locale, or by its first byte; this restores it.
  bool number_float(double, std::string digits) {
    for (char& c : digits)
      if ((c < '0' || c > '9') && c != '+' && c != '-' && c != 'e' && c != 'E') c = '.';
    return put(Kind::Real, std::bit_cast<std::uint64_t>(real_of<double>(digits).value_or(0)));
  }
  bool string(std::string& s) {
    count();
    return text(s);
  }
  bool key(std::string& s) {
    count();
    return text(s);
  }
  bool binary(nlohmann::json::binary_t&) { return false; }  // does not occur in text
  bool start_object(std::size_t) { return open(Kind::Object); }
  bool start_array(std::size_t) { return open(Kind::Array); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) {
    throw file_error("load", path_, "not JSON: it goes wrong at byte ", position);
  }

 private:
  // Counts a member of the open container. In an object, names are not counted.
  void count() {
    if (open_.empty()) return;
    Json::Node& n = d_.nodes_[open_.back()];
    named_ = n.kind == Kind::Object && !named_;
    if (!named_) ++n.value;
  }
  bool put(Kind kind, std::uint64_t value) {
    count();
    d_.nodes_.push_back({value, 0, kind});
    return true;
  }
  bool text(const std::string& s) {
    d_.nodes_.push_back({d_.texts_.size(), static_cast<std::uint32_t>(s.size()), Kind::String});
    d_.texts_ += s;
    return true;
  }
  bool open(Kind kind) {
    if (open_.size() == kMaxDepth) throw file_error("load", path_, "nested too deeply, more than ", kMaxDepth);
    put(kind, 0);
    open_.push_back(d_.nodes_.size() - 1);
    named_ = false;
    return true;
  }
  bool close() {
    d_.nodes_[open_.back()].extent = static_cast<std::uint32_t>(d_.nodes_.size() - open_.back());
    open_.pop_back();
    named_ = false;
    return true;
  }

  JsonDocument& d_;
  std::string_view path_;
  std::vector<std::size_t> open_;
  bool named_ = false;  // true after the name of a member
};

// Upper bound of the number of values in the text. Commas within strings make it larger, never smaller.
JsonDocument::JsonDocument(std::string_view text, std::string_view path, Budget& budget) {
  if (text.size() > kMaxFile) throw file_error("load", path, "too large for JSON: ", text.size(), " bytes");
  const auto marks =
      std::count_if(text.begin(), text.end(), [](char c) { return c == ',' || c == ':' || c == '{' || c == '['; });
  const std::size_t most = static_cast<std::size_t>(marks) + 2;
  budget.parsed(text.size());
  budget.take(most, sizeof(Json::Node));
  budget.take(4, text.size());  // the texts, and the parser's copy of the current one
  nodes_.reserve(most);
  texts_.reserve(text.size());
  JsonBuilder builder(*this, path);
  nlohmann::json::sax_parse(text, &builder);
}

JsonDocument read_json(const std::string& file, Budget& budget) {
  const auto f = MappedFile::read(file, kMaxFile);
  return {{reinterpret_cast<const char*>(f->bytes().data()), f->bytes().size()}, file, budget};
}

std::size_t Json::size() const {
  return is(Kind::Array) || is(Kind::Object) ? static_cast<std::size_t>(node_->value) : 0;
}
Json::Iterator Json::begin() const {
  return is(Kind::Array) || is(Kind::Object) ? Iterator(node_ + 1, texts_, is(Kind::Object)) : end();
}
Json::Iterator Json::end() const {
  const bool many = is(Kind::Array) || is(Kind::Object);
  return {many ? node_ + node_->extent : node_, texts_, is(Kind::Object)};
}
Json::Member Json::Iterator::operator*() const {
  return {named_ ? Json(at_, texts_).text() : "", Json(named_ ? at_ + 1 : at_, texts_)};
}
Json::Iterator& Json::Iterator::operator++() {
  if (named_) ++at_;
  const bool many = at_->kind == Kind::Array || at_->kind == Kind::Object;
  at_ += many ? at_->extent : 1;
  return *this;
}
Json Json::operator[](std::string_view key) const {
  Json found;
  if (is(Kind::Object))
    for (const Member& m : *this)
      if (m.key == key) found = m.value;
  return found;
}
Json Json::operator[](std::size_t i) const {
  if (is(Kind::Array))
    for (const Member& m : *this)
      if (i-- == 0) return m.value;
  return {};
}
std::string_view Json::text() const {
  return is(Kind::String) ? std::string_view(texts_ + node_->value, node_->extent) : "";
}
std::optional<bool> Json::flag() const { return is(Kind::Bool) ? std::optional(node_->value != 0) : std::nullopt; }
std::optional<std::int64_t> Json::integer() const {
  return is(Kind::Integer) ? std::optional(static_cast<std::int64_t>(node_->value)) : std::nullopt;
}
std::optional<double> Json::number() const {
  switch (kind()) {
    case Kind::Integer: return static_cast<double>(static_cast<std::int64_t>(node_->value));
    case Kind::TooLarge: return static_cast<double>(node_->value);
    case Kind::Real: return std::bit_cast<double>(node_->value);
    default: return std::nullopt;
  }
}

}  // namespace lc::io
