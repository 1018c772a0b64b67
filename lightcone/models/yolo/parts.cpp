#include "lightcone/models/yolo/parts.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "lightcone/io/printable.h"
#include "lightcone/models/yolo/convolutions.h"
#include "lightcone/ops/shape.h"

namespace lc {
namespace {

// Builds the parts of one module.
struct Builder {
  const YoloSource& s;
  std::string path;
  YoloPartHints hints;
  std::string at(const std::string& name) const { return path + "." + name; }
  YoloPartPtr conv(const std::string& name, std::int64_t in, int stride = 1) const {
    return yolo_part(s, at(name), in, {"", stride, hints.shortcut});
  }
  // The parts name.0, name.1, ..., each of which keeps the channels.
  std::vector<std::pair<std::string, YoloPartPtr>> list(const std::string& name, std::int64_t in) const {
    std::vector<std::pair<std::string, YoloPartPtr>> all;
    for (std::int64_t k = 0, n = s.parts(at(name)); k < n; ++k) {
      const std::string part = str_cat(name, ".", k);
      all.emplace_back(part, yolo_part(s, at(part), in, {"", 1, hints.shortcut}));
      in = all.back().second->out;
    }
    return all;
  }
  std::int64_t half(std::int64_t channels) const {
    if (channels % 2 != 0) s.refuse(str_cat(in_quotes(path), " halves ", channels, " channels"));
    return channels / 2;
  }
};

// A part that has others.
class Whole : public YoloPart {
 public:
  void visit(nn::Visitor& v) override {
    for (auto& [name, part] : parts_) v(name, *part);
  }

 protected:
  YoloPartPtr add(const std::string& name, YoloPartPtr part) {
    parts_.emplace_back(name, part);
    return part;
  }
  std::vector<YoloPartPtr> add(std::vector<std::pair<std::string, YoloPartPtr>> list) {
    std::vector<YoloPartPtr> all;
    for (auto& [name, part] : list) all.push_back(add(name, std::move(part)));
    return all;
  }

 private:
  std::vector<std::pair<std::string, YoloPartPtr>> parts_;
};

std::pair<Tensor, Tensor> halves(const Tensor& x) {
  const Dim half = x.extent(1) / Dim(2);
  return {narrow(x, 1, 0, half), narrow(x, 1, half, half)};
}
Tensor through(const std::vector<YoloPartPtr>& parts, Tensor x) {
  for (const YoloPartPtr& p : parts) x = (*p)(x);
  return x;
}

class Sequence : public Whole {
 public:
  Sequence(const Builder& b, std::int64_t in) {
    for (std::int64_t k = 0, n = b.s.parts(b.path); k < n; ++k) {
      parts_.push_back(add(str_cat(k), yolo_part(b.s, b.at(str_cat(k)), in, {"", 1, b.hints.shortcut})));
      in = parts_.back()->out;
    }
    out = in;
  }
  Tensor operator()(const Tensor& x) const override { return through(parts_, x); }

 private:
  std::vector<YoloPartPtr> parts_;
};

class Bottleneck : public Whole {
 public:
  Bottleneck(const Builder& b, std::int64_t in)
      : first_(add("cv1", b.conv("cv1", in))), second_(add("cv2", b.conv("cv2", first_->out))) {
    out = second_->out;
    shortcut_ = b.s.flag(b.path, "add", b.hints.shortcut && in == out);
    if (shortcut_ && in != out) b.s.refuse(str_cat(in_quotes(b.path), " adds ", in, " channels to ", out));
  }
  Tensor operator()(const Tensor& x) const override {
    const Tensor y = (*second_)((*first_)(x));
    return shortcut_ ? x + y : y;
  }

 private:
  YoloPartPtr first_, second_;
  bool shortcut_;
};

// Half of the channels go through bottlenecks, and what each gives is kept (C2f, C3k2).
class C2f : public Whole {
 public:
  C2f(const Builder& b, std::int64_t in) : first_(add("cv1", b.conv("cv1", in))) {
    const std::int64_t half = b.half(first_->out);
    list_ = add(b.list("m", half));
    last_ = add("cv2", b.conv("cv2", half * (2 + std::ssize(list_))));
    out = last_->out;
  }
  Tensor operator()(const Tensor& x) const override {
    std::vector<Tensor> all{(*first_)(x)};
    Tensor y = halves(all[0]).second;
    for (const YoloPartPtr& p : list_) all.push_back(y = (*p)(y));
    return (*last_)(cat(all, 1));
  }

