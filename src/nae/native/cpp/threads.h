// Threads that wait for each other without spinning: a core that something else keeps busy is left to it.
#pragma once
#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace nae {

class Barrier {
 public:
  explicit Barrier(int n) : n_(n) {}

  void wait() {
    if (n_ == 1) return;
    std::unique_lock lock(mutex_);
    if (++n_waiting_ == n_) {
      n_waiting_ = 0;
      ++round_;
      all_here_.notify_all();
      return;
    }
    const int64_t round = round_;
    all_here_.wait(lock, [&] { return round_ != round; });
  }

 private:
  const int n_;
  int n_waiting_ = 0;
  int64_t round_ = 0;
  std::mutex mutex_;
  std::condition_variable all_here_;
};

// Calls body(thread, number of threads) on up to n threads, the calling one among them: on fewer where no more can be
// had. None begins before their number is known.
template <class Body>
void on_threads(int n, Body body) {
  if (n == 1) return body(0, 1);
  std::mutex mutex;
  std::condition_variable is_known;
  int n_found = 0;
  std::vector<std::thread> threads;
  threads.reserve(n - 1);
  for (int thread = 1; thread < n; ++thread) {
    try {
      threads.emplace_back([&, thread] {
        std::unique_lock lock(mutex);
        is_known.wait(lock, [&] { return n_found > 0; });
        lock.unlock();
        body(thread, n_found);
      });
    } catch (const std::system_error&) {
      break;
    }
  }
  {
    std::lock_guard lock(mutex);
    n_found = int(threads.size()) + 1;
  }
  is_known.notify_all();
  body(0, n_found);
  for (std::thread& each : threads) each.join();
}

// The threads that work on one member: this one's number among them.
struct Crew {
  int rank, size;
  Barrier* barrier;

  // Calls work(item) for this thread's share of the items.
  template <class Work>
  void share(int n_items, Work work) const {
    for (int item = rank; item < n_items; item += size) work(item);
  }

  void wait() const { barrier->wait(); }
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
