# Tests that are not GoogleTest programs.
# StableHLO's own test modules: `stablehlo_conformance FOLDER` says what passes.
add_executable(stablehlo_conformance ${CMAKE_CURRENT_SOURCE_DIR}/stablehlo/conformance.cpp)
target_link_libraries(stablehlo_conformance PRIVATE ${libraries} lightcone lightcone_options)
add_test(NAME stablehlo_conformance COMMAND stablehlo_conformance ${LIGHTCONE_DATA}/stablehlo --expected ${CMAKE_CURRENT_SOURCE_DIR}/stablehlo/conformance.txt)
set_tests_properties(stablehlo_conformance PROPERTIES SKIP_RETURN_CODE 77 ENVIRONMENT LIGHTCONE_MACHINE=default)
if(LIGHTCONE_IO)  # ONNX's own test cases
  add_executable(onnx_conformance ${CMAKE_CURRENT_SOURCE_DIR}/onnx/conformance.cpp ${CMAKE_CURRENT_SOURCE_DIR}/onnx/case_files.cpp)
  target_include_directories(onnx_conformance PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/support)
  target_link_libraries(onnx_conformance PRIVATE ${libraries} lightcone lightcone_options test_paths GTest::gtest)
  add_test(NAME onnx_conformance COMMAND onnx_conformance ${LIGHTCONE_DATA}/onnx/node --quiet --at-least 989)
  set_tests_properties(onnx_conformance PROPERTIES SKIP_RETURN_CODE 77 ENVIRONMENT LIGHTCONE_MACHINE=default)
  if(TARGET fake_cuda)  # some of them on simulated GPUs
    add_dependencies(onnx_conformance fake_cuda fake_metal)
    foreach(device cuda metal)
      add_test(NAME onnx_conformance_on_${device} COMMAND onnx_conformance ${LIGHTCONE_DATA}/onnx/node --quiet --device --every 3 --at-least 320)
      set_tests_properties(onnx_conformance_on_${device} PROPERTIES SKIP_RETURN_CODE 77 LABELS devices
                           ENVIRONMENT "LIGHTCONE_MACHINE=default;LIGHTCONE_TEST_DEVICE=${device}")
    endforeach()
  endif()
  # Exported models as ONNX's checker and onnxruntime see them, where they are here.
  add_executable(onnx_export_cases ${CMAKE_CURRENT_SOURCE_DIR}/onnx/export_cases.cpp ${CMAKE_CURRENT_SOURCE_DIR}/onnx/case_files.cpp)
  target_include_directories(onnx_export_cases PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/support)
  target_link_libraries(onnx_export_cases PRIVATE ${libraries} lightcone lightcone_options test_paths GTest::gtest)
  add_test(NAME onnx_export COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/onnx/export_check.py --cases $<TARGET_FILE:onnx_export_cases>)
  set_tests_properties(onnx_export PROPERTIES SKIP_RETURN_CODE 77 ENVIRONMENT LIGHTCONE_MACHINE=default)
  add_executable(onnx_table ${CMAKE_CURRENT_SOURCE_DIR}/onnx/operator_table.cpp)
  target_link_libraries(onnx_table PRIVATE ${libraries} lightcone lightcone_options)
  add_test(NAME onnx_table COMMAND onnx_table --check ${PROJECT_SOURCE_DIR}/docs/onnx.md ${CMAKE_CURRENT_SOURCE_DIR}/onnx/operators.txt)
endif()
if(LIGHTCONE_IO AND TARGET lightcone_pjrt)
  add_executable(stablehlo_training ${CMAKE_CURRENT_SOURCE_DIR}/stablehlo/training.cpp)
  target_link_libraries(stablehlo_training PRIVATE ${libraries} lightcone lightcone_options)
  add_test(NAME stablehlo_training COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/stablehlo/training_check.py $<TARGET_FILE:stablehlo_training>
           $<TARGET_FILE:lightcone_pjrt>)
  set_tests_properties(stablehlo_training PROPERTIES ENVIRONMENT LIGHTCONE_MACHINE=default)
endif()
if(LIGHTCONE_IO)  # one module on arrays: what tools/make_jax_modules.py writes
  add_executable(stablehlo_run ${CMAKE_CURRENT_SOURCE_DIR}/stablehlo/run_module.cpp)
  target_link_libraries(stablehlo_run PRIVATE ${libraries} lightcone lightcone_options)
