#include "inputs.h"

#include <algorithm>
#include <filesystem>

#include "../train/table.h"
#include "lightcone/backends/cpu/cpu.h"
#include "lightcone/base/error.h"
#include "lightcone/base/numbers.h"
#include "lightcone/io/audio/audio.h"
#include "lightcone/io/data/readers.h"
#include "lightcone/io/printable.h"
#include "lightcone/io/text/tokenizer.h"
#include "lightcone/ops/audio/audio.h"
#include "lightcone/passes/passes.h"
#include "lightcone/runtime/program.h"

namespace lc::tool {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIds[] = {"input_ids", "ids", "tokens", "input_tokens"};
constexpr std::string_view kMasks[] = {"attention_mask", "mask", "input_mask"};
constexpr std::string_view kTypes[] = {"token_type_ids", "segment_ids", "type_ids"};
constexpr std::string_view kPositions[] = {"position_ids", "positions"};

bool is_one_of(std::string_view name, std::span<const std::string_view> all) {
  return std::ranges::find(all, name) != all.end();
}
bool is_file(const std::string& path) {
  std::error_code ec;
  return fs::exists(path, ec);
}

// The numbers of "0.5" or "0.667,1,0.8"; empty for another text.
std::vector<double> numbers_of(std::string_view text) {
  std::vector<double> all;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const auto v = real_of<double>(text.substr(at, end - at));
    if (!v) return {};
    all.push_back(*v);
    at = end + 1;
  }
  return all;
}

class Reader {
 public:
  Reader(const RunOptions& o, const ModelFile& m) : o_(o), model_(m) {}
  void read(const std::string& word);
  Inputs take() { return std::move(in_); }

 private:
  const Port* port(const std::string& name) const;
  const Port& next(const std::string& for_what) const;
  void npz(const std::string& name, const std::string& file, const std::string& member);
  void array(const std::string& name, const std::string& file, Array a);
  void picture(const std::string& name, const std::string& file);
  void sound(const std::string& name, const std::string& file);
  void text(const std::string& name, const std::string& text);
  void numbers(const std::string& name, const std::string& text, const std::vector<double>& all);
  void ids(const Port& p, std::vector<int> values, int pad);
  void give(const std::string& name, Array a) { in_.arrays.insert_or_assign(name, std::move(a)); }
  std::int64_t rate() const;
  const Tokenizer& tokenizer();
  const RunOptions& o_;
  const ModelFile& model_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  Inputs in_;
};

const Port* Reader::port(const std::string& name) const {
  const auto p = std::ranges::find(model_.inputs(), name, &Port::name);
  return p == model_.inputs().end() ? nullptr : &*p;
}

// The input for a value without a name: the first that has none yet.
const Port& Reader::next(const std::string& for_what) const {
  for (const Port& p : model_.inputs())
    if (!in_.arrays.contains(p.name)) return p;
  throw Error("run", str_cat("the model has no further input for ", in_quotes(for_what)));
}

void Reader::read(const std::string& word) {
  std::string name, value = word;
  if (const std::size_t at = word.find('='); at != word.npos && !is_file(word)) {
    if (port(word.substr(0, at))) {
      name = word.substr(0, at), value = word.substr(at + 1);
    } else if (is_file(word.substr(at + 1))) {
      std::string all;
      for (const Port& p : model_.inputs()) all += (all.empty() ? "" : ", ") + printable(p.name, 100);
      throw Error("run", str_cat("the model has no input ", in_quotes(word.substr(0, at)), "; it has ", all));
    }
  }
  if (!is_file(value)) {
    if (const std::size_t at = value.rfind(".npz:"); at != value.npos && is_file(value.substr(0, at + 4)))
      return npz(name, value.substr(0, at + 4), value.substr(at + 5));
    if (const auto all = numbers_of(value); !all.empty()) return numbers(name, value, all);
    for (const char* end : {".npy", ".npz", ".jpg", ".jpeg", ".png", ".wav", ".flac"})
      if (value.ends_with(end)) throw Error("run", str_cat("there is no file ", in_quotes(value)));
    return text(name, value);
  }
  switch (file_format(value)) {
    case FileFormat::Npy: return array(name, value, read_npy(value, kOwnFiles));
    case FileFormat::Npz: return npz(name, value, "");
    case FileFormat::Picture: return picture(name, value);
    case FileFormat::Sound: return sound(name, value);
    default:
      throw file_error("run", value, "is ", lc::name(file_format(value)),
                       ", and inputs are .npy, .npz, pictures, sounds, numbers and texts");
  }
}

