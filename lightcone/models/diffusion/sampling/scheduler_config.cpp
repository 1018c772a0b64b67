#include "lightcone/models/diffusion/sampling/scheduler_config.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "lightcone/io/printable.h"
#include "lightcone/runtime/names.h"

namespace lc::diffusion {
namespace {

constexpr std::int64_t kMostTrainSteps = 1 << 20;

struct Class {
  std::string_view name;
  Solver solver;
  Spacing spacing;  // what a file means that says nothing
};
constexpr Class kClasses[] = {{"DDPMScheduler", Solver::Ddpm, Spacing::Leading},
                              {"DDIMScheduler", Solver::Ddim, Spacing::Leading},
                              {"PNDMScheduler", Solver::Pndm, Spacing::Leading},
                              {"EulerDiscreteScheduler", Solver::Euler, Spacing::Linspace},
                              {"EulerAncestralDiscreteScheduler", Solver::EulerAncestral, Spacing::Linspace},
                              {"HeunDiscreteScheduler", Solver::Heun, Spacing::Linspace},
                              {"DPMSolverMultistepScheduler", Solver::DpmSolver, Spacing::Linspace},
                              {"UniPCMultistepScheduler", Solver::UniPC, Spacing::Linspace},
                              {"FlowMatchEulerDiscreteScheduler", Solver::FlowEuler, Spacing::Linspace}};

// The names of --scheduler.
struct Method {
  std::string_view name;
  Solver solver;
  Sigmas sigmas = Sigmas::OfTimesteps;
  bool stochastic = false;
};
constexpr Method kMethods[] = {{"ddpm", Solver::Ddpm},
                               {"ddim", Solver::Ddim},
                               {"pndm", Solver::Pndm},
                               {"euler", Solver::Euler},
                               {"euler_karras", Solver::Euler, Sigmas::Karras},
                               {"euler_a", Solver::EulerAncestral},
                               {"heun", Solver::Heun},
                               {"heun_karras", Solver::Heun, Sigmas::Karras},
                               {"dpm++", Solver::DpmSolver},
                               {"dpm++_karras", Solver::DpmSolver, Sigmas::Karras},
                               {"dpm++_sde", Solver::DpmSolver, Sigmas::OfTimesteps, true},
                               {"dpm++_sde_karras", Solver::DpmSolver, Sigmas::Karras, true},
                               {"unipc", Solver::UniPC},
                               {"unipc_karras", Solver::UniPC, Sigmas::Karras},
                               {"flow_euler", Solver::FlowEuler}};

template <class T>
T one_of(const ConfigFile& c, std::string_view key, std::string_view otherwise,
         std::initializer_list<std::pair<std::string_view, T>> values) {
  const std::string given = c.text(key, otherwise);
  std::vector<std::string_view> known;
  for (const auto& [name, value] : values) {
    if (name == given) return value;
    known.push_back(name);
  }
  c.fail(key, " is ", in_quotes(given), "; known are ", listed({known.begin(), known.end()}));
}

void read_betas(const ConfigFile& c, SchedulerConfig& s) {
  s.trained_betas = c.numbers("trained_betas");
  s.beta_start = c.number("beta_start", s.beta_start), s.beta_end = c.number("beta_end", s.beta_end);
  s.beta_schedule = c.text("beta_schedule", "linear");
  if (s.beta_schedule != "linear" && s.beta_schedule != "scaled_linear" && s.beta_schedule != "squaredcos_cap_v2")
    c.fail("beta_schedule is ", in_quotes(s.beta_schedule),
           "; supported are linear, scaled_linear and squaredcos_cap_v2");
  s.zero_snr = c.flag("rescale_betas_zero_snr", false);
  if (!s.trained_betas.empty() && std::ssize(s.trained_betas) != s.train_steps)
    c.fail(s.trained_betas.size(), " trained_betas, and num_train_timesteps is ", s.train_steps);
  const auto is_beta = [](double b) { return b > 0 && b < 1; };
  if (!is_beta(s.beta_start) || !is_beta(s.beta_end) || !std::ranges::all_of(s.trained_betas, is_beta))
    c.fail("a beta is not between 0 and 1");
}

void read_steps(const ConfigFile& c, const Class& k, SchedulerConfig& s) {
  s.spacing = k.spacing;
  s.spacing_given = c.has("timestep_spacing");
  if (s.spacing_given)
    s.spacing = one_of<Spacing>(
        c, "timestep_spacing", "",
        {{"linspace", Spacing::Linspace}, {"leading", Spacing::Leading}, {"trailing", Spacing::Trailing}});
  s.steps_offset = c.id("steps_offset", 0);
  if (s.steps_offset >= s.train_steps) c.fail("steps_offset is ", s.steps_offset, ", past the training's timesteps");
  s.prediction = one_of<Prediction>(
      c, "prediction_type", "epsilon",
      {{"epsilon", Prediction::Noise}, {"v_prediction", Prediction::Velocity}, {"sample", Prediction::Sample}});
}

// Keys that some of the methods share.
void read_method(const ConfigFile& c, SchedulerConfig& s) {
  const bool by_sigmas = s.solver == Solver::Euler || s.solver == Solver::Heun || s.solver == Solver::DpmSolver ||
                         s.solver == Solver::UniPC;
  if (by_sigmas) {
    const bool karras = c.flag("use_karras_sigmas", false), exponential = c.flag("use_exponential_sigmas", false);
    if (karras && exponential) c.fail("use_karras_sigmas and use_exponential_sigmas are both true");
    s.sigmas = karras ? Sigmas::Karras : exponential ? Sigmas::Exponential : Sigmas::OfTimesteps;
    c.lacks({"use_beta_sigmas"});
  }
  if (s.solver == Solver::Euler) {
    s.sigma_min = c.number("sigma_min", 0), s.sigma_max = c.number("sigma_max", 0);
    c.only("interpolation_type", "linear");
    c.only("timestep_type", "discrete");
  }
  if (s.solver == Solver::Euler || s.solver == Solver::DpmSolver || s.solver == Solver::UniPC)
    s.last_sigma_is_zero = one_of<bool>(c, "final_sigmas_type", "zero", {{"zero", true}, {"sigma_min", false}});
  if (s.solver == Solver::Ddim || s.solver == Solver::Pndm)
    s.last_alpha_is_one = c.flag("set_alpha_to_one", s.solver == Solver::Ddim);
  const bool clips = s.solver == Solver::Ddpm || s.solver == Solver::Ddim;
  if (c.flag("clip_sample", clips) && (clips || s.solver == Solver::Heun)) s.clip = c.number("clip_sample_range", 1);
  c.neutral({"clip_sample_range"});
  if (s.solver == Solver::Pndm && !c.flag("skip_prk_steps", false))
    c.fail("skip_prk_steps is not true, and only PNDM without Runge-Kutta steps (PLMS) is supported");
  if (s.solver == Solver::Ddpm) c.only("variance_type", "fixed_small");
  c.lacks({"thresholding"});
  c.neutral({"dynamic_thresholding_ratio", "sample_max_value"});
}

void read_multistep(const ConfigFile& c, SchedulerConfig& s) {
  s.order = c.size("solver_order", 2);
  if (s.order > 3) c.fail("solver_order is ", s.order, ", and at most 3 is supported");
  s.lower_order_final = c.flag("lower_order_final", true);
  c.lacks({"use_flow_sigmas", "use_lu_lambdas", "use_dynamic_shifting", "variance_type", "shift_terminal",
           "disable_corrector", "solver_p", "lambda_min_clipped"});
  c.neutral({"flow_shift", "time_shift_type", "sigma_min", "sigma_max"});
  if (s.solver == Solver::DpmSolver) {
    s.heun_form =
        one_of<bool>(c, "solver_type", "midpoint",
                     {{"midpoint", false}, {"heun", true}, {"bh1", false}, {"bh2", false}, {"logrho", false}});
    s.stochastic =
        one_of<bool>(c, "algorithm_type", "dpmsolver++", {{"dpmsolver++", false}, {"sde-dpmsolver++", true}});
    s.euler_at_final = c.flag("euler_at_final", false);
    if (s.stochastic && s.order > 2) c.fail("sde-dpmsolver++ of order 3 is not supported");
  } else {
    s.bh1 = one_of<bool>(c, "solver_type", "bh2",
                         {{"bh1", true}, {"bh2", false}, {"midpoint", false}, {"heun", false}, {"logrho", false}});
    if (!c.flag("predict_x0", true)) c.fail("predict_x0 is false, which is not supported");
  }
}

void read_flow(const ConfigFile& c, SchedulerConfig& s) {
  s.prediction = Prediction::Flow;
  s.shift = c.number("shift", 1);
  s.dynamic_shift = c.flag("use_dynamic_shifting", false);
  s.base_shift = c.number("base_shift", 0.5), s.max_shift = c.number("max_shift", 1.15);
  s.base_length = c.size("base_image_seq_len", 256), s.max_length = c.size("max_image_seq_len", 4096);
  c.lacks({"invert_sigmas", "use_karras_sigmas", "use_exponential_sigmas", "use_beta_sigmas", "stochastic_sampling"});
  s.linear_shift = one_of<bool>(c, "time_shift_type", "exponential", {{"exponential", false}, {"linear", true}});
  s.last_level = c.number("shift_terminal", 0);
  if (!(s.last_level >= 0 && s.last_level < 1)) c.fail("shift_terminal is ", s.last_level, ", and not from 0 to 1");
  if (!(s.shift > 0)) c.fail("shift is ", s.shift, ", and not above 0");
  if (s.max_length == s.base_length) c.fail("base_image_seq_len and max_image_seq_len are equal");
}

}  // namespace

SchedulerConfig SchedulerConfig::from(const ConfigFile& c) {
  const std::string name = c.text("_class_name");
  std::vector<std::string_view> known;
  for (const Class& k : kClasses) known.push_back(k.name);
  const auto at = std::ranges::find(kClasses, name, &Class::name);
  if (at == std::end(kClasses))
    c.fail("the scheduler ", in_quotes(name), " is not supported; supported are ",
           listed({known.begin(), known.end()}));
  SchedulerConfig s;
  s.solver = at->solver;
  s.train_steps = c.size("num_train_timesteps", 1000);
  if (s.train_steps > kMostTrainSteps)
    c.fail("num_train_timesteps is ", s.train_steps, ", more than ", kMostTrainSteps);
  if (s.solver == Solver::FlowEuler) {
    read_flow(c, s);
  } else {
    if (s.solver == Solver::Heun) s.beta_start = 0.00085, s.beta_end = 0.012;  // what diffusers means there
    read_betas(c, s);
    read_steps(c, *at, s);
    read_method(c, s);
    if (s.solver == Solver::DpmSolver || s.solver == Solver::UniPC) read_multistep(c, s);
    // what diffusers' older files and files of other schedulers have, which this one does not read
    c.neutral({"skip_prk_steps", "set_alpha_to_one", "clip_sample", "variance_type"});
  }
  c.require_all_known(name);
  return s;
}

const std::vector<std::string_view>& scheduler_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const Method& m : kMethods) all.push_back(m.name);
    return all;
  }();
  return names;
}

