#!/usr/bin/env python3
"""Writes tests/goldens/diffusion.json: what diffusers computes in f64 of small networks whose weights and inputs are formulas, and the
noise levels, timesteps and ends of its schedulers.

    python3 tools/make_diffusion_goldens.py          needs torch and diffusers

A network's case has config.json, the names and shapes of its weights in the order of the file, the shapes of the inputs and the
outputs. Element k of weight i is 0.4 sin(1.3 i + 0.7 k + 0.1), and 1 more in a layer_norm's weight; that of input i sin(0.9 k + 0.3 i); classes are 1, 0, ...
A scheduler's case has its settings, the timesteps and the sample at the end of a run from sin(k), k below 6, in which the model
gives sin(t / 100) times the sample that it is shown, and fresh noise is cos(k + 1) in each step. A pipeline's case has its parts and
the pictures of several runs, from -1 to 1 and clamped."""
import importlib
import json
import math
import pathlib
import tempfile

import diffusers
import numpy as np
import PIL.Image
import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parent.parent
UNET = dict(in_channels=4, out_channels=4, layers_per_block=1, norm_num_groups=2, cross_attention_dim=6)
DOWN, CROSS_DOWN, UP, CROSS_UP = "DownBlock2D", "CrossAttnDownBlock2D", "UpBlock2D", "CrossAttnUpBlock2D"
TEXT = (2, 3, 6)
UNETS = [  # Stable Diffusion 1.5, at an odd size; 2.1; XL; everything else
    (dict(UNET, block_out_channels=[4, 8, 8], attention_head_dim=2, down_block_types=[CROSS_DOWN, CROSS_DOWN, DOWN],
          up_block_types=[UP, CROSS_UP, CROSS_UP]), dict(sample=(2, 4, 5, 6), timestep=(2,), encoder_hidden_states=TEXT)),
    (dict(UNET, block_out_channels=[4, 8], attention_head_dim=[1, 4], down_block_types=[CROSS_DOWN] * 2, up_block_types=[CROSS_UP] * 2,
          use_linear_projection=True, layers_per_block=2, in_channels=9), dict(sample=(2, 9, 4, 4), timestep=(2,), encoder_hidden_states=TEXT)),
    (dict(UNET, block_out_channels=[4, 8], attention_head_dim=[1, 2], down_block_types=[DOWN, CROSS_DOWN], up_block_types=[CROSS_UP, UP],
          use_linear_projection=True, transformer_layers_per_block=[1, 2], addition_embed_type="text_time", addition_time_embed_dim=4,
          projection_class_embeddings_input_dim=29),
     dict(sample=(2, 4, 4, 4), timestep=(2,), encoder_hidden_states=TEXT, text_embeds=(2, 5), time_ids=(2, 6))),
    (dict(UNET, block_out_channels=[4, 8], attention_head_dim=2, down_block_types=[CROSS_DOWN, DOWN], up_block_types=[UP, CROSS_UP],
          num_class_embeds=3, resnet_time_scale_shift="scale_shift", only_cross_attention=True, time_cond_proj_dim=3,
          encoder_hid_dim=7, downsample_padding=0, act_fn="gelu", timestep_post_act="silu", mid_block_scale_factor=2.0,
          conv_in_kernel=1, freq_shift=1, flip_sin_to_cos=False, center_input_sample=True, norm_eps=1e-3),
     dict(sample=(2, 4, 4, 4), timestep=(2,), encoder_hidden_states=(2, 3, 7), class_labels=(2,), timestep_cond=(2, 3))),
    (dict(UNET, block_out_channels=[4, 8], attention_head_dim=2, down_block_types=[CROSS_DOWN, DOWN], up_block_types=[UP, CROSS_UP],
          class_embed_type="projection", projection_class_embeddings_input_dim=5, class_embeddings_concat=True,
          mid_block_type="UNetMidBlock2D", time_embedding_act_fn="silu"),
     dict(sample=(2, 4, 4, 4), timestep=(2,), encoder_hidden_states=TEXT, class_labels=(2, 5))),
]
CONTROL = (dict(in_channels=4, layers_per_block=1, norm_num_groups=2, cross_attention_dim=6, block_out_channels=[4, 8], attention_head_dim=2,
                down_block_types=[CROSS_DOWN, DOWN], conditioning_embedding_out_channels=[2, 4], controlnet_conditioning_channel_order="bgr"),
           dict(sample=(2, 4, 4, 4), timestep=(2,), encoder_hidden_states=TEXT, controlnet_cond=(2, 3, 8, 8)))
