// The command line of `lightcone detect`.
#include <memory>

#include "lightcone/base/error.h"
#include "options.h"

namespace lc::tool {
namespace {

// "640" or "640x352": width and height.
std::string read_size(const std::string& text, std::int64_t& width, std::int64_t& height) {
  const std::size_t x = text.find('x');
  const auto number = [](const std::string& s) -> std::int64_t {
    if (s.empty() || s.size() > 5 || s.find_first_not_of("0123456789") != s.npos) return 0;
    return static_cast<std::int64_t>(real_of<double>(s).value_or(0));
  };
  width = number(text.substr(0, x)), height = x == text.npos ? width : number(text.substr(x + 1));
  return width > 0 && height > 0 ? "" : "a size is a number, or WIDTHxHEIGHT";
}

}  // namespace

void add_detect(CLI::App& app) {
  auto o = std::make_shared<DetectOptions>();
  CLI::App* c = app.add_subcommand("detect", "The objects in pictures, with their boxes");
  c->footer(
      "  lightcone detect photo.jpg --model yolo11n.pt\n"
      "  lightcone detect photo.jpg --model yolov9t.pt --draw found.png --confidence 0.4\n"
      "  lightcone detect holiday/ --model yolov8n.pt --json > found.jsonl\n"
      "  lightcone detect holiday/ --model yolov8n.pt --class person --class dog --draw drawn/\n"
      "  ffmpeg -i film.mp4 -f rawvideo -pix_fmt rgb24 - | lightcone detect --frames 1280x720 --model yolov8n.pt "
      "--json\n"
      "  ffmpeg -i film.mp4 -f image2pipe -c:v mjpeg - | lightcone detect - --model yolov8n.pt --draw drawn/\n"
      "MODEL is a detector of the YOLO family as Ultralytics or YOLOv5 save it (best.pt), whose modules are read and\n"
      "never run, or a folder with config.json. (ONNX detectors: lightcone run MODEL.onnx -i PHOTO --draw FILE.)\n"
      "Each PICTURE is a .jpg or .png, or a folder of them; - reads a stream of frames, which end each as a line as\n"
      "soon as it has come: files one after another, or with --frames raw pixels. A picture is fitted whole into the "
      "input of the network, with\n"
      "grey bars at two sides. A line of text, or with --json one of JSON, has what was found, the surest first;\n"
      "boxes are corners in pixels of the picture: left, top, right, bottom. Names of classes are those of the file.\n"
      "--size is a multiple of the largest stride of the network, 32 for most; larger sizes find smaller things and\n"
      "take longer. docs/models.md says more.");
  c->add_option("PICTURE", o->inputs, "pictures, or folders of them; -: a stream of them on the standard input")
      ->type_name("");
  c->add_option("-m,--model", o->model, "the detector")->required()->type_name("MODEL");
  c->add_option("--draw", o->draw, "write the picture with boxes to this .png or .jpg; for several, a folder")
      ->type_name("FILE");
  c->add_flag("--json", o->json, "print a line of JSON for each picture");
  add_real(*c, "--confidence", o->confidence, "leave out what is less sure")
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("P");
  add_real(*c, "--overlap", o->overlap, "of two boxes of a class that overlap by more, one is kept")
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("IOU");
  c->add_flag("--across-classes", o->across_classes, "the same for boxes of different classes");
  c->add_option("--most", o->most, "of a picture")->capture_default_str()->check(CLI::Range(1, 10'000))->type_name("N");
  c->add_option("--class", o->classes, "this class alone; may be repeated")->allow_extra_args(false)->type_name("NAME");
  c->add_option_function<std::string>(
       "--size",
       [o](const std::string& text) {
         if (const std::string wrong = read_size(text, o->width, o->height); !wrong.empty())
           throw CLI::ValidationError("--size", wrong);
       },
       "input of the network: a number, or WIDTHxHEIGHT [640]")
      ->type_name("N");
  c->add_option_function<std::string>(
       "--frames",
       [o](const std::string& text) {
         if (const std::string wrong = read_size(text, o->frame_width, o->frame_height); !wrong.empty())
           throw CLI::ValidationError("--frames", wrong);
       },
       "the standard input has raw frames of this size, RGB of 8 bits")
      ->type_name("WIDTHxHEIGHT");
  c->add_option("--ignore", o->ignore, "a key of config.json that changes nothing; may be repeated")
      ->allow_extra_args(false)
      ->type_name("KEY");
  add_device(*c, o->device);
  add_threads(*c, o->threads);
  add_precision(*c, o->precision);
  c->callback([o] { detect(*o); });
}

}  // namespace lc::tool