 private:
  YoloPartPtr first_, last_;
  std::vector<YoloPartPtr> list_;
};

// A branch through bottlenecks beside one of a convolution (C3, C3k, RepCSP).
class C3 : public Whole {
 public:
  C3(const Builder& b, std::int64_t in)
      : first_(add("cv1", b.conv("cv1", in))),
        beside_(add("cv2", b.conv("cv2", in))),
        list_(add(b.list("m", first_->out))),
        last_(add("cv3", b.conv("cv3", (list_.empty() ? first_->out : list_.back()->out) + beside_->out))) {
    out = last_->out;
  }
  Tensor operator()(const Tensor& x) const override {
    return (*last_)(cat({through(list_, (*first_)(x)), (*beside_)(x)}, 1));
  }

 private:
  YoloPartPtr first_, beside_;
  std::vector<YoloPartPtr> list_;
  YoloPartPtr last_;
};

// Maxima over larger and larger windows: SPP with windows side by side, SPPF and SPPELAN one after the other.
class Pyramid : public Whole {
 public:
  Pyramid(const Builder& b, std::int64_t in, std::vector<int> windows, bool chained, const char* last)
      : windows_(std::move(windows)),
        chained_(chained),
        zeros_(b.s.zero_pools),
        first_(add("cv1", b.conv("cv1", in))),
        last_(add(last, b.conv(last, first_->out * (1 + std::ssize(windows_))))) {
    out = last_->out;
    shortcut_ = b.s.flag(b.path, "add", false);
  }
  Tensor operator()(const Tensor& x) const override {
    std::vector<Tensor> all{(*first_)(x)};
    for (const int k : windows_) {
      const Tensor& from = chained_ ? all.back() : all.front();
      all.push_back(zeros_ ? max_pool(from.pad(2, k / 2, k / 2).pad(3, k / 2, k / 2), k, 1)
                           : max_pool(from, k, 1, k / 2));
    }
    const Tensor y = (*last_)(cat(all, 1));
    return shortcut_ ? y + x : y;
  }

 private:
  std::vector<int> windows_;
  bool chained_, zeros_, shortcut_;
  YoloPartPtr first_, last_;
};

// The window of a pool, as its module says.
int window_of(const Builder& b, const std::string& pool, int otherwise) {
  const std::vector<int> k = b.s.wholes(b.at(pool), "kernel_size", {otherwise});
  constexpr int kLargest = 63;
  if (k.empty() || k.front() != k.back() || k.front() < 1 || k.front() > kLargest || k.front() % 2 == 0)
    b.s.refuse(str_cat(in_quotes(b.at(pool)), ": windows like this are not supported"));
  return k.front();
}

YoloPartPtr pyramid(const Builder& b, const std::string& type, std::int64_t in) {
  if (type == "SPPELAN") {
    std::vector<int> windows;
    for (const char* pool : {"cv2", "cv3", "cv4"}) windows.push_back(window_of(b, pool, 5));
    return std::make_shared<Pyramid>(b, in, windows, true, "cv5");
  }
  if (type == "SPP") {
    const std::vector<int> windows{window_of(b, "m.0", 5), window_of(b, "m.1", 9), window_of(b, "m.2", 13)};
    return std::make_shared<Pyramid>(b, in, windows, false, "cv2");
  }
  const std::vector<int> times = b.s.wholes(b.path, "n", {3});
  constexpr int kMostPools = 64;
  if (times.size() != 1 || times[0] < 0 || times[0] > kMostPools)
    b.s.refuse(str_cat(in_quotes(b.path), " has a number of pools that is not supported"));
  const std::vector<int> windows(static_cast<std::size_t>(times[0]), window_of(b, "m", 5));
  return std::make_shared<Pyramid>(b, in, windows, true, "cv2");
}

// GELAN: half of the channels go through two branches, and what each gives is kept (RepNCSPELAN4, ELAN1).
class Elan : public Whole {
 public:
  Elan(const Builder& b, std::int64_t in)
      : first_(add("cv1", b.conv("cv1", in))),
        second_(add("cv2", b.conv("cv2", b.half(first_->out)))),
        third_(add("cv3", b.conv("cv3", second_->out))),
        last_(add("cv4", b.conv("cv4", first_->out + second_->out + third_->out))) {
    out = last_->out;
  }
  Tensor operator()(const Tensor& x) const override {
    const Tensor a = (*first_)(x), b = (*second_)(halves(a).second);
    return (*last_)(cat({a, b, (*third_)(b)}, 1));
  }