SchedulerConfig SchedulerConfig::with(std::string_view name) const {
  const auto at = std::ranges::find(kMethods, name, &Method::name);
  if (at == std::end(kMethods))
    throw Error("scheduler",
                str_cat("there is no scheduler ", in_quotes(name), "; ", names_near(name, scheduler_names())));
  if ((at->solver == Solver::FlowEuler) != (solver == Solver::FlowEuler))
    throw Error("scheduler", solver == Solver::FlowEuler
                                 ? "the model was trained by flow matching, for which flow_euler alone is supported"
                                 : "flow_euler is for models trained by flow matching, and this one was not");
  SchedulerConfig s = *this;
  s.solver = at->solver, s.sigmas = at->sigmas, s.stochastic = at->stochastic;
  s.order = 2, s.clip = 0;
  if (!s.spacing_given) s.spacing = std::ranges::find(kClasses, s.solver, &Class::solver)->spacing;
  return s;
}

std::vector<double> alphas_cumprod(const SchedulerConfig& c) {
  const auto n = static_cast<std::size_t>(c.train_steps);
  std::vector<double> betas = c.trained_betas;
  const auto even = [&](double from, double to, std::size_t k) {
    return n == 1 ? from : from + (to - from) * static_cast<double>(k) / static_cast<double>(n - 1);
  };
  if (betas.empty()) {
    for (std::size_t k = 0; k < n; ++k)
      if (c.beta_schedule == "linear") {
        betas.push_back(even(c.beta_start, c.beta_end, k));
      } else if (c.beta_schedule == "scaled_linear") {
        betas.push_back(std::pow(even(std::sqrt(c.beta_start), std::sqrt(c.beta_end), k), 2));
      } else {  // A. Nichol and P. Dhariwal, "Improved denoising diffusion probabilistic models", 2021
        const auto left = [&](std::size_t i) {
          const double t = static_cast<double>(i) / static_cast<double>(n);
          return std::pow(std::cos((t + 0.008) / 1.008 * std::numbers::pi / 2), 2);
        };
        betas.push_back(std::min(1 - left(k + 1) / left(k), 0.999));
      }
  }
  std::vector<double> all;
  double product = 1;
  for (const double beta : betas) all.push_back(product *= 1 - beta);
  if (c.zero_snr) {
    // S. Lin et al., 2023: roots are moved so that the last one is 0, and scaled so that the first one stays.
    const double first = std::sqrt(all.front()), last = std::sqrt(all.back());
    for (double& a : all) a = std::pow((std::sqrt(a) - last) * first / (first - last), 2);
    const bool by_sigmas = c.solver != Solver::Ddpm && c.solver != Solver::Ddim && c.solver != Solver::Pndm;
    if (by_sigmas) all.back() = 0x1p-24;  // diffusers: so that the largest noise level is a number
  }
  return all;
}

}  // namespace lc::diffusion
