// What the shared object offers: plain functions, plain arrays, plain structs. Nothing here knows of Python or torch.
//
// Arrays of numbers are double or float, as `is_double` says; they belong to the caller and are only read or written
// during a call. Slots are compact: feature after feature, each with its own number of slots and, behind these, one
// slot for values that no row has trained.
#pragma once
#include <cstdint>

#if defined(_WIN32)
#define NAE_API extern "C" __declspec(dllexport)
#else
#define NAE_API extern "C" __attribute__((visibility("default")))
#endif

enum nae_gate { NAE_ADDITIVE, NAE_LOW_RANK, NAE_DEEP, NAE_DIAGONAL };
enum nae_routing { NAE_SOFTMAX, NAE_EQUAL, NAE_GUMBEL };
enum nae_loss {
  NAE_SQUARED,
  NAE_ABSOLUTE,
  NAE_HUBER,
  NAE_QUANTILE,
  NAE_POISSON,
  NAE_GAMMA,
  NAE_TWEEDIE,
  NAE_LOGISTIC,
  NAE_CROSS_ENTROPY
};
enum nae_instructions { NAE_BEST, NAE_PORTABLE, NAE_AVX2, NAE_AVX512 };
enum nae_status { NAE_DONE, NAE_NO_MEMORY, NAE_NOT_HERE };

// Weights, what the optimiser knows of them, their running mean, and the gradients of the last `nae_gradients`.
enum nae_values { NAE_WEIGHTS, NAE_FIRST_MOMENTS, NAE_SECOND_MOMENTS, NAE_MEANS, NAE_GRADIENTS };

// Tensors, in the shapes of the network: F features, H hidden units, K experts, O outputs, M members, W gate terms.
enum nae_tensor {
  NAE_EXPERT_WEIGHT,  // (F, H, K, O, M)
  NAE_EXPERT_BIAS,    // (F, 1, K, O, M)
  NAE_INTERCEPT,      // (O, M)
  NAE_GATE_WEIGHT,    // (F, H, W, M)
  NAE_GATE_BIAS,      // (W, M), or (K * F, M) of a diagonal gate
  NAE_MIX,            // (M, W, K * F)
  NAE_MIX_BIAS,       // (M, 1, K * F)
  NAE_BLOCKS          // of block i, NAE_BLOCKS + 4 * i: weight (M, F, in, H), then bias, scale, shift (M, F, 1, H)
};

struct nae_config {
  int32_t is_double, instructions;
  int32_t n_members, n_features, n_outputs, n_experts, n_active, hidden, n_blocks, n_inputs;
  int32_t gate, n_terms, routing, loss;
  int32_t batch_size;         // rows of a step
  int32_t n_threads;
  int32_t averaged_steps;     // horizon of the running mean of weights; 0 without one
  int32_t n_kept;             // expert weights kept of 256; 256 without dropout
  int32_t has_dial;
  double temperature;         // of Gumbel noise
  double weight_decay;
  double variation, output, context;  // weights of the penalties
  double dial_target, dial_log_least;
};

// What experts and gate terms are made to be (forms.h).
struct nae_forms {
  const int32_t* n_ordered;  // (F,), slots in order, the first of a feature
  const int32_t* rises;      // (F,), 1, -1 or 0
  const int32_t* bends;      // (F,), 1, -1 or 0
  const uint8_t* is_single;  // (F,)
  const uint8_t* is_sorted;  // (F,)
  const uint8_t* leads;      // (F,)
  const double* places;      // (slot,), from 0 to 1
  const double* caps;        // (F, O), infinite without a cap
  const uint8_t* allows;     // (M, F, F), or null where each feature may change each
  double sharpness;
  int32_t sorts_outputs;
  int32_t n_leading;         // with a matrix: terms that features that lead feed
};

// What a network is built on. Slots here are those of every feature in turn, without the untrained ones.
struct nae_inputs {
  const int32_t* n_slots;      // (F,)
  const double* values;        // (slot, n_inputs)
  const double* slot_weight;   // (slot,), of the training rows
  double variation_slots;      // how many slots the variation penalty is a mean over
  const uint8_t* is_live;      // (F,), 0 where experts stay at zero
  const double* start;         // (slot, O, M), what experts are added to; or null
  const double* start_offset;  // (O, M), what scores are added to; or null
  const int32_t* own_fold;     // (M,), the fold that each member holds out
  const nae_forms* forms;      // or null
  const double* left;          // (slot,), of a residual (penalties.h); or null
  const double* roughness;     // (slot,), weights of the residuals; or null
  const double* loss_option;   // (O,), quantile, power or delta of every output
};

struct nae_rows {
  const int32_t* slot;    // (N, F), compact
  const void* fraction;   // (N, F)
  const void* target;     // (N, O), or null
  const int32_t* label;   // (N,), or null
  const void* weight;     // (N,)
  const void* base;       // (N, O), or null
  const int32_t* fold;    // (N,), or null
};

struct nae_core;

// Grows with every change of this file: a shared object of another number is not used.
constexpr int32_t kAbiVersion = 6;

NAE_API int32_t nae_abi_version();
// The digest of the sources that the object was compiled from.
NAE_API const char* nae_sources();
NAE_API int32_t nae_best_instructions();
// Returns null where memory or the instruction set is missing.
NAE_API nae_core* nae_new(const nae_config* config, const nae_inputs* inputs);
NAE_API void nae_delete(nae_core* core);
NAE_API int32_t nae_set(nae_core* core, int32_t values, int32_t tensor, const void* from);
NAE_API int32_t nae_get(nae_core* core, int32_t values, int32_t tensor, void* to);
NAE_API void nae_restart_mean(nae_core* core);
// The dial's state: the logarithm of the penalty's weight, and the running additivity.
NAE_API void nae_set_dial(nae_core* core, double log_gamma, double running);
NAE_API void nae_get_dial(nae_core* core, double* log_gamma, double* running);
// Returns how many random numbers a step draws: 64-bit words of the counter-based generator (random.h).
NAE_API uint64_t nae_noise_per_step(const nae_core* core);
// Takes `n_steps` steps, the first of which is number `first_step`; `rates` are their step sizes, `order` (n_steps, B)
// their rows. `noise` counts the random numbers drawn so far. `losses` (n_steps, M) receives every member's mean loss.
NAE_API int32_t nae_train(nae_core* core, const nae_rows* rows, const int64_t* order, int64_t n_steps,
                          int64_t first_step, const double* rates, uint64_t noise, double* losses);
// Writes the gradients of one step to NAE_GRADIENTS and takes none.
NAE_API int32_t nae_gradients(nae_core* core, const nae_rows* rows, const int64_t* order, uint64_t noise,
                              double* losses);
// Scores every member's own list of rows, from starts[m] to starts[m + 1] in `order`, by the weights that are kept.
// With `is_filled`, untrained slots hold the mean of their feature. `scores` is (starts[M], O), bases left out.
NAE_API int32_t nae_score(nae_core* core, const nae_rows* rows, const int64_t* order, const int64_t* starts,
                          int32_t is_filled, void* scores);
// Returns the loss of n rows from their scores (n, O), bases left out.
NAE_API int32_t nae_losses(nae_core* core, const nae_rows* rows, const int64_t* order, int64_t n, const void* scores,
                           void* losses);
// Measures the additivity of the members' mean on n rows, by the weights that are kept.
NAE_API int32_t nae_additivity(nae_core* core, const nae_rows* rows, const int64_t* order, int64_t n,
                               int32_t is_filled, double* additivity);
