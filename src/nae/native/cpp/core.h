// The core: members with their parameters, room to work in, and threads.
//
// A member's steps depend on no other member's, except where a dial steers the additivity of their mean. So without a
// dial each member is a chain of steps, and threads take pieces of chains. With a dial, or with more threads than
// members, all members take a step together: its stages are phases, whose items are members, or what a member's stage
// consists of.
#pragma once
#include <algorithm>
#include <memory>

#include "build_model.h"
#include "dial.h"
#include "instructions.h"
#include "step.h"
#include "tensors.h"
#include "threads.h"
#include "workspace.h"

// What all steps of a call have in common.
struct nae_steps {
  const int64_t* order;
  int64_t n, first;
  const double* rates;
  uint64_t noise;
  double* losses;
  bool is_dry;
};

struct nae_core {
  virtual ~nae_core() = default;
  virtual bool set(int values, int tensor, const void* from) = 0;
  virtual bool get(int values, int tensor, void* to) = 0;
  virtual void restart_mean() = 0;
  virtual uint64_t noise_per_step() const = 0;
  virtual void make_gradients() = 0;
  virtual void run(const nae_rows& rows, const nae_steps& steps) = 0;
  virtual void score(const nae_rows& rows, const int64_t* order, const int64_t* starts, bool is_filled,
                     void* scores) = 0;
  virtual void lose(const nae_rows& rows, const int64_t* order, int64_t n, const void* scores, void* losses) = 0;
  virtual double additivity(const nae_rows& rows, const int64_t* order, int64_t n, bool is_filled) = 0;
  nae::DialState dial;
};

namespace nae {

template <class T>
Rows<T> rows_of(const nae_rows& rows) {
  return {rows.slot,
          static_cast<const T*>(rows.fraction),
          static_cast<const T*>(rows.target),
          rows.label,
          static_cast<const T*>(rows.weight),
          static_cast<const T*>(rows.base),
          rows.fold};
}

template <class T>
class Core final : public nae_core {
 public:
  Core(const nae_config& config, const nae_inputs& inputs, int instructions)
      : config_(config), kernels_(kernels_of<T>(instructions)) {
    model_ = build_model<T>(config, inputs, memory_, used_);
    const int n_members = model_.size.members, n_blocks = int(count_blocks(config.batch_size));
    n_threads_ = std::max(1, std::min(config.n_threads, n_members * std::max(model_.size.features, n_blocks)));
    is_fine_ = n_threads_ > n_members || (model_.has_dial && is_uneven());
    is_together_ = is_fine_ || model_.has_dial;
    for (int m = 0; m < n_members; ++m) members_.push_back(make_member(m));
    const int n_workspaces = is_together_ ? n_members : std::min(n_threads_, n_members);
    for (int i = 0; i < n_workspaces; ++i) workspaces_.push_back(make_workspace(model_, config.batch_size, memory_));
    for (int i = 0; i < n_threads_; ++i) {
      scratches_.push_back(make_scratch(model_, memory_));
      blocks_.emplace_back();
      take_rows(model_, kBlockRows, memory_, blocks_.back());
    }
    additivity_ = std::make_unique<Additivity<T>>(model_.size, n_threads_);
  }

  bool set(int values, int tensor, const void* from) override {
    const T* given = static_cast<const T*>(from);
    return visit_tensor(model_, used_, tensor, [&](int64_t m, int64_t own, int64_t at) {
      if (T* to = values_of(members_[m], values)) to[own] = given[at];
    });
  }

  bool get(int values, int tensor, void* to) override {
    T* found = static_cast<T*>(to);
    return visit_tensor(model_, used_, tensor, [&](int64_t m, int64_t own, int64_t at) {
      if (const T* from = values_of(members_[m], values)) found[at] = from[own];
    });
  }

  void restart_mean() override {
    for (Member<T>& each : members_)
      if (each.mean) std::copy(each.weights, each.weights + model_.n_parameters, each.mean);
  }

  uint64_t noise_per_step() const override { return gumbel_words() + (model_.is_thinned ? (n_drawn() + 7) / 8 : 0); }

  void make_gradients() override {
    for (Member<T>& each : members_)
      if (!each.gradients) each.gradients = memory_.take<T>(model_.n_parameters);
  }