VAE = dict(block_out_channels=[4, 8], norm_num_groups=2, latent_channels=3, down_block_types=["DownEncoderBlock2D"] * 2,
           up_block_types=["UpDecoderBlock2D"] * 2, layers_per_block=1)
VAES = [(dict(VAE), False), (dict(VAE, use_quant_conv=False, use_post_quant_conv=False, shift_factor=0.06, scaling_factor=1.5,
                                  mid_block_add_attention=False), False), (dict(VAE), True)]
TINY = dict(encoder_block_out_channels=[4, 4], decoder_block_out_channels=[4, 4], num_encoder_blocks=[1, 1], num_decoder_blocks=[1, 1],
            latent_channels=3, scaling_factor=0.5, shift_factor=0.25)
DIT = dict(num_attention_heads=2, attention_head_dim=4, in_channels=4, out_channels=8, num_layers=2, sample_size=4, patch_size=2,
           num_embeds_ada_norm=3, norm_num_groups=32)
SD3 = dict(sample_size=8, patch_size=2, in_channels=4, num_layers=3, attention_head_dim=4, num_attention_heads=2, joint_attention_dim=6,
           caption_projection_dim=8, pooled_projection_dim=5, out_channels=4, pos_embed_max_size=4, dual_attention_layers=[0],
           qk_norm="rms_norm")
FLUX = dict(patch_size=1, in_channels=16, num_layers=2, num_single_layers=2, attention_head_dim=8, num_attention_heads=2,
            joint_attention_dim=12, pooled_projection_dim=8, guidance_embeds=True, axes_dims_rope=[2, 2, 4])


def formula(i, shape, norm=0):
    k = np.arange(int(np.prod(shape)), dtype=np.float64)
    return (0.4 * np.sin(1.3 * i + 0.7 * k + 0.1) + norm).astype(np.float32).reshape(shape)


def is_norm(name):
    return name.endswith("weight") and "layer_norm" in name


def filled(model, twice=()):
    """`twice` are names of weights that have another name, too."""
    state = model.state_dict()
    names = sorted(n for n in state if n not in twice)
    given = {n: torch.from_numpy(formula(i, tuple(state[n].shape), is_norm(n))) for i, n in enumerate(names)}
    assert sorted(model.load_state_dict(given, strict=False).missing_keys) == sorted(n for n in twice if n in state)
    return model.double().eval(), [[n, list(state[n].shape)] for n in names]


def given(shapes):
    inputs = {}
    for i, (name, shape) in enumerate(sorted(shapes.items())):
        k = torch.arange(math.prod(shape), dtype=torch.float64)
        inputs[name] = torch.sin(0.9 * k + 0.3 * i).to(torch.float32).double().reshape(shape)
    if shapes.get("class_labels") == (2,):
        inputs["class_labels"] = torch.tensor([1, 0])
    if "img_ids" in shapes:  # FLUX counts from 0 to 1; a thousand times these is exact in f32, in which diffusers computes sinusoids
        inputs["timestep"], inputs["guidance"] = torch.tensor([0.5, 0.125]).double(), torch.tensor([0.75, 0.25]).double()
        if "guidance" not in shapes:
            inputs.pop("guidance")
    elif "timestep" in shapes:
        inputs["timestep"] = torch.tensor([7.0, 981.0])
    return inputs


