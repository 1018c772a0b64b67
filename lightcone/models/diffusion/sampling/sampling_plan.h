// SamplingPlan: every step of a sampler as numbers. One compiled program takes all steps of all methods, because each
// of them is a sum with weights: those of the sample, of the model's output and of what earlier steps left.
//
// A step runs the model on sample * input_scale at `timestep`. From its output comes the predicted clean sample,
//   x0 = clamp(from_sample sample + from_output output, -limit, limit)
// and then the new sample and the new memories, each the sum over kColumns values (the sample, x0, the output, the
// memories and fresh noise) times a row of `update`.
#pragma once

#include <array>
#include <vector>

#include "lightcone/models/diffusion/sampling/scheduler_config.h"

namespace lc::diffusion {

// A noise level: the sample is alpha times the clean one and sigma times noise.
struct NoiseLevel {
  double alpha = 1, sigma = 0;
};

constexpr std::size_t kMemories = 4;             // values that a step leaves for later ones
constexpr std::size_t kRows = 1 + kMemories;     // the sample and the memories
constexpr std::size_t kColumns = 4 + kMemories;  // the sample, x0, the output, the memories, noise
// The columns of `update`. The rows are the sample, row 0, and memory m, row 1 + m.
enum Column : std::uint8_t { kSample = 0, kClean = 1, kOutput = 2, kMemory = 3, kNoise = 3 + kMemories };

// One step of a sampler.
struct SamplingStep {
  double timestep = 0;     // what the model is told
  NoiseLevel level;        // the sample has it before the step
  double input_scale = 1;  // times the sample is what the model sees
  double from_sample = 0, from_output = 1;
  double limit = 0;  // 0: x0 is not clamped
  std::array<std::array<double, kColumns>, kRows> update = {};
  bool draws() const { return update[0][kNoise] != 0; }  // whether the step reads fresh noise
};

// The steps of a run.
struct SamplingPlan {
  std::vector<SamplingStep> steps;
  double first_scale = 1;  // times noise is what a run from nothing begins with
};

// Options of a plan.
struct SamplingOptions {
  std::int64_t steps = 50;  // as a user counts them: Heun runs the model twice a step, PNDM once more in all
  double strength = 1;      // below 1: the run begins with a picture, and the first steps are left out
  double eta = 0;           // DDIM's: 1 adds as much noise as DDPM
  std::int64_t length = 0;  // tokens of the picture, for a dynamic shift of flow matching
  bool evenly = false;      // flow matching: levels fall evenly from 1 to 1 / steps before the shift, as FLUX's do
};

// Plans a run. Throws Error for less than one step, for more than the training has, and for a strength that is not
// above 0 and at most 1.
SamplingPlan sampling_plan(const SchedulerConfig& c, const SamplingOptions& o);

// ---- the methods on any noise levels, for those who have their own ---------------------------------

// The levels of a run of n steps: n + 1 of them, and n timesteps.
struct Levels {
  std::vector<NoiseLevel> levels;
  std::vector<double> timesteps;
};
// The steps of DPM-Solver++ and of UniPC between given levels; `c` has the order and the form.
SamplingPlan plan_dpm_solver(const SchedulerConfig& c, const Levels& l, std::size_t begin = 0);
SamplingPlan plan_unipc(const SchedulerConfig& c, const Levels& l, std::size_t begin = 0);
// A step of DDIM from one level to another.
SamplingStep ddim_step(const SchedulerConfig& c, double timestep, const NoiseLevel& from, const NoiseLevel& to,
                       double eta);
// The steps of Euler's and Heun's methods for samples whose alpha is 1.
SamplingPlan plan_euler(const SchedulerConfig& c, const Levels& l, std::size_t begin = 0);
SamplingPlan plan_heun(const SchedulerConfig& c, const Levels& l, std::size_t begin = 0);

}  // namespace lc::diffusion
