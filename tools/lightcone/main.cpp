// The command `lightcone`: its command line.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <sstream>

#include "command.h"
#include "commands.h"
#include "help.h"
#include "lightcone/base/error.h"
#include "lightcone/formats/block_formats.h"
#include "lightcone/io/printable.h"
#include "options.h"
#include "ranks.h"
#include "spelling.h"

namespace lc::tool {
namespace {

// Prints one sentence on the standard error. It is made printable, because it may quote a file or an argument.
void complain(const char* what, const char* more = "") {
  std::string lines;  // a message that lists several things has lines, each of which is made printable
  for (std::string_view rest = what; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    lines += (lines.empty() ? "" : "\n") + printable(rest.substr(0, end), 2000);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  const std::string rank = this_rank() > 0 ? str_cat("rank ", this_rank(), ": ") : "";
  std::fprintf(stderr, "lightcone: %s%s%s\n", rank.c_str(), lines.c_str(), more);
}

void add_explain(CLI::App& c, ExplainOptions& o) {
  c.add_flag("--explain", o.on, "also say where the time goes, kernel by kernel, and how the arena is used");
  c.add_option("--source", o.source, "with it, the C text of the kernel of this name")->type_name("KERNEL");
  c.add_option("--trace", o.trace, "write a trace for ui.perfetto.dev; with several programs, the last one's")
      ->type_name("FILE");
}

// Checks a whole number, because the parser lets -1 wrap around and truncates larger numbers.
std::string whole_number(const std::string& given) {
  std::uint64_t n = 0;
  const auto [end, error] = std::from_chars(given.data(), given.data() + given.size(), n);
  return error == std::errc() && end == given.data() + given.size() ? "" : given + " is no whole number below 2^64";
}

// Adds the options that generate and chat share.
void add_speaking(CLI::App& c, SpeakOptions& o) {
  c.add_option("--tokenizer", o.tokenizer, "when the checkpoint has none beside it")->type_name("FILE");
  add_real(c, "-t,--temperature", o.sampler.temperature, "0: greedy; higher: bolder; 0 or more")
      ->capture_default_str()
      ->type_name("T");
  c.add_option("--top-k", o.sampler.top_k, "choose among the K likeliest; 0: all, or more")
      ->capture_default_str()
      ->type_name("K");
  add_real(c, "--top-p", o.sampler.top_p, "choose among the likeliest that make up P; above 0, at most 1")
      ->capture_default_str()
      ->type_name("P");
  add_real(c, "--min-p", o.sampler.min_p, "drop what is less than P times the best; 0 to 1")
      ->capture_default_str()
      ->type_name("P");
  add_real(c, "--repetition-penalty", o.sampler.repetition_penalty, "above 1: repeat less; above 0")
      ->capture_default_str()
      ->type_name("R");
  c.add_option("--seed", o.seed, "the same seed gives the same text; 0 to 18446744073709551615")
      ->check(whole_number)
      ->type_name("N");
  add_device(c, o.device);
  add_threads(c, o.threads);
  c.add_option("--mesh", o.mesh,
               "the processes that mpirun has started hold the model together, each a part of it:\n"
               "mpirun -n 2 lightcone ... --mesh model=2. The first of them prints; docs/distributed.md says more")
      ->type_name("AXIS=N");
  add_precision(c, o.precision);
  add_kv_cache(c, o.kv_cache);
  c.add_option("--context", o.context, "positions remembered; 0: the model's own, at most 4096")
      ->capture_default_str()
      ->check(CLI::Range(0, 1 << 24))
      ->type_name("N");
  c.add_flag("--no-mmap", o.copy, "read the weights into memory: for a file that others may change meanwhile");
  c.add_flag("-q,--quiet", o.quiet, "no line of figures");
}

void add_generate(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<GenerateOptions>();
  CLI::App* c = app.add_subcommand("generate", "Continue a text with a language model, or translate or summarise it");
  c->footer(
      "MODEL is a folder with config.json and weights, a GGUF file, a llama2.c .bin, a .safetensors file,\n"
      "or 'builtin'. docs/models.md lists the architectures: Llama's family, GPT-2 to Mixtral, Mamba, RWKV\n"
      "and others. The text goes to the standard output, one line of figures to the\n"
      "standard error. --temperature 0 always picks the likeliest token. Ctrl-C ends the text.\n"
      "A T5, BART, Marian, PEGASUS or M2M100 (a folder with config.json) makes another text of PROMPT: a\n"
      "translation, a summary, an answer. It searches as its generation_config.json says, and draws nothing.");
  c->add_option("MODEL", o->model, "checkpoint, or 'builtin'")->required()->type_name("");
  c->add_option("PROMPT", o->prompt, "how the text begins; '-' reads it from the standard input")->type_name("");
  c->add_option("-n,--max-tokens", o->max_tokens, "stop after this many")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 24))
      ->type_name("N");
  add_speaking(*c, *o);
  c->add_option("--profile", o->profile, "write a trace of the decoding for ui.perfetto.dev, print a table of kernels")
      ->type_name("FILE");
  c->callback([o, &exit_code] { exit_code = generate(*o); });
}

void add_chat(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<ChatCommand>();
  o->max_tokens = 0;
  CLI::App* c = app.add_subcommand("chat", "Talk with a model, as its chat template wants it");
  c->footer(
      "On a terminal: a line is a question, one that ends in \\ goes on in the next; /clear begins anew,\n"
      "/help says more; Ctrl-C stops an answer, Ctrl-D ends the chat. From a pipe each line is a question\n"
      "of one conversation; the answers go to the standard output. The template comes with the checkpoint\n"
      "(GGUF's tokenizer.chat_template, chat_template.jinja, tokenizer_config.json) or from --template.");
  c->add_option("MODEL", o->model, "checkpoint; see lightcone generate --help")->required()->type_name("");
  c->add_option("-s,--system", o->system, "the system message: how the model shall answer")->type_name("TEXT");
  c->add_option("--template", o->chat_template, "a chat template in place of the model's: Jinja, or JSON that holds it")
      ->type_name("FILE");
  c->add_option("--set", o->variables, "a variable of the template, such as enable_thinking=false; may be repeated")
      ->allow_extra_args(false)
      ->type_name("NAME=VALUE");
  c->add_option("-n,--max-tokens", o->max_tokens, "of an answer; 0: as many as the context holds")
      ->capture_default_str()
      ->check(CLI::Range(0, 1 << 24))
      ->type_name("N");
  add_speaking(*c, *o);
  c->callback([o, &exit_code] { exit_code = chat(*o); });
}

void add_devices(CLI::App& app) {
  auto o = std::make_shared<DevicesOptions>();
  CLI::App* c = app.add_subcommand("devices", "What this machine has to run models on");
  c->footer(
      "A line for each device, which begins with what --device takes; of CUDA, OpenCL or Metal without one, a line\n"
      "says why and what to do. Libraries are looked for where the system has them, or where LIGHTCONE_CUDA_DRIVER,\n"
      "LIGHTCONE_NVRTC, LIGHTCONE_OPENCL and LIGHTCONE_METAL say. docs/guide/gpus.md says more.");
  c->add_flag("--json", o->json, "for scripts");
  c->callback([o] { devices(*o); });
}

void add_view(CLI::App& app) {
  auto o = std::make_shared<ViewOptions>();
  CLI::App* c = app.add_subcommand("view", "Draw the graph of a model, before and after compiling");
  c->footer(
      "Writes one HTML file that works offline: a tab for the graph as written and one for each pass that changed it.\n"
      "Layers and calls are groups: click to open or close one, / searches, the wheel zooms.\n"
      "With --memory, the plan of the working memory instead: which value lies where at which step.");
  c->add_option("MODEL", o->model,
                "any checkpoint of docs/models.md, 'builtin', or a configuration of 'lightcone train' (.json)")
      ->required()
      ->type_name("");
  c->add_option("-o,--output", o->out, "default: the standard output")->type_name("FILE");
  c->add_option("--layers", o->layers, "of a model of the Llama family only the first N layers; 0: all")
      ->capture_default_str()
      ->check(CLI::Range(0, 1000))
      ->type_name("N");
  c->add_flag("--dot", o->dot, "Graphviz text of the graph as written instead");
  c->add_flag("--memory", o->memory, "draw the working memory over the steps of a run");
  add_device(*c, o->device);
  c->add_flag("--text", o->text, "with --memory: a table instead of a page")->needs("--memory");
  c->callback([o] { view(*o); });
}

void add_export(CLI::App& app) {
  auto o = std::make_shared<ExportOptions>();
  CLI::App* c = app.add_subcommand("export", "Write a model as an ONNX model, or as one StableHLO module for XLA");
  c->footer(
      "  lightcone export bert-base-uncased -o bert.onnx\n"
      "  lightcone export yolo11n.pt -o yolo.onnx --batch 1\n"
      "  lightcone export gpt2 --whole --bind batch=1 length=128 -o gpt2.mlir\n"
      "MODEL is any checkpoint of docs/models.md (a folder with config.json and weights, a GGUF file, a file of YOLO "
      "or "
      "torchvision), 'builtin', or the name of a network of torchvision's, which is made without a checkpoint: vgg11 "
      "... "
      "vgg19_bn, resnet18 ... resnet152, resnext50_32x4d, wide_resnet50_2, ...\n\n"
      "FILE.onnx is an ONNX model with its weights: the checkpoint's, those of --weights, or first values for "
      "training. "
      "Sizes without a number stay open in it. Anything else is one module with one function @main, in MLIR's generic "
      "form: weights are arguments, states are donated ones whose next values are results. --arguments says which "
      "argument is which. docs/pjrt.md runs one.\n\n"
      "A language model is exported as it generates: 'tokens' [seq] follow 'past' others, whose keys and values are "
      "states. With --whole it reads texts as a whole: 'input_ids' and 'attention_mask' [batch, length].");
  c->add_option("MODEL", o->model, "a checkpoint, 'builtin', or the name of a network")->required()->type_name("");
  c->add_flag("--stablehlo", o->stablehlo, "the format, unless FILE ends in .onnx");
  c->add_option("-o,--output", o->out, "ends in .onnx for ONNX; default: StableHLO on the standard output")
      ->type_name("FILE");
  c->add_option("--arguments", o->arguments, "a table of arguments and results: kind, type, name")->type_name("FILE");
  c->add_option("--weights", o->weights, "of a network of pictures in ONNX: a checkpoint with torchvision's names")
      ->type_name("FILE");
  c->add_option("--opset", o->opset, "of ONNX")->capture_default_str()->check(CLI::Range(17, 26))->type_name("N");
  c->add_flag("--explain", o->explain, "print how often each operation occurs instead of the module");
  c->add_flag("--train", o->train, "a whole training step: forward, backward and gradient descent");
  c->add_option("--batch", o->batch,
                "how many samples there are at once; with --open how many there may be. Without: 1 for a network of "
                "torchvision's, and open for a checkpoint in ONNX")
      ->check(CLI::Range(1, 1 << 16))
      ->type_name("N");
  c->add_option("--size", o->size, "height and width of a picture; without: 224, or what the checkpoint says")
      ->check(CLI::Range(32, 4096))
      ->type_name("N");
  add_real(*c, "--learning-rate", o->learning_rate, "of --train")->capture_default_str()->type_name("R");
  c->add_option("--bind", o->sizes, "of a checkpoint: the number behind a symbolic extent")->type_name("NAME=N ...");
  c->add_flag("--open", o->open,
              "sizes that --bind gives no number stay open: '?'; of a network of torchvision's the batch (at most "
              "--batch)");
  c->add_flag("--whole", o->whole, "a language model for whole texts, without a cache");
  c->add_option("--outputs", o->outputs, "of a checkpoint: only these results, such as logits")->type_name("NAME ...");
  c->add_flag("--bounds", o->bounds, "with --open: types say how large an open extent may be")->needs("--open");
  c->callback([o] { export_model(*o); });
}

void add_bench(CLI::App& app) {
  auto o = std::make_shared<BenchOptions>();
  CLI::App* c = app.add_subcommand("bench", "How near this machine's limits the library runs");
  c->footer(
      "  decode   a 1.1B Llama with random weights against the measured read bandwidth,\n"
      "           with activations of 8 bits (medium) for quantised weights\n"
      "  matmul   f32 against OpenBLAS and oneDNN, where they are installed\n"
      "  fused    softmax, layer norm and gelu over 16M elements against the measured copy bandwidth\n"
      "  conv     layers of ResNet-50 and MobileNet against the measured peak; Winograd may exceed it\n"
      "  compile  how the time of compiling grows with the graph, without a cache of kernels\n"
      "--explain adds a table of kernels: what each computes and for which line of the program, its time, bytes and "
      "operations, and the share of this machine's limits, measured in the same run. A share above 100 % means that "
      "the "
      "data stayed in the caches. docs/profiling.md reads one with you. For convolutions it says which algorithms were "
      "refused, and why. With --device the same runs on a GPU: its times alone, because its limits are not measured.");
  std::vector<std::string> parts{"all", "decode", "decode-bf16", "matmul", "fused", "conv", "compile"};
  for (const QuantInfo& q : kQuantFormats) parts.push_back("decode-" + std::string(q.name));
  one_of(c->add_option("PART", o->what,
                       "all, decode, decode-bf16, decode-q8_0 (or another block format), matmul, fused, conv, compile"),
         parts)
      ->capture_default_str()
      ->type_name("");
  c->add_option("--nodes", o->nodes, "of the graphs of 'compile'")
      ->capture_default_str()
      ->check(CLI::Range(100, 10000000))
      ->type_name("N...");
  add_kv_cache(*c, o->kv_cache);
  c->add_option("--past", o->past, "of decode: positions the cache holds before the first token")
      ->capture_default_str()
      ->check(CLI::Range(64, 1 << 20))
      ->type_name("N");
  add_explain(*c, o->explain);
  add_device(*c, o->device);
  add_threads(*c, o->threads);
  c->add_flag("--json", o->json, "for scripts");
  c->add_flag("--machine", o->machine, "only print the machine profile that kernels are compiled for");
  c->callback([o] { bench(*o); });
}

void add_tune(CLI::App& app) {
  auto o = std::make_shared<TuneCommand>();
  CLI::App* c = app.add_subcommand("tune", "Measure this machine, so that kernels suit it");
  c->footer(
      "Takes some seconds and is best done while nothing else runs. The profile is kept beside the compiled\n"
      "kernels, for this kind of processor; 'lightcone bench --machine' prints it. LIGHTCONE_MACHINE=FILE gives\n"
      "another by hand, LIGHTCONE_MACHINE=default none. Results never depend on it, only their speed.");
  c->add_option("-o,--output", o->out, "write the profile to a file and keep nothing")->type_name("FILE");
  c->add_flag("--once", o->once, "do nothing where a profile is kept already");
  add_threads(*c, o->threads);
  c->callback([o] { tune(*o); });
}

void add_train(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<TrainOptions>();
  CLI::App* c =
      app.add_subcommand("train", "Train a model: a classifier of numbers, pictures or texts, or a language model");
  c->footer(
      "CONFIG is a JSON file with comments. The quickest way to one is a complete example:\n"
      "  lightcone train --example mlp > mlp.json      mlp (csv, npy), vgg and resnet (IDX, CIFAR, npz),\n"
      "                                                 texts (BERT and its relatives learn to classify csv, jsonl),\n"
      "                                                 images (folders of them, from torchvision's weights), llama "
      "(text)\n"
      "  lightcone train mlp.json\n"
      "Sections: model (kind and sizes), data (format, files, shape, classes), train (steps, batch, optimizer,\n"
      "lr, schedule, ...), evaluate (every, samples, patience), save (folder, every), log (every). Without CONFIG\n"
      "the story model inside this program is trained again (--example stories).\n"
      "Several processes: \"mesh\": {\"data\": 2, \"model\": 2} (ranks that divide the batch, and the model),\n"
      "\"distributed\": {\"shard\": \"none\", \"optimizer\" or \"full\", \"timeout\": seconds}, and\n"
      "  mpirun -n 4 lightcone train config.json       or srun --mpi=pmix -n 4; docs/distributed.md says more.\n"
      "Parameters, exact memory and arithmetic are printed before any data is read; --plan stops there. The\n"
      "folder gets best.safetensors (PyTorch's names; for lightcone predict), run.safetensors (to --resume, with\n"
      "the same bits as without a stop), loss.html, log.jsonl, log.csv, of a language model model.gguf, for\n"
      "lightcone generate, and of an encoder model/, for transformers and lightcone predict. Ctrl-C saves and stops. "
      "docs/training/command.md says more.");
  c->add_option("CONFIG", o->config, "the configuration")->type_name("");
  c->add_option("--example", o->example,
                "print a complete configuration: mlp, vgg, resnet, images, texts, pictures, llama, finetune or stories")
      ->type_name("NAME");
  c->add_option("-o,--output", o->output, "a folder for the results, in place of save.folder")->type_name("FOLDER");
  c->add_flag("--resume", o->resume, "go on from the last checkpoint, where there is one");
  c->add_flag("--overwrite", o->overwrite, "begin anew in a folder that holds a run");
  c->add_flag("--checked", o->checked, "look at every value, so that a NaN is named at its operation; slow");
  c->add_flag("--plan", o->plan, "say what is known beforehand and stop");
  add_device(*c, o->device);
  add_threads(*c, o->threads);
  c->callback([o, &exit_code] { exit_code = train(*o); });
}

void add_predict(CLI::App& app) {
  auto o = std::make_shared<PredictOptions>();
  CLI::App* c = app.add_subcommand("predict", "What a classifier or a regression says of rows, pictures and texts");
  c->footer(
      "  lightcone predict mlp.run flowers.csv\n"
      "  lightcone predict images.run/best.safetensors photo.jpg holiday/ --top 3 --format csv -o answers.csv\n"
      "  lightcone predict vit-base-patch16-224 photo.jpg --top 5\n"
      "  lightcone predict texts.run reviews.csv --text review     or lines of the standard input\n"
      "MODEL is best.safetensors of 'lightcone train', or the folder that it lies in; or a folder of Hugging Face's "
      "with\n"
      "a classifier of pictures and its preprocessor_config.json, or of texts and its tokenizer. Nothing else is "
      "needed: the\n"
      "network, the names of classes and columns, and what was done to the inputs stand in the file.\n"
      "INPUT: CSV with the columns of the training by their names, others are passed over and the label may be\n"
      "missing; pictures (JPEG, PNG) and folders of them; .npy whose first axis counts samples, or IDX where the\n"
      "training had it; of texts CSV, lines of JSON (.jsonl), or any other file with a text a line. Each sample gets a "
      "line: its file, [row] where it has several (from 0), then classes with\n"
      "their probabilities, or of a regression the number.\n"
      "--format csv has the columns input, row, rank, class, probability, or input, row, value; --format json is a\n"
      "list of objects, one a line. A wrong input is an Error, and nothing is written. docs/training/predict.md says "
      "more.");
  c->add_option("MODEL", o->model, "best.safetensors, the folder of a run, or a folder of Hugging Face's")
      ->required()
      ->type_name("");
  c->add_option("INPUT", o->inputs, "files and folders; of texts, default: the standard input")->type_name("");
  c->add_option("--text", o->text, "the column of the texts; default: that of the training, or text")
      ->type_name("NAME");
  c->add_option("--text-pair", o->text_pair, "the column of second texts")->type_name("NAME");
  c->add_option("--top", o->top, "so many classes of each, the likeliest first; all where there are fewer")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 24))
      ->type_name("K");
  one_of(c->add_option("--format", o->format, "text, csv or json"), {"text", "csv", "json"})
      ->capture_default_str()
      ->type_name("NAME");
  c->add_option("-o,--output", o->output, "default: the standard output")->type_name("FILE");
  add_device(*c, o->device);
  add_threads(*c, o->threads);
  c->callback([o] { predict(*o); });
}

