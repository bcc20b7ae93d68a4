// Runs the native core over configurations of every kind, without Python: for sanitizers and other processors.
//
//     driver [every n-th configuration] [most threads]      returns 1 if something differs between numbers of threads
//     driver threads                                         with more threads than the system gives
//
// Tables and weights are random, and the same everywhere.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "abi.h"

#if !defined(_WIN32)
#include <sys/resource.h>
#endif

namespace {

// Small random numbers: the upper bits of a linear congruence (Knuth).
struct Random {
  uint64_t state;

  uint32_t next() {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return uint32_t(state >> 33);
  }
  int below(int n) { return int(next() % uint32_t(n)); }
  int between(int least, int most) { return least + below(most - least + 1); }
  double uniform() { return (next() + 0.5) / 2147483648.0; }
  double symmetric() { return 2 * uniform() - 1; }
};

struct Case {
  nae_config config{};
  bool has_start = false, has_base = false, has_folds = false, has_forms = false;
  int n_rows = 40;
};

// A table and a network that belong to a case.
template <class T>
struct Problem {
  Problem(const Case& given, uint64_t seed) : config(given.config) {
    Random random{seed};
    const int n_features = config.n_features;
    for (int f = 0; f < n_features; ++f) n_slots.push_back(random.between(1, 12));
    n_slots[0] = 1;
    config.n_inputs = random.between(2, 9);
    for (int f = 0; f < n_features; ++f) add_slots(random, f);
    is_live.assign(n_features, 1);
    if (n_features > 2) is_live[2] = 0;
    if (given.has_start) {
      for (size_t i = 0; i < weight.size() * config.n_outputs * config.n_members; ++i) start.push_back(random.symmetric());
      for (int i = 0; i < config.n_outputs * config.n_members; ++i) start_offset.push_back(random.symmetric());
    }
    for (int m = 0; m < config.n_members; ++m) own_fold.push_back(m % 2);
    for (int o = 0; o < config.n_outputs; ++o) loss_option.push_back(config.loss == NAE_TWEEDIE ? 1.5 : 0.3 + 0.02 * o);
    for (int i = 0; i < given.n_rows; ++i) add_row(random, given);
    for (int i = 0; i < n_steps * config.batch_size; ++i) order.push_back(random.below(given.n_rows));
    for (int s = 0; s < n_steps; ++s) rates.push_back(0.01 * (1 + s));
    given_forms = given.has_forms;
    if (given_forms) draw_forms(random);
    for (size_t i = 0; given_forms && given.has_base && i < weight.size(); ++i) {
      left.push_back(random.uniform());
      roughness.push_back(random.uniform());
    }
  }

  void add_slots(Random& random, int f) {
    std::vector<double> row(config.n_inputs, 0.0);
    for (int s = 0; s < n_slots[f]; ++s) {
      row[random.below(config.n_inputs)] = f % 3 == 1 && s % 2 ? 0.0 : random.uniform();
      values.insert(values.end(), row.begin(), row.end());
      weight.push_back(s % 4 == 3 ? 0.0 : random.uniform());
    }
  }

  void add_row(Random& random, const Case& given) {
    int first = 0;
    for (int f = 0; f < config.n_features; ++f) {
      const int own = random.below(n_slots[f] + 1);  // the last one is that of untrained values
      slot.push_back(first + own);
      fraction.push_back(own + 1 < n_slots[f] && random.below(3) ? T(random.uniform()) : T(0));
      first += n_slots[f] + 1;
    }
    for (int o = 0; o < config.n_outputs; ++o) {
      const double value = random.symmetric();
      target.push_back(T(config.loss == NAE_LOGISTIC ? value > 0 : config.loss <= NAE_QUANTILE ? value : std::exp(value)));
      if (given.has_base) base.push_back(T(random.symmetric()));
    }
    label.push_back(random.below(config.n_outputs));
    row_weight.push_back(T(0.5 + random.uniform()));
    if (given.has_folds) fold.push_back(random.below(2));
  }

  template <class U>
  static const U* pointer(const std::vector<U>& of) {
    return of.empty() ? nullptr : of.data();
  }

  nae_inputs inputs() const {
    return {n_slots.data(), values.data(),    weight.data(),         double(weight.size()),
            is_live.data(), pointer(start),   pointer(start_offset), own_fold.data(),
            given_forms ? &forms : nullptr,   pointer(left),   pointer(roughness),    loss_option.data()};
  }

