// What the analysis of scripts/thread_safety.py must find.
#include "base/mutex.h"

namespace xsched {

class Account {
 public:
  void Earn(int sum) {
    money_ += sum;  // expected-error {{writing variable 'money_' requires holding mutex 'mutex_'}}
  }

  int Money() const {
    return money_;  // expected-error {{reading variable 'money_' requires holding mutex 'mutex_'}}
  }

  void EarnTwice(int sum) {
    Add(sum);  // expected-error {{calling function 'Add' requires holding mutex 'mutex_' exclusively}}
    MutexLock lock(mutex_);
    Add(sum);
  }

  void LockAgain() {
    MutexLock lock(mutex_);  // expected-note {{mutex acquired here}}
    mutex_.Lock();           // expected-error {{acquiring mutex 'mutex_' that is already held}}
  }

  void CallBack() {
    MutexLock lock(mutex_);
    Earn(1);
    Report();  // expected-error {{cannot call function 'Report' while mutex 'mutex_' is held}}
  }

  bool Keep(bool early) {
    mutex_.Lock();            // expected-note {{mutex acquired here}}
    if (early) return false;  // expected-error@+3 {{mutex 'mutex_' is not held on every path through here}}
    mutex_.Unlock();
    return true;
  }

  void IgnoreFailure() {
    mutex_.TryLock();
    ++money_;         // expected-error {{writing variable 'money_' requires holding mutex 'mutex_'}}
    mutex_.Unlock();  // expected-error {{releasing mutex 'mutex_' that was not held}}
  }

  void WaitUnlocked() {
    changed_.Wait(mutex_);  // expected-error {{requires holding mutex 'mutex_'}}
  }

 private:
  void Add(int sum) REQUIRES(mutex_) { money_ += sum; }
  void Report() EXCLUDES(mutex_) {}

  Mutex<LockRank::kAgent> mutex_;
  Condition changed_;
  int money_ GUARDED_BY(mutex_) = 0;
};

}  // namespace xsched
