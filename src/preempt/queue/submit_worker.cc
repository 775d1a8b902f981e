#include "preempt/queue/submit_worker.h"

#include "base/thread.h"
#include "preempt/queue/reentrancy_guard.h"
#include "preempt/queue/xqueue.h"

namespace xsched::preempt {
XResult SubmitWorker::Submit(XQueue& queue, const Ref<HwCommand>& command, bool blocking) {
  mutex_.Lock();
  if (!started_) {
    stop_ = false;
    started_ = StartQuietThread(&thread_, &SubmitWorker::Main, &queue) == 0;
  }
  if (!started_ || !waiting_.Push(command.get())) {
    mutex_.Unlock();
    return kXSchedErrorUnknown;
  }
  command->references.fetch_add(1, std::memory_order_relaxed);
  uint64_t mine = ++taken_in_;
  changed_.NotifyAll();
  while (blocking && taken_out_ < mine) changed_.Wait(mutex_);
  mutex_.Unlock();
  return kXSchedSuccess;
}

void SubmitWorker::WaitLaunched() {
  MutexLock lock(mutex_);
  uint64_t upto = taken_in_;
  while (taken_out_ < upto) changed_.Wait(mutex_);
}

void SubmitWorker::WaitLaunched(const HwCommand& command) {
  MutexLock lock(mutex_);
  while (command.number.load(std::memory_order_acquire) == 0 &&
         !command.dropped.load(std::memory_order_acquire)) {
    changed_.Wait(mutex_);
  }
}

int64_t SubmitWorker::waiting() {
  MutexLock lock(mutex_);
  return static_cast<int64_t>(waiting_.size());
}

void SubmitWorker::Drop() {
  Fifo<HwCommand*> dropped = TakeToDrop();
  // Without the lock: the end of a command is the HAL's, or the program's.
  for (; !dropped.empty(); dropped.Pop()) Ref<HwCommand>::Adopt(dropped.front());
}

Fifo<HwCommand*> SubmitWorker::TakeToDrop() {
  MutexLock lock(mutex_);
  for (size_t i = 0; i < waiting_.size(); ++i) waiting_[i]->dropped.store(true, std::memory_order_release);
  taken_out_ += waiting_.size();
  changed_.NotifyAll();
  return waiting_.TakeAll();
}

void SubmitWorker::WaitBetweenLaunches() {
  MutexLock lock(mutex_);
  while (launching_) changed_.Wait(mutex_);
}

bool SubmitWorker::Empty() {
  MutexLock lock(mutex_);
  return taken_out_ == taken_in_;
}

bool SubmitWorker::IsThisThread() {
  MutexLock lock(mutex_);
  return started_ && pthread_equal(thread_, pthread_self()) != 0;
}

void SubmitWorker::Stop() {
  pthread_t thread;
  {
    MutexLock lock(mutex_);
    if (!started_) return;
    thread = thread_;
    stop_ = true;
    changed_.NotifyAll();
  }
  pthread_join(thread, nullptr);
  GiveBack(UINT64_MAX);
  MutexLock lock(mutex_);
  started_ = false;
}

void SubmitWorker::GiveBack(uint64_t retired) {
  for (; !launched_.empty(); launched_.Pop()) {
    if (launched_.front()->number.load(std::memory_order_relaxed) > retired) return;
    const Ref<HwCommand> command = Ref<HwCommand>::Adopt(launched_.front());
    if (!command->kept.load(std::memory_order_relaxed)) commands_->Consume(command->handle);
  }
}

bool SubmitWorker::FinishesQueue() {
  MutexLock lock(mutex_);
  if (!started_ || pthread_equal(thread_, pthread_self()) == 0) return false;
  stop_ = finishes_queue_ = true;
  return true;
}

void* SubmitWorker::Main(void* queue) {
  auto& xqueue = *static_cast<XQueue*>(queue);
  xqueue.worker().Run(xqueue);
  if (xqueue.worker().LeaveThread()) xqueue.Finish();
  return nullptr;
}

bool SubmitWorker::LeaveThread() {
  {
    MutexLock lock(mutex_);
    if (!finishes_queue_) return false;
    pthread_detach(thread_);
    started_ = finishes_queue_ = false;
  }
  GiveBack(UINT64_MAX);
  return true;
}

void SubmitWorker::Run(XQueue& queue) {
  mutex_.Lock();
  for (;;) {
    while (waiting_.empty() && !stop_) changed_.Wait(mutex_);
    if (waiting_.empty()) break;
    // Waits while the command is still in `waiting_`, so that it can be dropped.
    mutex_.Unlock();
    queue.flow().WaitUntilMayLaunch(queue.submitted() + 1);
    mutex_.Lock();
    // Meanwhile the queue may have been suspended, or its commands dropped.
    if (waiting_.empty() || !queue.flow().MayLaunch(queue.submitted() + 1)) continue;
    Ref<HwCommand> command = Ref<HwCommand>::Adopt(waiting_.front());
    waiting_.Pop();
    mutex_.Unlock();
    // A scheduler may hold it here for long. Meanwhile the program may suspend the queue, and does not wait
    // for this launch then.
    const uint64_t number = queue.LaunchBegin();
    BeginInDriver(queue, number);
    Launch(queue, *command, number);
    GiveBack(queue.flow().KnownRetired());
    if (launched_.Push(command.get())) command->references.fetch_add(1, std::memory_order_relaxed);
    bool last;
    mutex_.Lock();
    ++taken_out_;
    launching_ = false;
    last = waiting_.empty();
    changed_.NotifyAll();
    mutex_.Unlock();
    // Perhaps nothing else reports this queue's progress. So find out when the batch is done.
    if (last || queue.submitted() % static_cast<uint64_t>(queue.config().batch_size) == 0)
      queue.flow().MarkProgress();
    mutex_.Lock();
  }
  mutex_.Unlock();
}

void SubmitWorker::BeginInDriver(XQueue& queue, uint64_t number) {
  mutex_.Lock();
  while (!queue.flow().MayLaunch(number)) {
    mutex_.Unlock();
    queue.flow().WaitUntilMayLaunch(number);
    mutex_.Lock();
  }
  launching_ = true;
  mutex_.Unlock();
}

void SubmitWorker::Launch(XQueue& queue, HwCommand& command, uint64_t number) {
  XResult result;
  {
    ReentrancyGuard guard;  // the command is counted here, and a shim must not count it again
    result = command.ops.launch(command.command, queue.hwq().handle);
  }
  queue.LaunchEnd(number, result == kXSchedSuccess);
  command.number.store(number, std::memory_order_release);
}

void SubmitWorker::ResetAfterFork() {
  mutex_.ResetAfterFork();
  started_ = launching_ = false;
  launched_.Clear();
}

}  // namespace xsched::preempt
