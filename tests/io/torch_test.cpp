// Files of torch.save() give PyTorch's tensors in both forms and all protocols. Calls of unknown functions are refused
// by name, and damaged files give an Error in time and memory proportional to the file.
#include <cstring>
#include <limits>
#include <map>

#include "data.h"
#include "error_of.h"
#include "lightcone/base/error.h"
#include "lightcone/io/checkpoints/weights.h"
#include "lightcone/io/mapped_file.h"
#include "processor_time.h"
#include "torch_writer.h"
#include "unhex.h"

using namespace lc;
using namespace made;
using namespace std::string_literals;

namespace {

std::string goldens(const std::string& name) { return std::string(paths::kSource) + "/tests/goldens/torch/" + name; }

Weights opened(const std::string& bytes, const ReadOptions& o = {}) {
  return Weights::open(MappedFile::view("x.pt", std::as_bytes(std::span(bytes))), o);
}
// Opens bytes and returns the Error, or "".
std::string refusal(const std::string& bytes, const ReadOptions& o = {}) {
  try {
    opened(bytes, o);
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}
#define EXPECT_SAYS(text, words)                                                                                 \
  do {                                                                                                           \
    const std::string said = text;                                                                               \
    EXPECT_NE(said.find(words), std::string::npos) << "'" << said.substr(0, 500) << "' lacks '" << words << "'"; \
  } while (false)

std::string floats(const std::vector<float>& v) { return {reinterpret_cast<const char*>(v.data()), 4 * v.size()}; }
const std::string kSix = floats({0, 1, 2, 3, 4, 5});
std::string six(std::int64_t offset, const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& strides) {
  return pickled_tensor(pickled_storage("FloatStorage", "0", 6), offset, shape, strides);
}
std::string plain_six() { return six(0, {6}, {1}); }
// A file whose object is this value; its storage "0" has six floats.
std::string file_of(const std::string& value) { return torch_zip(whole_pickle(value), {{"0", kSix, 6}}); }
std::string file_of(const Pairs& pairs) { return file_of(pickled_dict(pairs)); }
std::string old_file_of(const std::string& value) { return torch_old(whole_pickle(value), {{"0", kSix, 6}}); }

std::vector<std::string> names(const Weights& w) {
  std::vector<std::string> all;
  for (const auto& [name, t] : w.tensors()) all.push_back(name);
  return all;
}
using Names = std::vector<std::string>;

// Compares names, types, shapes and bytes of two checkpoints. The second may lack tensors of integers.
void expect_same(const Weights& have, const Weights& want) {
  for (const auto& [name, t] : want.tensors()) {
    const StoredTensor* other = have.find(name);
    ASSERT_TRUE(other) << name;
    EXPECT_EQ(other->type, t.type) << name;
    EXPECT_EQ(other->shape, t.shape) << name;
    ASSERT_EQ(other->bytes.size(), t.bytes.size()) << name;
    EXPECT_EQ(std::memcmp(other->bytes.data(), t.bytes.data(), t.bytes.size()), 0) << name;
  }
}

}  // namespace

// ---- what PyTorch wrote -----------------------------------------------------------------------------------------

TEST(Torch, FilesOfPyTorchGiveItsTensors) {
  std::istringstream expected(slurp(goldens("expected.txt")));
  std::map<std::string, std::size_t> seen;
  for (std::string line; std::getline(expected, line);) {
    std::istringstream row(line);
    std::string file, name, type, shape, bytes, text;
    std::getline(row, file, '\t'), std::getline(row, name, '\t'), std::getline(row, type, '\t');
    std::getline(row, shape, '\t'), std::getline(row, bytes, '\t');
    for (bool map : {true, false}) {
      const Weights w = Weights::open(goldens(file), {.map = map});
      EXPECT_EQ(w.format(), "PyTorch");
      const StoredTensor* t = w.find(name);
      ASSERT_TRUE(t) << file << ": " << name;
      EXPECT_EQ(t->type, type) << file << ": " << name;
      text.clear();
      for (std::int64_t n : t->shape) text += (text.empty() ? "" : ",") + std::to_string(n);
      EXPECT_EQ(text, shape) << file << ": " << name;
      EXPECT_EQ(std::string(reinterpret_cast<const char*>(t->bytes.data()), t->bytes.size()), test::unhex(bytes))
          << file << ": " << name;
    }
    ++seen[file];
  }
  EXPECT_EQ(seen.size(), 19u);
  for (const auto& [file, count] : seen) EXPECT_EQ(Weights::open(goldens(file)).tensors().size(), count) << file;
}

// The literals are what tools/make_torch_file_goldens.py saves.
TEST(Torch, PlainValuesAreMetadata) {
  for (const char* form : {"zip", "old"}) {
    const Weights w = Weights::open(goldens(form + "_checkpoint.pt"s));
    const auto& m = w.metadata();
    EXPECT_EQ(m.at("epoch"), "3");
    EXPECT_EQ(m.at("score"), "2.5");
    EXPECT_EQ(m.at("text"), "h\xC3\xA9\n");
    EXPECT_EQ(m.at("loss"), "[1.5, null, true]");
    EXPECT_EQ(m.at("config"),
              R"({"sizes": [1, 2], "dtype": "torch.float16", "device": {"class": "torch.device", "0": "cpu"}})");
    EXPECT_EQ(m.at("args"),
              R"({"class": "argparse.Namespace", "lr": 0.1, "out": {"class": "pathlib.PurePosixPath", "0": "x"}})");
    EXPECT_EQ(m.at("counter"), R"({"1": 2, "2": 1})");
    EXPECT_EQ(m.at("lists"), R"({"1": [2]})");
    EXPECT_EQ(m.at("frozen"), "[-1]");
    EXPECT_EQ(m.at("large"), R"("<whole number beyond 64 bits>")");
    EXPECT_EQ(m.at("bytes"), R"("<3 bytes>")");
    EXPECT_SAYS(m.at("optimizer.param_groups"), R"([{"lr": 0.001, "betas": [0.9, 0.999], "eps": 1e-08)");
    EXPECT_FALSE(m.contains("model"));
  }
  const Weights net = Weights::open(goldens("zip_module_2.pt"));
  EXPECT_EQ(net.metadata().at("nets.0"), "<__main__.Net>");
  // the attributes of a module two steps from the root; state_dict() has neither of these
  const Weights script = Weights::open(goldens("script.pt"));
  EXPECT_EQ(script.metadata().at("class"), "__torch__.Scripted");
  EXPECT_EQ(script.metadata().at("sizes"), "[3, 2]");
}

TEST(Torch, AlignedTensorsAreViewsOfTheFile) {
  const std::string bytes = slurp(goldens("zip_views.pt"));
  const auto file = MappedFile::view("x.pt", std::as_bytes(std::span(bytes)));
  const Weights w = Weights::open(file);
  const auto inside = [&](const char* name) {
    const std::byte* at = w.at(name).bytes.data();
    return at >= file->bytes().data() && at < file->bytes().data() + file->bytes().size();
  };
  for (const char* name : {"base", "slice", "element", "tied", "scalar"}) EXPECT_TRUE(inside(name)) << name;
  for (const char* name : {"transposed", "step", "expanded", "permuted", "channels_last"})
    EXPECT_FALSE(inside(name)) << name;
  EXPECT_EQ(w.at("tied").bytes.data(), w.at("base").bytes.data());  // a storage that they share
  EXPECT_EQ(w.at("element").bytes.data() - w.at("base").bytes.data(), 20);
}

TEST(Torch, RealFilesAgreeWithTheirTwins) {
  NEEDS_DATA("models/tiny");
  const auto open = [](const std::string& name) { return Weights::open(data("models/tiny/" + name)); };
  expect_same(open("tiny_torch_state.bin"), open("tiny_torch_state.safetensors"));
  expect_same(open("tiny_rrdbnet.pth"), open("tiny_rrdbnet.safetensors"));
  expect_same(open("tiny_gpt2.bin.index.json"), open("tiny_gpt2.bin"));
  EXPECT_EQ(open("tiny_gpt2.bin").tensors().size(), 30u);
  EXPECT_EQ(open("pico_resnet18.pth").tensors().size(), 62u);
  EXPECT_SAYS(error_of([&] { open("evil_torch.bin"); }), "its pickle calls 'posix.system'");
  NEEDS_DATA("vision/cifar_resnet20");
  const Weights cifar = Weights::open(data("vision/cifar_resnet20/upstream_resnet20-12fca82f.th"));
  EXPECT_EQ(cifar.at("module.linear.weight").shape, (std::vector<std::int64_t>{10, 64}));
  EXPECT_EQ(cifar.metadata().at("best_prec1"), "91.78");
}

// A pickle of modules of classes that are not here. tools/ypt.py beside it counts the same tensors.
TEST(Torch, ModulesOfAnyClassAreReadByTheirAttributes) {
  NEEDS_DATA("models/yolov9t/yolov9t.pt");
  const Weights w = Weights::open(data("models/yolov9t/yolov9t.pt"));
  EXPECT_EQ(w.tensors().size(), 1375u);
  EXPECT_EQ(w.at("model.0.conv.weight").shape, (std::vector<std::int64_t>{16, 3, 3, 3}));
  EXPECT_EQ(w.at("model.0.conv.weight").dtype, DType::F16);
  EXPECT_EQ(w.metadata().at("model"), "<ultralytics.nn.tasks.DetectionModel>");
  EXPECT_EQ(w.metadata().at("model.names"), R"({"0": "ball"})");
  EXPECT_EQ(w.metadata().at("model.stride"), "[8, 16, 32]");
}

// ---- what is called, and what is made ---------------------------------------------------------------------------

TEST(Torch, CallsOfOtherFunctionsAreRefusedByName) {
  const std::pair<const char*, const char*> functions[] = {
      {"posix", "system"},    {"os", "system"},           {"subprocess", "Popen"},    {"builtins", "eval"},
      {"builtins", "exec"},   {"builtins", "__import__"}, {"torch", "load"},          {"numpy", "load"},
      {"runpy", "_run_code"}, {"torch.hub", "load"},      {"operator", "attrgetter"}, {"enum_of_mine", "Color"},
      {"torch.jit", "load"}};
  for (const auto& [module, name] : functions) {
    const std::string argument = pickled_text("echo"), call = pickled_call(module, name, argument);
    const std::string said = str_cat("its pickle calls '", module, ".", std::string(name).substr(0, 1));
    EXPECT_SAYS(refusal(file_of({{"a", plain_six()}, {"b", call}})), said);
    EXPECT_SAYS(refusal(old_file_of(pickled_dict({{"a", plain_six()}, {"b", call}}))), said);
    EXPECT_SAYS(refusal(file_of(call)), "It was not run, and the file is not read");
    // dropped again, before the value that remains
    EXPECT_SAYS(refusal(file_of(call + "0" + plain_six())), said);
    // instructions of protocol 0 that call as well
    EXPECT_SAYS(refusal(file_of("("s + argument + "i" + module + "\n" + name + "\n")), said);
    EXPECT_SAYS(refusal(file_of("(" + pickled_name(module, name) + argument + "o")), said);
    // joined from two texts, as protocol 4 does
    EXPECT_SAYS(refusal(file_of(pickled_text(module) + pickled_text(name) + "\x93(" + argument + "tR")), said);
  }
  // what is called is no name
  EXPECT_SAYS(refusal(file_of(pickled_text("posix.system") + "(tR")), "calls something that is no function");
  const std::string partial = pickled_call("functools", "partial", pickled_name("posix", "system"));
  EXPECT_EQ(refusal(file_of({{"a", partial}})), "");  // a name that nobody calls
  EXPECT_SAYS(refusal(file_of(partial + "(tR")), "calls something that is no function");
  const std::string wrapped = pickled_call(
      "torch._tensor", "_rebuild_from_type_v2",
      pickled_name("posix", "system") + pickled_name("torch", "Tensor") + "(" + pickled_text("echo") + "t}");
  EXPECT_SAYS(refusal(file_of(wrapped)), "arguments that it does not take");
}

TEST(Torch, TensorsThatAreNotDenseAreRefusedByName) {
  for (const char* name : {"_rebuild_sparse_tensor", "_rebuild_nested_tensor", "_rebuild_meta_tensor_no_storage"})
    EXPECT_SAYS(refusal(file_of({{"a", pickled_call("torch._utils", name, "")}})), name);
  EXPECT_SAYS(refusal(file_of(pickled_tensor(pickled_storage("QUInt4x2Storage", "0", 6), 0, {6}, {1}))),
              "a storage of the type 'torch.QUInt4x2Storage' is not read");
  // listed, and refused where they are read
  const std::string bytes = file_of({{"c", pickled_tensor(pickled_storage("ComplexFloatStorage", "0", 3), 0, {3}, {1})},
                                     {"q", pickled_tensor(pickled_storage("QInt8Storage", "0", 24), 0, {24}, {1})}});
  const Weights w = opened(bytes);
  EXPECT_EQ(w.at("c").type, "C64");
  EXPECT_SAYS(error_of([&] { Weights::read(w.at("c")); }), "values of type C64 cannot be read yet");
  EXPECT_SAYS(error_of([&] { Weights::read(w.at("q")); }), "values of type QINT8 cannot be read yet");
}

// The classes and plain attributes of pickled modules, by the paths of their tensors: what a model is built from.
TEST(Torch, ModulesHaveClassesAndAttributes) {
  const auto module = [](const char* name, Pairs attributes, const Pairs& tensors, const Pairs& modules) {
    attributes.push_back({"_parameters", pickled_dict(tensors)});
    attributes.push_back({"_modules", pickled_dict(modules)});
    return pickled_object("a.b", name, pickled_dict(attributes));
  };
  const std::string conv =
      module("Conv", {{"stride", pickled_tuple({2, 1})}, {"add", "\x88"}, {"eps", "G?PbM\xd2\xf1\xa9\xfc"}},
             {{"weight", plain_six()}}, {{"act", module("SiLU", {{"name", pickled_text("x y")}}, {}, {})}});
  const Weights w =
      opened(file_of({{"model", module("Net", {{"f", pickled(-1)}, {"_private", pickled(1)}}, {}, {{"0", conv}})},
                      {"epoch", pickled(3)}}));
  EXPECT_EQ(names(w), Names{"0.weight"});
  ASSERT_EQ(w.modules().size(), 3u);  // the key "model" is left out, as in the names of tensors
  EXPECT_EQ(w.modules().at("").class_name, "a.b.Net");
  EXPECT_EQ(w.modules().at("").attributes, (std::map<std::string, std::string>{{"f", "-1"}}));
  EXPECT_EQ(w.modules().at("0").class_name, "a.b.Conv");
  EXPECT_EQ(w.modules().at("0").attributes,
            (std::map<std::string, std::string>{{"add", "true"}, {"eps", "0.001"}, {"stride", "[2, 1]"}}));
  EXPECT_EQ(w.modules().at("0.act").attributes, (std::map<std::string, std::string>{{"name", "\"x y\""}}));
  EXPECT_TRUE(opened(file_of({{"a", plain_six()}})).modules().empty());
}

TEST(Torch, ObjectsGiveTheirTensorsByPath) {
  const std::string module = pickled_object(
      "a.b", "Net",
      pickled_dict(
          {{"training", "\x88"},
           {"_parameters", pickled_dict({{"w", plain_six()}, {"none", "N"}})},
           {"_buffers", pickled_dict({{"kept", six(1, {2}, {1})}, {"passing", six(2, {2}, {1})}})},
           {"_non_persistent_buffers_set", pickled_call("builtins", "set", "](" + pickled_text("passing") + "e")},
           {"_modules",
            pickled_dict({{"inner", pickled_object("a.b", "Other", pickled_dict({{"t", six(3, {1}, {1})}}))}})},
           {"hidden", six(4, {2}, {1})},
           {"_private", pickled(1)}}));
  const std::string bytes = file_of({{"net", module}});
  const Weights w = opened(bytes);
  EXPECT_EQ(names(w), (Names{"inner.t", "kept", "w"}));
  EXPECT_EQ(Weights::read(w.at("inner.t")), std::vector<float>{3});
  EXPECT_EQ(w.metadata().at("net"), "<a.b.Net>");
  EXPECT_EQ(w.metadata().at("net.hidden"), "[4, 5]");
  EXPECT_FALSE(w.metadata().contains("net._private"));
  // objects that are no modules: attributes, slots, items, arguments; by the instructions of each protocol
  const std::string state = pickled_dict({{"a", six(0, {1}, {1})}}), slots = pickled_dict({{"b", six(1, {1}, {1})}});
  EXPECT_EQ(names(opened(file_of(pickled_object("m", "C", "(" + state + slots + "t")))), (Names{"a", "b"}));
  EXPECT_EQ(names(opened(file_of("(im\nC\n" + state + "b"))), Names{"a"});
  EXPECT_EQ(names(opened(file_of("(" + pickled_name("m", "C") + "o" + state + "b"))), Names{"a"});
  EXPECT_EQ(names(opened(file_of(pickled_call("copyreg", "_reconstructor",
                                              pickled_name("m", "C") + pickled_name("builtins", "object") + "N") +
                                 state + "b"))),
            Names{"a"});
  EXPECT_EQ(names(opened(file_of(pickled_name("m", "D") + ")\x81(" + pickled_text("k") + plain_six() + "u"))),
            Names{"k"});
  EXPECT_EQ(names(opened(file_of(pickled_name("m", "L") + ")\x81(" + plain_six() + plain_six() + "e"))),
            (Names{"0", "1"}));
  EXPECT_EQ(names(opened(file_of(pickled_name("m", "P") + plain_six() + "\x85\x81"))), Names{"0"});
}

TEST(Torch, OneKeyAroundTheWeightsIsLeftOut) {
  const std::string weights = pickled_dict({{"fc.w", plain_six()}}), moments = pickled_dict({{"m", plain_six()}});
  const auto of = [](const Pairs& pairs) { return names(opened(file_of(pairs))); };
  for (const char* key : {"state_dict", "model_state_dict", "model", "module", "net", "network", "params", "params_ema",
                          "ema", "model_ema", "generator", "weights"})
    EXPECT_EQ(of({{"epoch", pickled(1)}, {key, weights}}), Names{"fc.w"}) << key;
  EXPECT_EQ(of({{"model", weights}, {"optimizer", moments}}), (Names{"fc.w", "optimizer.m"}));
  EXPECT_EQ(of({{"model", weights}, {"ema", "N"}}), Names{"fc.w"});
  EXPECT_EQ(of({{"model", weights}, {"ema", weights}}), (Names{"ema.fc.w", "model.fc.w"}));
  EXPECT_EQ(of({{"mine", weights}}), Names{"mine.fc.w"});
  EXPECT_EQ(of({{"model", plain_six()}}), Names{"model"});
  EXPECT_EQ(of({{"model", pickled_dict({{"model", weights}})}}), Names{"model.fc.w"});
  EXPECT_EQ(of({{"model", weights}, {"fc.w", plain_six()}}), (Names{"fc.w", "model.fc.w"}));  // the names would meet
  EXPECT_EQ(names(opened(file_of(plain_six()))), Names{"tensor"});
  EXPECT_EQ(names(opened(file_of("](" + plain_six() + plain_six() + "e"))), (Names{"0", "1"}));
}

// ---- values, views and bytes ------------------------------------------------------------------------------------

TEST(Torch, BothByteOrdersAndDeflatedMembers) {
  const std::string big = "\x3f\x80\0\0\x40\0\0\0"s,
                    value = pickled_tensor(pickled_storage("FloatStorage", "0", 2), 0, {2}, {1});
  EXPECT_EQ(Weights::read(opened(torch_zip(whole_pickle(value), {{"0", big, 2}}, "big")).at("tensor")),
            (std::vector<float>{1, 2}));
  EXPECT_SAYS(refusal(torch_zip(whole_pickle(value), {{"0", big, 2}}, "middle")), "byte order 'middle'");
  const std::string deflated_file = torch_zip(whole_pickle(plain_six()), {{"0", kSix, 6}}, "little", true);
  const Weights w = opened(deflated_file);
  EXPECT_EQ(Weights::read(w.at("tensor")), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  const std::string complex = pickled_tensor(pickled_storage("ComplexFloatStorage", "0", 1), 0, {1}, {1});
  const Weights c = opened(torch_zip(whole_pickle(complex), {{"0", big, 1}}, "big"));
  EXPECT_EQ(std::memcmp(c.at("tensor").bytes.data(), "\0\0\x80\x3f\0\0\0\x40", 8), 0);  // each half by itself
}

TEST(Torch, ViewsOfStoragesInOldFiles) {
  // the storage "1" is the last four of the six floats
  const std::string view = "(" + pickled_text("storage") + pickled_name("torch", "FloatStorage") + pickled_text("0") +
                           pickled_text("cpu") + pickled(6) + "(" + pickled_text("1") + pickled(2) + pickled(4) + "ttQ";
  EXPECT_EQ(Weights::read(opened(old_file_of(pickled_tensor(view, 1, {3}, {1}))).at("tensor")),
            (std::vector<float>{3, 4, 5}));
  EXPECT_SAYS(refusal(old_file_of(pickled_tensor(view, 1, {4}, {1}))), "leaves its storage, which has 4 elements");
  EXPECT_SAYS(refusal(old_file_of("(" + pickled_text("storage") + pickled_name("torch", "FloatStorage") +
                                  pickled_text("0") + pickled_text("cpu") + pickled(6) + "(" + pickled_text("1") +
                                  pickled(3) + pickled(4) + "ttQ")),
              "a view of a storage lies outside of it");
}

TEST(Torch, ProtocolZeroIsRead) {
  const std::string value = "(dp0\nS'a\\n\\x41'\np1\nI7\nsV\\u20ac\nI01\nsS'f'\nF-2.5\nsS'l'\nL12L\nsS'n'\nNs";
  const auto m = opened(file_of(value)).metadata();
  EXPECT_EQ(m.at("a\nA"), "7");
  EXPECT_EQ(m.at("\xE2\x82\xAC"), "true");
  EXPECT_EQ(m.at("f"), "-2.5");
  EXPECT_EQ(m.at("l"), "12");
  EXPECT_EQ(m.at("n"), "null");
}

TEST(Torch, ShapesAndStoragesAreChecked) {
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  EXPECT_SAYS(refusal(file_of(six(0, {7}, {1}))), "tensor 'tensor' leaves its storage, which has 6 elements");
  EXPECT_SAYS(refusal(file_of(six(1, {6}, {1}))), "leaves its storage");
  EXPECT_SAYS(refusal(file_of(six(0, {2, 2}, {5, 1}))), "leaves its storage");
  EXPECT_SAYS(refusal(file_of(six(0, {2}, {huge}))), "leaves its storage");
  EXPECT_SAYS(refusal(file_of(six(huge, {2}, {1}))), "leaves its storage");
  EXPECT_SAYS(refusal(file_of(six(0, {huge, 3}, {0, 0}))), "larger than any file");
  EXPECT_SAYS(refusal(file_of(six(0, {huge / 4, 8, 0}, {0, 0, 0}))), "larger than any file");
  EXPECT_SAYS(refusal(file_of(six(0, {-1}, {1}))), "arguments that it does not take");
  EXPECT_SAYS(refusal(file_of(six(5, {2}, {-1}))), "arguments that it does not take");
  EXPECT_SAYS(refusal(file_of(six(0, {6}, {1, 1}))), "arguments that it does not take");
  EXPECT_EQ(refusal(file_of(six(6, {0}, {1}))), "");
  EXPECT_SAYS(refusal(file_of(pickled_tensor(pickled_storage("FloatStorage", "0", 7), 0, {6}, {1}))),
              "the storage '0' of 7 elements from 0, which has 24 bytes");
  EXPECT_SAYS(refusal(file_of(pickled_tensor(pickled_storage("FloatStorage", "0", huge), 0, {6}, {1}))),
              "which has 24 bytes");
  EXPECT_SAYS(refusal(file_of(pickled_tensor(pickled_storage("FloatStorage", "../0", 6), 0, {6}, {1}))),
              "the storage '../0', which is not there");
  EXPECT_SAYS(refusal(old_file_of("N")), "the storage '0' belongs to no tensor");
  const std::string old = old_file_of(plain_six());
  EXPECT_EQ(refusal(old), "");
  EXPECT_SAYS(refusal(old + "x"), "1 bytes follow its storages");
  for (std::size_t n = 20; n < old.size(); ++n) EXPECT_NE(refusal(old.substr(0, n)), "") << n;
  EXPECT_SAYS(refusal(torch_old(whole_pickle(plain_six()), {{"0", kSix, huge}})), "elements");
}

// A small file cannot claim much memory: a stride of 0 repeats an element, and a deflated member unpacks to many bytes.
TEST(Torch, MemoryIsBoundedByTheFile) {
  EXPECT_EQ(Weights::read(opened(file_of(six(3, {2, 2}, {0, 0}))).at("tensor")), (std::vector<float>{3, 3, 3, 3}));
  EXPECT_SAYS(refusal(file_of(six(0, {std::int64_t{1} << 40}, {0}))), "reading it takes more than");
  EXPECT_SAYS(refusal(file_of(six(0, {100000}, {0})), {.memory = 64u << 10}), "ReadOptions::memory allows");
  const std::string zeros(40u << 20, 0),
      value = pickled_tensor(pickled_storage("ByteStorage", "0", 40 << 20), 0, {40 << 20}, {1});
  EXPECT_SAYS(refusal(torch_zip(whole_pickle(value), {{"0", zeros, 0}}, "little", true)), "reading it takes more than");
  EXPECT_SAYS(refusal(torch_zip(whole_pickle("N" + std::string(40u << 20, '0') + "."), {}, "little", true)),
              "reading it takes more");
}

TEST(Torch, DamagedPicklesAreErrors) {
  for (const char* value : {"0",
                            "t",
                            "u",
                            "R",
                            "b",
                            "h\x05",
                            "g9\n",
                            "Nr\xff\xff\xff\x7f",
                            "]N\x85u",
                            "NNs",
                            "]Nb",
                            "(",
                            "((t",
                            "I1x\n",
                            "F1,5\n",
                            "Sx\n",
                            "\xff",
                            "P0\n",
                            "\x82\x01",
                            "\x97",
                            "NQ",
                            "}(Nu",
                            "Na",
                            "c\nx\n",
                            "\x8b\xff\xff\xff\xff",
                            "X\xff\xff\xff\xff",
                            "N\x81",
                            "NN\x93",
                            "(NQ",
                            ")Q",
                            "\x80\x06",
                            "(1R"})
    EXPECT_NE(refusal(file_of(std::string(value) + "N")), "") << value;
  EXPECT_SAYS(refusal(file_of("\xff")), "the instruction 255 is not known");
  EXPECT_SAYS(refusal(torch_zip(whole_pickle("N") + "x", {})), "1 bytes follow its pickle");
  EXPECT_SAYS(refusal(torch_zip(whole_pickle("N"), {}, "little", false, "11\n")), "version 11");
  EXPECT_SAYS(refusal(zip({Member("x/y", "/data.pkl", false)})), "without the file data.pkl");
  EXPECT_SAYS(refusal(std::string(257, 'x') + "ustar" + std::string(300, 'x')), "an archive of tar");
  EXPECT_SAYS(refusal(file_of("}(" + pickled_text("1") + plain_six() + pickled(1) + plain_six() + "u")),
              "two tensors are called '1'");
}

// Regression: the third part of a persistent id was looked at before the parts were counted.
TEST(Torch, PersistentIdsOfAnyLengthAreErrors) {
  const std::string parts[] = {pickled_text("storage"),
                               pickled_name("torch", "FloatStorage"),
                               pickled_text("0"),
                               pickled_text("cpu"),
                               pickled(6),
                               "N",
                               "N",
                               "N"};
  std::string id;
  for (std::size_t n = 0; n <= std::size(parts); id += parts[n++]) {
    const bool whole = n == 5 || n == 6;
    EXPECT_EQ(refusal(file_of("(" + id + "tQ")).empty(), whole) << n;
    if (n == std::size(parts)) break;
  }
}

// Values nested 200,000 deep, in themselves, and each twice in the next: none recurses or takes long.
TEST(Torch, NestedValuesTakeTimeInProportion) {
  const std::size_t deep = 200000;
  const auto nested = [&](const std::string& inside, const std::string& open, const std::string& close, std::size_t n) {
    std::string s;
    for (std::size_t i = 0; i < n; ++i) s += open;
    s += inside;
    for (std::size_t i = 0; i < n; ++i) s += close;
    return s;
  };
  EXPECT_LT(test::seconds([&] {
              EXPECT_EQ(refusal(file_of(nested("N", "", "\x85", deep))), "");
              EXPECT_SAYS(refusal(file_of(nested(plain_six(), "", "\x85", deep))), "nested more than 1000 deep");
              EXPECT_EQ(refusal(file_of(nested("N", "(", "l", deep))), "");
              EXPECT_EQ(refusal(file_of(plain_six() + nested("", "", "\x85", 900))), "");
            }),
            20);
  // a list that is in itself, beside a tensor
  EXPECT_EQ(names(opened(file_of("]q\0h\0a"s + plain_six() + "a"))), Names{"1"});
  // t = (t, t) sixty times: 2^60 paths to one tensor
  std::string twice = plain_six();
  for (int i = 0; i < 60; ++i) twice += "2\x86";
  EXPECT_LT(test::seconds([&] { EXPECT_NE(refusal(file_of(twice)), ""); }), 10);
  EXPECT_LT(test::seconds([&] { EXPECT_EQ(refusal(file_of("N" + twice.substr(plain_six().size()))), ""); }), 10);
  // forty values that all are in each other: there are 40! ways through them, and none is a tensor's
  std::string mesh = "(";
  for (char i = 0; i < 40; ++i) mesh += "]q"s + i;
  mesh += "l0";
  for (char i = 0; i < 40; ++i)
    for (char k = 0; k < 40; ++k) mesh += "h"s + i + "h" + k + "a0";
  EXPECT_EQ(refusal(file_of(mesh + "h"s + '\0')), "");
  EXPECT_LT(test::seconds([&] { EXPECT_NE(refusal(file_of(mesh + "h"s + '\0' + plain_six() + "a")), ""); }), 10);
}

// The folder of a model and its index, as transformers wrote them before safetensors.
TEST(Torch, ShardsAndFolders) {
  const TempDir dir;
  const auto shard = [](const char* name) { return file_of({{name, plain_six()}}); };
  spit(dir / "pytorch_model-1.bin", shard("a"));
  spit(dir / "pytorch_model-2.bin", shard("b"));
  spit(dir / "config.json", "{\"x\": 1}");
  spit(dir / "pytorch_model.bin.index.json",
       R"({"weight_map": {"a": "pytorch_model-1.bin", "b": "pytorch_model-2.bin"}})");
  const Weights w = Weights::open(dir.path.string());
  EXPECT_EQ(names(w), (Names{"a", "b"}));
  EXPECT_EQ(w.format(), "PyTorch");
  EXPECT_EQ(w.config_json(), "{\"x\": 1}");
  spit(dir / "pytorch_model-2.bin", shard("a"));
  EXPECT_SAYS(error_of([&] { Weights::open(dir.path.string()); }), "tensor 'a' is in another shard, too");
  std::filesystem::remove(dir / "pytorch_model.bin.index.json");
  spit(dir / "pytorch_model.bin", shard("c"));
  EXPECT_EQ(names(Weights::open(dir.path.string())), Names{"c"});
}