endif()
if(LIGHTCONE_IO)  # the story model's steps, by XLA
  add_executable(stablehlo_decoding ${CMAKE_CURRENT_SOURCE_DIR}/stablehlo/decoding.cpp)
  target_link_libraries(stablehlo_decoding PRIVATE ${libraries} lightcone lightcone_options)
  add_test(NAME stablehlo_decoding COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/stablehlo/decoding_check.py
           $<TARGET_FILE:stablehlo_decoding> ${PROJECT_SOURCE_DIR}/models/story/story.gguf)
  set_tests_properties(stablehlo_decoding PROPERTIES SKIP_RETURN_CODE 77 ENVIRONMENT LIGHTCONE_MACHINE=default)
endif()
# Exported programs as MLIR and XLA see them, where they are here.
add_executable(stablehlo_cases ${CMAKE_CURRENT_SOURCE_DIR}/stablehlo/cases.cpp)
target_link_libraries(stablehlo_cases PRIVATE lightcone lightcone_options)
add_test(NAME stablehlo_xla COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/stablehlo/xla_check.py --cases $<TARGET_FILE:stablehlo_cases>)
set_tests_properties(stablehlo_xla PROPERTIES SKIP_RETURN_CODE 77)
add_executable(stablehlo_open_cases ${CMAKE_CURRENT_SOURCE_DIR}/stablehlo/open_cases.cpp)
target_link_libraries(stablehlo_open_cases PRIVATE ${libraries} lightcone lightcone_options)
add_test(NAME stablehlo_open_xla COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/stablehlo/xla_check.py
         --cases $<TARGET_FILE:stablehlo_open_cases> --modules ${LIGHTCONE_DATA}/stablehlo)
set_tests_properties(stablehlo_open_xla PROPERTIES SKIP_RETURN_CODE 77)
# Where NVIDIA's headers are.
add_test(NAME cuda_headers COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/cuda/header_check.py ${CMAKE_CXX_COMPILER} ${PROJECT_SOURCE_DIR})
set_tests_properties(cuda_headers PROPERTIES SKIP_RETURN_CODE 77)
# Where NVRTC and its disassembler are: the machine code of kernels.
if(LIGHTCONE_IO AND LIGHTCONE_TOOLS)
  add_test(NAME gpu_kernels COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/gpu_kernels/table.py $<TARGET_FILE:lightcone_gpu_kernels>)
  set_tests_properties(gpu_kernels PROPERTIES SKIP_RETURN_CODE 77)