def numbers(t):
    return [float("%.9g" % v) for v in t.flatten().tolist()]


def case(kind, config, tensors, shapes, outputs):
    return {"config": dict(config, _class_name=kind), "tensors": tensors, "inputs": shapes,
            "outputs": {k: numbers(v) for k, v in outputs.items()}}


def conditions(x):
    added = {k: x[k] for k in ("text_embeds", "time_ids") if k in x}
    more = {k: x[k] for k in ("class_labels", "timestep_cond") if k in x}
    return dict(more, added_cond_kwargs=added or None)


def networks():
    with torch.no_grad():
        for config, shapes in UNETS:
            model, tensors = filled(diffusers.UNet2DConditionModel(**config))
            x = given(shapes)
            y = model(x["sample"], x["timestep"], x["encoder_hidden_states"], **conditions(x)).sample
            yield case("UNet2DConditionModel", config, tensors, shapes, {"prediction": y})
        config, shapes = CONTROL
        model, tensors = filled(diffusers.ControlNetModel(**config))
        x = given(shapes)
        y = model(x["sample"], x["timestep"], x["encoder_hidden_states"], x["controlnet_cond"])
        out = {"down_block_res_samples.%d" % k: v for k, v in enumerate(y.down_block_res_samples)}
        yield case("ControlNetModel", config, tensors, shapes, dict(out, mid_block_res_sample=y.mid_block_res_sample))
        for config, old in VAES:
            model, tensors = filled(diffusers.AutoencoderKL(**config))
            shapes = dict(image=(2, 3, 6, 8), latent=(2, 3, 3, 4))
            x = given(shapes)
            scale, shift = config.get("scaling_factor", 0.18215), config.get("shift_factor", 0)
            d = model.encode(x["image"]).latent_dist
            out = {"mean": d.mean, "logvar": d.logvar, "encoded": (d.mean - shift) * scale,
                   "decoded": model.decode(x["latent"] / scale + shift).sample}
            if old:  # names of 2022
                for t in tensors:
                    for now, then in (("to_q", "query"), ("to_k", "key"), ("to_v", "value"), ("to_out.0", "proj_attn")):
                        t[0] = t[0].replace("attentions.0." + now, "attentions.0." + then)
            yield case("AutoencoderKL", config, tensors, shapes, out)
        model, tensors = filled(diffusers.AutoencoderTiny(**TINY))
        shapes = dict(image=(2, 3, 6, 8), latent=(2, 3, 3, 4))
        x = given(shapes)
        out = {"encoded": (model.encode(x["image"]).latents - 0.25) * 0.5, "decoded": model.decode(x["latent"] / 0.5 + 0.25).sample}
        yield case("AutoencoderTiny", TINY, tensors, shapes, out)
        model, tensors = filled(diffusers.DiTTransformer2DModel(**DIT))
        shapes = dict(sample=(2, 4, 4, 4), timestep=(2,), class_labels=(2,))
        x = given(shapes)
        y = model(x["sample"], x["timestep"], x["class_labels"]).sample
        yield case("DiTTransformer2DModel", DIT, tensors, shapes, {"prediction": y})
        model, tensors = filled(diffusers.SD3Transformer2DModel(**SD3))
        shapes = dict(sample=(2, 4, 4, 6), timestep=(2,), encoder_hidden_states=TEXT, pooled_projections=(2, 5))
        x = given(shapes)
        y = model(x["sample"], x["encoder_hidden_states"], x["pooled_projections"], x["timestep"]).sample
        yield case("SD3Transformer2DModel", SD3, tensors, shapes, {"prediction": y})
        for config in (FLUX, dict(FLUX, guidance_embeds=False, num_layers=1, num_single_layers=1, in_channels=6, out_channels=3, patch_size=2)):
            model, tensors = filled(diffusers.FluxTransformer2DModel(**config))
            shapes = dict(hidden_states=(2, 6, config["in_channels"]), encoder_hidden_states=(2, 3, 12), pooled_projections=(2, 8),
                          timestep=(2,), img_ids=(6, 3), txt_ids=(3, 3))
            if config["guidance_embeds"]:
                shapes["guidance"] = (2,)
            y = model(**given(shapes)).sample
            yield case("FluxTransformer2DModel", config, tensors, shapes, {"prediction": y})