void Reader::npz(const std::string& name, const std::string& file, const std::string& member) {
  Arrays all = read_npz(file, kOwnFiles);
  if (!member.empty() || !name.empty()) {
    const auto a = member.empty() && all.size() == 1 ? all.begin() : all.find(member.empty() ? name : member);
    if (a == all.end())
      throw file_error("run", file, "has no member ", in_quotes(member.empty() ? name : member),
                       "; NAME=FILE.npz:MEMBER names one");
    return array(name.empty() ? next(file).name : name, file, std::move(a->second));
  }
  for (auto& [key, a] : all)
    if (port(key)) array(key, file, std::move(a));
}

// Gives an array the type of the model's input, if no number changes.
void Reader::array(const std::string& name, const std::string& file, Array a) {
  const Port& p = name.empty() ? next(file) : *port(name);
  const DType to = p.dtype.value_or(a.dtype);
  if (a.dtype == to) return give(p.name, std::move(a));
  Array r = Array::zeros(to, a.shape);
  const auto n = static_cast<std::size_t>(a.elements());
  for (std::size_t k = 0; k < n; ++k) {
    if (is_float(to)) {
      store_f64(r.bytes.data(), to, k,
                is_float(a.dtype) ? load_f64(a.bytes.data(), a.dtype, k)
                                  : to_f64(load_i64(a.bytes.data(), a.dtype, k), a.dtype));
    } else if (!is_float(a.dtype)) {
      const std::int64_t v = load_i64(a.bytes.data(), a.dtype, k);
      store_i64(r.bytes.data(), to, k, v);
      if (load_i64(r.bytes.data(), to, k) != v)
        throw Error("run", str_cat("input ", in_quotes(p.name), " is ", lc::name(to), ", which cannot hold ", v));
    } else {
      throw Error("run", str_cat("input ", in_quotes(p.name), " is ", lc::name(to), ", and the array given is ",
                                 lc::name(a.dtype)));
    }
  }
  give(p.name, std::move(r));
}

void Reader::picture(const std::string& name, const std::string& file) {
  const Port& p = name.empty() ? next(file) : *port(name);
  PictureInput made = picture_input(file, p, o_.picture);
  in_.said.push_back(str_cat("input ", printable(p.name, 100), ": ", made.said));
  give(p.name, std::move(made.array));
  if (!in_.picture) in_.picture = std::move(made.placed), in_.file = file;
}

// ---- sound ----------------------------------------------------------------------------------------

// --rate, or what the model's metadata say, or the number for an input that tells the model its rate; else 0.
std::int64_t Reader::rate() const {
  if (o_.rate > 0) return o_.rate;
  const auto rate_of = [](std::string_view text) {
    const auto v = real_of<double>(text);
    return v && *v >= 1 && *v < 1e7 ? static_cast<std::int64_t>(*v) : 0;
  };
  for (const char* key : {"sample_rate", "sampling_rate"})
    if (const auto m = model_.metadata().find(key); m != model_.metadata().end())
      if (const auto rate = rate_of(m->second)) return rate;
  for (const char* key : {"sr", "sample_rate", "sampling_rate"})
    for (const std::string& word : o_.inputs)
      if (port(key) && word.starts_with(str_cat(key, "=")))
        if (const auto rate = rate_of(std::string_view(word).substr(word.find('=') + 1))) return rate;
  return 0;
}