 private:
  YoloPartPtr first_, second_, third_, last_;
};

// Means of 2 x 2 neighbours before a convolution of stride 2. As sums of views they are one loop over the map.
Tensor blurred(const Tensor& x) {
  const Dim h = x.extent(2) - 1, w = x.extent(3) - 1;
  const Tensor above = narrow(x, 2, 0, h), below = narrow(x, 2, 1, h);
  return (narrow(above, 3, 0, w) + narrow(above, 3, 1, w) + narrow(below, 3, 0, w) + narrow(below, 3, 1, w)) * 0.25;
}

class AConv : public Whole {
 public:
  AConv(const Builder& b, std::int64_t in) : conv_(add("cv1", b.conv("cv1", in, 2))) { out = conv_->out; }
  Tensor operator()(const Tensor& x) const override { return (*conv_)(blurred(x)); }

 private:
  YoloPartPtr conv_;
};
class ADown : public Whole {
 public:
  ADown(const Builder& b, std::int64_t in)
      : conv_(add("cv1", b.conv("cv1", b.half(in), 2))), pooled_(add("cv2", b.conv("cv2", b.half(in)))) {
    out = conv_->out + pooled_->out;
  }
  Tensor operator()(const Tensor& x) const override {
    const auto [a, b] = halves(blurred(x));
    return cat({(*conv_)(a), (*pooled_)(max_pool(b, 3, 2, 1))}, 1);
  }

 private:
  YoloPartPtr conv_, pooled_;
};

// Attention of all positions of a picture, with a depthwise convolution of the values as their positions.
class PictureAttention : public Whole {
 public:
  PictureAttention(const Builder& b, std::int64_t in)
      : qkv_(add("qkv", b.conv("qkv", in))),
        project_(add("proj", b.conv("proj", in))),
        place_(add("pe", b.conv("pe", in))) {
    constexpr int kHead = 64;  // channels of a head, where the file does not say how many there are
    out = in;
    const std::vector<int> heads = b.s.wholes(b.path, "num_heads", {std::max(1, static_cast<int>(in / kHead))});
    heads_ = heads.empty() ? 0 : heads[0];
    const std::int64_t keys = qkv_->out - in;
    if (heads_ < 1 || in % heads_ != 0 || keys < 2 * heads_ || keys % (2 * heads_) != 0 || project_->out != in)
      b.s.refuse(str_cat(in_quotes(b.path), " has ", heads_, " heads for ", in, " channels and ", keys, " of keys"));
    key_ = keys / (2 * heads_);
  }
  Tensor operator()(const Tensor& x) const override {
    const Dim batch = x.extent(0), h = x.extent(2), w = x.extent(3);
    const std::int64_t value = out / heads_;
    const Tensor all = (*qkv_)(x).reshape({batch, heads_, 2 * key_ + value, h * w}).permute({0, 1, 3, 2});
    const Tensor v = narrow(all, 3, 2 * key_, value);
    const Tensor y =
        scaled_dot_product_attention(narrow(all, 3, 0, key_), narrow(all, 3, key_, key_), v, AttentionOptions{});
    const auto picture = [&](const Tensor& t) { return t.permute({0, 1, 3, 2}).reshape({batch, out, h, w}); };
    return (*project_)(picture(y) + (*place_)(picture(v)));
  }

