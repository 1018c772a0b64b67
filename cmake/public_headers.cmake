# The installed headers, in two tiers. Everything else is private: tests/consumer checks that it cannot be included.

# What programs include. It changes only with a line in CHANGELOG.md that says how to follow; lightcone.h includes the
# tensors, operations, layers' sessions, compilers and devices that most programs need.
set(LIGHTCONE_API_HEADERS
    lightcone.h base/error.h
    nn/layers.h nn/parameter.h
    autograd/autograd.h autograd/checkpoint.h optim/optim.h optim/schedule.h
    distributed/collectives.h distributed/nccl/nccl.h distributed/sharding/shard.h distributed/sharding/strategies.h
    distributed/planning/pipeline_plan.h distributed/planning/planned_ranks.h distributed/planning/step_plan.h
    ops/loop.h ops/random.h ops/audio/audio.h ops/complex/fft.h ops/typed/vocabulary.h
    ops/vision/boxes.h ops/vision/pictures.h ops/vision/resize.h
    train/load.h train/trace.h train/trainer.h
    runtime/profile/timeline.h runtime/view/graph_view.h
    stablehlo/read.h stablehlo/write.h backends/pjrt/pjrt.h)
set(LIGHTCONE_IO_API_HEADERS
    io/checkpoints/gguf.h io/checkpoints/quantize.h io/checkpoints/save.h io/checkpoints/weights.h io/audio/audio.h
    io/images/draw.h io/images/images.h
    io/data/array.h io/data/csv.h io/data/loader.h io/data/readers.h io/data/seeded_random.h io/data/text.h
    io/text/chat_template.h io/text/tokenizer.h
    llm/adapters.h llm/chat.h llm/checkpoint.h llm/loss.h llm/sampler.h
    inspection/inspect.h onnx/export.h onnx/onnx.h
    models/detect/detector.h models/diffusion/pipeline/stable_diffusion.h models/language/language_model.h
    models/llama/llama.h models/llama/llama_model.h models/load/load_model.h models/sentence/sentence_encoder.h
    models/seq2seq/seq2seq.h models/whisper/subtitles.h models/whisper/whisper.h
    models/vision/image_processor.h
    models/resnet/resnet.h models/vgg/vgg.h models/vision/vision.h)
set(LIGHTCONE_MPI_API_HEADERS distributed/mpi/mpi.h)

# What passes, operations, devices and models are written with, and what the headers above include. It may change from
# one version to the next. A name without .h is a folder.
set(LIGHTCONE_EXTENSION_HEADERS
    distributed/combine.h distributed/communicator.h distributed/launcher.h distributed/mesh.h
    distributed/planning/links.h distributed/planning/messages.h
    macros_off.h macros_on.h base core random nn
    formats composites/composites.h composites/definitions.h
    ops/arguments.h ops/complex ops/conv.h ops/creation.h ops/functional/functional.h ops/indexing/indexing.h
    ops/linalg/linalg.h ops/loss.h ops/ops.h ops/shape.h ops/special/special.h ops/typed
    reference/access.h reference/interpreter.h reference/rule.h reference/samples.h
    passes verify lowering codegen device
    runtime/default_compiler.h runtime/program.h runtime/remat.h runtime/profile/profile.h
    stablehlo/module.h
    backends/cpu/composite_kernel.h backends/cpu/cpu.h backends/cpu/jit/jit.h
    backends/cpu/kernels/abi/attention_abi.h backends/cpu/kernels/abi/conv_abi.h backends/cpu/kernels/abi/entry_points.h
    backends/cpu/kernels/abi/gemm_abi.h backends/cpu/kernels/abi/random_abi.h backends/cpu/kernels/abi/tables.h
    backends/cpu/kernels/abi/weight_formats.h backends/cpu/target/isa.h backends/cpu/target/target.h
    backends/cuda/cuda.h backends/gpu/device/device.h backends/gpu/device/library_call.h backends/gpu/device/library_product.h backends/gpu/gpu.h
    backends/metal/metal.h backends/opencl/opencl.h
    backends/pjrt/api.h backends/pjrt/client.h backends/pjrt/plugin.h)
set(LIGHTCONE_IO_EXTENSION_HEADERS
    models io/mapped_file.h io/pickled_module.h io/printable.h io/read_options.h io/utf8.h
    io/checkpoints/quants.h io/checkpoints/stored_part.h io/data/dataset.h io/data/transforms.h io/text/train_bpe.h
    llm/decoder.h llm/generate.h llm/gguf.h llm/model.h llm/model_tokenizer.h llm/parameters.h
    llm/program_model.h llm/ranks.h)
