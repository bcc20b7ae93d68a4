// All kernels of one instruction set. This file is compiled once for each, with NAE_SET as the name of its namespace,
// so that the linker never takes a function of one set for that of another.
#include "mixing.h"
#include "penalties.h"
#include "slots.h"

namespace nae::NAE_SET {

template <class T>
void back_feature(const Model<T>& model, const Batch<T>& batch, Member<T>& member, Workspace<T>& ws,
                  Scratch<T>& scratch, const Move& move, int feature) {
  if (model.has_gate) scatter_terms(model, batch, ws, scratch, feature);
  scatter_experts(model, batch, ws, scratch, feature);
  penalise_slots(model, ws, scratch.d_experts, feature);
  if (model.roughness) smooth_slots(model, ws, scratch, feature);
  if (model.form) back_shape(model, member.number, ws, scratch, feature);
  back_slots(model, member, ws, scratch, move, feature);
}

// The gate's bias and the intercept.
template <class T>
void back_biases(const Model<T>& model, const Batch<T>& batch, Member<T>& member, Workspace<T>& ws,
                 Scratch<T>& scratch, const Move& move) {
  const int n_outputs = padded<T>(model.size.outputs);
  find_offset(model, member.number, member.weights, scratch.row, scratch.order);
  for (int o = 0; o < n_outputs; ++o) scratch.gradients[o] = 0;
  for (int block = 0; block < batch.n_blocks; ++block)
    for (int o = 0; o < model.size.outputs; ++o)
      scratch.gradients[scratch.order[o]] += ws.block_intercept[int64_t(block) * model.size.outputs + o];
  move_parameters(member, move, model.intercept_at, n_outputs, scratch.gradients);
  if (!model.has_gate) return;
  const int width = model.is_mixed ? model.size.terms_pad : model.size.logits;
  sum_rows(batch.size, width, model.is_mixed ? ws.sum_slope : ws.slope, width, scratch.gradients);
  move_parameters(member, move, model.gate_bias_at, width, scratch.gradients);
}

// Some columns of the linear map of a gate, logits = s M + m: dM = s' dl, and dm adds the rows of dl up.
template <class T>
void back_mix(const Model<T>& model, const Batch<T>& batch, Member<T>& member, Workspace<T>& ws, Scratch<T>& scratch,
              const Move& move, int part) {
  const int logits = model.size.logits, columns = mix_columns(model.size), from = part * columns;
  const int n = from + columns < logits ? columns : logits - from;
  const T* slope = ws.slope + from;
  multiply<Begin::kZero>(model.size.terms, n, batch.size, Left<T>{ws.sum, 1, model.size.terms_pad}, slope, logits,
                         scratch.gradients, n);
  if (ws.mix) back_shape_mix(model, member.weights + model.mix_at, scratch.gradients, from, n);
  for (int i = 0; i < model.size.terms; ++i)
    move_parameters(member, move, model.mix_at + int64_t(i) * logits + from, n, scratch.gradients + int64_t(i) * n);
  sum_rows(batch.size, n, slope, logits, scratch.gradients);
  move_parameters(member, move, model.mix_bias_at + from, n, scratch.gradients);
}

template <class T>
void back_rest(const Model<T>& model, const Batch<T>& batch, Member<T>& member, Workspace<T>& ws, Scratch<T>& scratch,
               const Move& move, int item) {
  if (item == 0)
    back_biases(model, batch, member, ws, scratch, move);
  else
    back_mix(model, batch, member, ws, scratch, move, item - 1);
}

template <class T>
constexpr Kernels<T> kTable{gather<T>,          evaluate_slots<T>,   fill_untrained<T>, turn_mix<T>,
                            mix_rows<T>,        average_routing<T>,  compare_own<T>,    penalise_context<T>,
                            back_rows<T>,       back_feature<T>,     back_rest<T>,      loss_of_row<T>};

const Kernels<float>& kernels(float) { return kTable<float>; }
const Kernels<double>& kernels(double) { return kTable<double>; }

}  // namespace nae::NAE_SET