SD = dict(beta_schedule="scaled_linear", beta_start=0.00085, beta_end=0.012)
SCHEDULERS = [
    ("DDIMScheduler", dict(SD, clip_sample=False, set_alpha_to_one=False, steps_offset=1), 7, 0),
    ("DDIMScheduler", dict(beta_schedule="squaredcos_cap_v2", timestep_spacing="trailing", prediction_type="sample"), 5, 0),
    ("DDIMScheduler", dict(SD, clip_sample=False, prediction_type="v_prediction", rescale_betas_zero_snr=True, timestep_spacing="trailing"), 6, 0.5),
    ("DDPMScheduler", dict(), 6, 0),
    ("DDPMScheduler", dict(SD, clip_sample=False, timestep_spacing="linspace", prediction_type="v_prediction"), 5, 0),
    ("PNDMScheduler", dict(SD, skip_prk_steps=True, steps_offset=1), 8, 0),
    ("PNDMScheduler", dict(SD, skip_prk_steps=True, steps_offset=1, prediction_type="v_prediction", set_alpha_to_one=True), 6, 0),
    ("EulerDiscreteScheduler", dict(SD, timestep_spacing="leading", steps_offset=1), 6, 0),
    ("EulerDiscreteScheduler", dict(SD, use_karras_sigmas=True, prediction_type="v_prediction"), 6, 0),
    ("EulerDiscreteScheduler", dict(SD, use_exponential_sigmas=True, final_sigmas_type="sigma_min"), 5, 0),
    ("EulerAncestralDiscreteScheduler", dict(SD, timestep_spacing="trailing"), 6, 0),
    ("HeunDiscreteScheduler", dict(SD), 5, 0),
    ("HeunDiscreteScheduler", dict(SD, use_karras_sigmas=True, prediction_type="v_prediction"), 5, 0),
    ("DPMSolverMultistepScheduler", dict(SD), 7, 0),
    ("DPMSolverMultistepScheduler", dict(SD, use_karras_sigmas=True, timestep_spacing="leading", steps_offset=1), 20, 0),
    ("DPMSolverMultistepScheduler", dict(SD, solver_order=3, solver_type="heun", timestep_spacing="trailing"), 9, 0),
    ("DPMSolverMultistepScheduler", dict(SD, algorithm_type="sde-dpmsolver++", solver_type="heun", final_sigmas_type="sigma_min"), 6, 0),
    ("DPMSolverMultistepScheduler", dict(SD, solver_order=1, prediction_type="v_prediction"), 4, 0),
    ("UniPCMultistepScheduler", dict(SD), 7, 0),
    ("UniPCMultistepScheduler", dict(SD, solver_order=3, solver_type="bh1", use_karras_sigmas=True, final_sigmas_type="sigma_min"), 8, 0),
    ("UniPCMultistepScheduler", dict(SD, timestep_spacing="leading", steps_offset=1, prediction_type="v_prediction"), 20, 0),
    ("FlowMatchEulerDiscreteScheduler", dict(shift=3.0), 6, 0),
    ("FlowMatchEulerDiscreteScheduler", dict(), 4, 0),
    ("FlowMatchEulerDiscreteScheduler", dict(shift=3.0), 5, 0, dict(evenly=True)),
    ("FlowMatchEulerDiscreteScheduler", dict(use_dynamic_shifting=True, base_shift=0.4, max_shift=1.3), 5, 0, dict(evenly=True, length=1000)),
    ("FlowMatchEulerDiscreteScheduler", dict(use_dynamic_shifting=True, time_shift_type="linear", shift_terminal=0.1), 5, 0, dict(length=3000)),
]


