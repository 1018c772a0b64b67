// The command line of `lightcone plan`.
#include <memory>

#include "options.h"

namespace lc::tool {

void add_plan(CLI::App& app) {
  auto o = std::make_shared<PlanCommand>();
  CLI::App* c = app.add_subcommand("plan", "What a training needs on many ranks: memory, messages, time; which mesh");
  c->footer(
      "  lightcone plan gpt.json --mesh data=2,model=2 --links 20us,4GB/s --measure\n"
      "  lightcone plan llama.json --mesh data=128,model=8 --ranks-per-machine 8 --links '5us,50GB/s;3us,450GB/s'\n"
      "                            --flops 400TFLOP/s --bandwidth 3.3TB/s --memory 80GB --sharding full\n"
      "  lightcone plan llama.json --mesh auto --ranks 1024 ...      all meshes, the quickest that fits first\n"
      "  mpirun -n 2 lightcone plan --measure-links                  the links between ranks of this machine\n"
      "  mpirun -n 4 lightcone plan gpt.json --mesh data=4 --run 20 ...   the prediction beside what happens\n"
      "CONFIG is one of `lightcone train`; its batch is that of all ranks. No other rank is needed and no data are "
      "read:\n"
      "ranks are alike, and rank 0 stands for all of them. Memory and messages are those of the compiled program. "
      "Times\n"
      "are computed from the rates of a processor, or measured here with --measure, and from links: the latency,\n"
      "the bandwidth and, if it is another than the latency, the time of one more message. docs/distributed.md says "
      "more.");
  c->add_option("CONFIG", o->config, "a configuration of lightcone train")->type_name("");
  c->add_option("--mesh", o->mesh, "axes data, model and pipe with their sizes (those of CONFIG), or auto")
      ->type_name("AXIS=N,...");
  c->add_option("--ranks", o->ranks, "of --mesh auto")->check(CLI::Range(1, 1 << 20))->type_name("N");
  c->add_option("--stages", o->stages, "of --mesh auto: pipelines of up to so many stages, too")
      ->check(CLI::Range(1, 1 << 10))
      ->type_name("N");
  c->add_option("--microbatches", o->microbatches,
                "parts of a rank's batch: the stages of a pipeline compute them at the same time, other ranks one "
                "after the other")
      ->check(CLI::Range(1, 1 << 10))
      ->type_name("N");
  one_of(c->add_option("--sharding", o->sharding,
                       "none, optimizer (its memory is divided along data) or full (parameters, too)"),
         {"none", "optimizer", "full"})
      ->type_name("WHAT");
  c->add_option("--links", o->links, "between machines, and behind a ; within one: 5us,50GB/s;3us,450GB/s")
      ->type_name("LINKS");
  c->add_option("--ranks-per-machine", o->ranks_per_machine, "default: all of them are on one")
      ->check(CLI::Range(1, 1 << 20))
      ->type_name("N");
  c->add_option("--memory", o->memory, "of one rank: 80GB")->type_name("BYTES");
  c->add_option("--flops", o->flops, "of one rank's processor: 400TFLOP/s; default: measured here")->type_name("RATE");
  c->add_option("--bandwidth", o->bandwidth, "of its memory: 3.3TB/s; default: measured here")->type_name("RATE");
  c->add_option("--sums", o->sums, "how fast exchanged numbers are added up; default: measured here, or --bandwidth")
      ->type_name("RATE");
  c->add_option("--cores", o->cores,
                "of a machine, which its ranks share; default: this one's, unless --flops is given")
      ->check(CLI::Range(1, 1 << 16))
      ->type_name("N");
  add_threads(*c, o->threads);
  one_of(c->add_option("--autocast", o->autocast, "products in bf16 or f16, and parameters in f32"), {"bf16", "f16"})
      ->type_name("TYPE");
  c->add_flag("--overlap", o->overlap, "exchanges go on while kernels run that do not need them");
  c->add_flag("--measure", o->measure, "measure the kernels of one rank here instead of computing their times");
  c->add_flag("--measure-links", o->measure_links, "by mpirun: print the --links and --sums of this machine, and stop");
  c->add_option("--run", o->steps, "by mpirun: so many steps on numbers of no meaning, beside the prediction")
      ->check(CLI::Range(1, 1 << 20))
      ->type_name("STEPS");
  c->add_flag("--slowed", o->slowed,
              "ranks of this machine wait as if they were on different ones, as long as --links says");
  c->add_flag("--json", o->json, "for scripts");
  c->callback([o] { plan(*o); });
}

}  // namespace lc::tool
