// The network of one feature, on all of its slots: blocks, then experts and gate terms; and the way back.
//
// With h the units of the last block, experts E = h A + a and terms T = h G. Backwards, dA = h' dE, da = the sum of
// dE's rows, dG = h' dT, dh = dE A' + dT G'; through a block, z = y W + w with y the units before, so dW = y' dz and
// dy = dz W' (the norm is norm.h, the first block first_layer.h).
#pragma once
#include "adam.h"
#include "first_layer.h"
#include "forms.h"
#include "matmul.h"
#include "norm.h"

namespace nae::NAE_SET {

template <class T>
T* normal_of(const Model<T>& model, const Workspace<T>& ws, int block, int first) {
  return ws.normal + (int64_t(block) * model.size.slots + first) * model.size.hidden_pad;
}

template <class T>
T* deviation_of(const Model<T>& model, const Workspace<T>& ws, int block, int first) {
  return ws.deviation + int64_t(block) * model.size.slots + first;
}

// What is the same for all experts of a slot: nothing for a feature that never varies, and the start.
template <class T>
void finish_experts(const Model<T>& model, int member, Workspace<T>& ws, int feature) {
  const Sizes& size = model.size;
  const int first = model.first_slot[feature], n = model.n_slots[feature];
  const T live = model.live[feature];
  if (live == 1 && !model.start) return;
  for (int s = first; s < first + n; ++s)
    for (int o = 0; o < size.outputs; ++o) {
      T* own = ws.experts + int64_t(s) * size.values + o * size.experts_pad;
      const T start = model.start ? model.start[(int64_t(member) * size.slots + s) * size.outputs + o] : T(0);
      for (int k = 0; k < size.experts; ++k) own[k] = own[k] * live + start;
    }
}

template <class T>
void evaluate_slots(const Model<T>& model, int member, const T* weights, Workspace<T>& ws, Scratch<T>& scratch,
                    int feature) {
  const Sizes& size = model.size;
  const FeatureLayout& layout = model.layout[feature];
  const T* own = weights + model.feature_at[feature];
  const int first = model.first_slot[feature], n = model.n_slots[feature], width = size.hidden_pad;
  const T* bias = own + block_bias_at(size, layout, 0);
  for (int s = 0; s < n; ++s) {
    T* z = scratch.other + int64_t(s) * width;
    __builtin_memcpy(z, model.is_fresh[first + s] ? bias : z - width, width * sizeof(T));
    add_entries(model, first + s, own, z);
  }
  norm_rows(model, n, scratch.other, bias + width, bias + 2 * width, normal_of(model, ws, 0, first),
            deviation_of(model, ws, 0, first), scratch.hidden);
  const Left<T> hidden{scratch.hidden, width, 1};
  for (int block = 1; block < size.blocks; ++block) {
    bias = own + block_bias_at(size, layout, block);
    multiply<Begin::kBias>(n, width, size.hidden, hidden, own + block_at(size, layout, block), width, scratch.other,
                           width, bias);
    norm_rows(model, n, scratch.other, bias + width, bias + 2 * width, normal_of(model, ws, block, first),
              deviation_of(model, ws, block, first), scratch.hidden);
  }
  multiply<Begin::kBias>(n, size.values, size.hidden, hidden, own + layout.expert_weight, size.values,
                         ws.experts + int64_t(first) * size.values, size.values, own + layout.expert_bias);
  finish_experts(model, member, ws, feature);
  if (model.has_gate)
    multiply<Begin::kZero>(n, size.terms_pad, size.hidden, hidden, own + layout.gate_weight, size.terms_pad,
                           ws.terms + int64_t(first) * size.terms_pad, size.terms_pad);
  if (model.form) shape_slots(model, member, ws, scratch, feature);
}

// The untrained slot of a feature holds the mean over the training rows.
template <class T>
void fill_untrained(const Model<T>& model, Workspace<T>& ws, int feature) {
  const auto fill = [&](T* table, int width) {
    const int first = model.first_slot[feature], last = first + model.n_slots[feature];
    T* to = table + int64_t(last) * width;
    for (int i = 0; i < width; ++i) to[i] = 0;
    for (int s = first; s < last; ++s)
      for (int i = 0; i < width; ++i) to[i] += model.fill_share[s] * table[int64_t(s) * width + i];
  };
  fill(ws.experts, model.size.values);
  if (model.has_gate) fill(ws.terms, model.size.terms_pad);
}

// From gradients of experts and terms (in scratch) to those of the feature's parameters, and a step.
template <class T>
void back_slots(const Model<T>& model, Member<T>& member, Workspace<T>& ws, Scratch<T>& scratch, const Move& move,
                int feature) {
  const Sizes& size = model.size;
  const FeatureLayout& layout = model.layout[feature];
  const T* own = member.weights + model.feature_at[feature];
  T* found = scratch.gradients;
  const int first = model.first_slot[feature], n = model.n_slots[feature], width = size.hidden_pad;
  const Left<T> turned_hidden{scratch.hidden, 1, width};
  int block = size.blocks - 1;
  T *slope = scratch.slope, *other = scratch.other;
  const T* bias = own + block_bias_at(size, layout, block);
  outputs_again(model, n, normal_of(model, ws, block, first), bias + width, bias + 2 * width, scratch.hidden);
  multiply<Begin::kZero>(size.hidden, size.values, n, turned_hidden, scratch.d_experts, size.values,
                         found + layout.expert_weight, size.values);
  sum_rows(n, size.values, scratch.d_experts, size.values, found + layout.expert_bias);
  turn(size.hidden, size.values, own + layout.expert_weight, size.values, scratch.turned, width);
  multiply<Begin::kZero>(n, width, size.values, Left<T>{scratch.d_experts, size.values, 1}, scratch.turned, width,
                         slope, width);
  if (model.has_gate) {
    multiply<Begin::kZero>(size.hidden, size.terms_pad, n, turned_hidden, scratch.d_terms, size.terms_pad,
                           found + layout.gate_weight, size.terms_pad);
    turn(size.hidden, size.terms_pad, own + layout.gate_weight, size.terms_pad, scratch.turned, width);
    multiply<Begin::kSum>(n, width, size.terms_pad, Left<T>{scratch.d_terms, size.terms_pad, 1}, scratch.turned,
                          width, slope, width);
  }
  for (;; --block) {
    bias = own + block_bias_at(size, layout, block);
    back_norm(model, n, bias + width, bias + 2 * width, normal_of(model, ws, block, first),
              deviation_of(model, ws, block, first), slope, found + block_bias_at(size, layout, block));
    if (block == 0) break;
    const T* before = own + block_bias_at(size, layout, block - 1);
    outputs_again(model, n, normal_of(model, ws, block - 1, first), before + width, before + 2 * width,
                  scratch.hidden);
    const int64_t at = block_at(size, layout, block);
    multiply<Begin::kZero>(size.hidden, width, n, turned_hidden, slope, width, found + at, width);
    turn(size.hidden, width, own + at, width, scratch.turned, width);
    multiply<Begin::kZero>(n, width, size.hidden, Left<T>{slope, width, 1}, scratch.turned, width, other, width);
    T* done = slope;
    slope = other;
    other = done;
  }
  back_first_layer(model, first, n, layout.n_columns, slope, found);
  move_parameters(member, move, model.feature_at[feature], layout.size, found);
}

}  // namespace nae::NAE_SET
