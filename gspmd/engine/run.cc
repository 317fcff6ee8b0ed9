#include "gspmd/engine/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <fstream>
#include <limits>
#include <map>
#include <mutex>
#include <thread>

#include "gspmd/base/error.h"
#include "gspmd/engine/communicator.h"
#include "gspmd/report/memory.h"
#include "gspmd/sharding/iota.h"

namespace gspmd {
namespace {

class Pool {
 public:
  Pool(const Program& program, std::vector<std::vector<Value>> arguments, const RunOptions& o)
      : program_(program), communicator_(make_memory_communicator(program, o.num_devices, o.wide)) {
    for (int64_t d = 0; d < o.num_devices; ++d) {
      devices_.push_back(std::make_unique<Device>(program, d, std::move(arguments[d]), o.wide));
      devices_.back()->set_max_trips(o.max_trips);
      devices_.back()->set_observer(o.observer);
      ready_.push_back(d);
    }
    threads_ = o.threads > 0 ? o.threads
                             : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    threads_ = static_cast<int>(std::min<int64_t>(threads_, o.num_devices));
  }

  std::vector<Value> run() {
    std::vector<std::thread> others;
    for (int k = 1; k < threads_; ++k) others.emplace_back([this] { work(); });
    work();
    for (std::thread& t : others) t.join();
    if (!errors_.empty()) std::rethrow_exception(errors_.begin()->second);
    if (done_ < static_cast<int64_t>(devices_.size())) throw deadlock();
    std::vector<Value> results;
    for (const auto& d : devices_) results.push_back(d->result());
    return results;
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [&] { return !ready_.empty() || running_ == 0 || !errors_.empty(); });
      if (!errors_.empty() || (ready_.empty() && running_ == 0)) break;
      if (ready_.empty()) continue;
      int64_t d = ready_.front();
      ready_.pop_front();
      ++running_;
      lock.unlock();
      advance(d);
      lock.lock();
      --running_;
      wake_.notify_all();
    }
    wake_.notify_all();
  }

  // Runs a device as far as it goes, and hands on what its arrival completes.
  void advance(int64_t d) {
    try {
      Device& device = *devices_[d];
      if (device.run() == Device::State::kDone) {
        std::lock_guard lock(mutex_);
        ++done_;
        return;
      }
      Contribution c{d, &device.waiting_for(), device.occurrence(), std::move(device.outgoing())};
      std::vector<Delivery> deliveries = communicator_->contribute(std::move(c));
      for (Delivery& delivery : deliveries)
        devices_[delivery.device]->resume(std::move(delivery.result));
      std::lock_guard lock(mutex_);
      for (const Delivery& delivery : deliveries) ready_.push_back(delivery.device);
    } catch (Error& e) {
      keep(d, std::make_exception_ptr(named(d, e)));
    } catch (...) {
      keep(d, std::current_exception());
    }
  }

  // An error on one device ends the run for all.
  void keep(int64_t d, std::exception_ptr e) {
    std::lock_guard lock(mutex_);
    errors_.emplace(d, e);
  }

  Error named(int64_t d, const Error& e) const {
    if (devices_.size() == 1) return e;
    Error with_device(fmt::format("on device {}: {}", d, e.message()), e.hint(), e.code());
    with_device.at(e.place(), e.source_line());
    return with_device;
  }

  Error deadlock() const {
    std::string where;
    for (const Instr* i : communicator_->waiting())
      where += (where.empty() ? "" : "; ") + describe(*i);
    return Error(fmt::format("{} of {} devices wait for each other for ever at: {}",
                             static_cast<int64_t>(devices_.size()) - done_, devices_.size(), where),
                 "all devices of a group must come to the same collectives, equally often");
  }

  const Program& program_;
  std::unique_ptr<Communicator> communicator_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<int64_t> ready_;
  int running_ = 0;
  int64_t done_ = 0;
  int threads_ = 1;
  std::map<int64_t, std::exception_ptr> errors_;
};

int64_t free_memory() {
  std::ifstream in("/proc/meminfo");
  std::string key, unit;
  int64_t kib = 0;
  while (in >> key >> kib >> unit) {
    if (key == "MemAvailable:") return kib * 1024;
  }
  return int64_t{8} << 30;
}

}  // namespace

int64_t memory_limit(const RunOptions& options) {
  return options.memory_limit > 0 ? options.memory_limit : free_memory() / 5 * 4;
}

int64_t memory_needed(const Module& program, int64_t num_devices, bool wide) {
  // Values of every narrower type grow to at most the size of f64: for f32 programs twice.
  int64_t factors[] = {peak_bytes(program), num_devices, wide ? 2 : 1};
  return checked_product(factors).value_or(std::numeric_limits<int64_t>::max());
}

void refuse_what_does_not_fit(const Module& program, const RunOptions& options) {
  int64_t limit = memory_limit(options);
  int64_t needed = memory_needed(program, options.num_devices, options.wide);
  if (needed <= limit) return;
  throw Error(fmt::format("the run needs {:.2f} GB of memory on {} devices, {:.2f} GB may be used",
                          static_cast<double>(needed) / 1e9, options.num_devices,
                          static_cast<double>(limit) / 1e9),
              "take a smaller program or fewer devices");
}

std::vector<Value> run(const Program& program, std::vector<std::vector<Value>> arguments,
                       const RunOptions& options) {
  refuse_what_does_not_fit(program.module(), options);
  return Pool(program, std::move(arguments), options).run();
}

}  // namespace gspmd