// One channel at the rate of the model.
Array mono(const Audio& a, std::int64_t rate) {
  Graph g;
  const std::int64_t frames = a.samples.shape[1];
  Tensor x = mean(g.input("sound", {a.samples.shape[0], frames}), {0});
  if (rate != a.sample_rate) x = audio::resample(x, a.sample_rate, rate);
  g.output("mono", x);
  const Program program = compile(g, generic() | cpu());
  Context c(program);
  c.set("sound", a.samples);
  const std::vector<float> samples = c.run().get("mono");
  return Array::of<float>({static_cast<std::int64_t>(samples.size())}, samples);
}

void Reader::sound(const std::string& name, const std::string& file) {
  const Port& p = name.empty() ? next(file) : *port(name);
  // the axis of the samples: the only one with a number above 1, else the last
  const std::vector<std::int64_t> shape = p.shape.value_or(std::vector<std::int64_t>{});
  const auto long_ones = std::ranges::count_if(shape, [](std::int64_t e) { return e > 1; });
  const auto axis = long_ones == 1  ? std::ranges::find_if(shape, [](std::int64_t e) { return e > 1; })
                    : shape.empty() ? shape.end()
                                    : shape.end() - 1;
  const bool wave = p.dtype && is_float(*p.dtype) && !shape.empty() && shape.size() <= 3 && long_ones <= 1;
  if (!wave)
    throw Error(
        "run", str_cat("a sound is for an input of samples, [.., n], and the input ", in_quotes(p.name), " is ", p.type,
                       ": what it takes (a spectrogram?) is made with lightcone/ops/audio/audio.h and "
                       "given as .npy"));
  const Audio a = read_audio(file, kOwnFiles);
  if (rate() == 0)
    throw file_error("run", file, "has ", a.sample_rate,
                     " samples a second, and the model does not say how many it takes: --rate N decides (16000 for "
                     "most models of speech)");
  Array samples = mono(a, rate());
  const std::int64_t n = samples.shape[0], wanted = *axis;
  if (wanted >= 0 && n > wanted)
    throw file_error("run", file, "has ", n, " samples at ", rate(), " a second, and the input ", in_quotes(p.name),
                     " takes ", wanted, ": cut it");
  samples.shape.assign(shape.size(), 1);
  samples.shape[static_cast<std::size_t>(axis - shape.begin())] = std::max(n, wanted);
  samples.bytes.resize(static_cast<std::size_t>(std::max(n, wanted)) * 4);
  in_.said.push_back(str_cat("input ", printable(p.name, 100), ": ", printable(file, 200), ", ", a.samples.shape[0],
                             a.samples.shape[0] == 1 ? " channel" : " channels", " of ", a.sample_rate,
                             " samples a second, as ", n, " samples at ", rate(), n < wanted ? ", then zeros" : ""));
  array(p.name, file, std::move(samples));
}

// ---- texts and numbers ----------------------------------------------------------------------------

const Tokenizer& Reader::tokenizer() {
  if (tokenizer_) return *tokenizer_;
  const std::string file = o_.tokenizer.empty() ? find_tokenizer_file(model_.path()) : o_.tokenizer;
  if (file.empty())
    throw Error("run", str_cat("a text needs a tokenizer, and none lies beside ", in_quotes(model_.path()),
                               ": --tokenizer FILE names one"));
  return *(tokenizer_ = load_tokenizer(file));
}

// A row of ids, padded to the extent of the input.
void Reader::ids(const Port& p, std::vector<int> values, int pad) {
  if (!p.shape || p.shape->empty() || p.shape->size() > 2 || !p.dtype || is_float(*p.dtype))
    throw Error("run",
                str_cat("a text is for an input of ids, [1, n], and the input ", in_quotes(p.name), " is ", p.type));
  const std::int64_t wanted = p.shape->back();
  if (wanted >= 0 && static_cast<std::int64_t>(values.size()) > wanted)
    throw Error("run", str_cat("the text has ", values.size(), " tokens, and the input ", in_quotes(p.name), " takes ",
                               wanted));
  if (wanted >= 0) values.resize(static_cast<std::size_t>(wanted), pad);
  std::vector<std::int64_t> shape(p.shape->size(), 1);
  shape.back() = static_cast<std::int64_t>(values.size());
  Array a = Array::zeros(*p.dtype, shape);
  for (std::size_t k = 0; k < values.size(); ++k) store_i64(a.bytes.data(), a.dtype, k, values[k]);
  give(p.name, std::move(a));
}

