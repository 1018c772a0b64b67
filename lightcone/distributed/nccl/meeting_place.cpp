#include "lightcone/distributed/nccl/meeting_place.h"

#include <cstdlib>
#include <mutex>

namespace lc::distributed::nccl {
namespace {

constexpr const char* kPlace = "NCCL_COMM_ID";

// Ranks that are threads share the environment.
std::mutex one_at_a_time;
int setters = 0;

}  // namespace

MeetingPlace::MeetingPlace(const std::string& address) {
  const std::lock_guard lock(one_at_a_time);
  set_ = !address.empty() && (setters > 0 || !std::getenv(kPlace));
  if (set_ && ++setters == 1) ::setenv(kPlace, address.c_str(), 1);
}
MeetingPlace::~MeetingPlace() {
  const std::lock_guard lock(one_at_a_time);
  if (set_ && --setters == 0) ::unsetenv(kPlace);
}

NoMeetingPlace::NoMeetingPlace() {
  one_at_a_time.lock();
  if (const char* const place = std::getenv(kPlace)) was_ = place;
  if (!was_.empty()) ::unsetenv(kPlace);
}
NoMeetingPlace::~NoMeetingPlace() {
  if (!was_.empty()) ::setenv(kPlace, was_.c_str(), 1);
  one_at_a_time.unlock();
}

}  // namespace lc::distributed::nccl