def run(kind, settings, steps, eta, asked={}):
    """`asked` is what a pipeline asks of flow matching: levels from 1 to 1 / steps, and the length of a picture."""
    fresh = torch.cos(torch.arange(6, dtype=torch.float64) + 1).reshape(1, 1, 1, 6)
    module = __import__(getattr(diffusers, kind).__module__, fromlist=["x"])
    if hasattr(module, "randn_tensor"):
        module.randn_tensor = lambda *a, **k: fresh
    s = getattr(diffusers, kind)(**settings)
    more = {"sigmas": np.linspace(1.0, 1 / steps, steps)} if asked.get("evenly") else {}
    if settings.get("use_dynamic_shifting"):
        shift = diffusers.pipelines.flux.pipeline_flux.calculate_shift
        more["mu"] = shift(asked["length"], 256, 4096, settings.get("base_shift", 0.5), settings.get("max_shift", 1.15))
    s.set_timesteps(steps, **more)
    first = getattr(s, "init_noise_sigma", 1.0)
    x = torch.sin(torch.arange(6, dtype=torch.float64)).reshape(1, 1, 1, 6) * float(first)
    times = [float(t) for t in s.timesteps]
    more = {"eta": eta} if kind == "DDIMScheduler" else {}
    for t in s.timesteps:
        shown = s.scale_model_input(x, t) if hasattr(s, "scale_model_input") else x
        y = math.sin(float(t) / 100) * shown
        x = s.step(y, t, x, **more).prev_sample.double()
    return {"config": dict(settings, _class_name=kind), "steps": steps, "eta": eta, **asked, "first_scale": float("%.9g" % float(first)),
            "timesteps": [float("%.9g" % t) for t in times], "last": numbers(x)}


LETTERS = "abcdefghijklmnopqrstuvwxyz!"
MERGES = ["a t</w>", "c at</w>", "t h", "th e</w>"]
PROMPT, NEGATIVE = "A cat, the red zebra!", "fog"


def vocabulary():
    names = list(LETTERS) + [c + "</w>" for c in LETTERS] + [m.replace(" ", "") for m in MERGES]
    return {n: i for i, n in enumerate(names + ["<|startoftext|>", "<|endoftext|>"])}


def write_tokenizer(folder, padding):
    folder.mkdir()
    (folder / "vocab.json").write_text(json.dumps(vocabulary()))
    (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(MERGES) + "\n")
    names = dict(bos_token="<|startoftext|>", eos_token="<|endoftext|>", unk_token="<|endoftext|>", pad_token=padding)
    (folder / "tokenizer_config.json").write_text(json.dumps(dict(names, model_max_length=12, tokenizer_class="CLIPTokenizer")))
    return transformers.CLIPTokenizer.from_pretrained(folder)


def encoder(kind, width, projection=8):
    n = len(vocabulary())
    config = dict(vocab_size=n, hidden_size=width, intermediate_size=12, num_hidden_layers=2, num_attention_heads=2,
                  max_position_embeddings=12, projection_dim=projection, bos_token_id=n - 2, eos_token_id=n - 1, pad_token_id=n - 1)
    model, tensors = filled(getattr(transformers, kind)(transformers.CLIPTextConfig(**config)))
    tensors = [[n if n.startswith("text_") else "text_model." + n, s] for n, s in tensors]
    return model, {"config": dict(config, model_type="clip_text_model", architectures=[kind]), "tensors": tensors}