void Reader::text(const std::string& name, const std::string& text) {
  const auto find = [&](std::span<const std::string_view> names) -> const Port* {
    for (const Port& p : model_.inputs())
      if (is_one_of(p.name, names) && !in_.arrays.contains(p.name)) return &p;
    return nullptr;
  };
  const Port* p = name.empty() ? find(kIds) : port(name);
  if (!p)
    throw Error("run", str_cat(in_quotes(text),
                               " is no file, no number, and no text that the model takes: it has no "
                               "input called input_ids; NAME=\"text\" names the input that takes ids"));
  const Encoding e = tokenizer().encoding(text);
  ids(*p, e.ids, 0);
  std::string filled = printable(p->name, 100);
  const auto also = [&](std::span<const std::string_view> names, const std::vector<int>& values) {
    const Port* other = find(names);
    if (!other || (!name.empty() && !is_one_of(name, kIds))) return;
    ids(*other, values, 0);
    filled += ", " + printable(other->name, 100);
  };
  also(kMasks, e.attention_mask), also(kTypes, e.type_ids);
  std::vector<int> positions(e.ids.size());
  for (std::size_t k = 0; k < positions.size(); ++k) positions[k] = static_cast<int>(k);
  also(kPositions, positions);
  in_.said.push_back(str_cat("input ", filled, ": ", e.ids.size(), " tokens of ", in_quotes(text)));
}

void Reader::numbers(const std::string& name, const std::string& text, const std::vector<double>& all) {
  const Port& p = name.empty() ? next(text) : *port(name);
  // the last open extent is that of the numbers, and others are 1; one number fills a larger input
  std::vector<std::int64_t> shape = p.shape.value_or(std::vector<std::int64_t>{});
  std::int64_t fixed = 1, *open = nullptr;
  for (std::int64_t& e : shape) {
    if (e >= 0) fixed *= e;
    else e = 1, open = &e;
  }
  const bool fills = all.size() == 1 && fixed > 1;
  if (open && fixed > 0 && !fills) *open = static_cast<std::int64_t>(all.size()) / fixed;
  const std::int64_t n = open ? fixed * *open : fixed;
  if (n != static_cast<std::int64_t>(all.size()) && !fills)
    throw Error("run", str_cat(in_quotes(text), " is ", all.size(), all.size() == 1 ? " number" : " numbers",
                               ", and the input ", in_quotes(p.name), " is ", p.type));
  const DType dtype = p.dtype.value_or(DType::F32);
  Array a = Array::zeros(dtype, shape);
  for (std::size_t k = 0; k < static_cast<std::size_t>(n); ++k) {
    const double v = all[fills ? 0 : k];
    if (is_float(dtype)) {
      store_f64(a.bytes.data(), dtype, k, v);
      continue;
    }
    const bool whole = v == static_cast<double>(static_cast<std::int64_t>(std::clamp(v, -9e18, 9e18)));
    if (whole) store_i64(a.bytes.data(), dtype, k, static_cast<std::int64_t>(v));
    if (!whole || to_f64(load_i64(a.bytes.data(), dtype, k), dtype) != v)
      throw Error("run", str_cat("input ", in_quotes(p.name), " is ", lc::name(dtype), ", which cannot hold ",
                                 formatted("%.17g", v)));
  }
  in_.said.push_back(str_cat("input ", printable(p.name, 100), ": the ", all.size() == 1 ? "number " : "numbers ",
                             printable(text, 100)));
  give(p.name, std::move(a));
}

}  // namespace

Inputs read_inputs(const RunOptions& o, const ModelFile& model) {
  Reader r(o, model);
  for (const std::string& word : o.inputs) r.read(word);
  return r.take();
}

}  // namespace lc::tool