std::vector<std::string> commands_of(CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* c : app.get_subcommands(nullptr)) names.push_back(c->get_name());
  return names;
}

// Returns the message for words that no option or command takes.
std::string not_expected(CLI::App& app) {
  const CLI::App* command = app.get_subcommands().empty() ? &app : app.get_subcommands().front();
  std::vector<std::string> options, rest;
  for (const CLI::Option* o : command->get_options())
    for (const std::string& name : o->get_lnames()) options.push_back("--" + name);
  const std::string of = command == &app ? "" : " of " + command->get_name();
  std::vector<std::string> words = command->remaining();
  if (words.empty()) words = app.remaining();  // words after a --
  for (const std::string& word : words) {
    if (word == "--") continue;
    if (word.starts_with("-"))
      return str_cat(word, ": no such option", of, did_you_mean(word.substr(0, word.find('=')), options));
    rest.push_back(word);
  }
  if (command == &app && !rest.empty())
    return str_cat(rest.front(), ": no such command", did_you_mean(rest.front(), commands_of(app)));
  return rest.empty() ? "" : str_cat(command->get_name(), " does not take '", joined(rest, " "), "'");
}

// Prints help and the version on the standard output, and mistakes as one sentence.
int said(CLI::App& app, const CLI::ParseError& e) try {
  std::ostringstream out, words;
  if (app.exit(e, out, words) == 0) {
    write_stdout(out.str());
    return 0;
  }
  const std::string rest = not_expected(app);
  const auto called = app.get_subcommands();
  const std::string command = called.empty() ? "" : called.front()->get_name() + " ";
  complain(rest.empty() ? e.what() : rest.c_str(), str_cat(" (lightcone ", command, "--help says more)").c_str());
  return 1;
} catch (const Error& wrong) {
  complain(wrong.what());
  return 1;
}