def write_t5_tokenizer(file):
    """A tokenizer of T5's kind (Unigram) as tokenizer.json."""
    pieces = [["<pad>", 0.0], ["</s>", 0.0], ["<unk>", -9.0], ["\u2581", -2.0], ["\u2581the", -2.5], ["cat", -2.6], ["\u2581A", -3.0]]
    pieces += [[c, -4.0 - k / 16] for k, c in enumerate(LETTERS + ",")]
    special = [{"id": k, "content": pieces[k][0], "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
               for k in range(3)]
    space = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}
    end = {"id": "</s>", "type_id": 0}
    template = {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": end}],
                "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": end}, {"Sequence": {"id": "B", "type_id": 0}}, {"SpecialToken": end}],
                "special_tokens": {"</s>": {"id": "</s>", "ids": [1], "tokens": ["</s>"]}}}
    made = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": special, "normalizer": None, "pre_tokenizer": space,
            "post_processor": template, "decoder": space, "model": {"type": "Unigram", "unk_id": 2, "vocab": pieces, "byte_fallback": False}}
    file.write_text(json.dumps(made))
    return transformers.PreTrainedTokenizerFast(tokenizer_file=str(file), pad_token="<pad>", eos_token="</s>", unk_token="<unk>"), made


def t5(vocabulary):
    config = dict(vocab_size=vocabulary, d_model=12, d_kv=4, d_ff=16, num_layers=2, num_heads=3, feed_forward_proj="gated-gelu",
                  tie_word_embeddings=False, relative_attention_num_buckets=8, relative_attention_max_distance=20)
    model, tensors = filled(transformers.T5EncoderModel(transformers.T5Config(**config)), ["encoder.embed_tokens.weight"])
    return model, {"config": dict(config, model_type="t5", architectures=["T5EncoderModel"]), "tensors": tensors}


def part(model, config):
    model, tensors = filled(model)
    return model, {"config": dict(config, _class_name=type(model).__name__), "tensors": tensors}