  void draw_forms(Random& random) {
    const int F = config.n_features, O = config.n_outputs;
    const bool has_logits = config.gate == NAE_ADDITIVE || config.gate == NAE_DIAGONAL;
    for (int f = 0; f < F; ++f) {
      n_ordered.push_back(random.between(1, n_slots[f]));
      rises.push_back(random.between(-1, 1));
      bends.push_back(random.between(-1, 1));
      is_single.push_back(random.below(4) == 0);
      is_sorted.push_back(random.below(2));
      leads.push_back(rises.back() != 0);
      for (int s = 0; s < n_slots[f]; ++s) places.push_back(s / double(n_slots[f]));
      const double cap = random.below(2) ? 0.1 + random.uniform() : HUGE_VAL;
      for (int o = 0; o < O; ++o) caps.push_back(cap);
    }
    for (int m = 0; m < config.n_members; ++m)
      for (int f = 0; f < F; ++f) {
        const bool is_free = random.below(2);
        for (int j = 0; j < F; ++j) allows.push_back(has_logits ? random.below(3) > 0 : is_free);
      }
    forms = {n_ordered.data(), rises.data(), bends.data(), is_single.data(), is_sorted.data(), leads.data(),
             places.data(),    caps.data(),  random.below(2) ? allows.data() : nullptr,          0.3,
             random.below(2), has_logits ? 0 : random.between(1, config.n_terms)};
  }

  nae_rows rows() const {
    const bool has_label = config.loss == NAE_CROSS_ENTROPY;
    return {slot.data(),       fraction.data(), has_label ? nullptr : target.data(), has_label ? label.data() : nullptr,
            row_weight.data(), pointer(base),   pointer(fold)};
  }

