// The command lines of `lightcone inspect`, `convert` and `run`.
#include <algorithm>
#include <memory>

#include "options.h"

namespace lc::tool {

void add_inspect(CLI::App& app) {
  auto o = std::make_shared<InspectCommand>();
  CLI::App* c =
      app.add_subcommand("inspect", "What a file is, holds, takes and needs, and what of it is not supported");
  c->footer(
      "  lightcone inspect model.onnx            inputs, outputs, operators, memory, and every node that is not "
      "supported\n"
      "  lightcone inspect vad.onnx -i sr=16000 --size input_1=512   the same where sizes and branches depend on "
      "inputs\n"
      "  lightcone inspect llama.gguf            sizes, types, metadata, and the memory that running it takes\n"
      "  lightcone inspect best.pt --tensors     the tensors of a checkpoint\n"
      "FILE is recognised by what is in it: ONNX, StableHLO (text, bytecode), GGUF, safetensors, PyTorch, llama2.c, "
      ".npz,\n"
      ".npy, tokenizers, JPEG, PNG, WAV, FLAC. Nothing is run and no weight is read but the few numbers of\n"
      "rope_freqs.weight: shapes, types and the memory plan come from headers and graphs. lc::inspect() gives the "
      "same\n"
      "to a program.");
  c->add_option("FILE", o->model, "a file, a folder with a checkpoint, or 'builtin'")->required()->type_name("");
  c->add_option("--context", o->context, "positions to plan the cache for; 0: the model's own, at most 4096")
      ->capture_default_str()
      ->check(CLI::Range(0, 1 << 24))
      ->type_name("N");
  add_kv_cache(*c, o->kv_cache);
  c->add_option("--size", o->sizes,
                "the number behind an extent that an ONNX model names, or NAME_1=N for axis 1 of input NAME")
      ->allow_extra_args(false)
      ->type_name("NAME=N");
  c->add_option(
       "-i,--input", o->inputs,
       "of ONNX, may be repeated: inputs as 'lightcone run' takes them, whose shapes and whole numbers may decide "
       "what is supported")
      ->allow_extra_args(false)
      ->type_name("[NAME=]VALUE");
  c->add_flag("--tensors", o->tensors, "list every tensor");
  c->add_flag("--json", o->json, "for scripts");
  c->callback([o] { inspect(*o); });
}

void add_convert(CLI::App& app) {
  auto o = std::make_shared<ConvertOptions>();
  CLI::App* c = app.add_subcommand("convert", "Write a file's tensors in another format, or in other types");
  c->footer(
      "  lightcone convert best.pt model.safetensors\n"
      "  lightcone convert llama-f16.gguf llama-q4_k.gguf --type q4_k\n"
      "  lightcone convert llama-Q4_K.gguf model.npz --type f32\n"
      "  lightcone convert model.onnx weights.safetensors\n"
      "MODEL is a file of PyTorch (.pt, .pth, .bin, .th, .ckpt), of which nothing is run, safetensors, GGUF, "
      "llama2.c,\n"
      ".npz or ONNX (its initializers), or a folder. FILE ends in .safetensors, .npz or .gguf. Names, shapes and bits\n"
      "stay as they are; of strided tensors a copy in row-major order is written. Values of PyTorch's files that are "
      "no\n"
      "tensors, and short ones of GGUF, become metadata. From GGUF to GGUF all metadata stays: the architecture, the\n"
      "tokenizer, the chat template. numpy has no bf16 and no 8-bit floats, and GGUF at most four axes and names of "
      "63\n"
      "bytes. A .gguf of another format has no architecture: other programs read its tensors, but run no model of it.\n"
      "Block formats (GGUF alone has them) are for matrices: q4_0 q4_1 q5_0 q5_1 q8_0 q2_k q3_k q4_k q5_k q6_k iq4_nl\n"
      "iq4_xs mxfp4 tq1_0 tq2_0. Norms, biases and embeddings stay, unless --also names them. Rows that are no "
      "multiple\n"
      "of 256 get a format with blocks of 32 (q4_k: q5_0, q5_k: q5_1, q6_k: q8_0, others: iq4_nl), and if they are no\n"
      "multiple of that, they stay; both are said.");
  c->add_option("MODEL", o->model, "what is read")->required()->type_name("");
  c->add_option("FILE", o->out, "what is written, whole or not at all")->required()->type_name("");
  std::vector<std::string> words{"f32", "f16", "bf16"};
  for (const QuantInfo& q : kQuantFormats) words.push_back(std::string(q.name));
  const auto set = [o = o.get()](const std::string& given) {
    for (const auto& [word, type] : {std::pair("f32", DType::F32), {"f16", DType::F16}, {"bf16", DType::BF16}})
      if (given == word) o->type = type;
    for (const QuantInfo& q : kQuantFormats)
      if (given == q.name) o->blocks = q.format;
  };
  one_of(c->add_option_function<std::string>(
             "--type", set,
             "f32, f16 or bf16 for all floating tensors and quantised ones, or a block format for\n"
             "matrices; otherwise they stay"),
         words)
      ->type_name("TYPE");
  c->add_option("--keep", o->keep, "with blocks: tensors whose name has this in it stay; may be repeated")
      ->allow_extra_args(false)
      ->type_name("PART");
  c->add_option("--also", o->also, "with blocks: embeddings and norms whose name has this in it do not stay")
      ->allow_extra_args(false)
      ->type_name("PART");
  c->callback([o] { convert(*o); });
}

namespace {

// Adds an option that is a list of real numbers with commas between them.
void add_reals(CLI::App& c, const char* flag, std::vector<double>& values, const std::string& help) {
  const auto set = [&values](const CLI::results_t& given) {
    std::string_view rest = given.at(0);
    values.clear();
    for (bool more = true; more;) {
      const std::size_t end = rest.find(',');
      const std::optional<double> v = real_of<double>(rest.substr(0, end));
      if (!v) return false;
      values.push_back(*v);
      more = end != rest.npos;
      rest.remove_prefix(more ? end + 1 : rest.size());
    }
    return true;
  };
  c.add_option(flag, set, help)->expected(1)->type_size(1)->type_name("N[,N,N]");
}

void add_pictures(CLI::App& c, PictureOptions& o) {
  one_of(c.add_option("--fit", o.fit,
                      "a picture of another size: letterbox (whole, grey bars around), corner (bars right and\n"
                      "below), crop (the middle, filled), stretch"),
         {"letterbox", "corner", "crop", "stretch"})
      ->capture_default_str()
      ->type_name("HOW");
  c.add_flag("--antialias", o.antialias,
             "make pictures smaller as Pillow does (torchvision), not as OpenCV (most detectors)");
  one_of(c.add_option("--colour", o.colour, "order of the channels: rgb or bgr"), {"rgb", "bgr"})
      ->capture_default_str()
      ->type_name("ORDER");
  one_of(c.add_option("--layout", o.layout, "nchw or nhwc, where the shape of the input does not say"),
         {"nchw", "nhwc"})
      ->type_name("NAME");
  c.add_option_function<std::string>(
       "--scale", [&o](const std::string& given) { o.scale = real_of<double>(given); },
       "times the bytes 0 to 255; without: 1/255 for a model of floats, 1 for one of bytes")
      ->check([](const std::string& given) { return real_of<double>(given) ? "" : given + " is no number"; })
      ->type_name("S");
  add_reals(c, "--mean", o.mean, "subtracted after --scale, from all channels or from each");
  add_reals(c, "--std", o.std, "then divided by");
  c.add_option_function<std::string>(
       "--picture-size",
       [&o](const std::string& given) {
         const std::size_t x = given.find('x');
         o.width = static_cast<std::int64_t>(*real_of<double>(given.substr(0, x)));
         o.height = static_cast<std::int64_t>(*real_of<double>(given.substr(x + 1)));
       },
       "for a model that takes any; without: the picture's own")
      ->check([](const std::string& given) -> std::string {
        const std::size_t x = given.find('x');
        for (const std::string& n : {given.substr(0, x), x == given.npos ? "" : given.substr(x + 1)})
          if (n.empty() || n.size() > 5 || n.find_first_not_of("0123456789") != n.npos || n == "0")
            return given + " is not WIDTHxHEIGHT";
        return "";
      })
      ->type_name("WxH");
  c.add_option("--multiple", o.multiple, "the same, rounded up to a multiple of this (32 for most detectors)")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096))
      ->type_name("N");
}

