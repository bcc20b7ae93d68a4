// The structs that pass between the threads' side (core.h) and the kernels, which are compiled once for each
// instruction set. They hold plain numbers and pointers only: no code of theirs could be linked from the wrong set.
#pragma once
#include <cstdint>

#include "abi.h"

namespace nae {

constexpr int kBlockRows = 32;  // rows of a block: what a thread takes at once, and the order sums are made in
constexpr int kUnitBytes = 32;  // rows of matrices are padded to whole units, with zeros

template <class T>
constexpr int kUnit = kUnitBytes / sizeof(T);

template <class T>
constexpr int padded(int n) {
  return (n + kUnit<T> - 1) / kUnit<T> * kUnit<T>;
}

struct Sizes {
  int members, features, outputs, experts, active, hidden, blocks, inputs;
  int terms;                       // gate terms of a feature
  int gate, routing, loss;
  int hidden_pad, experts_pad, terms_pad;
  int values;                      // expert values of a slot: outputs * experts_pad
  int logits;                      // of a row: features * experts_pad
  int slots;                       // of all features, with one untrained slot each
  int most_slots, most_columns;    // of a feature
};

// Where the parameters of a feature are, counted from the feature's first one: the blocks, each with its weights (in,
// hidden), bias, scale and shift; then the experts' weights (hidden, values) and bias; then the gate's (hidden, terms).
struct FeatureLayout {
  int n_columns;     // inputs of the first block: those that the feature uses
  int64_t expert_weight, expert_bias, gate_weight, size;
};

inline int64_t block_at(const Sizes& size, const FeatureLayout& layout, int block) {
  const int64_t width = size.hidden_pad;
  return block == 0 ? 0 : (layout.n_columns + 3 + int64_t(block - 1) * (size.hidden + 3)) * width;
}

inline int64_t block_bias_at(const Sizes& size, const FeatureLayout& layout, int block) {
  return block_at(size, layout, block) + int64_t(block == 0 ? layout.n_columns : size.hidden) * size.hidden_pad;
}

// What the experts and gate terms of a feature are made to be (forms.h).
struct Form {
  int n_ordered, rise, bend;
  bool is_single, is_sorted, leads, has_cap;
  bool has_shape() const { return n_ordered > 1 && (rise != 0 || bend != 0); }
};

// Steps of a curve that share a slope, while it is bent.
struct Pool {
  double product, square;  // sums of step times width, and of width squared
  int count;
};

template <class T>
struct Model {
  Sizes size;
  const int* first_slot;        // (F + 1,)
  const int* n_slots;           // (F,), without the untrained slot
  // Inputs as differences (first_layer.h).
  const int* entry_start;       // (slots + 1,)
  const int* entry_column;
  const T* entry_value;
  const uint8_t* is_fresh;      // (slots,)
  const T* variation_share;     // (slots,)
  const T* fill_share;          // (slots,)
  const T* live;                // (F,)
  const T* start;               // (M, slots, O), or null
  const T* start_offset;        // (M, O), or null
  const int* own_fold;          // (M,)
  const T* left;                // (slots,), of the residual of a slot; or null
  const T* roughness;           // (slots,), the residual's weight; or null
  const Form* form;             // (F,), or null; then the following are not read
  const double* place;          // (slots,)
  const T* cap;                 // (F, O)
  const uint8_t* allows;        // (M, F, F), or null
  bool sorts_outputs;
  int n_leading;                // with a matrix: terms that features that lead feed
  T sharpness;
  const T* loss_option;         // (O,), quantile, power or delta
  const T* hidden_mask;         // (hidden_pad,), one where there is a hidden unit
  const T* expert_mask;         // (experts_pad,)
  const FeatureLayout* layout;  // (F,)
  const int64_t* feature_at;    // (F,), where parameters of a feature begin
  int64_t gate_bias_at, mix_at, mix_bias_at, intercept_at, n_parameters;
  int n_rest;                   // items of the parameters that belong to no feature
  bool has_gate, is_summed, is_mixed, is_deep;  // experts > 1; features are added up; a linear map follows; after a ReLU
  int n_kept;       // of 256 expert weights
  T kept_factor;
  bool is_thinned;  // some expert weights are dropped
  T temperature;    // of Gumbel noise
  T variation, output, context, weight_decay;
  bool has_dial, has_context;
};

template <class T>
struct Member {
  int number;
  T *weights, *first, *second, *mean, *gradients;  // (n_parameters,); mean and gradients may be null
};

template <class T>
struct Rows {
  const int* slot;
  const T* fraction;
  const T* target;
  const int* label;
  const T* weight;
  const T* base;
  const int* fold;
};

// A step of AdamW. In place of a step, gradients are kept if `is_dry`.
struct Move {
  double rate, weight_decay, first_correction, second_correction, mean_share;
  bool is_dry;
};

// All that is computed on the way from the rows of a batch to gradients. B is the number of rows.
template <class T>
struct Workspace {
  // On slots.
  T* normal;        // (blocks, slots, hidden_pad)
  T* deviation;     // (blocks, slots), one over the standard deviation of a slot's units
  T* experts;       // (slots, values)
  T* terms;         // (slots, terms_pad)
  T* raw_experts;   // (slots, values), of features that bend; of those that rise, slopes of steps
  T* raw_terms;     // (slots, terms_pad), of features that lead: slopes of steps
  int16_t* source;  // (slots, values), where sorted experts came from
  T* mixed;         // (slots, O), experts with the mean routing; then the gradient of these
  T* mix;           // (terms, logits), the map where its rows have a form; else null
  T* mix_turned;    // (logits, terms_pad), of a gate with a linear map
  // On rows.
  int* slot;        // (F, B)
  T* fraction;      // (F, B)
  T* weight;        // (B,)
  T* base;          // (B, O)
  T* target;        // (B, O)
  int* label;       // (B,)
  uint8_t* is_out;  // (B,)
  T* sum;           // (B, terms_pad), of a gate with a linear map: what goes into the map
  T* sum_slope;     // (B, terms_pad), its gradient
  T* routing;       // (B, logits), then with dropout
  T* kept;          // (B, logits), zero where a weight is dropped, else the factor; null without dropout
  T* slope;         // (B, logits), gradient of the logits
  T* score;         // (B, O)
  T* contribution;  // (F, B, O), then its gradient
  T* context;       // (F, B, O), contribution minus own effect; then the penalty's gradient
  // Sums over rows, block by block.
  T* block_routing;      // (blocks of rows, logits)
  double* block_loss;    // (blocks of rows,)
  T* block_intercept;    // (blocks of rows, O)
  T* mean_routing;       // (logits,)
  T* mean_slope;         // (logits,), gradient of the mean routing
  T* spread;             // (F, O), variances of the contributions
  T* of_output;          // (F, O), a number of every output while it is needed
};

// What one thread needs for itself.
template <class T>
struct Scratch {
  T *hidden, *slope, *other;   // (most_slots, hidden_pad)
  T *d_terms, *d_experts;      // (most_slots, terms_pad), (most_slots, values)
  T *values;                   // (values,) of a slot
  T *turned;                   // weights with rows and columns exchanged
  T *gradients;                // of the parameters of one item
  T *row;                      // (max(features, 2 * outputs),) numbers of a row
  int16_t *order;              // (outputs,)
  int *row_slots;              // (2 * features,)
  T *noise;                    // (logits,) of a row
  T *active;                   // (experts_pad,) of a feature
  T *used;                     // (logits,) of a row
  Pool *pools;                 // (most_slots,)
};

template <class T>
struct Batch {
  const Rows<T>* rows;
  const int64_t* order;
  int size;
  int n_blocks;
  uint64_t noise, dropout;  // where the counters of Gumbel noise and of dropout begin
  bool is_training;         // random numbers are drawn in training alone
};

// The functions of one instruction set. An item is a feature, a block of rows, or a part of the other parameters.
template <class T>
struct Kernels {
  void (*gather)(const Model<T>&, const Batch<T>&, int member, Workspace<T>&, int block);
  void (*evaluate_slots)(const Model<T>&, int member, const T* weights, Workspace<T>&, Scratch<T>&, int feature);
  void (*fill_untrained)(const Model<T>&, Workspace<T>&, int feature);
  void (*turn_mix)(const Model<T>&, const T* weights, Workspace<T>&, int part);
  void (*mix_rows)(const Model<T>&, const Batch<T>&, int member, const T* weights, Workspace<T>&, Scratch<T>&, int block);
  void (*average_routing)(const Model<T>&, const Batch<T>&, Workspace<T>&, int feature);
  void (*compare_own)(const Model<T>&, const Batch<T>&, Workspace<T>&, int feature);
  void (*penalise_context)(const Model<T>&, const Batch<T>&, Workspace<T>&, T strength, bool is_relative, int feature);
  void (*back_rows)(const Model<T>&, const Batch<T>&, Workspace<T>&, Scratch<T>&, int block);
  void (*back_feature)(const Model<T>&, const Batch<T>&, Member<T>&, Workspace<T>&, Scratch<T>&, const Move&, int feature);
  void (*back_rest)(const Model<T>&, const Batch<T>&, Member<T>&, Workspace<T>&, Scratch<T>&, const Move&, int item);
  T (*loss_of_row)(const Model<T>&, const T* score, const T* target, int label, T* slope);
};

// Columns of the linear map of a gate in one item: whole features.
inline int mix_columns(const Sizes& size) {
  constexpr int kColumns = 128;
  return size.experts_pad > kColumns ? size.experts_pad : kColumns / size.experts_pad * size.experts_pad;
}

inline int count_mix_parts(const Sizes& size) { return (size.logits + mix_columns(size) - 1) / mix_columns(size); }

}  // namespace nae
