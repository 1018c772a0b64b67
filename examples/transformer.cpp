// The Transformer (A. Vaswani et al., "Attention is all you need", 2017), encoder and decoder, learns to read dates:
//   transformer [STEPS]
//   "the 4th of july, 1996", "Jul 4 96", "04/07/1996"  ->  "1996-07-04"
// Dates are drawn during the run; the final test has days that were not used for training.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "lightcone/io/data/seeded_random.h"
#include "lightcone/lightcone.h"
#include "lightcone/nn/layers.h"
#include "lightcone/optim/schedule.h"
#include "lightcone/train/trace.h"
#include "lightcone/train/trainer.h"

using namespace lc;

constexpr std::int64_t kBatch = 64, kRead = 28, kWrite = 10, kWidth = 64, kCharacters = 128;
constexpr int kHeads = 4, kLayers = 2;
constexpr char kBegin = '>';

struct Date {
  std::string read, written;
};
// Draws a day between 1950 and 2049. One of ten days is kept for the test.
Date draw(SeededRandom& random, bool for_test) {
  static const std::vector<std::string> kMonths{"january", "february", "march",     "april",   "may",      "june",
                                                "july",    "august",   "september", "october", "november", "december"};
  std::uint64_t year, month, day;
  bool kept;
  do {
    year = 1950 + random.below(100), month = random.below(12), day = 1 + random.below(28);
    kept = SeededRandom({year, month, day}).below(10) == 0;
  } while (kept != for_test);
  const std::string name = kMonths[month], m = name.substr(0, 3), y = std::to_string(year), d = std::to_string(day);
  const std::string ending = day / 10 == 1 || day % 10 > 3 ? "th" : std::vector{"th", "st", "nd", "rd"}[day % 10];
  char digits[40], iso[40];
  std::snprintf(digits, sizeof digits, "%02d/%02d/%s", static_cast<int>(day), static_cast<int>(month + 1), y.c_str());
  std::snprintf(iso, sizeof iso, "%s-%02d-%02d", y.c_str(), static_cast<int>(month + 1), static_cast<int>(day));
  const std::string ways[] = {"the " + d + ending + " of " + name + ", " + y,
                              name + " " + d + ", " + y,
                              d + " " + m + " " + y,
                              m + ". " + d + ending + " " + y,
                              digits,
                              y + ", " + d + " " + name};
  return {ways[random.below(std::size(ways))], iso};
}

// From texts [n, 28], and the beginnings of their translations [n, 10], to logits of the next characters [n, 10, 128].
struct Transformer {
  nn::Embedding<kCharacters, kWidth> characters;
  nn::TransformerEncoder encoder{
      {kWidth, kHeads, {.dim_feedforward = 4 * kWidth, .norm_first = true}}, kLayers, nn::LayerNorm<>(kWidth)};
  nn::TransformerDecoder decoder{{kWidth, kHeads, {.dim_feedforward = 4 * kWidth, .norm_first = true, .causal = true}},
                                 kLayers,
                                 nn::LayerNorm<>(kWidth)};
  nn::Linear<kWidth, kCharacters> out;
  void visit(nn::Visitor& v) { v("characters", characters)("encoder", encoder)("decoder", decoder)("out", out); }
  // Embeds characters and their positions: sines of 32 wavelengths, and their cosines (section 3.5 of the paper).
  Tensor embed(const Tensor& ids) const {
    Graph& g = ids.graph();
    const Tensor place = arange(g, ids.extent(1), DType::F32).unsqueeze(1);
    const Tensor angle = place * exp(arange(g, kWidth / 2, DType::F32) * (-2 * std::log(10'000.0) / kWidth));
    return Tensor(characters(ids)) + concat({sin(angle), cos(angle)}, 1);
  }
  Tensor operator()(const Tensor& read, const Tensor& written, auto& mode) const {
    return out(decoder(embed(written), encoder(embed(read), mode), mode));
  }
};

using Ids = std::vector<std::int64_t>;
void append(Ids& ids, const std::string& text, std::int64_t length) {
  for (std::int64_t k = 0; k < length; ++k)
    ids.push_back(k < std::ssize(text) ? text[static_cast<std::size_t>(k)] : ' ');
}
struct Inputs {
  Tensor read, written;
  explicit Inputs(Graph& g)
      : read(g.input("read", {kBatch, kRead}, DType::I64)), written(g.input("written", {kBatch, kWrite}, DType::I64)) {}
};

// Writes each date greedily, a character at a time, and returns the fraction that is right.
double evaluate(const Trainer& trainer, int batches) {
  Graph g;
  nn::Model<Transformer> net(g);
  const Inputs in(g);
  argmax(net(in.read, in.written), 2).retrieve("next");
  Program program = compile(g, generic() | cpu());
  trainer.copy_to(program);
  Context run(program);
  SeededRandom random({2});
  int right = 0;
  for (int batch = 0; batch < batches; ++batch) {
    Ids read;
    std::vector<Date> dates;
    for (int k = 0; k < kBatch; ++k) dates.push_back(draw(random, true)), append(read, dates.back().read, kRead);
    std::vector<std::string> written(kBatch, std::string(1, kBegin));
    run.set("read", read);
    for (std::size_t place = 0; place < kWrite; ++place) {
      Ids so_far;
      for (const std::string& w : written) append(so_far, w, kWrite);
      const Ids next = run.set("written", so_far).run().get_i64("next");
      for (std::size_t k = 0; k < kBatch; ++k) written[k] += static_cast<char>(next[k * kWrite + place]);
    }
    for (std::size_t k = 0; k < kBatch; ++k) right += written[k].substr(1) == dates[k].written;
    if (batch == 0)
      for (std::size_t k = 0; k < 4; ++k) std::cout << "  " << dates[k].read << " -> " << written[k].substr(1) << '\n';
  }
  return static_cast<double>(right) / static_cast<double>(batches * kBatch);
}

int main(int argc, char** argv) {
  const std::int64_t steps = argc > 1 ? std::atoll(argv[1]) : 600;
  Graph g;
  nn::Model<Transformer> net(g);
  const Inputs in(g);
  const Tensor right = g.input("right", {kBatch * kWrite}, DType::I64);
  auto loss = trace(net, [&](auto& net) {
    return cross_entropy(net(in.read, in.written).reshape({kBatch * kWrite, kCharacters}), right);
  });
  loss.loss().retrieve("loss");
  Gradients<Transformer> d = backward(std::move(loss));
  d.clip_norm(1);
  const Tensor done = optim::counter(g);
  const auto rate = optim::warm_up(optim::cosine_annealing(2e-3, steps), 50);
  update(net, optim::AdamW{}, std::move(d), {.lr = rate(done), .step = done});
  Trainer trainer(net, generic() | cpu(), {.seed = 1});
  std::cout << net.count() << " parameters\n";

  SeededRandom random({1});
  float first = 0, last = 0;
  for (std::int64_t step = 0; step < steps; ++step) {
    Ids read, written, wanted;
    for (int k = 0; k < kBatch; ++k) {
      const Date date = draw(random, false);
      append(read, date.read, kRead), append(written, kBegin + date.written, kWrite),
          append(wanted, date.written, kWrite);
    }
    trainer.context().set("read", read).set("written", written).set("right", wanted);
    last = trainer.step();
    if (step == 0) first = last;
    if (step % 100 == 0) std::cout << "step " << step << ": loss " << last << std::endl;
  }
  const double read = evaluate(trainer, 10);
  std::cout << "of days that it never saw it reads " << 100 * read << " %\n";
  return last < first / 2 ? 0 : 1;
}