void add_drawing(CLI::App& c, DrawOptions& o) {
  c.add_option("--draw", o.out, "draw what the outputs say on the picture, and write that (.png, .jpg)")
      ->type_name("FILE");
  one_of(
      c.add_option("--draw-as", o.as,
                   "detections, masks, text (lines, of a map of scores), picture or classes, where the shapes of the\n"
                   "outputs say something else"),
      {"detections", "masks", "text", "picture", "classes"})
      ->type_name("WHAT");
  one_of(c.add_option("--boxes", o.boxes, "order of a box: xyxy, yxyx, xywh or cxcywh"),
         {"xyxy", "yxyx", "xywh", "cxcywh"})
      ->type_name("ORDER");
  c.add_option("--labels", o.labels, "names of the classes: a line each, or JSON")->type_name("FILE");
  add_real(c, "--confidence", o.confidence, "detections below it are left out")->capture_default_str()->type_name("P");
  add_real(c, "--overlap", o.overlap, "of two boxes of a class that share more of their union, the better one stays")
      ->capture_default_str()
      ->type_name("P");
  c.add_option("--top", o.top, "print so many of the likeliest classes")->check(CLI::Range(1, 1 << 20))->type_name("K");
}

}  // namespace

void add_run(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<RunOptions>();
  CLI::App* c = app.add_subcommand("run", "Run an ONNX model or a StableHLO module");
  c->footer(
      "  lightcone run model.onnx --input photo.jpg --output answers.npz --repeat 20\n"
      "  lightcone run yolo.onnx -i photo.jpg --draw found.png --labels coco.txt\n"
      "  lightcone run resnet.onnx -i photo.jpg --fit crop --mean .485,.456,.406 --std .229,.224,.225 --labels "
      "names.txt\n"
      "  lightcone run bert.onnx -i \"What is this?\"              tokenizer.json beside it, or --tokenizer FILE\n"
      "  lightcone run speech.onnx -i sound.wav --rate 16000 -i sr=16000\n"
      "  lightcone run model.onnx -i ids=ids.npy -i mask=all.npz:mask --compare expected.npz\n"
      "An input is a file (.npy; .npz, whose members have the inputs' names; JPEG, PNG; WAV, FLAC; recognised by what\n"
      "is in it), a number or numbers with commas, or a text. Without NAME it is for the next input of the model; a\n"
      "text fills input_ids, attention_mask and token_type_ids. What was made of it is printed. A picture becomes a\n"
      "batch of one: its size, channels and type are those that the model states. A sound becomes one channel.\n"
      "Each output gets a line: type, shape, least, largest and mean value.\n"
      "What --draw knows by shape and name: detections, [1, 4 + classes, n] or [1, n, 5 + classes] (YOLO; raw grids "
      "of\n"
      "YOLOX too), [1, n, 6], or boxes [n, 4] with scores (SSD, DETR; in pixels of the picture if the\n"
      "model takes orig_target_sizes), or cls_S, obj_S and bbox_S for strides S;\n"
      "masks, [1, 1, h, w] from 0 to 1 or [1, classes, h, w]; a picture, [1, 3, h, w], or [1, 1, h, w] of another\n"
      "range (depth); classes, [1, n]. It prints what it took the outputs for; other outputs are an Error with their\n"
      "shapes. --compare says how far the outputs are from the arrays of the same names, and the exit code is 1 if\n"
      "that is more than --tolerance. lightcone inspect says what a model takes and needs.");
  c->add_option("MODEL", o->model, "ONNX, or StableHLO as text or bytecode")->required()->type_name("");
  c->add_option("-i,--input", o->inputs, "may be repeated: a file, numbers, or a text")
      ->allow_extra_args(false)
      ->type_name("[NAME=]VALUE");
  c->add_option("--size", o->sizes, "the number behind an extent that an ONNX model names")
      ->allow_extra_args(false)
      ->type_name("NAME=N");
  c->add_option("--tokenizer", o->tokenizer, "for texts, when none lies beside the model")->type_name("FILE");
  c->add_option("--rate", o->rate, "samples a second that the model takes of a sound")
      ->check(CLI::Range(1, 10'000'000))
      ->type_name("N");
  add_pictures(*c, o->picture);
  add_drawing(*c, o->draw);
  c->add_option("-o,--output", o->output, "write the outputs to this .npz file")->type_name("FILE");
  c->add_option("--compare", o->compare, "an .npz file with the outputs as they should be")->type_name("FILE");
  add_real(*c, "--tolerance", o->tolerance, "relative to the largest expected value, at least 1")
      ->capture_default_str()
      ->type_name("T");
  c->add_option("--repeat", o->repeat, "run so many times more and print the median time")
      ->check(CLI::Range(0, 1 << 20))
      ->type_name("N");
  add_precision(*c, o->precision);
  add_device(*c, o->device);
  add_threads(*c, o->threads);
  c->add_flag("-q,--quiet", o->quiet, "no line of times, and none on what was made of inputs and outputs");
  c->callback([o, &exit_code] { exit_code = run_model(*o); });
}

}  // namespace lc::tool