 private:
  YoloPartPtr qkv_, project_, place_;
  std::int64_t heads_ = 1, key_ = 0;
};

class AttentionBlock : public Whole {
 public:
  AttentionBlock(const Builder& b, std::int64_t in)
      : attention_(add("attn", std::make_shared<PictureAttention>(Builder{b.s, b.at("attn"), {}}, in))),
        network_(add("ffn", b.conv("ffn", in))) {
    out = in;
    shortcut_ = b.s.flag(b.path, "add", true);
    if (network_->out != in) b.s.refuse(str_cat(in_quotes(b.path), " does not keep its ", in, " channels"));
  }
  Tensor operator()(const Tensor& x) const override {
    const Tensor y = shortcut_ ? x + (*attention_)(x) : (*attention_)(x);
    return shortcut_ ? y + (*network_)(y) : (*network_)(y);
  }

 private:
  YoloPartPtr attention_, network_;
  bool shortcut_;
};

// Half of the channels go through blocks of attention.
class C2PSA : public Whole {
 public:
  C2PSA(const Builder& b, std::int64_t in) : first_(add("cv1", b.conv("cv1", in))) {
    const std::int64_t half = b.half(first_->out);
    for (std::int64_t k = 0, n = b.s.parts(b.at("m")); k < n; ++k) {
      const std::string name = str_cat("m.", k);
      list_.push_back(add(name, std::make_shared<AttentionBlock>(Builder{b.s, b.at(name), {}}, half)));
    }
    last_ = add("cv2", b.conv("cv2", 2 * half));
    out = last_->out;
  }
  Tensor operator()(const Tensor& x) const override {
    const auto [a, b] = halves((*first_)(x));
    return (*last_)(cat({a, through(list_, b)}, 1));
  }

 private:
  YoloPartPtr first_, last_;
  std::vector<YoloPartPtr> list_;
};

// What a part without a class looks like by its weights.
std::string guessed(const YoloSource& s, const std::string& path) {
  const auto has = [&](const char* name) { return s.has(str_cat(path, ".", name)); };
  if (has("weight")) return "Conv2d";
  if (has("conv1.conv.weight")) return "RepConv";
  if (has("conv.weight")) return "Conv";
  if (has("cv3.conv.weight")) return "C3k";
  if (has("cv1.conv.weight") || has("cv1.conv1.conv.weight")) return "Bottleneck";
  return "Sequential";
}

template <class Part>
YoloPartPtr made(const Builder& b, std::int64_t in) {
  return std::make_shared<Part>(b, in);
}
using Maker = YoloPartPtr (*)(const Builder&, std::int64_t);
constexpr std::pair<std::string_view, Maker> kParts[] = {
    {"Sequential", made<Sequence>},
    {"Bottleneck", made<Bottleneck>},
    {"RepBottleneck", made<Bottleneck>},
    {"RepNBottleneck", made<Bottleneck>},
    {"C2f", made<C2f>},
    {"C3k2", made<C2f>},
    {"C3", made<C3>},
    {"C3k", made<C3>},
    {"RepCSP", made<C3>},
    {"RepNCSP", made<C3>},
    {"RepNCSPELAN4", made<Elan>},
    {"ELAN1", made<Elan>},
    {"AConv", made<AConv>},
    {"ADown", made<ADown>},
    {"C2PSA", made<C2PSA>},
    {"PSABlock", made<AttentionBlock>},
};

}  // namespace

YoloPartPtr yolo_part(const YoloSource& s, const std::string& path, std::int64_t in, const YoloPartHints& hints) {
  const std::string known = s.type(path);
  const std::string type = !known.empty() ? known : !hints.type.empty() ? hints.type : guessed(s, path);
  if (YoloPartPtr conv = yolo_convolution(s, path, type, in, hints.stride)) return conv;
  const Builder b{s, path, hints};
  if (type == "SPP" || type == "SPPF" || type == "SPPELAN") return pyramid(b, type, in);
  for (const auto& [name, make] : kParts)
    if (name == type) return make(b, in);
  s.refuse(str_cat("the part ", in_quotes(path), " is a ", in_quotes(type), ", which is not supported"));
}

}  // namespace lc