// Runs the program. Everything that allocates memory is inside of it.
int run(int argc, char** argv) {
  CLI::App app(
      "Lightcone: deep learning on twelve primitive operations.\n\n"
      "  lightcone generate builtin \"Once upon a time\"     a story from the model inside this program\n"
      "  lightcone generate llama.gguf \"Hello\" -n 50       a checkpoint: Llama, Mistral, Qwen, Gemma, GPT-2, ...\n"
      "  lightcone chat llama.gguf                         questions and answers, as its chat template wants them\n"
      "  lightcone devices                                 GPUs here; --device cuda runs a model on one\n"
      "  lightcone inspect llama.gguf                      what is in a file, and what it will need\n"
      "  lightcone convert best.pt model.safetensors       a checkpoint in another format\n"
      "  lightcone run model.onnx --input photo.jpg        an ONNX or StableHLO model on pictures, sounds, texts\n"
      "  lightcone embed MiniLM --similarity < lines       vectors of texts, and how alike they are\n"
      "  lightcone imagine sd \"a red fox\" -o fox.png      a picture from a text, with Stable Diffusion\n"
      "  lightcone detect photo.jpg --model yolo11n.pt     objects in pictures, with boxes\n"
      "  lightcone transcribe talk.wav --model whisper     what is said in a sound, as text or subtitles\n"
      "  lightcone view builtin -o graph.html              the graph before and after compiling\n"
      "  lightcone train mlp.json                          a model of your own (--example mlp prints that file)\n"
      "  lightcone plan mlp.json --mesh data=8             memory, messages and time of a step on many ranks\n"
      "  lightcone predict mlp.run flowers.csv             what that model says of new rows, or of pictures\n"
      "  lightcone export bert-base -o bert.onnx           a checkpoint as an ONNX model, or as a program for XLA\n"
      "  lightcone tune                                    measure this machine once, so that kernels suit it\n"
      "  lightcone bench                                   this machine's limits and how near we are");
  app.name("lightcone");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("lightcone ") + LIGHTCONE_VERSION);
  app.formatter(std::make_shared<HelpFormatter>());
  int exit_code = 0;
  add_generate(app, exit_code);
  add_chat(app, exit_code);
  add_devices(app);
  add_inspect(app);
  add_convert(app);
  add_embed(app);
  add_imagine(app);
  add_detect(app);
  add_transcribe(app, exit_code);
  add_view(app);
  add_export(app);
  add_bench(app);
  add_tune(app);
  add_train(app, exit_code);
  add_plan(app);
  add_predict(app);
  add_run(app, exit_code);
  if (argc < 2) {
    write_stdout(app.help());
    return 0;
  }
  try {
    app.parse(argc, argv);
    return exit_code;
  } catch (const CLI::ParseError& e) {
    return said(app, e);
  }
}

}  // namespace
}  // namespace lc::tool

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file beyond the process's limit is then an Error of its writer
  // if the standard input is closed, the next file that is opened would take its place
  if (::fcntl(STDIN_FILENO, F_GETFD) < 0 && ::open("/dev/null", O_RDONLY) < 0) return 1;
  try {
    return lc::tool::run(argc, argv);
  } catch (const std::bad_alloc&) {
    lc::tool::complain("there is not enough memory");
  } catch (const std::exception& e) {
    lc::tool::complain(e.what());
  }
  return 1;
}
