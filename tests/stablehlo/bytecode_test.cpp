// Portable artifacts (StableHLO in MLIR's bytecode) become the same graphs as the text of the same programs.
#include <gtest/gtest.h>

#include "artifacts.h"
#include "error_of.h"
#include "lightcone/stablehlo/read.h"
#include "unhex.h"

using namespace lc;

namespace {

std::string file_of(const test::Artifact& a) { return test::unhex(a.hex); }

TEST(Bytecode, GivesTheGraphsOfTheText) {
  for (const test::Artifact& a : test::kArtifacts) {
    SCOPED_TRACE(a.name);
    const StableHloProgram text = read_stablehlo(a.text), bytes = read_stablehlo(file_of(a));
    EXPECT_EQ(bytes.graph.str(), text.graph.str());
    EXPECT_EQ(bytes.inputs, text.inputs);
    EXPECT_EQ(bytes.outputs, text.outputs);
    EXPECT_EQ(bytes.donated, text.donated);
    ASSERT_EQ(bytes.constants.size(), text.constants.size());
    for (std::size_t k = 0; k < text.constants.size(); ++k) {
      EXPECT_EQ(bytes.constants[k].name, text.constants[k].name);
      EXPECT_EQ(bytes.constants[k].shape, text.constants[k].shape);
      EXPECT_EQ(*bytes.constants[k].bytes, *text.constants[k].bytes);
    }
  }
}

// A module from bytecode is printed as text with the same meaning.
TEST(Bytecode, PrintsAsText) {
  for (const test::Artifact& a : test::kArtifacts) {
    SCOPED_TRACE(a.name);
    const std::string text = stablehlo::print(stablehlo::parse(file_of(a)));
    EXPECT_EQ(read_stablehlo(text).graph.str(), read_stablehlo(a.text).graph.str()) << text;
  }
}

TEST(Bytecode, KeepsNamesAndAttributes) {
  const stablehlo::Module m = stablehlo::parse(file_of(test::kArtifacts[0]));
  EXPECT_EQ(m.name, "jit_products");
  ASSERT_NE(m.function("main"), nullptr);
  const stablehlo::Function& f = *m.function("main");
  EXPECT_TRUE(f.is_public);
  ASSERT_EQ(f.argument_attributes.size(), 3u);
  EXPECT_EQ(f.argument_attributes[2].at(0).first, "tf.aliasing_output");
  EXPECT_EQ(f.argument_attributes[2].at(0).second.integer, 1);
  ASSERT_EQ(f.results.size(), 3u);
  EXPECT_EQ(str(f.results[1]), "tensor<5x3xf32>");
  const stablehlo::Operation& product = f.body.operations.at(0);
  ASSERT_EQ(product.name, "stablehlo.dot_general");
  const stablehlo::Attribute* dimensions = product.find("dot_dimension_numbers");
  ASSERT_NE(dimensions, nullptr);
  EXPECT_EQ(dimensions->name, "dot");
  EXPECT_EQ(dimensions->fields.at(2).first, "lhs_contracting_dimensions");
  EXPECT_EQ(dimensions->fields.at(2).second.integers, std::vector<std::int64_t>{1});
  EXPECT_EQ(product.find("lhs_contracting_dimensions"), nullptr);
  EXPECT_EQ(product.find("algorithm"), nullptr);
  EXPECT_EQ(f.body.operations.back().name, "func.return");
}

// abs of a tensor<?x2xf32, #stablehlo.bounds<4, ?>>, written by jaxlib for StableHLO 1.0.0.
TEST(Bytecode, KeepsBoundsOfExtents) {
  constexpr const char* kBounded =
      "4d4cef520d537461626c65484c4f5f76312e302e300001190501050901030b03070f1317032d1707010d0b1313131313030b0b0b"
      "330b0b03073b1707027d050d170101011701030317010323170105151701070b0301230325051100ffffffffffffffff1d0f1d11"
      "2b110500ffffffffffffffff0905110301030109044b050150030107043b0301050350050307042703050b030307000506090301"
      "030107040b03030603010501007f13030b05150f110f0b116275696c74696e0076686c6f006d6f64756c650066756e635f763100"
      "6162735f76310072657475726e5f7631002d006d61696e00000815050501010b0d0f0d1315";
  const stablehlo::Module m = stablehlo::parse(file_of({"bounded", "", kBounded}));
  EXPECT_EQ(str(m.function("main")->results.at(0)), "tensor<?x2xf32, #stablehlo.bounds<4, ?>>");
  EXPECT_EQ(error_of([&] {
              read_stablehlo(m, {.shapes = {{0, {5, 2}}}});
            }),
            "stablehlo: argument %arg0 of tensor<?x2xf32, #stablehlo.bounds<4, ?>> cannot have the shape [5, 2]");
}

// If a VHLO operation is not supported, the error names its byte in the file.
TEST(Bytecode, NamesTheByteOfWhatIsNotSupported) {
  std::string file = file_of(test::kArtifacts[0]);
  const std::size_t at = file.find("tanh_v2");
  ASSERT_NE(at, std::string::npos);
  file.replace(at, 4, "tash");  // an operation that a later VHLO may have
  EXPECT_EQ(error_of([&] { stablehlo::parse(file); }).substr(0, 16), "stablehlo: byte ");
  EXPECT_NE(error_of([&] { stablehlo::parse(file); }).find(": the operation vhlo.tash_v2 is not known"),
            std::string::npos);

  file = file_of(test::kArtifacts[2]);
  const std::size_t add = file.find("\0add_v1", 0, 7);
  ASSERT_NE(add, std::string::npos);
  file.replace(add + 1, 3, "adx");  // read, because it has no properties, and listed with everything unsupported
  const std::string all = error_of([&] { read_stablehlo(file); });
  EXPECT_NE(all.find("not all of the module can be read:\n  byte "), std::string::npos) << all;
  EXPECT_NE(all.find("stablehlo.adx: is not supported"), std::string::npos) << all;
}

TEST(Bytecode, RefusesWithAPlace) {
  const std::string file = file_of(test::kArtifacts[0]);
  const auto said = [](const std::string& f) {
    return error_of([&] { stablehlo::parse_bytecode(std::as_bytes(std::span(f))); });
  };
  EXPECT_EQ(said(""), "stablehlo: byte 0: this is no MLIR bytecode");
  EXPECT_EQ(said("ML\xefQ and more"), "stablehlo: byte 0: this is no MLIR bytecode");
  EXPECT_EQ(said("ML\xefR"), "stablehlo: byte 4: the file, or a section of it, ends too early");
  std::string newer = file;
  newer[4] = static_cast<char>(99 << 1 | 1);
  EXPECT_EQ(said(newer), "stablehlo: byte 5: version 99 of MLIR's bytecode is not read: versions to 6 are");
  for (std::size_t n = 0; n < file.size(); ++n)
    EXPECT_EQ(said(file.substr(0, n)).substr(0, 16), "stablehlo: byte ") << n;
  EXPECT_EQ(said(file + '\0').substr(0, 16), "stablehlo: byte ");
}

// Regression, found by changing bytes: an integer of such a type was shifted by a negative amount.
TEST(Bytecode, RefusesComplexNumbersOfAnythingButFloats) {
  std::string file = file_of(test::kArtifacts[0]);
  file[170] = 3, file[411] = 9, file[598] = 0x57;
  file.replace(464, 37, test::unhex("1313131313131313131313131313131313131313131313034f0b1f0b2f0b0b0b0b0b0b1f0f"));
  EXPECT_EQ(error_of([&] { stablehlo::parse_bytecode(std::as_bytes(std::span(file))); }),
            "stablehlo: byte 478: complex numbers of two tensor<2xindex> are not read");
}

// Attributes that contain the previous one twice, forty times over, would expand to 2^40 in a few bytes.
TEST(Bytecode, NeverGrowsLikePowersOfTwo) {
  const auto varint = [](std::size_t v) {
    return std::string{static_cast<char>(v << 2 | 2), static_cast<char>(v >> 6)};
  };
  const auto section = [&](int id, const std::string& data) {
    return std::string(1, static_cast<char>(id)) + varint(data.size()) + data;
  };
  const auto small = [](std::size_t v) { return std::string(1, static_cast<char>(v << 1 | 1)); };
  constexpr std::size_t kLevels = 40;
  // a string, and lists that contain the previous attribute twice
  std::string data = small(14) + small(0), sizes = small(2 << 1 | 1);
  for (std::size_t k = 1; k < kLevels; ++k)
    data += small(1) + small(2) + small(k - 1) + small(k - 1), sizes += small(4 << 1 | 1);
  for (const bool circle : {false, true}) {
    std::string all = data;
    if (circle) all.replace(0, 2, small(1) + small(0)), all.replace(2 + 4 - 1, 1, small(kLevels - 1));
    const std::string dictionary = small(1) + small(1) + small(kLevels) + small(kLevels - 1),
                      name = small(2) + small(0);
    all += name + dictionary;
    const std::string strings = small(3) + small(5) + small(8) + small(7) + std::string("module\0builtin\0vhlo\0", 20);
    const std::string dialects =
        small(2) + small(1 << 1) + small(2 << 1) + small(1) + small(0) + small(1) + small(0 << 1 | 1);
    const std::string offsets = small(kLevels + 2) + small(0) + small(1) + small(kLevels) + sizes + small(0) +
                                small(2) + small(2 << 1 | 1) + small(4 << 1 | 1);
    const std::string operation = small(0) + std::string(1, 1) + small(0) + small(kLevels + 1);
    const std::string file = "ML\xefR" + small(6) + std::string("x\0", 2) + section(0, strings) + section(1, dialects) +
                             section(3, offsets) + section(2, all) + section(4, small(1 << 1) + operation);
    const std::string what = error_of([&] { stablehlo::parse(file); });
    EXPECT_NE(what.find(circle ? "nested more than 100 deep" : "takes more than 256 times the memory"),
              std::string::npos)
        << what;
  }
}

}  // namespace
