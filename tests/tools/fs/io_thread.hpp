// A thread that does nothing but what a test knows of.
#pragma once
#include <unistd.h>

#include <functional>
#include <future>
#include <string>
#include <thread>

namespace coretap::tooltest {

class IoThread {
 public:
  explicit IoThread(std::function<void()> work)
      : thread_([this, work = std::move(work)] {
          tid_.set_value(gettid());
          go_.get_future().wait();
          work();
        }),
        id_(std::to_string(tid_.get_future().get())) {}
  ~IoThread() {
    if (thread_.joinable()) finish();
  }
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;

  /// For the option -t.
  const std::string& id() const { return id_; }
  /// Lets it work, and waits for its end.
  void finish() {
    go_.set_value();
    thread_.join();
  }

 private:
  std::promise<pid_t> tid_;
  std::promise<void> go_;
  std::thread thread_;
  std::string id_;
};

}  // namespace coretap::tooltest