  void run(const nae_rows& given, const nae_steps& steps) override {
    const Rows<T> rows = rows_of<T>(given);
    if (is_together_)
      run_together(rows, steps);
    else
      run_chains(rows, steps);
  }

  void score(const nae_rows& given, const int64_t* order, const int64_t* starts, bool is_filled,
             void* scores) override {
    const Rows<T> rows = rows_of<T>(given);
    T* found = static_cast<T*>(scores);
    const int n_members = model_.size.members;
    std::vector<int> first_block{0};
    for (int m = 0; m < n_members; ++m)
      first_block.push_back(first_block.back() + int(count_blocks(starts[m + 1] - starts[m])));
    const auto score_own = [&](int thread, int m, int block) {
      const int64_t first = starts[m] + int64_t(block) * kBlockRows, n = std::min<int64_t>(kBlockRows, starts[m + 1] - first);
      score_block(rows, order + first, int(n), m, thread, found + first * model_.size.outputs);
    };
    Phases phases;
    on_threads(n_threads_, [&](int thread) {
      uint32_t phase = 0;
      if (is_fine_) {
        phases.each(phase, n_members * model_.size.features, [&](int item) {
          evaluate(item % n_members, item / n_members, is_filled, thread);
        });
        phases.each(phase, first_block.back(), [&](int item) {
          const int m = int(std::upper_bound(first_block.begin(), first_block.end(), item) - first_block.begin()) - 1;
          score_own(thread, m, item - first_block[m]);
        });
        return;
      }
      phases.each(phase, n_members, [&](int m) {
        evaluate_all(m, is_filled, thread);
        for (int block = 0; block < first_block[m + 1] - first_block[m]; ++block) score_own(thread, m, block);
      });
    });
  }

  void lose(const nae_rows& given, const int64_t* order, int64_t n, const void* scores, void* losses) override {
    const Rows<T> rows = rows_of<T>(given);
    const int n_outputs = model_.size.outputs;
    const T* score = static_cast<const T*>(scores);
    std::vector<T> shifted(n_outputs), slope(n_outputs);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t row = order[i];
      for (int o = 0; o < n_outputs; ++o)
        shifted[o] = score[i * n_outputs + o] + (rows.base ? rows.base[row * n_outputs + o] : T(0));
      const T* target = rows.target ? rows.target + row * n_outputs : nullptr;
      static_cast<T*>(losses)[i] =
          kernels_.loss_of_row(model_, shifted.data(), target, rows.label ? rows.label[row] : 0, slope.data());
    }
  }

  double additivity(const nae_rows& given, const int64_t* order, int64_t n, bool is_filled) override {
    if (!model_.has_context || n == 0) return 1;
    const Rows<T> rows = rows_of<T>(given);
    const int64_t n_values = n * model_.size.features * model_.size.outputs;
    std::vector<std::vector<T>> whole(members_.size(), std::vector<T>(n_values)), context = whole;
    std::vector<T> weight(n);
    for (int64_t i = 0; i < n; ++i) weight[i] = rows.weight[order[i]];
    additivity_->make_room(n);
    std::vector<const T*> all, all_context;
    for (size_t m = 0; m < members_.size(); ++m) {
      all.push_back(whole[m].data());
      all_context.push_back(context[m].data());
    }
    Phases phases;
    on_threads(n_threads_, [&](int thread) {
      uint32_t phase = 0;
      phases.each(phase, model_.size.members, [&](int m) {
        evaluate_all(m, is_filled, thread);
        measure(rows, order, n, m, thread, whole[m].data(), context[m].data());
      });
      phases.each(phase, model_.size.features,
                  [&](int f) { additivity_->measure(all, all_context, weight.data(), n, f, thread); });
    });
    return additivity_->value();
  }

 private:
  // Whether whole members leave threads without work while others have some.
  bool is_uneven() const {
    const int n_members = model_.size.members, rounds = (n_members + n_threads_ - 1) / n_threads_;
    return 5 * rounds * n_threads_ > 6 * n_members;
  }

  Member<T> make_member(int number) {
    Member<T> member{};
    member.number = number;
    member.weights = memory_.take<T>(model_.n_parameters);
    member.first = memory_.take<T>(model_.n_parameters);
    member.second = memory_.take<T>(model_.n_parameters);
    if (config_.averaged_steps) member.mean = memory_.take<T>(model_.n_parameters);
    return member;
  }

