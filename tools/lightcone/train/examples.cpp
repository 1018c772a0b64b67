// Complete configurations, which `lightcone train --example NAME` prints: they are the manual of the format.
#include "config.h"
#include "lightcone/base/error.h"
#include "lightcone/io/printable.h"

namespace lc::tool {
namespace {

struct Example {
  std::string_view name, text;
};
constexpr Example kExamples[] = {
    {"mlp", R"(// A multilayer perceptron that tells classes apart, on rows of numbers.
{
  "model": {
    "kind": "mlp",
    "hidden": [64, 64],         // widths of the layers between features and classes
    "dropout": 0.0
  },
  "data": {
    "format": "csv",            // or npy, npz, idx, cifar10, cifar100
    "train": "train.csv",       // relative to this file
    // "test": "test.csv",      // held out; without it the last part of the training data is,
    "held_out": 0.1,            // so much of it
    "label": "label",           // the column of the classes, words or whole numbers from 0; with "header": false the last
    "shape": [4],               // so many other columns; or "features": ["width", ...], those to learn from, by name
    "classes": 3,               // or "task": "regression": the label is a number to come near to
    "missing": "error",         // a missing cell: "skip" leaves its row out, "mean" or a number stands in its place
    // "na_values": ["?"],      // words for one, beside none at all, NA, NaN, null and what else pandas knows
    "standardize": false        // each column gets a mean of 0 and a standard deviation of 1
  },
  "train": {
    "steps": 2000,
    "batch": 32,
    "optimizer": "adamw",       // or sgd (momentum), adam, lion, muon
    "lr": 1e-3,
    "weight_decay": 0.01,
    "schedule": "cosine",       // of the learning rate: or linear, constant
    "warmup": 50,               // steps in which the rate rises first
    "clip": 1.0,                // the gradients' norm at most; 0: as they are
    "seed": 1                   // the same seed, the same bits
  },
  "evaluate": {
    "every": 200,               // steps; the best model so far is kept
    "samples": 0,               // so many of those held out, at most; 0: all
    "patience": 5               // stop after so many evaluations without a better one; 0: never
  },
  "save": {"folder": "mlp.run", "every": 200},
  "log": {"every": 10}
}
)"},
    {"vgg", R"(// A small VGG: blocks of two 3x3 convolutions and a pool, on pictures.
{
  "model": {
    "kind": "vgg",
    "depth": 2,                 // blocks, each with twice the channels of the one before
    "width": 32,                // channels of the first
    "dropout": 0.3
  },
  "data": {
    "format": "idx",            // MNIST and its relatives, plain or compressed: pictures, then labels
    "train": ["train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"],
    "test": ["t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"],
    "shape": [28, 28],
    "classes": 10
  },
  "train": {"steps": 3000, "batch": 64, "optimizer": "adamw", "lr": 1e-3, "warmup": 100},
  "evaluate": {"every": 500},
  "save": {"folder": "vgg.run", "every": 500},
  "log": {"every": 20}
}
)"},
    {"resnet", R"(// The ResNet for small pictures of He et al. 2016, section 4.2.
{
  "model": {
    "kind": "resnet",
    "depth": 20,                // 6 n + 2 layers
    "width": 16                 // channels of the first third
  },
  "data": {
    "format": "cifar10",        // binary batches; for npz also "x" and "y", names of arrays, "shape" and "classes"
    "train": ["data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"],
    "test": "test_batch.bin",
    "augment": true             // shifted by up to 4 pixels, mirrored
  },
  "train": {"steps": 20000, "batch": 128, "optimizer": "sgd", "lr": 0.1, "momentum": 0.9, "weight_decay": 1e-4},
  "evaluate": {"every": 1000},
  "save": {"folder": "resnet.run", "every": 500},
  "log": {"every": 50}
}
)"},
    {"images",
     R"(// A network of torchvision's on folders of pictures, begun from its checkpoint: photos/train/CLASS/NAME.jpg.
{
  "model": {
    "kind": "resnet18",         // or resnet50, vgg16_bn, resnext50_32x4d, ...: torchvision's names
    "weights": "resnet18.safetensors",  // first values; without it they are drawn
    "reinitialize": ["fc"]      // layers that the file has for other classes: drawn
  },
  "data": {
    "format": "images",         // JPEG and PNG
    "train": "photos/train",
    "test": "photos/val",       // without it the last part of the training data is held out
    "shape": [3, 224, 224],     // the middle of each picture,
    "resize": 256,              // whose shorter side is so long
    "classes": 2,               // folders in photos/train
    "unreadable": "error",      // or "skip": damaged pictures are left out, counted and named
    "augment": true             // shifted by up to 4 pixels, mirrored
    // "mean", "std": of the channels, from 0 to 1; ImageNet's where the network is torchvision's
  },
  "train": {"steps": 500, "batch": 16, "optimizer": "sgd", "lr": 0.001, "momentum": 0.9},
  "evaluate": {"every": 50},
  "save": {"folder": "images.run", "every": 50},
  "log": {"every": 5}
}
)"},
    {"texts",
     R"(// A classifier of texts from a published encoder: a folder of Hugging Face's with a BERT, RoBERTa, XLM-RoBERTa,
// CamemBERT or DistilBERT and its tokenizer. The result is the folder model/, for transformers and lightcone predict.
{
  "model": {
    "kind": "encoder",
    "weights": "bert-base-uncased",  // the folder; a head for the same classes is kept, another one begins anew
    // Adapters and the head alone learn (LoRA), in a fraction of the memory; the folder adapter/ is for peft, the model
    // has them added:
    // "lora_rank": 8, "lora_alpha": 16, "lora_targets": ["query", "value"],   // of DistilBERT q_lin, v_lin
    // "dropout": 0.1,               // in place of what its config.json says
    "length": 128                    // longer texts are cut to so many tokens (max_seq_length)
  },
  "data": {
    "format": "csv",                 // or "jsonl": lines {"text": ..., "label": ...}
    "train": "train.csv",            // relative to this file
    // "test": "test.csv",           // held out; without it a part of the training data is,
    "held_out": 0.1,                 // so much of it
    "text": "text",                  // the column of the text
    // "text_pair": "text2",         // that of a second one: pairs are compared
    "label": "label"                 // words or numbers; they become id2label and label2id of config.json
  },
  "train": {
    "steps": 1000, "batch": 16, "optimizer": "adamw", "lr": 2e-5, "weight_decay": 0.01,   // with adapters "lr": 2e-4
    "schedule": "linear", "warmup": 100, "clip": 1.0, "seed": 1
  },
  "evaluate": {"every": 100, "patience": 3},
  "save": {"folder": "texts.run", "every": 100, "weights": "f32"},   // or f16, bf16
  "log": {"every": 10}
}
)"},
    {"pictures",
     R"(// A classifier of pictures from a published network: a folder of Hugging Face's with a ViT, DeiT, DINOv2, Swin,
// SegFormer encoder, ConvNeXt, ResNet, RegNet or EfficientNet and its preprocessor_config.json. The result is the folder
// model/, for transformers and lightcone predict.
{
  "model": {
    "kind": "vision",
    // Adapters and the head alone learn (LoRA), in a fraction of the memory; the folder adapter/ is for peft, the model
    // has them added:
    // "lora_rank": 8, "lora_alpha": 16, "lora_targets": ["query", "value"],   // of ConvNeXt pwconv1, pwconv2
    "weights": "vit-base-patch16-224"   // the folder; a head for the same classes is kept, another one begins anew
  },
  "data": {
    "format": "images",
    "train": "train",                // a folder with a folder for each class; relative to this file
    // "test": "test",               // held out; without it a part of the training data is,
    "held_out": 0.1,                 // so much of it
    // "unreadable": "skip",         // damaged pictures are left out
    "augment": false                 // true: pictures are shifted by up to 4 pixels and mirrored
  },
  "train": {
    "steps": 1000, "batch": 16, "optimizer": "adamw", "lr": 2e-5, "weight_decay": 0.01,   // with adapters "lr": 2e-4
    "schedule": "linear", "warmup": 100, "clip": 1.0, "seed": 1
  },
  "evaluate": {"every": 100, "patience": 3},
  "save": {"folder": "pictures.run", "every": 100, "weights": "f32"},   // or f16, bf16
  "log": {"every": 10}
}
)"},
    {"llama", R"(// A language model of the Llama family on a text; model.gguf, which is written whenever the held-out
// loss is better than ever, is for `lightcone generate`.
{
  "model": {
    "kind": "llama",
    "layers": 4, "width": 128, "heads": 4,
    "kv_heads": 2,              // heads of keys and values; default: as many as heads
    "intermediate": 384,        // of the feed-forward layers; default: 8/3 of the width
    "context": 128,             // tokens that it sees
    "tokenizer": "bpe",         // or char: each character is a token
    "vocabulary": 512,          // tokens: 3 and 256 bytes, characters, and what stands together most often
    "tied": true                // the embedding table is the head, too
  },
  "data": {
    "format": "text",
    "train": "input.txt",       // UTF-8
    "held_out": 0.1             // the end of it; or "test": another file
    // "separator": "\n\n"      // between documents: each then begins and ends with a token of its own
  },
  "train": {
    "steps": 2000, "batch": 16, "optimizer": "adamw", "lr": 1e-3, "beta2": 0.99, "weight_decay": 0.1,
    "warmup": 100, "final_lr": 1e-4, "clip": 1.0
  },
  "evaluate": {"every": 200, "samples": 200, "patience": 0},
  "save": {"folder": "llama.run", "every": 200, "weights": "bf16"},
  "log": {"every": 10}
}
)"},
    {"finetune", R"(// A checkpoint of the Llama family goes on learning from a text of yours. What is written is of the
// checkpoint's kind: model.gguf, or the folder model/ with its config.json and tokenizer.
{
  "model": {
    "kind": "llama",
    "weights": "model.gguf",    // GGUF, a folder of Hugging Face's with safetensors, or llama2.c's .bin
    // Adapters alone learn (LoRA), in a fraction of the memory; the folder adapter/ is for peft, the model has them added:
    // "lora_rank": 8, "lora_alpha": 16, "lora_targets": ["q_proj", "v_proj"],
    "context": 256              // tokens that it sees while it learns; default: its own, at most 512
  },
  "data": {
    "format": "text",           // or "jsonl": lines {"messages": [{"role": ..., "content": ...}]}, {"prompt": ...,
                                // "completion": ...} or {"text": ...}, of which the answers are learned
    "train": "input.txt",       // UTF-8
    "held_out": 0.1,            // the end of it; or "test": another file
    // "packing": true,         // of "jsonl": several short examples in one row; none of them sees another
    "separator": "\n\n"         // of "text", between documents: each then begins and ends with a token of its own
  },
  "train": {
    "steps": 200, "batch": 4, "optimizer": "adamw", "lr": 2e-5, "beta2": 0.95, "weight_decay": 0.01,
    "warmup": 20, "clip": 1.0
  },
  "evaluate": {"every": 20, "samples": 100, "patience": 3},
  "save": {"folder": "finetune.run", "every": 50, "weights": "bf16"},
  "log": {"every": 5}
}
)"},
    {"stories", R"(// The model inside the command: `lightcone train` without a file does this. The text has no end:
// a grammar writes it, and no story is read twice.
{
  "model": {
    "kind": "llama",
    "layers": 4, "width": 192, "heads": 6, "kv_heads": 2, "intermediate": 512,
    "context": 384, "tokenizer": "bpe", "vocabulary": 1024
  },
  "data": {"format": "stories"},
  "train": {
    "steps": 3000, "batch": 6, "optimizer": "adamw", "lr": 3e-3, "beta2": 0.95, "weight_decay": 0.05,
    "warmup": 100, "final_lr": 6e-5, "clip": 1.0, "seed": 1
  },
  "evaluate": {"every": 200, "samples": 96},
  "save": {"folder": "stories.run", "every": 100},
  "log": {"every": 10}
}
)"}};

}  // namespace

std::string example_names() {
  std::string all;
  for (const Example& e : kExamples) all += str_cat(all.empty() ? "" : ", ", e.name);
  return all;
}

std::string_view example_config(const std::string& name) {
  for (const Example& e : kExamples)
    if (e.name == name) return e.text;
  throw Error("train", str_cat("there is no example ", in_quotes(name), "; there are ", example_names()));
}

}  // namespace lc::tool
