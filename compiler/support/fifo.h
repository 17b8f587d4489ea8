// A queue that takes no memory while it is empty, for state of which there is one a unit: std::deque takes half a
// kilobyte however little it holds.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace rdusim {

template <class T>
class Fifo {
 public:
  bool empty() const { return first_ == items_.size(); }
  std::size_t size() const { return items_.size() - first_; }
  // Of these, and of pop_front: requires that it is not empty.
  T& front() { return items_[first_]; }
  const T& front() const { return items_[first_]; }
  T& back() { return items_.back(); }
  // Oldest first.
  auto begin() { return items_.begin() + static_cast<std::ptrdiff_t>(first_); }
  auto end() { return items_.end(); }

  void push_back(T item) {
    // Rather than to grow, it closes up; where half of it has gone, so that an item is moved once on average.
    if (items_.size() == items_.capacity() && first_ != 0 && first_ >= items_.size() / 2) {
      items_.erase(items_.begin(), begin());
      first_ = 0;
    }
    items_.push_back(std::move(item));
  }
  void pop_front() {
    items_[first_] = T{};
    if (++first_ == items_.size()) {
      items_.clear();
      first_ = 0;
    }
  }

 private:
  std::vector<T> items_;
  std::size_t first_ = 0;
};

}  // namespace rdusim
