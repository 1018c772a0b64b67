// What a scheduler is: how a model's training added noise, which steps a sampler takes, and by which method. It is read
// from diffusers' scheduler_config.json.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/models/files/config_file.h"

namespace lc::diffusion {

// The sampling methods, by the papers' names.
enum class Solver : std::uint8_t {
  Ddpm,            // J. Ho et al., 2020
  Ddim,            // J. Song et al., "Denoising diffusion implicit models", 2020
  Pndm,            // L. Liu et al., "Pseudo numerical methods", 2022, without its Runge-Kutta steps (PLMS)
  Euler,           // T. Karras et al., "Elucidating the design space", 2022, without churn
  EulerAncestral,  // K. Crowson's k-diffusion
  Heun,            // T. Karras et al., algorithm 2, without churn; two runs of the model a step
  DpmSolver,       // C. Lu et al., "DPM-Solver++", 2022, multistep of order 1 to 3
  UniPC,           // W. Zhao et al., "UniPC", 2023
  FlowEuler,       // Y. Lipman et al., "Flow matching", 2022
};
// What the model's output is.
enum class Prediction : std::uint8_t { Noise, Velocity, Sample, Flow };
// How steps lie in the training's timesteps (S. Lin et al., "Common diffusion noise schedules ... are flawed", 2023).
enum class Spacing : std::uint8_t { Linspace, Leading, Trailing };
// How noise levels lie between the largest and the smallest.
enum class Sigmas : std::uint8_t { OfTimesteps, Karras, Exponential };

// The settings of a scheduler. Names and defaults are those of diffusers.
struct SchedulerConfig {
  Solver solver = Solver::Ddim;
  Prediction prediction = Prediction::Noise;
  Spacing spacing = Spacing::Leading;
  bool spacing_given = false;  // the file says it; otherwise each method has its own
  Sigmas sigmas = Sigmas::OfTimesteps;
  std::int64_t train_steps = 1000;
  std::string beta_schedule = "linear";  // or scaled_linear, squaredcos_cap_v2
  double beta_start = 0.0001, beta_end = 0.02;
  std::vector<double> trained_betas = {};  // in place of the three above
  bool zero_snr = false;                   // rescale_betas_zero_snr
  std::int64_t steps_offset = 0;
  bool last_alpha_is_one = true;  // set_alpha_to_one
  double clip = 0;                // predicted samples are clamped to it; 0: they are not
  std::int64_t order = 2;         // solver_order
  bool heun_form = false;         // DPM-Solver++'s second order by "heun", not "midpoint"
  bool bh1 = false;               // UniPC's, in place of bh2
  bool stochastic = false;        // sde-dpmsolver++
  bool lower_order_final = true, euler_at_final = false;
  bool last_sigma_is_zero = true;       // final_sigmas_type
  double sigma_min = 0, sigma_max = 0;  // ends of Karras and exponential levels; 0: the schedule's
  double shift = 1;                     // flow matching's
  bool dynamic_shift = false;           // the shift depends on the size of the picture
  bool linear_shift = false;            // time_shift_type
  double base_shift = 0.5, max_shift = 1.15;
  double last_level = 0;  // shift_terminal: levels are stretched so that the last one is it; 0: they are not
  std::int64_t base_length = 256, max_length = 4096;

  // Reads scheduler_config.json. Throws Error that names a class or a key which is wrong, not supported or not known.
  static SchedulerConfig from(const ConfigFile& c);
  // The same training with another method: one of scheduler_names(). Throws Error that names the nearest one.
  SchedulerConfig with(std::string_view name) const;
};

// ddpm, ddim, pndm, euler, euler_a, heun, dpm++, dpm++_karras, dpm++_sde, unipc, flow_euler, ...
const std::vector<std::string_view>& scheduler_names();

// The products of all 1 - beta up to each timestep of the training, alpha bar [train_steps].
std::vector<double> alphas_cumprod(const SchedulerConfig& c);

}  // namespace lc::diffusion
