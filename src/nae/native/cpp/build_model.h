// From a configuration and plain arrays to the model that kernels read.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "memory.h"
#include "model.h"

namespace nae {

inline Sizes sizes_of(const nae_config& config, const nae_inputs& inputs, bool is_double) {
  Sizes size{};
  const auto pad = [&](int n) { return is_double ? padded<double>(n) : padded<float>(n); };
  size.members = config.n_members;
  size.features = config.n_features;
  size.outputs = config.n_outputs;
  size.experts = config.n_experts;
  size.active = config.n_active;
  size.hidden = config.hidden;
  size.blocks = config.n_blocks;
  size.gate = config.gate;
  size.routing = config.routing;
  size.loss = config.loss;
  size.hidden_pad = pad(size.hidden);
  size.experts_pad = pad(size.experts);
  size.values = size.outputs * size.experts_pad;
  size.logits = size.features * size.experts_pad;
  const bool is_mixed = size.gate == NAE_LOW_RANK || size.gate == NAE_DEEP;
  size.terms = is_mixed ? config.n_terms : size.gate == NAE_DIAGONAL ? size.experts_pad : size.logits;
  size.terms_pad = pad(size.terms);
  for (int f = 0; f < size.features; ++f) {
    size.slots += inputs.n_slots[f] + 1;
    size.most_slots = std::max(size.most_slots, inputs.n_slots[f] + 1);
  }
  return size;
}

// The inputs of one feature as differences (first_layer.h), and which inputs it uses.
template <class T>
struct Differences {
  std::vector<int> used, start{0}, column;
  std::vector<T> value;
  std::vector<uint8_t> is_fresh;

