// The options of each subcommand, and the function that runs it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device.h"
#include "explain.h"
#include "lightcone/formats/block_formats.h"
#include "lightcone/llm/sampler.h"

namespace lc::tool {

// The options of a command that generates text.
struct SpeakOptions {
  std::string model, tokenizer;
  std::string mesh;  // "": this process alone
  int max_tokens = 256, threads = 0;
  DeviceChoice device;
  std::int64_t context = 0;
  Precision precision = Precision::Highest;
  DType kv_cache = DType::F32;
  std::optional<std::uint64_t> seed;
  llm::SamplerOptions sampler{.temperature = 0.8, .top_p = 0.95};
  bool quiet = false, copy = false;
};

struct GenerateOptions : SpeakOptions {
  std::vector<std::string> prompt;  // its words
  std::string profile;
};
// Returns the exit code: 0, or 128 and the signal that stopped it.
int generate(const GenerateOptions& o);

// True for a folder with an encoder-decoder, which makes a text of another one.
bool is_seq2seq(const std::string& model);
// Prints what it makes of the prompt, by the search that its files ask for. Returns the exit code as generate().
int answer(const GenerateOptions& o, const std::string& prompt);

struct ChatCommand : SpeakOptions {
  std::string system, chat_template;   // a file instead of the model's
  std::vector<std::string> variables;  // variables of the template: NAME=VALUE
};
int chat(const ChatCommand& o);

struct EmbedOptions {
  std::string model, input, output, tokenizer;  // input "": the standard input; output: a .npy file
  std::string pooling, prompt, prompt_name;     // pooling "": as the model's files say
  std::optional<bool> normalize;
  std::int64_t length = 0, batch = 32;
  std::vector<std::string> ignore;
  bool similarity = false;
  int threads = 0;
  Precision precision = Precision::Highest;
  DeviceChoice device;
};
void embed(const EmbedOptions& o);

struct ImagineOptions {
  std::string model, prompt, negative, output, size, scheduler;  // size "": as the model was trained
  std::string init, mask, controlnet, control, noise;            // files
  std::vector<std::string> loras, ignore;                        // FILE or FILE:SCALE
  std::int64_t steps = 30, seed = 0, text_length = 0;
  std::optional<double> guidance;  // unset: what the family takes
  double strength = 0.8, control_scale = 1, eta = 0;
  int threads = 0;
  Precision precision = Precision::Highest;
  DeviceChoice device;
};
void imagine(const ImagineOptions& o);

struct DetectOptions {
  std::string model, draw;                   // draw "": nothing is drawn; a file, or a folder for several pictures
  std::vector<std::string> inputs, classes;  // files and folders; classes empty: all
  double confidence = 0.25, overlap = 0.45;
  std::int64_t most = 300, height = 640, width = 640;
  std::int64_t frame_height = 0, frame_width = 0;  // raw frames on the standard input have this size; 0: there are none
  bool across_classes = false, json = false;
  std::vector<std::string> ignore;
  int threads = 0;
  Precision precision = Precision::Highest;
  DeviceChoice device;
};
void detect(const DetectOptions& o);

struct TranscribeCommand {
  std::string sound, model, tokenizer;
  std::string language, prompt, format = "text";  // text, srt, vtt or json
  bool translate = false, words = false, detect = false, context = true;
  std::int64_t beams = 5;
  std::uint64_t seed = 0;
  std::vector<std::string> ignore;
  int threads = 0;
  Precision precision = Precision::Highest;
  DeviceChoice device;
};
// Returns the exit code: 0, or 128 and the signal that stopped it.
int transcribe(const TranscribeCommand& o);

struct DevicesOptions {
  bool json = false;
};
void devices(const DevicesOptions& o);

struct InspectCommand {
  std::string model;
  bool tensors = false, json = false;
  std::int64_t context = 0;
  DType kv_cache = DType::F32;
  std::vector<std::string> sizes;   // NAME=NUMBER, for an ONNX model
  std::vector<std::string> inputs;  // [NAME=]VALUE, as for `run`
};
void inspect(const InspectCommand& o);

struct ConvertOptions {
  std::string model, out;
  std::optional<DType> type;            // what floating tensors become; nullopt: they stay
  std::optional<QuantFormat> blocks;    // what matrices become
  std::vector<std::string> keep, also;  // parts of names: tensors that stay, embeddings and norms that become blocks
};
void convert(const ConvertOptions& o);

struct ViewOptions {
  std::string model, out;
  DeviceChoice device;
  bool dot = false, memory = false, text = false;
  int layers = 0;
};
void view(const ViewOptions& o);

struct ExportOptions {
  std::string model, out, arguments, weights;
  bool stablehlo = true, explain = false, train = false, open = false, bounds = false, whole = false;
  std::int64_t batch = 0, size = 0, opset = 21;  // 0: not given
  double learning_rate = 0.01;
  std::vector<std::string> sizes;  // NAME=NUMBER
  std::vector<std::string> outputs;
};
void export_model(const ExportOptions& o);

struct BenchOptions {
  std::string what = "all";
  int threads = 0;
  bool json = false, machine = false;
  std::vector<std::size_t> nodes = {10000, 30000, 100000};
  ExplainOptions explain;
  DeviceChoice device;
  DType kv_cache = DType::F32;
  std::int64_t past = 64;  // positions in the cache before the first token
};
void bench(const BenchOptions& o);

struct TuneCommand {
  std::string out;  // a file instead of the stored profile
  int threads = 0;
  bool once = false;  // if a profile exists already, or none can be stored, do nothing and print nothing
};
void tune(const TuneCommand& o);

struct TrainOptions {
  std::string config;   // "": the story model's
  std::string output;   // a folder instead of the configuration's
  std::string example;  // print this one and do nothing else
  int threads = 0;
  DeviceChoice device;
  bool resume = false, overwrite = false, checked = false;
  bool plan = false;  // print what is known before training, and stop
};
// Returns the exit code: 0, or 128 and the signal that stopped it.
int train(const TrainOptions& o);

// What several ranks need for a training step, and which mesh of them suits it.
struct PlanCommand {
  std::string config;
  std::string mesh;                                   // "data=2, model=4", or "auto" for all meshes of so many `ranks`
  std::string sharding;                               // none, optimizer or full; "": none, or each of them for "auto"
  std::string links, sums, flops, bandwidth, memory;  // quantities with units; "": measured here, or unknown
  std::string autocast;                               // "", bf16 or f16
  int ranks = 0, ranks_per_machine = 0, cores = 0, threads = 1;
  int stages = 1;        // "auto" tries pipelines of at most so many
  int microbatches = 1;  // parts of a rank's batch, which the stages of a pipeline work on at the same time
  int steps = 0;         // steps to run by mpirun, beside the prediction
  bool slowed = false, overlap = false, measure = false, measure_links = false, json = false;
};
void plan(const PlanCommand& o);

struct PredictOptions {
  std::string model;                // best.safetensors, the folder of a run, or a folder of Hugging Face's
  std::vector<std::string> inputs;  // files and folders; of texts, none: the standard input
  std::string text, text_pair;      // columns of texts in place of those of the training
  std::string format = "text", output;
  std::size_t top = 1;
  int threads = 0;
  DeviceChoice device;
};
void predict(const PredictOptions& o);

// How a picture becomes the input of a model.
struct PictureOptions {
  std::string fit = "letterbox", colour = "rgb", layout;  // layout "": as the shape of the input says
  std::optional<double> scale;         // a factor for the bytes 0 to 255; unset: 1 / 255 for floats, 1 for u8
  std::vector<double> mean, std;       // after the scale: one for all channels, or one each
  std::int64_t height = 0, width = 0;  // for extents that the model leaves open
  std::int64_t multiple = 1;           // the same: rounded up to a multiple of it
  bool antialias = false;
};
// What is made of the outputs of a model that takes a picture.
struct DrawOptions {
  std::string out, as, boxes, labels;  // "": as the shapes of the outputs say
  double confidence = 0.35, overlap = 0.45;
  std::size_t top = 0;  // classes to print; 0: five where the outputs are class scores, and something asks for them
};
struct RunOptions {
  std::string model, tokenizer;
  std::vector<std::string> inputs, sizes;  // [NAME=]VALUE, NAME=NUMBER
  std::string output, compare;             // .npz files
  double tolerance = 1e-4;                 // relative to the largest value, at least 1
  int repeat = 0, threads = 0;
  std::int64_t rate = 0;  // samples a second of a sound; 0: as the model's metadata says
  PictureOptions picture;
  DrawOptions draw;
  Precision precision = Precision::Highest;
  DeviceChoice device;
  bool quiet = false;
};
// Returns the exit code: 0, or 1 if an output is not as --compare wants it.
int run_model(const RunOptions& o);

}  // namespace lc::tool