  static constexpr int n_steps = 3;
  nae_config config;
  std::vector<int32_t> n_slots, own_fold, slot, label, fold;
  std::vector<uint8_t> is_live, is_single, is_sorted, leads, allows;
  std::vector<int32_t> n_ordered, rises, bends;
  std::vector<double> places, caps, left, roughness;
  bool given_forms = false;
  nae_forms forms{};
  std::vector<double> values, weight, start, start_offset, loss_option, rates;
  std::vector<T> fraction, target, row_weight, base;
  std::vector<int64_t> order;
};

// The number of a tensor's parameters, as abi.h has its shape.
size_t count(const nae_config& c, int tensor) {
  const size_t F = c.n_features, H = c.hidden, K = c.n_experts, O = c.n_outputs, M = c.n_members;
  const size_t terms = c.n_terms, W = c.gate == NAE_ADDITIVE ? K * F : c.gate == NAE_DIAGONAL ? K : terms;
  const bool is_own = c.gate == NAE_DIAGONAL;
  const size_t counts[] = {F * H * K * O * M, F * K * O * M,      O * M,    F * H * W * M, (is_own ? K * F : W) * M,
                           M * terms * K * F, M * K * F};
  if (tensor < NAE_BLOCKS) return counts[tensor];
  const int block = (tensor - NAE_BLOCKS) / 4, part = (tensor - NAE_BLOCKS) % 4;
  return M * F * H * (part > 0 ? 1 : block > 0 ? H : size_t(c.n_inputs));
}

// Trains with a number of threads and returns all that this leaves behind.
template <class T>
std::vector<T> run(const Problem<T>& problem, int n_threads) {
  nae_config config = problem.config;
  config.n_threads = n_threads;
  const nae_inputs inputs = problem.inputs();
  const nae_rows rows = problem.rows();
  nae_core* core = nae_new(&config, &inputs);
  if (!core) {
    std::puts("there is no core");
    std::exit(2);
  }
  Random random{11};
  const int n_tensors = NAE_BLOCKS + 4 * config.n_blocks;
  std::vector<T> found;
  for (int t = 0; t < n_tensors; ++t) {
    std::vector<T> given(count(config, t));
    for (T& each : given) each = T(0.5 * random.symmetric());
    nae_set(core, NAE_WEIGHTS, t, given.data());
  }
  nae_restart_mean(core);
  nae_set_dial(core, -3, 0.5);
  std::vector<double> losses(size_t(problem.n_steps) * config.n_members);
  int bad = nae_gradients(core, &rows, problem.order.data(), 3, losses.data());
  bad |= nae_train(core, &rows, problem.order.data(), problem.n_steps, 0, problem.rates.data(), 5, losses.data());
  for (double loss : losses) found.push_back(T(loss));
  std::vector<int64_t> all, starts{0};
  for (int m = 0; m < config.n_members; ++m) {
    for (size_t i = m; i < problem.row_weight.size(); ++i) all.push_back(int64_t(i));
    starts.push_back(int64_t(all.size()));
  }
  std::vector<T> scores(all.size() * config.n_outputs), row_losses(all.size());
  for (int is_filled = 0; is_filled < 2; ++is_filled) {
    bad |= nae_score(core, &rows, all.data(), starts.data(), is_filled, scores.data());
    found.insert(found.end(), scores.begin(), scores.end());
    double additivity = 0;
    bad |= nae_additivity(core, &rows, all.data(), starts[1], is_filled, &additivity);
    found.push_back(T(additivity));
  }
  bad |= nae_losses(core, &rows, all.data(), int64_t(all.size()), scores.data(), row_losses.data());
  found.insert(found.end(), row_losses.begin(), row_losses.end());
  for (int values = NAE_WEIGHTS; values <= NAE_GRADIENTS; ++values)
    for (int t = 0; t < n_tensors; ++t) {
      std::vector<T> own(count(config, t));
      nae_get(core, values, t, own.data());
      found.insert(found.end(), own.begin(), own.end());
    }
  nae_delete(core);
  if (bad) {
    std::puts("a call failed");
    std::exit(2);
  }
  return found;
}

std::string words(const nae_config& c) {
  char text[300];
  std::snprintf(text, sizeof text,
                "instructions %d, double %d, gate %d, routing %d, loss %d, %d features, %d outputs, %d of %d experts, "
                "hidden %d, %d blocks, %d members, batch %d, kept %d, dial %d, averaged %d",
                c.instructions, c.is_double, c.gate, c.routing, c.loss, c.n_features, c.n_outputs, c.n_active,
                c.n_experts, c.hidden, c.n_blocks, c.n_members, c.batch_size, c.n_kept, c.has_dial, c.averaged_steps);
  return text;
}

template <class T>
bool is_same_with(const Case& given, uint64_t seed, int n_threads) {
  const Problem<T> problem(given, seed);
  const std::vector<T> one = run(problem, 1), other = run(problem, n_threads);
  bool is_finite = true;
  for (T each : one) is_finite = is_finite && std::isfinite(each);
  const bool is_same = one.size() == other.size() && !std::memcmp(one.data(), other.data(), one.size() * sizeof(T));
  if (!is_same || !is_finite)
    std::printf("%s with %d threads: %s\n", is_same ? "not finite" : "other bits", n_threads, words(problem.config).c_str());
  return is_same && is_finite;
}

// A configuration with a gate, a routing and a loss, and all the rest by chance.
Case make_case(int gate, int routing, int loss, int is_double, Random& random) {
  Case made;
  nae_config& c = made.config;
  c.gate = gate;
  c.routing = routing;
  c.loss = loss;
  c.is_double = is_double;
  c.n_members = random.between(1, 4);
  c.n_features = random.between(1, 6);
  c.n_outputs = random.between(loss == NAE_CROSS_ENTROPY ? 2 : 1, random.below(4) ? 3 : 26);
  c.n_experts = random.below(8) ? random.between(1, 18) : 130;
  c.n_active = random.below(2) ? c.n_experts : random.between(1, c.n_experts);
  c.hidden = random.between(1, 40);
  c.n_blocks = random.between(1, 3);
  c.n_terms = random.between(1, 20);
  c.batch_size = random.between(1, 80);
  c.averaged_steps = random.below(2) ? 0 : 4;
  c.n_kept = random.below(2) ? 256 : 180;
  c.has_dial = random.below(2) && c.n_experts > 1;
  c.temperature = 0.5;
  c.weight_decay = 0.1;
  c.variation = random.below(2) && c.n_experts > 1 ? 0.1 : 0;
  c.output = random.below(2) ? 0.1 : 0;
  c.context = random.below(2) ? 0.1 : 0;
  c.dial_target = 0.9;
  c.dial_log_least = -6;
  made.has_start = random.below(2);
  made.has_base = random.below(2);
  made.has_folds = random.below(2);
  made.has_forms = random.below(2);
  made.n_rows = random.between(c.n_members + 1, 60);
  return made;
}

int run_all(int every, int most_threads) {
  Random random{1};
  int n = 0, n_bad = 0, number = 0;
  for (int gate = NAE_ADDITIVE; gate <= NAE_DIAGONAL; ++gate)
    for (int routing = NAE_SOFTMAX; routing <= NAE_GUMBEL; ++routing)
      for (int loss = NAE_SQUARED; loss <= NAE_CROSS_ENTROPY; ++loss)
        for (int is_double = 0; is_double < 2; ++is_double) {
          Case made = make_case(gate, routing, loss, is_double, random);
          const int n_threads = most_threads > 1 ? random.between(2, most_threads) : 1;
          if (number++ % every) continue;
          for (int set = NAE_PORTABLE; set <= nae_best_instructions(); ++set, ++n) {
            made.config.instructions = set;
            const bool is_good = is_double ? is_same_with<double>(made, number, n_threads)
                                           : is_same_with<float>(made, number, n_threads);
            n_bad += !is_good;
          }
        }
  std::printf("%d runs, %d of them bad\n", n, n_bad);
  return n_bad > 0;
}

// Leaves room for a few stacks of threads and asks for many more.
int run_with_too_few_threads() {
#if !defined(_WIN32)
  Random random{3};
  Case made = make_case(NAE_LOW_RANK, NAE_SOFTMAX, NAE_SQUARED, 0, random);
  made.config.has_dial = made.config.n_experts > 1;
  made.config.n_features = 6;
  made.config.n_members = 40;
  const Problem<float> problem(made, 1);
  const std::vector<float> one = run(problem, 1);
  rlimit limit{};
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = 400u << 20;
  if (setrlimit(RLIMIT_AS, &limit)) return 2;
  const std::vector<float> other = run(problem, 200);
  if (one.size() != other.size() || std::memcmp(one.data(), other.data(), one.size() * sizeof(float))) return 1;
  std::puts("the same with the threads there are");
#endif
  return 0;
}

}  // namespace

int main(int n, char** arguments) {
  if (n > 1 && !std::strcmp(arguments[1], "threads")) return run_with_too_few_threads();
  return run_all(n > 1 ? std::atoi(arguments[1]) : 1, n > 2 ? std::atoi(arguments[2]) : 6);
}
