// The configuration of `lightcone train`: a JSON file, in which // and /* */ begin comments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/distributed/mesh.h"

namespace lc::tool {

using i64 = std::int64_t;

struct ModelConfig {
  std::string kind;          // mlp, vgg, resnet, llama, encoder, vision, or a network of torchvision by its name
  std::vector<i64> hidden;   // mlp: widths between features and classes
  double dropout = 0;        // mlp, vgg
  i64 depth = 0, width = 0;  // vgg: blocks of two convolutions; resnet: 6 n + 2 layers. width: first channels
  // llama
  i64 layers = 0, heads = 0, kv_heads = 0, intermediate = 0, context = 0, vocabulary = 0;
  std::string tokenizer;  // bpe or char
  bool tied = true;
  std::string weights;                    // checkpoint of the first values; llama: also of all settings but context
  std::vector<std::string> reinitialize;  // not llama: layers that have new ones instead
  i64 lora_rank = 0;                      // llama with weights: above 0 only adapters are trained
  double lora_alpha = 16;
  std::vector<std::string> lora_targets;  // llama: queries and values by default; encoder: the same if it is empty
  i64 length = 0;                         // encoder: longer texts are cut to so many tokens; 0: 128, or the model's
  std::optional<double> own_dropout;      // encoder: in place of what config.json says
  i64 width_divisor = 1;                  // torchvision's: divides all widths
};

struct DataConfig {
  std::string format;                    // csv, npy, npz, idx, cifar10, cifar100, images, text, jsonl or stories
  std::vector<std::string> train, test;  // files; idx and npy: pictures, then labels; images: one folder
  std::string label = "label";           // csv: column of the classes or, for a regression, of the numbers
  std::vector<std::string> features;     // csv: the columns to learn from; empty: all but the label
  std::string missing = "error";         // csv, a missing cell: error, skip (its row), mean (of its column) or number:
  double missing_number = 0;
  std::vector<std::string> na_values;  // csv: words of a missing cell, besides pandas' own
  std::string x = "x", y = "y";        // npz: the arrays
  bool header = true;                  // csv
  bool regression = false;             // csv, npy, npz: labels are numbers to predict, and no classes
  bool standardize = false;            // rows of numbers: each column gets a mean of 0 and a deviation of 1
  bool skip_unreadable = false;        // images: leave out the pictures that cannot be read
  std::vector<i64> shape;              // shape of a sample: [features], [height, width] or [channels, height, width]
  i64 classes = 0;                     // 1 for a regression
  double held_out = 0.1;               // the part at the end that is held out if there is no `test`
  double scale = 0;                    // numbers are divided by it; 0: 255 for bytes, 1 for others
  i64 resize = 0;                      // images: the shorter side, before the middle is cut out
  std::vector<double> mean, std;       // for each channel or column: subtracted and divided by after `scale`
  bool rows() const { return shape.size() == 1; }
  bool augment = false;                  // pictures: shifted by up to 4 pixels and mirrored
  std::string text = "text", text_pair;  // encoder: the columns of the text and, "" for none, of a second one
  std::string separator;                 // text: separator of documents
  bool packing = false;                  // jsonl: several examples in one row
};

struct StepsConfig {
  i64 steps = 0, batch = 0, warmup = 0, seed = 1;
  std::string optimizer = "adamw", schedule = "cosine";
  double lr = 1e-3, weight_decay = 0.01, momentum = 0.9, beta1 = 0.9, beta2 = 0.999, final_lr = 0, clip = 0;
};

// How several ranks share the work.
struct RanksConfig {
  Mesh mesh;                   // with the axes data and model, in this order, or one rank
  std::string shard = "none";  // what the ranks along data divide besides the batch: none, optimizer or full
  double timeout_s = 300;      // how long a rank waits for another one
  i64 data() const { return along("data"); }
  i64 model() const { return along("model"); }

 private:
  i64 along(std::string_view axis) const {
    for (const MeshAxis& a : mesh.axes())
      if (a.name == axis) return a.size;
    return 1;
  }
};

struct TrainConfig {
  std::string name;    // name of the file, for people
  std::string folder;  // folder of the results
  ModelConfig model;
  DataConfig data;
  StepsConfig train;
  RanksConfig ranks;
  i64 part_begin = 0, part_size = 0;  // this rank's samples of a batch; 0: all of them
  i64 evaluate_every = 0, held_out_samples = 0, patience = 0;
  i64 save_every = 0, log_every = 0;
  std::string weights = "bf16";  // type of the language model or the published classifier that is written
  // Settings that decide about the run's bits, "section.key = value" each; --resume compares them.
  std::vector<std::string> decisive;
  bool language() const { return model.kind == "llama"; }
  bool encoder() const { return model.kind == "encoder"; }  // a classifier of texts
  bool vision() const { return model.kind == "vision"; }    // a published classifier of pictures
  bool published() const { return encoder() || vision(); }
  // Returns the name, in the log, of the measure besides the loss.
  std::string measure() const { return language() ? "perplexity" : data.regression ? "r2" : "accuracy"; }
  bool pretrained() const { return language() && !model.weights.empty(); }
};

// Reads a configuration. Throws Error, which names the key, if it is missing, unknown, of another type or out of range.
// Paths are relative to the file.
TrainConfig read_train_config(const std::string& path);
// Returns the configuration with which the story model was trained.
TrainConfig story_config();

// Returns a complete configuration: mlp, vgg, resnet, images, texts, pictures, llama, finetune or stories. Throws Error
// for another name.
std::string_view example_config(const std::string& name);
std::string example_names();

}  // namespace lc::tool