  void add_feature(const double* values, int n_slots, int n_inputs) {
    used.clear();
    for (int j = 0; j < n_inputs; ++j) {
      bool is_used = false;
      for (int s = 0; s < n_slots; ++s) is_used = is_used || values[int64_t(s) * n_inputs + j] != 0;
      if (is_used) used.push_back(j);
    }
    const auto at = [&](int s, size_t i) { return values[int64_t(s) * n_inputs + used[i]]; };
    for (int s = 0; s < n_slots; ++s) {
      int n_own = 0, n_apart = 0;
      for (size_t i = 0; i < used.size(); ++i) {
        n_own += at(s, i) != 0;
        n_apart += s > 0 && at(s, i) != at(s - 1, i);
      }
      const bool fresh = s == 0 || n_own <= n_apart;
      for (size_t i = 0; i < used.size(); ++i) {
        const double apart = fresh ? at(s, i) : at(s, i) - at(s - 1, i);
        if (apart == 0) continue;
        column.push_back(int(i));
        value.push_back(T(apart));
      }
      start.push_back(int(column.size()));
      is_fresh.push_back(fresh);
    }
    start.push_back(int(column.size()));  // the untrained slot has none
    is_fresh.push_back(1);
  }
};

template <class T, class From>
T* copied(Memory& memory, const std::vector<From>& from) {
  T* found = memory.take<T>(int64_t(from.size()));
  std::copy(from.begin(), from.end(), found);
  return found;
}

template <class T>
T* ones(Memory& memory, int n, int n_padded) {
  T* found = memory.take<T>(n_padded);
  std::fill(found, found + n, T(1));
  return found;
}

template <class T>
void lay_out_parameters(Model<T>& model, Memory& memory, const std::vector<int>& n_columns) {
  const Sizes& size = model.size;
  FeatureLayout* layouts = memory.take<FeatureLayout>(size.features);
  int64_t* feature_at = memory.take<int64_t>(size.features);
  int64_t at = 0;
  for (int f = 0; f < size.features; ++f) {
    FeatureLayout& layout = layouts[f];
    layout.n_columns = n_columns[f];
    layout.expert_weight = block_at(size, layout, size.blocks);
    layout.expert_bias = layout.expert_weight + int64_t(size.hidden) * size.values;
    layout.gate_weight = layout.expert_bias + size.values;
    layout.size = layout.gate_weight + (model.has_gate ? int64_t(size.hidden) * size.terms_pad : 0);
    feature_at[f] = at;
    at += layout.size;
  }
  const auto next = [&](int64_t n) {
    const int64_t here = at;
    at += n;
    return here;
  };
  model.gate_bias_at = next(model.is_mixed ? size.terms_pad : size.logits);
  model.mix_at = next(model.is_mixed ? int64_t(size.terms) * size.logits : 0);
  model.mix_bias_at = next(model.is_mixed ? size.logits : 0);
  model.intercept_at = next(padded<T>(size.outputs));
  model.n_parameters = at;
  model.layout = layouts;
  model.feature_at = feature_at;
  model.n_rest = 1 + (model.has_gate && model.is_mixed ? count_mix_parts(size) : 0);
}

template <class T>
void copy_slots(Model<T>& model, Memory& memory, const nae_inputs& inputs, std::vector<std::vector<int>>& used) {
  Sizes& size = model.size;
  std::vector<int> first{0};
  Differences<T> found;
  T* left = inputs.roughness ? memory.take<T>(size.slots) : nullptr;
  T* roughness = inputs.roughness ? memory.take<T>(size.slots) : nullptr;
  T* variation = memory.take<T>(size.slots);
  T* fill = memory.take<T>(size.slots);
  T* start = inputs.start ? memory.take<T>(int64_t(size.members) * size.slots * size.outputs) : nullptr;
  int real = 0;  // number of the slot among those that are given
  std::vector<int> n_columns;
  for (int f = 0; f < size.features; ++f) {
    const int n = inputs.n_slots[f], at = first.back();
    found.add_feature(inputs.values + int64_t(real) * size.inputs, n, size.inputs);
    used.push_back(found.used);
    n_columns.push_back(int(found.used.size()));
    size.most_columns = std::max(size.most_columns, n_columns.back());
    double total = 0;
    for (int s = 0; s < n; ++s) total += inputs.slot_weight[real + s];
    for (int s = 0; s < n; ++s) {
      variation[at + s] = T(inputs.slot_weight[real + s] / inputs.variation_slots);
      fill[at + s] = T(total > 0 ? inputs.slot_weight[real + s] / total : 0);
      if (roughness) left[at + s] = T(inputs.left[real + s]), roughness[at + s] = T(inputs.roughness[real + s]);
      if (!start) continue;
      for (int o = 0; o < size.outputs; ++o)
        for (int m = 0; m < size.members; ++m)
          start[(int64_t(m) * size.slots + at + s) * size.outputs + o] =
              T(inputs.start[(int64_t(real + s) * size.outputs + o) * size.members + m]);
    }
    real += n;
    first.push_back(at + n + 1);
  }
  model.first_slot = copied<int>(memory, first);
  model.entry_start = copied<int>(memory, found.start);
  model.entry_column = copied<int>(memory, found.column);
  model.entry_value = copied<T>(memory, found.value);
  model.is_fresh = copied<uint8_t>(memory, found.is_fresh);
  model.variation_share = variation;
  model.fill_share = fill;
  model.start = start;
  model.left = left;
  model.roughness = roughness;
  lay_out_parameters(model, memory, n_columns);
}

template <class T>
void copy_forms(Model<T>& model, Memory& memory, const nae_forms& forms) {
  const Sizes& size = model.size;
  Form* form = memory.take<Form>(size.features);
  double* place = memory.take<double>(size.slots);
  T* cap = memory.take<T>(int64_t(size.features) * size.outputs);
  const double* places = forms.places;
  for (int f = 0; f < size.features; ++f) {
    const double* caps = forms.caps + int64_t(f) * size.outputs;
    const bool has_cap = std::all_of(caps, caps + size.outputs, [](double one) { return std::isfinite(one); });
    form[f] = {std::min(forms.n_ordered[f], model.n_slots[f]), forms.rises[f],        forms.bends[f],
               forms.is_single[f] != 0,                        forms.is_sorted[f] != 0, forms.leads[f] != 0,
               has_cap};
    for (int o = 0; o < size.outputs; ++o) cap[f * size.outputs + o] = T(caps[o]);
    for (int s = 0; s < model.n_slots[f]; ++s) place[model.first_slot[f] + s] = *places++;
  }
  const int64_t n_pairs = int64_t(size.members) * size.features * size.features;
  if (forms.allows) model.allows = copied<uint8_t>(memory, std::vector<uint8_t>(forms.allows, forms.allows + n_pairs));
  model.form = form;
  model.place = place;
  model.cap = cap;
  model.n_leading = model.is_mixed ? forms.n_leading : 0;
  model.sorts_outputs = forms.sorts_outputs != 0;
  model.sharpness = T(forms.sharpness);
}

template <class T>
Model<T> build_model(const nae_config& config, const nae_inputs& inputs, Memory& memory,
                     std::vector<std::vector<int>>& used) {
  Model<T> model{};
  Sizes& size = model.size;
  size = sizes_of(config, inputs, sizeof(T) == 8);
  size.inputs = config.n_inputs;
  model.has_gate = size.experts > 1;
  model.is_mixed = model.has_gate && (size.gate == NAE_LOW_RANK || size.gate == NAE_DEEP);
  model.is_deep = size.gate == NAE_DEEP;
  model.is_summed = size.gate != NAE_DIAGONAL;
  model.n_kept = config.n_kept;
  model.kept_factor = T(256.0 / config.n_kept);
  model.is_thinned = config.n_kept < 256;
  model.temperature = T(config.temperature);
  model.variation = T(config.variation);
  model.output = T(config.output);
  model.context = T(config.context);
  model.weight_decay = T(config.weight_decay);
  model.has_dial = config.has_dial != 0;
  model.has_context = model.has_gate && (model.has_dial || config.context != 0);
  model.hidden_mask = ones<T>(memory, size.hidden, size.hidden_pad);
  model.expert_mask = ones<T>(memory, size.experts, size.experts_pad);
  model.n_slots = copied<int>(memory, std::vector<int>(inputs.n_slots, inputs.n_slots + size.features));
  model.own_fold = copied<int>(memory, std::vector<int>(inputs.own_fold, inputs.own_fold + size.members));
  model.loss_option = copied<T>(memory, std::vector<double>(inputs.loss_option, inputs.loss_option + size.outputs));
  model.live = copied<T>(memory, std::vector<uint8_t>(inputs.is_live, inputs.is_live + size.features));
  if (inputs.start_offset) {
    T* offset = memory.take<T>(int64_t(size.members) * size.outputs);
    for (int m = 0; m < size.members; ++m)
      for (int o = 0; o < size.outputs; ++o)
        offset[int64_t(m) * size.outputs + o] = T(inputs.start_offset[int64_t(o) * size.members + m]);
    model.start_offset = offset;
  }
  copy_slots(model, memory, inputs, used);
  if (inputs.forms) copy_forms(model, memory, *inputs.forms);
  return model;
}

}  // namespace nae
