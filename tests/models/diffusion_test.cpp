// Networks of diffusion models that load_model() reads compute what diffusers, or the makers of tiny checkpoints,
// computed of the same files.
#include "lightcone/models/diffusion/unet.h"

#include "error_of.h"
#include "lightcone/io/data/readers.h"
#include "lightcone/models/diffusion/pipeline/denoiser.h"
#include "tiny_models.h"

using namespace lc;

namespace {

using nlohmann::json;
using test::AllGiven;
using test::by_cpu;
using test::by_reference;
using test::expect_outputs;
using test::Given;
using test::numbers_of;

// Lists within lists as an array with a batch axis of 1 before the others.
Given one_of(const json& lists) {
  Given g{{1}, numbers_of(lists)};
  for (const json* j = &lists; j->is_array(); j = &j->front()) g.shape.push_back(std::ssize(*j));
  return g;
}

using Sizes = std::map<std::string, std::int64_t>;

AllGiven unet_inputs_of(const json& io) {
  return {{"sample", one_of(io["latent"])},
          {"timestep", {{1}, {io["timestep"].get<double>()}}},
          {"encoder_hidden_states", one_of(io["encoder_hidden_states"])}};
}

// The two tiny UNets say latent_size, and mean the width of a head by attention_head_dim.
TEST(Diffusion, TinyUNets) {
  NEEDS_DATA(test::kTiny + "sd_unet.safetensors");
  for (const char* name : {"sd_unet", "sd_unet_pbheads"}) {
    const json io = test::tiny_answers(str_cat(name, "_io"));
    const LoadedModel m = load_model(test::TinyFolder(name).path());
    expect_outputs(m, unet_inputs_of(io), {{"batch", 1}, {"height", 8}, {"width", 8}, {"length", 5}},
                   {{"prediction", numbers_of(io["noise"])}});
  }
}

TEST(Diffusion, TinyAutoencoders) {
  NEEDS_DATA(test::kTiny + "vae_encoder.safetensors");
  const json encoded = test::tiny_answers("vae_encoder_io"), decoded = test::tiny_answers("vae_decoder_io");
  const LoadedModel encoder = load_model(test::TinyFolder("vae_encoder").path());
  EXPECT_FALSE(encoder.outputs.contains("decoded"));
  expect_outputs(encoder, {{"image", one_of(encoded["image"])}},
                 {{"batch", 1}, {"image_height", 16}, {"image_width", 16}},
                 {{"mean", numbers_of(encoded["mean"])},
                  {"logvar", numbers_of(encoded["logvar"])},
                  {"encoded", numbers_of(encoded["latent"])}});
  const LoadedModel decoder = load_model(test::TinyFolder("vae_decoder").path());
  EXPECT_FALSE(decoder.outputs.contains("encoded"));
  expect_outputs(decoder, {{"latent", one_of(decoded["latent"])}}, {{"batch", 1}, {"height", 8}, {"width", 8}},
                 {{"decoded", numbers_of(decoded["image"])}});
}

TEST(Diffusion, TinyControlNet) {
  NEEDS_DATA(test::kTiny + "controlnet.safetensors");
  const json io = test::tiny_answers("controlnet_io");
  const LoadedModel m = load_model(test::TinyFolder("controlnet").path());
  AllGiven given = unet_inputs_of(io);
  given["controlnet_cond"] = one_of(io["controlnet_cond"]);
  std::map<std::string, std::vector<double>> want{{"mid_block_res_sample", numbers_of(io["mid_block_res_sample"])}};
  for (std::size_t k = 0; k < io["down_block_res_samples"].size(); ++k)
    want[str_cat("down_block_res_samples.", k)] = numbers_of(io["down_block_res_samples"][k]);
  EXPECT_EQ(want.size(), m.outputs.size());
  expect_outputs(m, given, {{"batch", 1}, {"height", 8}, {"width", 8}, {"length", 5}}, want);
}

TEST(Diffusion, TinyTransformers) {
  NEEDS_DATA(test::kTiny + "dit.safetensors");
  const LoadedModel dit = load_model(test::TinyFolder("dit").path());
  const json of_dit = test::tiny_answers("dit_io"), of_block = test::tiny_answers("mmdit_io");
  EXPECT_EQ(of_dit["cases"].size() + of_block["cases"].size(), 6u);
  for (const json& c : of_dit["cases"])
    expect_outputs(dit,
                   {{"sample", {{1, 4, 6, 6}, numbers_of(c["latent"])}},
                    {"timestep", {{1}, {c["t"].get<double>()}}},
                    {"class_labels", {{1}, {c["y"].get<double>()}}}},
                   {{"batch", 1}}, {{"prediction", numbers_of(c["output"])}});
  const LoadedModel block = load_model(test::TinyFolder("mmdit").path());
  for (const json& c : of_block["cases"])
    expect_outputs(block,
                   {{"hidden_states", {{1, 5, 16}, numbers_of(c["img"])}},
                    {"encoder_hidden_states", {{1, 3, 16}, numbers_of(c["txt"])}},
                    {"temb", {{1, 16}, numbers_of(c["c"])}}},
                   {{"batch", 1}, {"image_length", 5}, {"length", 3}},
                   {{"hidden", numbers_of(c["out_img"])}, {"encoder_hidden", numbers_of(c["out_txt"])}});
}

TEST(Diffusion, TinyUpscaler) {
  NEEDS_DATA(test::kTiny + "rrdbnet.safetensors");
  const json io = test::tiny_answers("rrdbnet_io");
  const LoadedModel m = load_model(test::TinyFolder("rrdbnet").path());
  expect_outputs(m, {{"image", one_of(io["input"])}}, {{"batch", 1}, {"rows", 6}, {"columns", 6}},
                 {{"image_upscaled", numbers_of(io["image"])}});
}

// A UNet and a ControlNet in one graph, as a denoiser has them.
TEST(Diffusion, TinyControlNetWithItsUNet) {
  NEEDS_DATA(test::kTiny + "controlnet.safetensors");
  const json io = test::tiny_answers("controlnet_combined_io");
  const test::TinyFolder unet("sd_unet"), control("controlnet");
  diffusion::DenoiserSizes sizes{.height = 8, .width = 8, .length = 5, .guided = false};
  const LoadedModel m = diffusion::load_denoiser(diffusion::Family::StableDiffusion, Weights::open(unet.path()),
                                                 Weights::open(control.path()), {}, sizes);
  std::vector<double> update(diffusion::kRows * diffusion::kColumns);
  update[diffusion::kOutput] = 1;  // the next sample is the model's output
  const std::vector<double> latent = numbers_of(io["latent"]);
  AllGiven given{{"sample", one_of(io["latent"])},
                 {"noise", one_of(io["latent"])},
                 {"memory", {{4, 4, 8, 8}, std::vector<double>(4 * latent.size())}},
                 {"timestep", {{1}, {io["timestep"].get<double>()}}},
                 {"step", {{4}, {1, 0, 1, 3e38}}},
                 {"update", {{5, 8}, update}},
                 {"encoder_hidden_states", one_of(io["encoder_hidden_states"])},
                 {"controlnet_cond", one_of(io["controlnet_cond"])},
                 {"control_scale", {{1}, {1}}}};
  EXPECT_LT(test::farthest(by_cpu(m, given, {}).at("next"), numbers_of(io["noise"])), 1e-4);
}

json goldens() { return json::parse(slurp(std::string(paths::kSource) + "/tests/goldens/diffusion.json")); }

// The inputs of tools/make_diffusion_goldens.py: element k of input i is sin(0.9 k + 0.3 i).
AllGiven formula_inputs(const json& shapes) {
  AllGiven given;
  for (const auto& [name, shape] : shapes.items()) {  // in the order of their names
    Given g{shape.get<std::vector<std::int64_t>>(), {}};
    std::int64_t n = 1;
    for (const std::int64_t d : g.shape) n *= d;
    for (std::int64_t k = 0; k < n; ++k)
      g.values.push_back(
          static_cast<float>(std::sin(0.9 * static_cast<double>(k) + 0.3 * static_cast<double>(given.size()))));
    const bool flux = shapes.contains("img_ids");  // which counts from 0 to 1
    if (name == "timestep") g.values = flux ? std::vector<double>{0.5, 0.125} : std::vector<double>{7, 981};
    if (name == "guidance") g.values = {0.75, 0.25};
    if (name == "class_labels" && g.shape.size() == 1) g.values = {1, 0};
    given[name] = g;
  }
  return given;
}

// The symbols of a model's inputs by the shapes that they are given.
Sizes sizes_of(const LoadedModel& m, const AllGiven& given) {
  Sizes sizes;
  for (const auto& [name, input] : m.inputs)
    for (int axis = 0; axis < input.rank(); ++axis)
      for (const auto& [symbol, bounds] : input.extent(axis).symbols()) {
        const Dim d = input.extent(axis);  // a symbol, or a number of times one
        const std::int64_t scale = d.eval({{symbol, 1}});
        sizes[symbol] = given.at(name).shape[static_cast<std::size_t>(axis)] / scale;
      }
  return sizes;
}

// Small networks of every kind with weights by a formula, of which tools/make_diffusion_goldens.py asked diffusers in
// f64.
TEST(Diffusion, NetworksAreDiffusers) {
  const json all = goldens();
  EXPECT_EQ(all["networks"].size(), 14u);
  for (const json& c : all["networks"]) {
    const test::FormulaFolder folder(c["config"], c["tensors"]);
    const LoadedModel m = load_model(folder.path());
    const AllGiven given = formula_inputs(c["inputs"]);
    std::map<std::string, std::vector<double>> want;
    for (const auto& [name, values] : c["outputs"].items()) want[name] = numbers_of(values);
    EXPECT_EQ(want.size(), m.outputs.size()) << m.architecture;
    expect_outputs(m, given, sizes_of(m, given), want);
  }
}

// LoadModelOptions::height and width fix the size of latents, and change nothing of what comes out.
TEST(Diffusion, FixedSizes) {
  const json all = goldens();
  for (const std::size_t network : {std::size_t{0}, std::size_t{6}, std::size_t{11}}) {  // a UNet, a VAE, an MMDiT
    const json& c = all["networks"].at(network);
    const test::FormulaFolder folder(c["config"], c["tensors"]);
    const json& sample = c["inputs"].contains("sample") ? c["inputs"]["sample"] : c["inputs"]["latent"];
    LoadModelOptions o;
    o.height = sample[2], o.width = sample[3];
    const LoadedModel m = load_model(folder.path(), o);
    for (const char* open : {"height", "width", "image_height", "image_width", "rows", "columns"})
      EXPECT_FALSE(m.limits.contains(open)) << m.architecture << " " << open;
    const AllGiven given = formula_inputs(c["inputs"]);
    std::map<std::string, std::vector<double>> want;
    for (const auto& [name, values] : c["outputs"].items()) want[name] = numbers_of(values);
    expect_outputs(m, given, sizes_of(m, given), want);
    o.height = -1;
    EXPECT_NE(error_of([&] { load_model(folder.path(), o); }), "") << m.architecture;
  }
}

// The same bits for one thread and for two.
TEST(Diffusion, ThreadsChangeNothing) {
  const json all = goldens();
  for (const std::size_t network :
       {std::size_t{2}, std::size_t{6}, std::size_t{11}, std::size_t{12}}) {  // SDXL, a VAE, MMDiT, FLUX
    const json& c = all["networks"].at(network);
    const test::FormulaFolder folder(c["config"], c["tensors"]);
    const LoadedModel m = load_model(folder.path());
    const AllGiven given = formula_inputs(c["inputs"]);
    const auto run = [&](int threads) {
      const Program p = m.program(generic() | cpu({.threads = threads}));
      Context context(p);
      for (const auto& [name, n] : sizes_of(m, given)) context.bind(name, n);
      for (const auto& [name, x] : given)
        if (m.inputs.at(name).dtype() == DType::I64)
          context.set(name, std::vector<std::int64_t>(x.values.begin(), x.values.end()));
        else context.set(name, std::vector<float>(x.values.begin(), x.values.end()));
      context.run();
      std::vector<std::vector<double>> out;
      for (const std::string& name : p.outputs()) out.push_back(context.get_f64(name));
      return out;
    };
    EXPECT_EQ(run(1), run(2)) << m.architecture;
  }
}

// The tiny autoencoder of FLUX.2 gives the picture that onnxruntime made of it, at 34 dB from the one it began with.
TEST(Diffusion, Taef2) {
  NEEDS_DATA("models/taef2/taef2_encoder.pth");
  const Arrays expected = read_npz(data("models/taef2/expected.npz"));
  const auto numbers = [&](const char* name) {
    const Array& a = expected.at(name);
    const ArrayView view = a;
    return read_value(view.bytes.data(), view.dtype, view.shape).f;
  };
  const std::vector<double> x = numbers("x"), z = numbers("z"), y = numbers("y");
  std::vector<double> planes(x.size());
  constexpr std::size_t kPixels = 256 * 384;
  for (std::size_t p = 0; p < kPixels; ++p)
    for (std::size_t c = 0; c < 3; ++c) planes[c * kPixels + p] = x[3 * p + c];
  const LoadedModel encoder = load_model(data("models/taef2/taef2_encoder.pth"));
  const auto latent = by_cpu(encoder, {{"image", {{1, 3, 256, 384}, planes}}},
                             {{"batch", 1}, {"image_height", 256}, {"image_width", 384}});
  EXPECT_LT(test::farthest(latent.at("encoded"), z), 1e-4);
  const LoadedModel decoder = load_model(data("models/taef2/taef2_decoder.pth"));
  const auto picture =
      by_cpu(decoder, {{"latent", {{1, 32, 32, 48}, z}}}, {{"batch", 1}, {"height", 32}, {"width", 48}});
  EXPECT_LT(test::farthest(picture.at("decoded"), y), 6e-4);  // they are stored as halves
  double error = 0;
  for (std::size_t k = 0; k < planes.size(); ++k)
    error += std::pow(std::fmin(std::fmax(picture.at("decoded")[k], 0), 1) - planes[k], 2);
  EXPECT_GT(-10 * std::log10(error / static_cast<double>(planes.size())), 34.0);
}

TEST(Diffusion, MistakesAreNamed) {
  const json all = goldens();
  const auto error = [&](std::size_t network, const char* key, const json& value) {
    json config = all["networks"][network]["config"];
    config[key] = value;
    const test::FormulaFolder folder(config, all["networks"][network]["tensors"]);
    return error_of([&] { load_model(folder.path()); });
  };
  EXPECT_PRED2(contains, error(0, "down_block_types", {"CrossAttnDownBlock2D", "AttnDownBlock2D", "DownBlock2D"}),
               "down_block_types has 'AttnDownBlock2D'; supported are CrossAttnDownBlock2D and DownBlock2D");
  EXPECT_PRED2(contains, error(0, "norm_num_group", 2), "norm_num_group is 2, and no key of this name is known");
  EXPECT_PRED2(contains, error(0, "layers_per_block", 1000000000), "layers, and the file has 324 weights");
  EXPECT_PRED2(contains, error(0, "attention_head_dim", {2, 2}), "attention_head_dim has 2 numbers");
  EXPECT_PRED2(contains, error(0, "attention_head_dim", 99), "99 heads for 8 channels");
  EXPECT_PRED2(contains, error(0, "norm_num_groups", 3), "3 groups (norm_num_groups) do not divide 8 channels");
  EXPECT_PRED2(contains, error(0, "dual_cross_attention", true), "dual_cross_attention is true");
  EXPECT_PRED2(contains, error(0, "cross_attention_dim", 7), "config.json wants [4, 7]");
  EXPECT_PRED2(contains, error(0, "addition_embed_type", "image"), "only text_time (SDXL) is supported");
  EXPECT_PRED2(contains, error(6, "latents_mean", {0.5}), "latents_mean is [...], which is not supported");
  EXPECT_PRED2(contains, error(6, "layers_per_block", 2), "there is no weight 'encoder.down_blocks.0.resnets.1");
  EXPECT_PRED2(contains, error(11, "qk_norm", "layer_norm"), "qk_norm is 'layer_norm'");
  EXPECT_PRED2(contains, error(12, "axes_dims_rope", {2, 2, 2}), "axes_dims_rope turns 6 numbers, and attention_head");
  EXPECT_PRED2(contains, error(12, "axes_dims_rope", {1, 3, 4}), "axes_dims_rope has 1, and pairs are turned");
  EXPECT_PRED2(contains, error(12, "num_single_layers", 1000000000), "1000000000 layers, and ");
  EXPECT_PRED2(contains, error(12, "guidance_embeds", false), "time_text_embed.guidance_embedder");
  EXPECT_PRED2(contains, error(0, "_class_name", "UNet2DConditionModle"), "the nearest is UNet2DConditionModel");
  const TempDir folder;
  spit(folder / "model_index.json", "{}");
  EXPECT_PRED2(contains, error_of([&] { load_model(folder.path.string()); }), "a whole pipeline of diffusers");
}

}  // namespace