  T* values_of(Member<T>& member, int values) const {
    switch (values) {
      case NAE_WEIGHTS:
        return member.weights;
      case NAE_FIRST_MOMENTS:
        return member.first;
      case NAE_SECOND_MOMENTS:
        return member.second;
      case NAE_MEANS:
        return member.mean;
      default:
        return member.gradients;
    }
  }

  const T* kept_weights(int m) const { return members_[m].mean ? members_[m].mean : members_[m].weights; }

  // The workspace for a member, where this thread works on it.
  Workspace<T>& workspace(int m, int thread) { return workspaces_[is_together_ ? m : thread]; }

  // Numbers that a step draws.
  uint64_t n_drawn() const {
    return uint64_t(config_.batch_size) * model_.size.experts * model_.size.features * model_.size.members;
  }

  uint64_t gumbel_words() const {
    return model_.has_gate && model_.size.routing == NAE_GUMBEL ? (n_drawn() + 1) / 2 : 0;
  }

  Step<T> step_of(const Rows<T>& rows, const nae_steps& steps, int64_t step) const {
    constexpr double beta1 = 0.9, beta2 = 0.999, young = 10;
    const int n_rows = config_.batch_size;
    const uint64_t noise = steps.noise + uint64_t(step) * noise_per_step();
    const double n = double(steps.first + step + 1), horizon = config_.averaged_steps ? config_.averaged_steps : 1;
    return {model_,
            kernels_,
            {&rows, steps.order + step * n_rows, n_rows, int(count_blocks(n_rows)), noise, noise + gumbel_words(), true},
            {steps.rates[step], config_.weight_decay, 1 - std::pow(beta1, n), 1 - std::pow(beta2, n),
             std::max(1 / horizon, young / (n + young)), steps.is_dry},
            dial};
  }

  void run_chains(const Rows<T>& rows, const nae_steps& steps) {
    constexpr int64_t most_steps = 8;  // that a thread takes at once: parameters stay in its cache
    const int n_members = model_.size.members;
    const int64_t fair = n_members % n_threads_ == 0 ? most_steps : steps.n * n_members / (8 * n_threads_);
    const int64_t piece = std::max<int64_t>(1, std::min(fair, most_steps));
    Chains chains(n_members, steps.n);
    on_threads(n_threads_, [&](int thread) {
      for (auto [m, done] = chains.take(); m >= 0; std::tie(m, done) = chains.take()) {
        const int64_t end = std::min(done + piece, steps.n);
        for (int64_t at = done; at < end; ++at) {
          const Step<T> step = step_of(rows, steps, at);
          take_stages(step, kForward, m, thread, nullptr);
          take_stages(step, kBackward, m, thread, steps.losses + at * n_members + m);
        }
        chains.give_back(m, end);
      }
    });
  }

  void run_together(const Rows<T>& rows, const nae_steps& steps) {
    const int n_members = model_.size.members;
    if (model_.has_dial) additivity_->make_room(config_.batch_size);
    std::vector<const T*> whole, context;
    for (const Workspace<T>& ws : workspaces_) {
      whole.push_back(ws.contribution);
      context.push_back(ws.context);
    }
    Phases phases;
    on_threads(n_threads_, [&](int thread) {
      uint32_t phase = 0;
      for (int64_t at = 0; at < steps.n; ++at) {
        const Step<T> step = step_of(rows, steps, at);
        take_phases(step, kForward, phases, phase, thread, nullptr);
        if (model_.has_dial) {
          phases.each(phase, model_.size.features, [&](int f) {
            additivity_->measure(whole, context, workspaces_[0].weight, config_.batch_size, f, thread);
          });
          phases.each(phase, 1,
                      [&](int) { dial.move(additivity_->value(), config_.dial_target, config_.dial_log_least); });
        }
        take_phases(step, kBackward, phases, phase, thread, steps.losses + at * n_members);
      }
    });
  }

  // Takes some stages of a member's step, item after item.
  void take_stages(const Step<T>& step, const Stage (&stages)[3], int m, int thread, double* loss) {
    for (const Stage stage : stages)
      for (int item = 0; item < step.n_items(stage); ++item)
        step.work(stage, item, members_[m], workspace(m, thread), scratches_[thread], loss);
  }

