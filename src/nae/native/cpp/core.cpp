// The core: members, workspaces and threads; which kernel is called when, and the plain functions of abi.h.
//
// A member's steps depend on no other member's, except where a dial steers the additivity of their mean. So without a
// dial, each member is a chain of steps, and threads take pieces of chains. With a dial, or with more threads than
// members, every member has a crew of threads, which share features and blocks of rows. What an item computes does not
// depend on who computes it, and sums over blocks are made in the order of the blocks: any number of threads finds the
// same bits.
#include <cmath>
#include <exception>

#include "abi.h"
#include "build_model.h"
#include "memory.h"
#include "model.h"
#include "tensors.h"
#include "threads.h"

namespace nae {

#if defined(__x86_64__)
namespace avx512 {
const Kernels<float>& kernels(float);
const Kernels<double>& kernels(double);
}  // namespace avx512
namespace avx2 {
const Kernels<float>& kernels(float);
const Kernels<double>& kernels(double);
}  // namespace avx2
#endif
namespace portable {
const Kernels<float>& kernels(float);
const Kernels<double>& kernels(double);
}  // namespace portable

bool has(int instructions) {
  if (instructions == NAE_PORTABLE) return true;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (instructions == NAE_AVX2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (instructions == NAE_AVX512)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") && has(NAE_AVX2);
#endif
  return false;
}

int best_instructions() { return has(NAE_AVX512) ? NAE_AVX512 : has(NAE_AVX2) ? NAE_AVX2 : NAE_PORTABLE; }

template <class T>
const Kernels<T>& kernels_of(int instructions) {
#if defined(__x86_64__)
  if (instructions == NAE_AVX512) return avx512::kernels(T{});
  if (instructions == NAE_AVX2) return avx2::kernels(T{});
#endif
  (void)instructions;
  return portable::kernels(T{});
}

// The controller of additivity (nae/training/dial.py): in each step the logarithm of the penalty's weight moves by the
// difference between the target and a running mean of what is measured.
struct DialState {
  double log_gamma = 0, running = 0;

  void move(double measured, double target, double log_least) {
    constexpr double speed = 0.05, share = 0.05, log_most = 4;
    running += share * (measured - running);
    log_gamma = std::min(std::max(log_gamma + speed * (target - running), log_least), log_most);
  }
};

constexpr int kChainSteps = 8;    // steps of a member that a thread takes at once
constexpr int kLeastCapacity = 256;  // rows that a workspace has room for, at least: rows are judged in as many

template <class T>
Workspace<T> make_workspace(const Model<T>& model, int64_t n_rows, Memory& memory) {
  const Sizes& size = model.size;
  const int64_t n_slots = size.slots, n_blocks = (n_rows + kBlockRows - 1) / kBlockRows;
  const int64_t n_logits = model.has_gate ? size.logits : 0, n_sums = model.has_gate && model.is_mixed ? size.terms_pad : 0;
  const int64_t n_pairs = int64_t(size.features) * size.outputs;
  Workspace<T> ws{};
  ws.normal = memory.take<T>(size.blocks * n_slots * size.hidden_pad);
  ws.deviation = memory.take<T>(size.blocks * n_slots);
  ws.experts = memory.take<T>(n_slots * size.values);
  ws.terms = memory.take<T>(model.has_gate ? n_slots * size.terms_pad : 0);
  ws.mixed = memory.take<T>(n_slots * size.outputs);
  ws.mix_turned = memory.take<T>(n_sums * n_logits);
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
  ws.context = memory.take<T>(model.has_gate ? n_rows * n_pairs : 0);
  ws.block_routing = memory.take<T>(n_blocks * size.logits);
  ws.block_loss = memory.take<double>(n_blocks);
  ws.block_intercept = memory.take<T>(n_blocks * size.outputs);
  ws.mean_routing = memory.take<T>(size.logits);
  ws.mean_slope = memory.take<T>(size.logits);
  ws.context_variance = memory.take<T>(n_pairs);
  ws.spread = memory.take<T>(n_pairs);
  return ws;
}

template <class T>
Scratch<T> make_scratch(const Model<T>& model, Memory& memory) {
  const Sizes& size = model.size;
  int64_t most = int64_t(size.terms) * kMixColumns;
  for (int f = 0; f < size.features; ++f) most = std::max(most, model.layout[f].size);
  most = std::max<int64_t>({most, size.logits, size.terms_pad, padded<T>(size.outputs)});
  const int64_t widest = std::max({size.values, size.terms_pad, size.hidden_pad});
  Scratch<T> scratch{};
  scratch.hidden = memory.take<T>(int64_t(size.most_slots) * size.hidden_pad);
  scratch.slope = memory.take<T>(int64_t(size.most_slots) * size.hidden_pad);
  scratch.other = memory.take<T>(int64_t(size.most_slots) * size.hidden_pad);
  scratch.d_terms = memory.take<T>(model.has_gate ? int64_t(size.most_slots) * size.terms_pad : 0);
  scratch.d_experts = memory.take<T>(int64_t(size.most_slots) * size.values);
  scratch.turned = memory.take<T>(widest * size.hidden_pad);
  scratch.gradients = memory.take<T>(most);
  scratch.row = memory.take<T>(std::max(size.features, 2 * size.outputs));
  scratch.row_slots = memory.take<int>(2 * size.features);
  scratch.noise = memory.take<T>(size.routing == NAE_GUMBEL ? size.logits : 0);
  scratch.active = memory.take<T>(size.experts_pad);
  scratch.used = memory.take<T>(size.experts_pad);
  return scratch;
}

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

// What all steps of a call have in common.
struct Steps {
  const int64_t* order;
  int64_t n, first;
  const double* rates;
  uint64_t noise;
  double* losses;
  bool is_dry;
};

}  // namespace nae

struct nae_core {
  virtual ~nae_core() = default;
  virtual bool set(int values, int tensor, const void* from) = 0;
  virtual bool get(int values, int tensor, void* to) = 0;
  virtual void restart_mean() = 0;
  virtual void run(const nae_rows& rows, const nae::Steps& steps) = 0;
  virtual uint64_t noise_per_step() const = 0;
  virtual void make_gradients() = 0;
  virtual void score(const nae_rows& rows, const int64_t* order, const int64_t* starts, bool is_filled,
                     void* scores) = 0;
  virtual void lose(const nae_rows& rows, const int64_t* order, int64_t n, const void* scores, void* losses) = 0;
  virtual double additivity(const nae_rows& rows, const int64_t* order, int64_t n, bool is_filled) = 0;
  nae::DialState dial;
};

namespace nae {

template <class T>
class Core final : public nae_core {
 public:
  Core(const nae_config& config, const nae_inputs& inputs, int instructions)
      : config_(config), kernels_(kernels_of<T>(instructions)) {
    model_ = build_model<T>(config, inputs, memory_, used_);
    n_threads_ = std::max(1, std::min(config.n_threads, model_.size.members * model_.size.features));
    has_crews_ = model_.has_dial || n_threads_ > model_.size.members;
    capacity_ = std::max(config.batch_size, kLeastCapacity);
    for (int m = 0; m < model_.size.members; ++m) {
      Member<T> member{};
      member.number = m;
      member.weights = memory_.take<T>(model_.n_parameters);
      member.first = memory_.take<T>(model_.n_parameters);
      member.second = memory_.take<T>(model_.n_parameters);
      if (config.averaged_steps) member.mean = memory_.take<T>(model_.n_parameters);
      members_.push_back(member);
    }
    const int n_workspaces = has_crews_ ? model_.size.members : std::min(n_threads_, model_.size.members);
    for (int i = 0; i < n_workspaces; ++i) workspaces_.push_back(make_workspace(model_, capacity_, memory_));
    for (int i = 0; i < n_threads_; ++i) scratches_.push_back(make_scratch(model_, memory_));
    pairs_.resize(2 * size_t(model_.size.features) * model_.size.outputs);
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

  void run(const nae_rows& given, const Steps& steps) override {
    const Rows<T> rows = rows_of<T>(given);
    if (has_crews_)
      run_crews(rows, steps);
    else
      run_chains(rows, steps);
  }

  void score(const nae_rows& given, const int64_t* order, const int64_t* starts, bool is_filled,
             void* scores) override {
    const Rows<T> rows = rows_of<T>(given);
    T* found = static_cast<T*>(scores);
    const int n_outputs = model_.size.outputs;
    each_member([&](const Crew& crew, int m, Workspace<T>& ws, Scratch<T>& scratch) {
      evaluate(crew, m, is_filled, ws, scratch);
      const auto keep = [&](const Batch<T>& batch, int64_t at, int block) {
        const int64_t first = int64_t(block) * kBlockRows, end = std::min<int64_t>(first + kBlockRows, batch.size);
        std::copy(ws.score + first * n_outputs, ws.score + end * n_outputs, found + (at + first) * n_outputs);
      };
      mix_all(crew, rows, order, starts[m], starts[m + 1], m, ws, scratch, keep);
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
    const Rows<T> rows = rows_of<T>(given);
    const int64_t n_values = n * model_.size.features * model_.size.outputs;
    using Values = std::vector<std::vector<T>>;
    Values whole(members_.size(), std::vector<T>(n_values)), context = whole;
    Values routing(members_.size(), std::vector<T>(model_.size.logits));
    make_means(n);
    each_member([&](const Crew& crew, int m, Workspace<T>& ws, Scratch<T>& scratch) {
      evaluate(crew, m, is_filled, ws, scratch);
      if (crew.rank > 0) return;  // a few rows, and once a look
      measure(rows, order, n, m, ws, scratch, routing[m].data(), whole[m].data(), context[m].data());
    });
    std::vector<const T*> all, all_context;
    for (size_t m = 0; m < members_.size(); ++m) {
      all.push_back(whole[m].data());
      all_context.push_back(context[m].data());
    }
    std::vector<T> weight(n);
    for (int64_t i = 0; i < n; ++i) weight[i] = rows.weight[order[i]];
    for (int f = 0; f < model_.size.features; ++f) compare_means(all, all_context, weight.data(), n, f, 0);
    return measured_additivity();
  }

 private:
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

  // Calls work(crew, member, workspace, scratch) for all members, each by one thread or by a crew of them.
  template <class Work>
  void each_member(Work work) {
    const int n_members = model_.size.members;
    if (has_crews_) {
      Barriers barriers(*this, n_threads_);
      on_threads(n_threads_, [&](int thread, int n_threads) {
        barriers.settle(n_threads);
        for (int m = thread % n_members; m < n_members; m += n_threads)
          work(barriers.crew(m, thread, n_threads), m, workspaces_[m], scratches_[thread]);
      });
      return;
    }
    Chains chains(n_members, 1);
    on_threads(n_threads_, [&](int thread, int) {
      Barrier alone(1);
      for (auto [m, done] = chains.take(); m >= 0; std::tie(m, done) = chains.take()) {
        work(Crew{0, 1, &alone}, m, workspaces_[thread], scratches_[thread]);
        chains.give_back(m, done + 1);
      }
    });
  }

  // The barriers of crews: those of a member, and one for all threads. Threads beyond the members join crews in turn.
  struct Barriers {
    Barriers(const Core& core, int most_threads) : n_members(core.model_.size.members), most(most_threads) {}

    void settle(int n_threads) {
      std::call_once(is_settled, [&] {
        all = std::make_unique<Barrier>(n_threads);
        for (int m = 0; m < n_members; ++m) own.push_back(std::make_unique<Barrier>(crew_size(m, n_threads)));
      });
    }

    int crew_size(int m, int n_threads) const {
      return n_threads <= n_members ? 1 : n_threads / n_members + (m < n_threads % n_members);
    }

    Crew crew(int m, int thread, int n_threads) const {
      return {n_threads <= n_members ? 0 : thread / n_members, crew_size(m, n_threads), own[m].get()};
    }

    const int n_members, most;
    std::once_flag is_settled;
    std::unique_ptr<Barrier> all;
    std::vector<std::unique_ptr<Barrier>> own;
  };

  Batch<T> batch_of(const Rows<T>& rows, const Steps& steps, int64_t step) const {
    const int n = config_.batch_size;
    const uint64_t noise = steps.noise + uint64_t(step) * noise_per_step();
    return {&rows, steps.order + step * n, n, (n + kBlockRows - 1) / kBlockRows, noise, noise + gumbel_words(), true};
  }

  // Numbers that a step draws.
  uint64_t n_drawn() const {
    return uint64_t(config_.batch_size) * model_.size.experts * model_.size.features * model_.size.members;
  }

  uint64_t gumbel_words() const {
    return model_.has_gate && model_.size.routing == NAE_GUMBEL ? (n_drawn() + 1) / 2 : 0;
  }

  Move move_of(const Steps& steps, int64_t step) const {
    constexpr double beta1 = 0.9, beta2 = 0.999, young = 10;
    const double n = double(steps.first + step + 1);
    const double horizon = config_.averaged_steps ? config_.averaged_steps : 1;
    return {steps.rates[step],
            config_.weight_decay,
            1 - std::pow(beta1, n),
            1 - std::pow(beta2, n),
            std::max(1 / horizon, young / (n + young)),
            steps.is_dry};
  }

  void run_chains(const Rows<T>& rows, const Steps& steps) {
    Chains chains(model_.size.members, steps.n);
    on_threads(n_threads_, [&](int thread, int) {
      Barrier alone(1);
      const Crew crew{0, 1, &alone};
      for (auto [m, done] = chains.take(); m >= 0; std::tie(m, done) = chains.take()) {
        const int64_t end = std::min<int64_t>(done + kChainSteps, steps.n);
        for (int64_t step = done; step < end; ++step) {
          const Batch<T> batch = batch_of(rows, steps, step);
          go_forward(crew, batch, members_[m], workspaces_[thread], scratches_[thread]);
          go_back(crew, batch, members_[m], workspaces_[thread], scratches_[thread], model_.context,
                  move_of(steps, step), steps.losses + step * model_.size.members + m);
        }
        chains.give_back(m, end);
      }
    });
  }

  void run_crews(const Rows<T>& rows, const Steps& steps) {
    const int n_members = model_.size.members;
    Barriers barriers(*this, n_threads_);
    if (model_.has_dial) make_means(config_.batch_size);
    std::vector<const T*> whole, context;
    for (const Workspace<T>& ws : workspaces_) {
      whole.push_back(ws.contribution);
      context.push_back(ws.context);
    }
    on_threads(n_threads_, [&](int thread, int n_threads) {
      barriers.settle(n_threads);
      const auto each = [&](auto work) {
        for (int m = thread % n_members; m < n_members; m += n_threads)
          work(barriers.crew(m, thread, n_threads), members_[m], workspaces_[m]);
      };
      for (int64_t step = 0; step < steps.n; ++step) {
        const Batch<T> batch = batch_of(rows, steps, step);
        each([&](const Crew& crew, Member<T>& member, Workspace<T>& ws) {
          go_forward(crew, batch, member, ws, scratches_[thread]);
        });
        T strength = model_.context;
        if (model_.has_dial) {
          barriers.all->wait();
          for (int f = thread; f < model_.size.features; f += n_threads)
            compare_means(whole, context, workspaces_[0].weight, batch.size, f, thread);
          barriers.all->wait();
          if (thread == 0) dial.move(measured_additivity(), config_.dial_target, config_.dial_log_least);
          barriers.all->wait();
          strength = T(std::exp(dial.log_gamma));
        }
        each([&](const Crew& crew, Member<T>& member, Workspace<T>& ws) {
          go_back(crew, batch, member, ws, scratches_[thread], strength, move_of(steps, step),
                  steps.losses + step * n_members + member.number);
        });
      }
    });
  }

  // From the rows of a batch to contributions, and to what context changes about them.
  void go_forward(const Crew& crew, const Batch<T>& batch, Member<T>& member, Workspace<T>& ws, Scratch<T>& scratch) {
    const int n_features = model_.size.features;
    crew.share(batch.n_blocks, [&](int block) { kernels_.gather(model_, batch, member, ws, block); });
    crew.share(n_features,
               [&](int f) { kernels_.evaluate_slots(model_, member.number, member.weights, ws, scratch, f); });
    if (model_.has_gate && model_.is_mixed && crew.rank == 0) kernels_.turn_mix(model_, member.weights, ws);
    crew.wait();
    crew.share(batch.n_blocks, [&](int block) {
      kernels_.mix_rows(model_, batch, member.number, member.weights, ws, scratch, block);
    });
    crew.wait();
    if (!model_.has_context) return;
    crew.share(n_features, [&](int f) {
      kernels_.average_routing(model_, batch, ws, f);
      kernels_.compare_own(model_, batch, ws, f);
    });
    crew.wait();
  }

  // From there to gradients, and a step.
  void go_back(const Crew& crew, const Batch<T>& batch, Member<T>& member, Workspace<T>& ws, Scratch<T>& scratch,
               T strength, const Move& move, double* loss) {
    const int n_features = model_.size.features;
    if (model_.has_context) {
      crew.share(n_features,
                 [&](int f) { kernels_.penalise_context(model_, batch, ws, strength, model_.has_dial, f); });
      crew.wait();
    }
    crew.share(batch.n_blocks,
               [&](int block) { kernels_.back_rows(model_, batch, member.number, ws, scratch, block); });
    crew.wait();
    crew.share(n_features, [&](int f) { kernels_.back_feature(model_, batch, member, ws, scratch, move, f); });
    crew.share(model_.n_rest, [&](int item) { kernels_.back_rest(model_, batch, member, ws, scratch, move, item); });
    if (crew.rank == 0) {
      *loss = 0;
      for (int block = 0; block < batch.n_blocks; ++block) *loss += ws.block_loss[block];
    }
    crew.wait();
  }

  // Evaluates a member's slots by the weights that are kept.
  void evaluate(const Crew& crew, int m, bool is_filled, Workspace<T>& ws, Scratch<T>& scratch) {
    crew.share(model_.size.features, [&](int f) {
      kernels_.evaluate_slots(model_, m, kept_weights(m), ws, scratch, f);
      if (is_filled) kernels_.fill_untrained(model_, ws, f);
    });
    crew.wait();
  }

  // Mixes the experts of rows from `first` to `end`, as many at a time as there is room for.
  template <class Keep>
  void mix_all(const Crew& crew, const Rows<T>& rows, const int64_t* order, int64_t first, int64_t end, int m,
               Workspace<T>& ws, Scratch<T>& scratch, Keep keep) {
    for (int64_t at = first; at < end; at += capacity_) {
      const int n = int(std::min<int64_t>(capacity_, end - at));
      const Batch<T> batch{&rows, order + at, n, (n + kBlockRows - 1) / kBlockRows, 0, 0, false};
      crew.share(batch.n_blocks, [&](int block) {
        kernels_.gather(model_, batch, members_[m], ws, block);
        kernels_.mix_rows(model_, batch, m, kept_weights(m), ws, scratch, block);
        keep(batch, at, block);
      });
      crew.wait();  // before the next rows take the place of these
    }
  }

  // Writes contributions, and contributions minus own effects, of n rows: (F, n, O). `routing` (logits,) holds zeros.
  void measure(const Rows<T>& rows, const int64_t* order, int64_t n, int m, Workspace<T>& ws, Scratch<T>& scratch,
               T* routing, T* whole, T* context) {
    const int n_features = model_.size.features, n_outputs = model_.size.outputs;
    Barrier barrier(1);
    const Crew alone{0, 1, &barrier};
    mix_all(alone, rows, order, 0, n, m, ws, scratch, [&](const Batch<T>& batch, int64_t, int block) {
      const T* own = ws.block_routing + int64_t(block) * model_.size.logits;
      for (int i = 0; i < model_.size.logits; ++i) routing[i] += own[i] * (T(batch.size) / T(n));
    });
    mix_all(alone, rows, order, 0, n, m, ws, scratch, [&](const Batch<T>& batch, int64_t at, int block) {
      if (block + 1 < batch.n_blocks) return;
      std::copy(routing, routing + model_.size.logits, ws.mean_routing);
      for (int f = 0; f < n_features; ++f) {
        kernels_.compare_own(model_, batch, ws, f);
        const int64_t from = int64_t(f) * batch.size * n_outputs, to = (f * n + at) * n_outputs;
        std::copy_n(ws.contribution + from, int64_t(batch.size) * n_outputs, whole + to);
        std::copy_n(ws.context + from, int64_t(batch.size) * n_outputs, context + to);
      }
    });
  }

  // The variances of a feature's contributions, averaged over the members, that context causes and in all.
  void compare_means(const std::vector<const T*>& whole, const std::vector<const T*>& context, const T* weight,
                     int64_t n, int feature, int thread) {
    const int n_outputs = model_.size.outputs, n_pairs = model_.size.features * n_outputs;
    const T per_member = T(1) / T(whole.size());
    T *mean = means_[thread].data(), *apart = mean + n * n_outputs;
    std::fill(mean, apart + n * n_outputs, T(0));
    const int64_t from = int64_t(feature) * n * n_outputs;
    for (size_t m = 0; m < whole.size(); ++m)
      for (int64_t i = 0; i < n * n_outputs; ++i) {
        mean[i] += whole[m][from + i];
        apart[i] += context[m][from + i];
      }
    for (int o = 0; o < n_outputs; ++o) {
      double centre = 0, of_context = 0, spread = 0;
      for (int64_t b = 0; b < n; ++b) centre += double(weight[b] * mean[b * n_outputs + o] * per_member);
      centre /= double(n);
      for (int64_t b = 0; b < n; ++b) {
        const double own = double(mean[b * n_outputs + o] * per_member) - centre;
        const double by_context = double(apart[b * n_outputs + o] * per_member);
        spread += double(weight[b]) * own * own;
        of_context += double(weight[b]) * by_context * by_context;
      }
      pairs_[feature * n_outputs + o] = of_context / double(n);
      pairs_[n_pairs + feature * n_outputs + o] = spread / double(n);
    }
  }

  // Makes room for the means of n rows, for every thread.
  void make_means(int64_t n) {
    means_.resize(n_threads_);
    for (std::vector<T>& each : means_) each.resize(std::max<size_t>(each.size(), 2 * n * model_.size.outputs));
  }

  double measured_additivity() const {
    const int n_features = model_.size.features, n_outputs = model_.size.outputs, n_pairs = n_features * n_outputs;
    double shares = 0;
    for (int o = 0; o < n_outputs; ++o) {
      double score = 0;
      for (int f = 0; f < n_features; ++f) score += pairs_[n_pairs + f * n_outputs + o];
      for (int f = 0; f < n_features; ++f) {
        const int at = f * n_outputs + o;
        shares += std::min(pairs_[at] / (pairs_[n_pairs + at] + 1e-6 * score + 1e-12), 1.0);
      }
    }
    return 1 - shares / n_pairs;
  }

  const nae_config config_;
  const Kernels<T>& kernels_;
  Memory memory_;
  Model<T> model_;
  std::vector<std::vector<int>> used_;
  std::vector<Member<T>> members_;
  std::vector<Workspace<T>> workspaces_;
  std::vector<Scratch<T>> scratches_;
  std::vector<std::vector<T>> means_;  // of each thread: contributions of one feature, averaged over the members
  std::vector<double> pairs_;  // of outputs and features: the variance by context, then the whole
  int n_threads_ = 1, capacity_ = 0;
  bool has_crews_ = false;
};

// Nothing is thrown across the plain functions.
template <class Work>
int32_t guarded(Work work) {
  try {
    work();
    return NAE_DONE;
  } catch (const std::exception&) {
    return NAE_NO_MEMORY;
  }
}

}  // namespace nae

int32_t nae_abi_version() { return kAbiVersion; }

const char* nae_sources() { return NAE_SOURCES; }

int32_t nae_best_instructions() { return nae::best_instructions(); }

nae_core* nae_new(const nae_config* config, const nae_inputs* inputs) {
  const int wanted = config->instructions == NAE_BEST ? nae::best_instructions() : config->instructions;
  if (!nae::has(wanted)) return nullptr;
  nae_core* made = nullptr;
  nae::guarded([&] {
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
  return nae::guarded([&] { core->run(*rows, {order, n_steps, first_step, rates, noise, losses, false}); });
}

int32_t nae_gradients(nae_core* core, const nae_rows* rows, const int64_t* order, uint64_t noise, double* losses) {
  const double rate = 0;
  return nae::guarded([&] {
    core->make_gradients();
    core->run(*rows, {order, 1, 0, &rate, noise, losses, true});
  });
}

int32_t nae_score(nae_core* core, const nae_rows* rows, const int64_t* order, const int64_t* starts, int32_t is_filled,
                  void* scores) {
  return nae::guarded([&] { core->score(*rows, order, starts, is_filled != 0, scores); });
}

int32_t nae_losses(nae_core* core, const nae_rows* rows, const int64_t* order, int64_t n, const void* scores,
                   void* losses) {
  return nae::guarded([&] { core->lose(*rows, order, n, scores, losses); });
}

int32_t nae_additivity(nae_core* core, const nae_rows* rows, const int64_t* order, int64_t n, int32_t is_filled,
                       double* additivity) {
  return nae::guarded([&] { *additivity = core->additivity(*rows, order, n, is_filled != 0); });
}