endif()
if(LIGHTCONE_IO AND LIGHTCONE_BUILD_BENCH AND NOT LIGHTCONE_SANITIZE)  # the script, by the CUDA that runs on the CPU
  add_test(NAME gpu_check COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/bench/gpu/check/check_test.py ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
endif()
add_test(NAME compile_fail COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/compile_fail/check.py ${CMAKE_CXX_COMPILER} ${PROJECT_SOURCE_DIR})
add_test(NAME compile_time COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/compile_time/check.py ${CMAKE_CXX_COMPILER} ${PROJECT_SOURCE_DIR})
set_tests_properties(compile_time PROPERTIES RUN_SERIAL ON)
# The pages' C++ is compiled, and their programs run: within one program that has the whole library. docs/pjrt.md loads
# the plugin.
if(LIGHTCONE_IO AND TARGET lightcone_pjrt)
  add_executable(docs_driver ${CMAKE_CURRENT_SOURCE_DIR}/docs/driver.cpp)
  target_link_libraries(docs_driver PRIVATE lightcone_io lightcone lightcone_options)
  target_link_options(docs_driver PRIVATE
    "SHELL:-Wl,--whole-archive $<TARGET_FILE:lightcone_io> $<TARGET_FILE:lightcone> $<TARGET_FILE:lightcone_kernels> -Wl,--no-whole-archive")
  set_target_properties(docs_driver PROPERTIES ENABLE_EXPORTS ON)
  add_test(NAME docs COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/docs/check.py ${CMAKE_CXX_COMPILER} ${PROJECT_SOURCE_DIR} $<TARGET_FILE:docs_driver>)
  add_dependencies(docs_driver lightcone_pjrt)
  set(gpus "")  # of docs/guide/gpus.md
  if(TARGET fake_metal)
    add_dependencies(docs_driver fake_cuda fake_metal)
    set(gpus "LIGHTCONE_CUDA_DRIVER=$<TARGET_FILE:fake_cuda>;LIGHTCONE_NVRTC=$<TARGET_FILE:fake_cuda>;LIGHTCONE_METAL=$<TARGET_FILE:fake_metal>")
  endif()
  set_tests_properties(docs PROPERTIES
    ENVIRONMENT "LIGHTCONE_MACHINE=default;PJRT_NAMES_AND_LIBRARY_PATHS=lightcone:$<TARGET_FILE:lightcone_pjrt>;${gpus}")
  if(NOT LIGHTCONE_SANITIZE)
    add_test(NAME docs_cmake COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/docs/cmake.py ${CMAKE_COMMAND} ${PROJECT_BINARY_DIR}
             ${PROJECT_SOURCE_DIR}/docs/guide/cmake.md)
  endif()
endif()
if(LIGHTCONE_TOOLS AND NOT LIGHTCONE_SANITIZE AND CMAKE_BUILD_TYPE STREQUAL "Release")
  add_test(NAME compile_scale COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/compile_time/scale.py ${CMAKE_CXX_COMPILER} $<TARGET_FILE:lightcone_command>)
  set_tests_properties(compile_scale PROPERTIES RUN_SERIAL ON)
endif()
# Ranks as processes.
set(mpi_programs "")
if(TARGET lightcone_mpi)
  set(MPI_CXX_SKIP_MPICXX ON)
  find_package(MPI QUIET COMPONENTS CXX)
  add_executable(mpi_ranks ${CMAKE_CURRENT_SOURCE_DIR}/distributed/mpi_ranks.cpp)
  target_link_libraries(mpi_ranks PRIVATE lightcone_mpi lightcone lightcone_options MPI::MPI_CXX)
  set(mpi_programs ${MPIEXEC_EXECUTABLE} $<TARGET_FILE:mpi_ranks>)
  if(TARGET distributed_mlp)
    list(APPEND mpi_programs $<TARGET_FILE:distributed_mlp>)
  endif()
endif()
add_test(NAME mpi COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/distributed/mpi_check.py ${mpi_programs})
set_tests_properties(mpi PROPERTIES RUN_SERIAL ON SKIP_RETURN_CODE 77 LABELS distributed TIMEOUT 600
                     ENVIRONMENT "LIGHTCONE_MACHINE=default;ASAN_OPTIONS=detect_leaks=0")  # those of MPI's libraries
if(LIGHTCONE_TOOLS AND NOT LIGHTCONE_SANITIZE)
  add_test(NAME planning_page COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/distributed/planning_page.py
           $<TARGET_FILE:lightcone_command> ${PROJECT_SOURCE_DIR}/docs/guide/planning-1024-gpus.md)
  set_tests_properties(planning_page PROPERTIES LABELS distributed TIMEOUT 600 ENVIRONMENT LIGHTCONE_MACHINE=default)
endif()
if(LIGHTCONE_TOOLS)  # lightcone generate --mesh
  set(mpi_launcher "")
  if(TARGET lightcone_mpi)
    set(mpi_launcher ${MPIEXEC_EXECUTABLE})
  endif()
  add_test(NAME generate_ranks COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/distributed/generate_ranks_check.py
           $<TARGET_FILE:lightcone_command> ${mpi_launcher})
  set_tests_properties(generate_ranks PROPERTIES RUN_SERIAL ON SKIP_RETURN_CODE 77 LABELS distributed TIMEOUT 600
                       ENVIRONMENT "LIGHTCONE_MACHINE=default;ASAN_OPTIONS=detect_leaks=0")
endif()
# `lightcone train` on ranks, some of which are killed.
set(mpi_programs "")
if(TARGET lightcone_mpi AND TARGET lightcone_command)
  set(mpi_programs ${MPIEXEC_EXECUTABLE} $<TARGET_FILE:lightcone_command>)
endif()
add_test(NAME train_ranks COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/distributed/train_check.py ${mpi_programs})
set_tests_properties(train_ranks PROPERTIES RUN_SERIAL ON SKIP_RETURN_CODE 77 LABELS distributed TIMEOUT 900
                     ENVIRONMENT "LIGHTCONE_MACHINE=default;ASAN_OPTIONS=detect_leaks=0")
# Another project finds the installed library and uses it.
if(NOT LIGHTCONE_SANITIZE)
  add_test(NAME consumer COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/consumer/check.sh ${CMAKE_COMMAND} ${PROJECT_BINARY_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/consumer)
endif()
# Arm's micro-kernels, under emulation.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND NOT LIGHTCONE_SANITIZE AND CMAKE_BUILD_TYPE STREQUAL "Release")
  add_test(NAME aarch64 COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/aarch64/check.sh ${CMAKE_COMMAND} ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/aarch64)
  set_tests_properties(aarch64 PROPERTIES SKIP_RETURN_CODE 77 PROCESSORS 2)  # it builds
endif()
add_test(NAME kernels_absent COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/kernels_absent.py ${CMAKE_CXX_COMPILER} ${PROJECT_SOURCE_DIR})
add_test(NAME layers COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/check_layers.py)
add_test(NAME pytorch_table COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/pytorch_table.py --check)
add_test(NAME test_table COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/test_table.py --check)
add_test(NAME typed_table COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/typed_table.py)
add_test(NAME numbers COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/check_numbers.py)
add_test(NAME public_headers COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/check_public.py)
add_test(NAME line_budget COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/line_budget.py)
add_test(NAME comments COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/check_comments.py)
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT LIGHTCONE_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_test(NAME gpu_size COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/gpu_size.py
           "$<FILTER:$<TARGET_OBJECTS:lightcone_gpu>,INCLUDE,[.]o$>"
           COMMAND_EXPAND_LISTS)
  set_tests_properties(gpu_size PROPERTIES SKIP_RETURN_CODE 77)
endif()
if(LIGHTCONE_TOOLS)
  # The seeds print the right matrices.
  add_test(NAME seed_2023_output COMMAND seed_2023)
  set_tests_properties(seed_2023_output PROPERTIES PASS_REGULAR_EXPRESSION "^1 2 3 3 2 4 6 6 3 6 9 9 \n$")
  add_test(NAME seed_2024_output COMMAND seed_2024)
  set_tests_properties(seed_2024_output PROPERTIES PASS_REGULAR_EXPRESSION "\\[\\[ 1,  2,  3,  4\\],\n \\[ 2,  4,  6,  8\\],\n \\[ 3,  6,  9, 12\\]\\]")
  add_test(NAME typed_mlp_output COMMAND typed_mlp)
  set_tests_properties(typed_mlp_output PROPERTIES PASS_REGULAR_EXPRESSION "^\\[\\[0.3030[0-9]+, 0.3969[0-9]+, 0.3000[0-9]+\\]\\]\n\\[\\[")
  add_test(NAME new_operation_output COMMAND new_operation)
  set_tests_properties(new_operation_output PROPERTIES PASS_REGULAR_EXPRESSION "^verified\n0.36514[0-9]* 0.73029[0-9]* 1.0954[0-9]* 1.4605[0-9]* \n$")
  add_test(NAME command COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/command_test.py $<TARGET_FILE:lightcone_command> ${PROJECT_SOURCE_DIR} ${LIGHTCONE_DATA})
  add_test(NAME train_command COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/train_command_test.py $<TARGET_FILE:lightcone_command> ${PROJECT_SOURCE_DIR})
  add_test(NAME train_resume_command COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/train_resume_command_test.py $<TARGET_FILE:lightcone_command> ${PROJECT_SOURCE_DIR})
  add_test(NAME train_language_command COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/train_language_command_test.py $<TARGET_FILE:lightcone_command> ${PROJECT_SOURCE_DIR})
  add_test(NAME train_refusals_command COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/train_refusals_command_test.py $<TARGET_FILE:lightcone_command> ${PROJECT_SOURCE_DIR})
  add_test(NAME plan_command COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/plan_command_test.py $<TARGET_FILE:lightcone_command>)
  add_test(NAME embed_command COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/embed_command_test.py $<TARGET_FILE:lightcone_command> ${PROJECT_SOURCE_DIR})
  add_test(NAME imagine_command COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/imagine_command_test.py $<TARGET_FILE:lightcone_command> ${PROJECT_SOURCE_DIR})
  add_test(NAME detect_command COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/detect_command_test.py $<TARGET_FILE:lightcone_command> ${PROJECT_SOURCE_DIR})
  add_test(NAME seq2seq_command COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/seq2seq_command_test.py $<TARGET_FILE:lightcone_command> ${PROJECT_SOURCE_DIR} ${LIGHTCONE_DATA})
  add_test(NAME text_classifier_command COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/text_classifier_command_test.py $<TARGET_FILE:lightcone_command>)
  add_test(NAME picture_classifier_command COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/picture_classifier_command_test.py
           $<TARGET_FILE:lightcone_command> ${PROJECT_SOURCE_DIR})
  add_test(NAME predict_command COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/predict_command_test.py $<TARGET_FILE:lightcone_command> ${PROJECT_SOURCE_DIR})
  add_test(NAME export_command COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/export_command_test.py $<TARGET_FILE:lightcone_command> ${LIGHTCONE_DATA})
  add_test(NAME model_command COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/model_command_test.py $<TARGET_FILE:lightcone_command> ${PROJECT_SOURCE_DIR} ${LIGHTCONE_DATA})
  add_test(NAME read_text COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/read_text_test.py $<TARGET_FILE:read_text> ${LIGHTCONE_DATA})
  set_tests_properties(read_text PROPERTIES SKIP_RETURN_CODE 77)
  set_tests_properties(train_command train_resume_command train_language_command train_refusals_command plan_command predict_command
                       embed_command imagine_command detect_command seq2seq_command model_command export_command
                       PROPERTIES ENVIRONMENT LIGHTCONE_MACHINE=default)
  set_tests_properties(text_classifier_command picture_classifier_command PROPERTIES ENVIRONMENT LIGHTCONE_MACHINE=default)
  add_test(NAME llama_peers COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/models/llama_peers_check.py $<TARGET_FILE:lightcone_command>
           ${PROJECT_SOURCE_DIR}/models/story/story.gguf)
  set_tests_properties(llama_peers PROPERTIES SKIP_RETURN_CODE 77)
  add_test(NAME text_classifier_peers COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/models/text_classifier_peers_check.py $<TARGET_FILE:lightcone_command>)
  add_test(NAME picture_classifier_peers COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/models/picture_classifier_peers_check.py
           $<TARGET_FILE:lightcone_command> ${PROJECT_SOURCE_DIR})
  add_executable(model_gradients ${CMAKE_CURRENT_SOURCE_DIR}/models/model_gradients.cpp)
  target_link_libraries(model_gradients PRIVATE ${libraries} lightcone lightcone_options)
  add_test(NAME model_gradients COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/models/model_gradients_check.py $<TARGET_FILE:model_gradients>)
  set_tests_properties(text_classifier_peers picture_classifier_peers model_gradients PROPERTIES SKIP_RETURN_CODE 77)
  if(TARGET fake_metal)
    add_test(NAME device_command COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/device_command_test.py $<TARGET_FILE:lightcone_command> ${PROJECT_SOURCE_DIR}
             $<TARGET_FILE:fake_cuda> $<TARGET_FILE:fake_metal>)
    set_tests_properties(device_command PROPERTIES ENVIRONMENT LIGHTCONE_MACHINE=default)
  endif()
  add_test(NAME new_device_output COMMAND new_device)
  set_tests_properties(new_device_output PROPERTIES PASS_REGULAR_EXPRESSION "^kernels on the new device: [1-9], nodes left to the interpreter: 0\nsoftmax of equal numbers: 0.125\nverified\n$")
endif()
# The library's system calls pass through tests/cpu/failing_calls.cpp, which makes them fail.
if(TARGET failing_calls_test)
  target_sources(failing_calls_test PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/cpu/failing_calls.cpp)
  foreach(call open openat fcntl read pread write pwrite close fstat stat fstatat mkdir renameat unlinkat futimens flock
          memfd_create mmap waitpid posix_spawn dlopen fdopendir readdir)
    target_link_options(failing_calls_test PRIVATE LINKER:--wrap=${call})
  endforeach()
endif()
# Tests that read, write and compile numbers, once more in a program whose locale has a comma for a point. The locale is made
# here, where there are its sources (Debian's package `locales`).
find_program(LIGHTCONE_LOCALEDEF localedef)
set(locales ${CMAKE_BINARY_DIR}/locales)
if(LIGHTCONE_LOCALEDEF AND NOT EXISTS ${locales}/de_DE.UTF-8 AND NOT CMAKE_CROSSCOMPILING)
  file(MAKE_DIRECTORY ${locales})
  execute_process(COMMAND ${LIGHTCONE_LOCALEDEF} -i de_DE -f UTF-8 ${locales}/de_DE.UTF-8 OUTPUT_QUIET ERROR_QUIET)
endif()
if(EXISTS ${locales}/de_DE.UTF-8 AND NOT LIGHTCONE_SANITIZE)
  add_library(comma_locale MODULE ${CMAKE_CURRENT_SOURCE_DIR}/support/comma_locale.cpp)
  target_compile_features(comma_locale PRIVATE cxx_std_20)
  foreach(name chat_template_test data_test edges_test machine_test profile_test read_test)
    if(TARGET ${name})
      add_dependencies(${name} comma_locale)
      add_test(NAME ${name}_with_commas COMMAND ${name})
      set_tests_properties(${name}_with_commas PROPERTIES ENVIRONMENT
                           "${environment};LD_PRELOAD=$<TARGET_FILE:comma_locale>;LOCPATH=${locales}")
    endif()
  endforeach()
endif()
