// What `lightcone train` is told: a JSON file, in which // and /* */ begin comments.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lc::tool {

using i64 = std::int64_t;

struct ModelConfig {
  std::string kind;          // mlp, vgg, resnet, llama, or a network of torchvision's by its name there
  std::vector<i64> hidden;   // mlp: widths between features and classes
  double dropout = 0;        // mlp, vgg
  i64 depth = 0, width = 0;  // vgg: blocks of two convolutions; resnet: 6 n + 2 layers. width: channels of the first
  // llama
  i64 layers = 0, heads = 0, kv_heads = 0, intermediate = 0, context = 0, vocabulary = 0;
  std::string tokenizer;  // bpe or char
  bool tied = true;
  std::string weights;                    // what the first values come from; of llama the rest, but for context, too
  std::vector<std::string> reinitialize;  // not llama: layers that have new ones instead
  i64 lora_rank = 0;                      // of llama with weights: above 0 adapters alone are trained
  double lora_alpha = 16;
  std::vector<std::string> lora_targets = {"q_proj", "v_proj"};
  i64 width_divisor = 1;  // torchvision's: makes all widths smaller
};

struct DataConfig {
  std::string format;                    // csv, npy, npz, idx, cifar10, cifar100, images, text, jsonl or stories
  std::vector<std::string> train, test;  // files; of idx and npy: pictures, then labels; of images: one folder
  std::string label = "label";           // csv: the column of classes or, of a regression, of numbers
  std::vector<std::string> features;     // csv: the columns to learn from; none: all but the label
  std::string missing = "error";         // csv, a missing cell: error, skip (its row), mean (of its column) or number:
  double missing_number = 0;
  std::vector<std::string> na_values;  // csv: words of a missing cell, beside those that pandas knows
  std::string x = "x", y = "y";        // npz: the arrays
  bool header = true;                  // csv
  bool regression = false;             // csv, npy, npz: labels are numbers to come near to, and no classes
  bool standardize = false;            // rows of numbers: each column gets a mean of 0 and a deviation of 1
  bool skip_unreadable = false;        // images: leave out the pictures that cannot be read
  std::vector<i64> shape;              // of one sample: [features], [height, width] or [channels, height, width]
  i64 classes = 0;                     // of a regression 1
  double held_out = 0.1;               // the part at the end that is held out where there is no `test`
  double scale = 0;                    // numbers are divided by it; 0: 255 for bytes, 1 for others
  i64 resize = 0;                      // images: the shorter side, before the middle is cut out
  std::vector<double> mean, std;       // of each channel or column: subtracted and divided by behind `scale`
  bool rows() const { return shape.size() == 1; }
  bool augment = false;   // pictures: shifted by up to 4 pixels and mirrored
  std::string separator;  // text: what stands between documents
  bool packing = false;   // jsonl: several examples in one row
};

struct StepsConfig {
  i64 steps = 0, batch = 0, warmup = 0, seed = 1;
  std::string optimizer = "adamw", schedule = "cosine";
  double lr = 1e-3, weight_decay = 0.01, momentum = 0.9, beta1 = 0.9, beta2 = 0.999, final_lr = 0, clip = 0;
};

struct TrainConfig {
  std::string name;    // the file's, for people
  std::string folder;  // that the results go to
  ModelConfig model;
  DataConfig data;
  StepsConfig train;
  i64 evaluate_every = 0, held_out_samples = 0, patience = 0;
  i64 save_every = 0, log_every = 0;
  std::string weights = "bf16";  // of model.gguf
  // What decides about every bit of the run, "section.key = value" each: what --resume compares.
  std::vector<std::string> decisive;
  bool language() const { return model.kind == "llama"; }
  // What is measured beside the loss, as the log calls it.
  std::string measure() const { return language() ? "perplexity" : data.regression ? "r2" : "accuracy"; }
  bool pretrained() const { return language() && !model.weights.empty(); }
};

// Error, which names the key, for what is missing, unknown, of another type or makes no sense. Paths are relative to
// the file.
TrainConfig read_train_config(const std::string& path);
// The configuration that the story model was trained with.
TrainConfig story_config();

// A complete configuration: mlp, vgg, resnet, images, llama, finetune or stories. Error for another name.
std::string_view example_config(const std::string& name);
std::string example_names();

}  // namespace lc::tool
