// Between the parameters of a member, padded and feature after feature, and the tensors of a network.
#pragma once
#include <vector>

#include "model.h"

namespace nae {

// Calls visit(member, position among the member's parameters, position in the tensor) for every number of a tensor
// that is trained. Returns whether there is such a tensor.
template <class T, class Visit>
bool visit_tensor(const Model<T>& model, const std::vector<std::vector<int>>& used, int tensor, Visit visit) {
  const Sizes& size = model.size;
  const int64_t M = size.members, F = size.features, H = size.hidden, K = size.experts, O = size.outputs;
  const auto logit_at = [&](int64_t k, int64_t f) { return f * size.experts_pad + k; };
  const auto each = [](int64_t n, auto body) {
    for (int64_t i = 0; i < n; ++i) body(i);
  };
  const auto experts = [&](int64_t rows, auto at) {
    each(F, [&](int64_t f) {
      each(rows, [&](int64_t h) {
        each(K, [&](int64_t k) {
          each(O, [&](int64_t o) {
            each(M, [&](int64_t m) {
              visit(m, model.feature_at[f] + at(f) + h * size.values + o * size.experts_pad + k,
                    (((f * rows + h) * K + k) * O + o) * M + m);
            });
          });
        });
      });
    });
  };
  const auto logits = [&](int64_t begin, auto external) {
    each(K, [&](int64_t k) {
      each(F, [&](int64_t f) {
        each(M, [&](int64_t m) { visit(m, begin + logit_at(k, f), external(k * F + f, m)); });
      });
    });
  };
  if (tensor >= NAE_BLOCKS) {
    const int block = (tensor - NAE_BLOCKS) / 4, part = (tensor - NAE_BLOCKS) % 4;
    if (block >= size.blocks) return false;
    const int64_t in = block == 0 ? size.inputs : H;
    each(M, [&](int64_t m) {
      each(F, [&](int64_t f) {
        const int64_t first = model.feature_at[f];
        const FeatureLayout& layout = model.layout[f];
        each(H, [&](int64_t h) {
          if (part > 0) {
            const int64_t at = block_bias_at(size, layout, block) + (part - 1) * size.hidden_pad;
            visit(m, first + at + h, (m * F + f) * H + h);
          } else {
            each(block == 0 ? layout.n_columns : H, [&](int64_t i) {
              const int64_t column = block == 0 ? used[f][i] : i;
              visit(m, first + block_at(size, layout, block) + i * size.hidden_pad + h, ((m * F + f) * in + column) * H + h);
            });
          }
        });
      });
    });
    return true;
  }
  switch (tensor) {
    case NAE_EXPERT_WEIGHT:
      experts(H, [&](int64_t f) { return model.layout[f].expert_weight; });
      return true;
    case NAE_EXPERT_BIAS:
      experts(1, [&](int64_t f) { return model.layout[f].expert_bias; });
      return true;
    case NAE_INTERCEPT:
      each(O, [&](int64_t o) { each(M, [&](int64_t m) { visit(m, model.intercept_at + o, o * M + m); }); });
      return true;
    case NAE_GATE_WEIGHT: {
      if (!model.has_gate) return false;
      const bool is_own = !model.is_summed;
      const int64_t W = model.is_mixed ? size.terms : is_own ? K : K * F;
      each(F, [&](int64_t f) {
        each(H, [&](int64_t h) {
          each(W, [&](int64_t w) {
            const int64_t column = model.is_mixed || is_own ? w : logit_at(w / F, w % F);
            const int64_t at = model.feature_at[f] + model.layout[f].gate_weight + h * size.terms_pad + column;
            each(M, [&](int64_t m) { visit(m, at, ((f * H + h) * W + w) * M + m); });
          });
        });
      });
      return true;
    }
    case NAE_GATE_BIAS:
      if (!model.has_gate) return false;
      if (model.is_mixed)
        each(size.terms, [&](int64_t w) { each(M, [&](int64_t m) { visit(m, model.gate_bias_at + w, w * M + m); }); });
      else
        logits(model.gate_bias_at, [&](int64_t column, int64_t m) { return column * M + m; });
      return true;
    case NAE_MIX:
      if (!model.has_gate || !model.is_mixed) return false;
      each(size.terms, [&](int64_t w) {
        logits(model.mix_at + w * size.logits,
               [&](int64_t column, int64_t m) { return (m * size.terms + w) * K * F + column; });
      });
      return true;
    case NAE_MIX_BIAS:
      if (!model.has_gate || !model.is_mixed) return false;
      logits(model.mix_bias_at, [&](int64_t column, int64_t m) { return m * K * F + column; });
      return true;
    default:
      return false;
  }
}

}  // namespace nae
