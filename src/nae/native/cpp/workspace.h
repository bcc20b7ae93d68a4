// Room for what is computed on slots and rows. It is taken once and never grows: that of slots has the size of the
// tables of one member, that of rows the size of a batch, or of one block where rows are only scored.
#pragma once
#include <algorithm>

#include "memory.h"
#include "model.h"

namespace nae {

inline int64_t count_blocks(int64_t n_rows) { return (n_rows + kBlockRows - 1) / kBlockRows; }

template <class T>
void take_slots(const Model<T>& model, Memory& memory, Workspace<T>& ws) {
  const Sizes& size = model.size;
  const int64_t n_slots = size.slots, n_pairs = int64_t(size.features) * size.outputs;
  ws.normal = memory.take<T>(size.blocks * n_slots * size.hidden_pad);
  ws.deviation = memory.take<T>(size.blocks * n_slots);
  ws.experts = memory.take<T>(n_slots * size.values);
  ws.terms = memory.take<T>(model.has_gate ? n_slots * size.terms_pad : 0);
  if (model.form) {
    ws.raw_experts = memory.take<T>(n_slots * size.values);
    ws.raw_terms = memory.take<T>(model.has_gate ? n_slots * size.terms_pad : 0);
    ws.source = memory.take<int16_t>(n_slots * size.values);
  }
  ws.mixed = memory.take<T>(model.has_context ? n_slots * size.outputs : 0);
  ws.mix = model.n_leading ? memory.take<T>(int64_t(size.terms) * size.logits) : nullptr;
  ws.mix_turned = memory.take<T>(model.is_mixed ? int64_t(size.terms_pad) * size.logits : 0);
  ws.mean_routing = memory.take<T>(size.logits);
  ws.mean_slope = memory.take<T>(size.logits);
  ws.of_output = memory.take<T>(n_pairs);
  ws.spread = memory.take<T>(n_pairs);
}

template <class T>
void take_rows(const Model<T>& model, int64_t n_rows, Memory& memory, Workspace<T>& ws) {
  const Sizes& size = model.size;
  const int64_t n_blocks = count_blocks(n_rows), n_pairs = int64_t(size.features) * size.outputs;
  const int64_t n_logits = model.has_gate ? size.logits : 0, n_sums = model.is_mixed ? size.terms_pad : 0;
  ws.slot = memory.take<int>(size.features * n_rows);
  ws.fraction = memory.take<T>(size.features * n_rows);
  ws.weight = memory.take<T>(n_rows);
  ws.base = memory.take<T>(n_rows * size.outputs);
  ws.target = memory.take<T>(n_rows * size.outputs);
  ws.label = memory.take<int>(n_rows);
  ws.is_out = memory.take<uint8_t>(n_rows);
  ws.sum = memory.take<T>(n_rows * n_sums);
  ws.sum_slope = memory.take<T>(n_rows * n_sums);
  ws.routing = memory.take<T>(n_rows * n_logits);
  ws.kept = model.is_thinned ? memory.take<T>(n_rows * size.logits) : nullptr;
  ws.slope = memory.take<T>(n_rows * n_logits);
  ws.score = memory.take<T>(n_rows * size.outputs);
  ws.contribution = memory.take<T>(n_rows * n_pairs);
  ws.context = memory.take<T>(model.has_context ? n_rows * n_pairs : 0);
  ws.block_routing = memory.take<T>(n_blocks * n_logits);
  ws.block_loss = memory.take<double>(n_blocks);
  ws.block_intercept = memory.take<T>(n_blocks * size.outputs);
}

template <class T>
Workspace<T> make_workspace(const Model<T>& model, int64_t n_rows, Memory& memory) {
  Workspace<T> ws{};
  take_slots(model, memory, ws);
  take_rows(model, n_rows, memory, ws);
  return ws;
}

template <class T>
Scratch<T> make_scratch(const Model<T>& model, Memory& memory) {
  const Sizes& size = model.size;
  int64_t most = model.is_mixed ? int64_t(size.terms) * mix_columns(size) : 0;
  for (int f = 0; f < size.features; ++f) most = std::max(most, model.layout[f].size);
  most = std::max<int64_t>({most, size.logits, size.terms_pad, padded<T>(size.outputs)});
  const int64_t widest = std::max({size.values, model.has_gate ? size.terms_pad : 0, size.hidden_pad});
  const int64_t n_slots = size.most_slots;
  Scratch<T> scratch{};
  scratch.hidden = memory.take<T>(n_slots * size.hidden_pad);
  scratch.slope = memory.take<T>(n_slots * size.hidden_pad);
  scratch.other = memory.take<T>(n_slots * size.hidden_pad);
  scratch.d_terms = memory.take<T>(model.has_gate ? n_slots * size.terms_pad : 0);
  scratch.d_experts = memory.take<T>(n_slots * size.values);
  scratch.values = memory.take<T>(size.values);
  scratch.turned = memory.take<T>(widest * size.hidden_pad);
  scratch.gradients = memory.take<T>(most);
  scratch.row = memory.take<T>(std::max(size.features, 2 * size.outputs));
  scratch.order = memory.take<int16_t>(size.outputs);
  scratch.row_slots = memory.take<int>(2 * int64_t(size.features));
  scratch.noise = memory.take<T>(size.routing == NAE_GUMBEL ? size.logits : 0);
  scratch.active = memory.take<T>(size.experts_pad);
  scratch.used = memory.take<T>(size.logits);
  scratch.pools = memory.take<Pool>(model.form ? n_slots : 0);
  return scratch;
}

// The slots of one workspace with the rows of another.
template <class T>
Workspace<T> with_rows(const Workspace<T>& slots, const Workspace<T>& rows) {
  Workspace<T> joined = rows;
  joined.normal = slots.normal;
  joined.deviation = slots.deviation;
  joined.experts = slots.experts;
  joined.terms = slots.terms;
  joined.raw_experts = slots.raw_experts;
  joined.raw_terms = slots.raw_terms;
  joined.source = slots.source;
  joined.mixed = slots.mixed;
  joined.mix = slots.mix;
  joined.mix_turned = slots.mix_turned;
  joined.mean_routing = slots.mean_routing;
  joined.mean_slope = slots.mean_slope;
  joined.of_output = slots.of_output;
  joined.spread = slots.spread;
  return joined;
}

}  // namespace nae