def pipelines():
    """Whole runs of Stable Diffusion 1 and XL; noise is that of given(), latents are 4 x 4 and pictures 8 x 8."""
    SDVAE = dict(VAE, latent_channels=4, sample_size=8)
    config = dict(UNET, block_out_channels=[4, 8], attention_head_dim=2, down_block_types=[CROSS_DOWN, DOWN],
                  up_block_types=[UP, CROSS_UP], cross_attention_dim=8, sample_size=4)
    xl = dict(UNET, block_out_channels=[4, 8], attention_head_dim=[1, 2], down_block_types=[DOWN, CROSS_DOWN],
              up_block_types=[CROSS_UP, UP], cross_attention_dim=12, sample_size=4, use_linear_projection=True,
              addition_embed_type="text_time", addition_time_embed_dim=4, projection_class_embeddings_input_dim=30)
    noise = given(dict(noise=(1, 4, 4, 4)))["noise"]
    pixels = ((np.arange(192) * 37) % 256).astype(np.uint8).reshape(3, 8, 8)
    photo = PIL.Image.fromarray(pixels.transpose(1, 2, 0))
    mask = np.zeros((8, 8), np.uint8)
    mask[2:6, 4:] = 255
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        folder = pathlib.Path(folder)
        tokenizer, second = write_tokenizer(folder / "1", "<|endoftext|>"), write_tokenizer(folder / "2", "!")
        vae, parts_vae = part(diffusers.AutoencoderKL(**SDVAE), SDVAE)
        text, parts_text = encoder("CLIPTextModel", 8)
        unet, parts_unet = part(diffusers.UNet2DConditionModel(**config), config)
        ddim = dict(SD, clip_sample=False, set_alpha_to_one=False, steps_offset=1)
        shared = dict(vae=vae, text_encoder=text, tokenizer=tokenizer, unet=unet, scheduler=diffusers.DDIMScheduler(**ddim),
                      safety_checker=None, feature_extractor=None, requires_safety_checker=False)
        asked = dict(prompt=PROMPT, negative_prompt=NEGATIVE, guidance_scale=3.0, output_type="pt")
        numbers_of = lambda y: numbers(y.images[0] * 2 - 1)
        runs = {"text": numbers_of(diffusers.StableDiffusionPipeline(**shared)(**asked, num_inference_steps=4, latents=noise.clone()))}
        for name in ("img2img", "inpaint"):
            module = importlib.import_module("diffusers.pipelines.stable_diffusion.pipeline_stable_diffusion_" + name)
            module.randn_tensor = lambda *a, **k: noise.clone()
        diffusers.models.autoencoders.vae.DiagonalGaussianDistribution.sample = lambda self, generator=None: self.mean
        begun = dict(asked, image=photo, strength=0.6, num_inference_steps=6)
        runs["picture"] = numbers_of(diffusers.StableDiffusionImg2ImgPipeline(**shared)(**begun))
        inpaint = diffusers.StableDiffusionInpaintPipeline(**shared)
        runs["mask"] = numbers_of(inpaint(**begun, mask_image=PIL.Image.fromarray(mask), height=8, width=8))
        name = "down_blocks.0.attentions.0.transformer_blocks.0.attn1.to_q.weight"  # a LoRA of rank 2, alpha 4, half of which counts
        down, up = torch.from_numpy(formula(0, (2, 4))).double(), torch.from_numpy(formula(1, (4, 2))).double()
        unet.get_parameter(name).add_(0.5 * (4 / 2) * up @ down)
        runs["lora"] = numbers_of(diffusers.StableDiffusionPipeline(**shared)(**asked, num_inference_steps=4, latents=noise.clone()))
        parts = {"unet": parts_unet, "vae": parts_vae, "text_encoder": parts_text}
        yield {"parts": parts, "scheduler": dict(ddim, _class_name="DDIMScheduler"), "runs": runs}
        first, parts_first = encoder("CLIPTextModel", 8)
        other, parts_other = encoder("CLIPTextModelWithProjection", 4, 6)
        unet, parts_unet = part(diffusers.UNet2DConditionModel(**xl), xl)
        euler = dict(SD, timestep_spacing="leading", steps_offset=1)
        pipe = diffusers.StableDiffusionXLPipeline(
            vae=vae, text_encoder=first, text_encoder_2=other, tokenizer=tokenizer, tokenizer_2=second, unet=unet,
            scheduler=diffusers.EulerDiscreteScheduler(**euler), force_zeros_for_empty_prompt=True, add_watermarker=False)
        runs = {"text": numbers_of(pipe(**asked, num_inference_steps=4, latents=noise.clone()))}
        asked.pop("negative_prompt")
        runs["empty"] = numbers_of(pipe(**asked, num_inference_steps=4, latents=noise.clone()))
        parts = {"unet": parts_unet, "vae": parts_vae, "text_encoder": parts_first, "text_encoder_2": parts_other}
        yield {"parts": parts, "scheduler": dict(euler, _class_name="EulerDiscreteScheduler"), "runs": runs}