  // Takes some stages of all members' steps, together with other threads.
  void take_phases(const Step<T>& step, const Stage (&stages)[3], Phases& phases, uint32_t& phase, int thread,
                   double* losses) {
    const int n_members = model_.size.members;
    if (!is_fine_)
      return phases.each(phase, n_members, [&](int m) { take_stages(step, stages, m, thread, losses + m); });
    for (const Stage stage : stages)
      phases.each(phase, n_members * step.n_items(stage), [&](int item) {
        const int m = item % n_members;
        step.work(stage, item / n_members, members_[m], workspaces_[m], scratches_[thread], losses + m);
      });
  }

  // Evaluates a feature's slots by the weights that are kept.
  void evaluate(int m, int feature, bool is_filled, int thread) {
    Workspace<T>& ws = workspace(m, thread);
    kernels_.evaluate_slots(model_, m, kept_weights(m), ws, scratches_[thread], feature);
    if (is_filled) kernels_.fill_untrained(model_, ws, feature);
    const int n_parts = feature == 0 && ws.mix ? count_mix_parts(model_.size) : 0;
    for (int part = 0; part < n_parts; ++part) kernels_.turn_mix(model_, kept_weights(m), ws, part);
  }

  void evaluate_all(int m, bool is_filled, int thread) {
    for (int f = 0; f < model_.size.features; ++f) evaluate(m, f, is_filled, thread);
  }

  // Mixes the experts of a block of rows, in this thread's room for one.
  Workspace<T> mix_block(const Batch<T>& batch, int m, int thread) {
    Workspace<T> ws = with_rows(workspace(m, thread), blocks_[thread]);
    kernels_.gather(model_, batch, m, ws, 0);
    kernels_.mix_rows(model_, batch, m, kept_weights(m), ws, scratches_[thread], 0);
    return ws;
  }

  void score_block(const Rows<T>& rows, const int64_t* order, int n, int m, int thread, T* scores) {
    const Workspace<T> ws = mix_block({&rows, order, n, 1, 0, 0, false}, m, thread);
    std::copy_n(ws.score, n * model_.size.outputs, scores);
  }

  // Writes contributions, and contributions minus own effects, of n rows: (F, n, O).
  void measure(const Rows<T>& rows, const int64_t* order, int64_t n, int m, int thread, T* whole, T* context) {
    const int n_features = model_.size.features, n_outputs = model_.size.outputs;
    T* mean = workspace(m, thread).mean_routing;
    std::fill(mean, mean + model_.size.logits, T(0));
    const auto each_block = [&](auto visit) {
      for (int64_t at = 0; at < n; at += kBlockRows) {
        const int n_own = int(std::min<int64_t>(kBlockRows, n - at));
        const Batch<T> batch{&rows, order + at, n_own, 1, 0, 0, false};
        Workspace<T> ws = mix_block(batch, m, thread);
        visit(at, batch, ws);
      }
    };
    each_block([&](int64_t, const Batch<T>& batch, const Workspace<T>& ws) {
      for (int i = 0; i < model_.size.logits; ++i) mean[i] += ws.block_routing[i] * (T(batch.size) / T(n));
    });
    each_block([&](int64_t at, const Batch<T>& batch, Workspace<T>& ws) {
      for (int f = 0; f < n_features; ++f) {
        kernels_.compare_own(model_, batch, ws, f);
        const int64_t from = int64_t(f) * batch.size * n_outputs, to = (f * n + at) * n_outputs;
        std::copy_n(ws.contribution + from, int64_t(batch.size) * n_outputs, whole + to);
        std::copy_n(ws.context + from, int64_t(batch.size) * n_outputs, context + to);
      }
    });
  }

  const nae_config config_;
  const Kernels<T>& kernels_;
  Memory memory_;
  Model<T> model_;
  std::vector<std::vector<int>> used_;
  std::vector<Member<T>> members_;
  std::vector<Workspace<T>> workspaces_;  // of each member if all take steps together, else of each thread
  std::vector<Scratch<T>> scratches_;     // of each thread
  std::vector<Workspace<T>> blocks_;      // of each thread: rows of a block that is only scored
  std::unique_ptr<Additivity<T>> additivity_;
  int n_threads_ = 1;
  bool is_together_ = false, is_fine_ = false;
};

}  // namespace nae
