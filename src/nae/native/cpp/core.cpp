// The plain functions of abi.h. Nothing is thrown across them.
#include "core.h"

#include <exception>

namespace {

template <class Work>
int32_t guarded(Work work) {
  try {
    work();
    return NAE_DONE;
  } catch (const std::exception&) {
    return NAE_NO_MEMORY;
  }
}

}  // namespace

int32_t nae_abi_version() { return kAbiVersion; }

const char* nae_sources() { return NAE_SOURCES; }

int32_t nae_best_instructions() { return nae::best_instructions(); }

nae_core* nae_new(const nae_config* config, const nae_inputs* inputs) {
  const int wanted = config->instructions == NAE_BEST ? nae::best_instructions() : config->instructions;
  if (!nae::has(wanted)) return nullptr;
  nae_core* made = nullptr;
  guarded([&] {
    if (config->is_double)
      made = new nae::Core<double>(*config, *inputs, wanted);
    else
      made = new nae::Core<float>(*config, *inputs, wanted);
  });
  return made;
}

void nae_delete(nae_core* core) { delete core; }

int32_t nae_set(nae_core* core, int32_t values, int32_t tensor, const void* from) {
  return core->set(values, tensor, from) ? NAE_DONE : NAE_NOT_HERE;
}

int32_t nae_get(nae_core* core, int32_t values, int32_t tensor, void* to) {
  return core->get(values, tensor, to) ? NAE_DONE : NAE_NOT_HERE;
}

void nae_restart_mean(nae_core* core) { core->restart_mean(); }

void nae_set_dial(nae_core* core, double log_gamma, double running) { core->dial = {log_gamma, running}; }

void nae_get_dial(nae_core* core, double* log_gamma, double* running) {
  *log_gamma = core->dial.log_gamma;
  *running = core->dial.running;
}

uint64_t nae_noise_per_step(const nae_core* core) { return core->noise_per_step(); }

int32_t nae_train(nae_core* core, const nae_rows* rows, const int64_t* order, int64_t n_steps, int64_t first_step,
                  const double* rates, uint64_t noise, double* losses) {
  return guarded([&] { core->run(*rows, {order, n_steps, first_step, rates, noise, losses, false}); });
}

int32_t nae_gradients(nae_core* core, const nae_rows* rows, const int64_t* order, uint64_t noise, double* losses) {
  const double rate = 0;
  return guarded([&] {
    core->make_gradients();
    core->run(*rows, {order, 1, 0, &rate, noise, losses, true});
  });
}

int32_t nae_score(nae_core* core, const nae_rows* rows, const int64_t* order, const int64_t* starts, int32_t is_filled,
                  void* scores) {
  return guarded([&] { core->score(*rows, order, starts, is_filled != 0, scores); });
}

int32_t nae_losses(nae_core* core, const nae_rows* rows, const int64_t* order, int64_t n, const void* scores,
                   void* losses) {
  return guarded([&] { core->lose(*rows, order, n, scores, losses); });
}

int32_t nae_additivity(nae_core* core, const nae_rows* rows, const int64_t* order, int64_t n, int32_t is_filled,
                       double* additivity) {
  return guarded([&] { *additivity = core->additivity(*rows, order, n, is_filled != 0); });
}