def flow_pipelines():
    """Whole runs of Stable Diffusion 3, with and without T5, and of FLUX, whose guidance is an input or not there."""
    SDVAE = dict(VAE, latent_channels=4, sample_size=8, shift_factor=0.06, scaling_factor=1.5)
    sd3 = dict(SD3, sample_size=4, joint_attention_dim=12, pooled_projection_dim=9, num_layers=2)
    noise = given(dict(noise=(1, 4, 4, 4)))["noise"]
    pixels = ((np.arange(192) * 37) % 256).astype(np.uint8).reshape(3, 8, 8)
    photo = PIL.Image.fromarray(pixels.transpose(1, 2, 0))
    numbers_of = lambda y: numbers(y.images[0] * 2 - 1)
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        folder = pathlib.Path(folder)
        tokenizer, second = write_tokenizer(folder / "1", "<|endoftext|>"), write_tokenizer(folder / "2", "!")
        third, tokenizer_json = write_t5_tokenizer(folder / "t5.json")
        vae, parts_vae = part(diffusers.AutoencoderKL(**SDVAE), SDVAE)
        first, parts_first = encoder("CLIPTextModelWithProjection", 4, 3)
        other, parts_other = encoder("CLIPTextModelWithProjection", 4, 6)
        reader, parts_reader = t5(len(tokenizer_json["model"]["vocab"]))
        transformer, parts_transformer = part(diffusers.SD3Transformer2DModel(**sd3), sd3)
        flow = dict(shift=3.0)
        shared = dict(vae=vae, text_encoder=first, text_encoder_2=other, tokenizer=tokenizer, tokenizer_2=second, transformer=transformer,
                      scheduler=diffusers.FlowMatchEulerDiscreteScheduler(**flow))
        whole = dict(shared, text_encoder_3=reader, tokenizer_3=third)
        asked = dict(prompt=PROMPT, negative_prompt=NEGATIVE, guidance_scale=3.0, output_type="pt", max_sequence_length=10)
        from_noise = dict(asked, num_inference_steps=4, latents=noise.clone())
        runs = {"text": numbers_of(diffusers.StableDiffusion3Pipeline(**whole)(**from_noise)),
                "without": numbers_of(diffusers.StableDiffusion3Pipeline(**shared, text_encoder_3=None, tokenizer_3=None)(**from_noise))}
        for name in ("stable_diffusion_3.pipeline_stable_diffusion_3", "flux.pipeline_flux"):
            module = importlib.import_module("diffusers.pipelines.%s_img2img" % name)
            module.randn_tensor = lambda *a, **k: noise.clone()
        begun = dict(image=photo, strength=0.6, num_inference_steps=6, height=8, width=8)
        runs["picture"] = numbers_of(diffusers.StableDiffusion3Img2ImgPipeline(**whole)(**asked, **begun))
        parts = {"transformer": parts_transformer, "vae": parts_vae, "text_encoder": parts_first, "text_encoder_2": parts_other,
                 "text_encoder_3": parts_reader}
        yield {"parts": parts, "scheduler": dict(flow, _class_name="FlowMatchEulerDiscreteScheduler"), "runs": runs, "t5": tokenizer_json}
        text, parts_text = encoder("CLIPTextModel", 8)
        for guided, flow in ((True, dict(use_dynamic_shifting=True, shift=3.0)), (False, dict(shift=1.0))):
            config = dict(FLUX, guidance_embeds=guided)
            transformer, parts_transformer = part(diffusers.FluxTransformer2DModel(**config), config)
            shared = dict(vae=vae, text_encoder=text, text_encoder_2=reader, tokenizer=tokenizer, tokenizer_2=third, transformer=transformer,
                          scheduler=diffusers.FlowMatchEulerDiscreteScheduler(**flow))
            asked = dict(prompt=PROMPT, guidance_scale=3.0, output_type="pt", max_sequence_length=10)
            packed = diffusers.FluxPipeline._pack_latents(noise, 1, 4, 4, 4)
            pipe = diffusers.FluxPipeline(**shared)
            runs = {"text": numbers_of(pipe(**asked, num_inference_steps=4, latents=packed.clone(), height=8, width=8))}
            runs["picture"] = numbers_of(diffusers.FluxImg2ImgPipeline(**shared)(**asked, **begun))
            parts = {"transformer": parts_transformer, "vae": parts_vae, "text_encoder": parts_text, "text_encoder_2": parts_reader}
            yield {"parts": parts, "scheduler": dict(flow, _class_name="FlowMatchEulerDiscreteScheduler"), "runs": runs, "t5": tokenizer_json}


if __name__ == "__main__":
    cases = {"networks": list(networks()), "schedulers": [run(*s) for s in SCHEDULERS], "pipelines": list(pipelines()) + list(flow_pipelines())}
    lines = ['"%s": [\n%s\n]' % (k, ",\n".join(json.dumps(c, separators=(",", ":")) for c in v)) for k, v in cases.items()]
    (ROOT / "tests/goldens/diffusion.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
