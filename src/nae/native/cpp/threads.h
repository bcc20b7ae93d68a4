// Threads that share work. They wait for each other asleep: a core that something else keeps busy is left to it.
#pragma once
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

namespace nae {

// Calls body(thread) on up to n threads, the calling one among them: on fewer where no more can be had.
template <class Body>
void on_threads(int n, Body body) {
  std::vector<std::thread> threads;
  threads.reserve(n - 1);
  for (int thread = 1; thread < n; ++thread) {
    try {
      threads.emplace_back(body, thread);
    } catch (const std::exception&) {
      break;
    }
  }
  body(0);
  for (std::thread& each : threads) each.join();
}

// Phases that follow each other. Threads take the items of a phase in turn, and the next phase begins when all items
// are done. Every thread goes through the same phases; one that is late, or never begins, keeps nobody waiting: it
// finds the items taken. So only an item may read or write what belongs to its phase.
class Phases {
 public:
  // Calls work(item) for items of the phase number `phase`, which is counted on, and waits until all are done.
  template <class Work>
  void each(uint32_t& phase, int n_items, Work work) {
    if (n_items == 0) return;
    const uint32_t own = phase++;
    uint64_t next = next_.load(std::memory_order_acquire);
    while (phase_of(next) == own && item_of(next) < uint32_t(n_items)) {
      if (!next_.compare_exchange_weak(next, next + 1, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
      work(int(item_of(next)));
      if (n_done_.fetch_add(1, std::memory_order_acq_rel) + 1 == n_items) return begin(own + 1);
      next = next_.load(std::memory_order_acquire);
    }
    if (phase_of(next) != own) return;
    std::unique_lock lock(mutex_);
    is_over_.wait(lock, [&] { return phase_of(next_.load(std::memory_order_acquire)) != own; });
  }

 private:
  static uint32_t phase_of(uint64_t next) { return uint32_t(next >> 32); }
  static uint32_t item_of(uint64_t next) { return uint32_t(next); }

  void begin(uint32_t phase) {
    n_done_.store(0, std::memory_order_relaxed);
    {
      std::lock_guard lock(mutex_);
      next_.store(uint64_t(phase) << 32, std::memory_order_release);
    }
    is_over_.notify_all();
  }

  alignas(64) std::atomic<uint64_t> next_{0};  // the phase, and its next item
  alignas(64) std::atomic<int> n_done_{0};
  std::mutex mutex_;
  std::condition_variable is_over_;
};

// Chains of tasks, of which each chain is done in order and by one thread at a time; the one that is behind goes first.
class Chains {
 public:
  Chains(int n_chains, int64_t length) : length_(length), done_(n_chains, 0), is_taken_(n_chains, false) {}

  // Returns a chain and how much of it is done; -1 where all the rest is in other hands.
  std::pair<int, int64_t> take() {
    std::lock_guard lock(mutex_);
    int found = -1;
    for (int i = 0; i < int(done_.size()); ++i)
      if (!is_taken_[i] && done_[i] < length_ && (found < 0 || done_[i] < done_[found])) found = i;
    if (found < 0) return {-1, 0};
    is_taken_[found] = true;
    return {found, done_[found]};
  }

  void give_back(int chain, int64_t done) {
    std::lock_guard lock(mutex_);
    is_taken_[chain] = false;
    done_[chain] = done;
  }

 private:
  const int64_t length_;
  std::vector<int64_t> done_;
  std::vector<bool> is_taken_;
  std::mutex mutex_;
};

}  // namespace nae
