// A step of a member, as stages of items that depend on each other in no way: what an item computes does not depend on
// who computes it, and sums over blocks of rows are made in the order of the blocks. So any number of threads finds the
// same bits.
//
//     slots     every feature's network on its slots; parts of the gate's map with rows and columns exchanged
//     rows      a block of rows: scores and contributions, and back to logits if nothing has to be known of all rows
//     effects   with a context penalty, a feature's contributions against its own effect
//     penalty   its gradients; the dial steers its weight between these two stages
//     back      with a context penalty, a block of rows: back to logits
//     update    a feature's gradients and parameters; those of the gate's map, of the biases; the loss
#pragma once
#include <cmath>

#include "dial.h"
#include "model.h"

namespace nae {

enum Stage { kSlots, kRows, kEffects, kPenalty, kBack, kUpdate };
constexpr Stage kForward[] = {kSlots, kRows, kEffects}, kBackward[] = {kPenalty, kBack, kUpdate};

template <class T>
struct Step {
  const Model<T>& model;
  const Kernels<T>& kernels;
  const Batch<T> batch;
  const Move move;
  const DialState& dial;

  int n_mix_parts() const { return model.n_rest - 1; }

  int n_items(Stage stage) const {
    const int n_features = model.size.features;
    switch (stage) {
      case kSlots:
        return n_features + n_mix_parts();
      case kRows:
        return batch.n_blocks;
      case kEffects:
      case kPenalty:
        return model.has_context ? n_features : 0;
      case kBack:
        return model.has_context ? batch.n_blocks : 0;
      default:
        return n_features + model.n_rest + 1;
    }
  }

  void work(Stage stage, int item, Member<T>& member, Workspace<T>& ws, Scratch<T>& scratch, double* loss) const {
    switch (stage) {
      case kSlots:
        return work_on_slots(item, member, ws, scratch);
      case kRows:
        kernels.gather(model, batch, member.number, ws, item);
        kernels.mix_rows(model, batch, member.number, member.weights, ws, scratch, item);
        if (!model.has_context) kernels.back_rows(model, batch, ws, scratch, item);
        return;
      case kEffects:
        kernels.average_routing(model, batch, ws, item);
        return kernels.compare_own(model, batch, ws, item);
      case kPenalty: {
        const T strength = model.has_dial ? T(std::exp(dial.log_gamma)) : model.context;
        return kernels.penalise_context(model, batch, ws, strength, model.has_dial, item);
      }
      case kBack:
        return kernels.back_rows(model, batch, ws, scratch, item);
      case kUpdate:
        return update(item, member, ws, scratch, loss);
    }
  }

 private:
  void work_on_slots(int item, const Member<T>& member, Workspace<T>& ws, Scratch<T>& scratch) const {
    const int n_features = model.size.features;
    if (item < n_features) return kernels.evaluate_slots(model, member.number, member.weights, ws, scratch, item);
    kernels.turn_mix(model, member.weights, ws, item - n_features);
  }

  void update(int item, Member<T>& member, Workspace<T>& ws, Scratch<T>& scratch, double* loss) const {
    const int n_features = model.size.features;
    if (item < n_features) return kernels.back_feature(model, batch, member, ws, scratch, move, item);
    if (item < n_features + model.n_rest)
      return kernels.back_rest(model, batch, member, ws, scratch, move, item - n_features);
    double total = 0;
    for (int block = 0; block < batch.n_blocks; ++block) total += ws.block_loss[block];
    *loss = total;
  }
};

}  // namespace nae
