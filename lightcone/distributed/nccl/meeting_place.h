// NCCL_COMM_ID, the variable in which NCCL looks for the address at which ranks meet.
#pragma once

#include <string>

namespace lc::distributed::nccl {

// Sets the variable for as long as ranks meet, unless it has been set already or `address` is "".
class MeetingPlace {
 public:
  explicit MeetingPlace(const std::string& address);
  ~MeetingPlace();
  MeetingPlace(const MeetingPlace&) = delete;
  MeetingPlace& operator=(const MeetingPlace&) = delete;

 private:
  bool set_ = false;
};

// Takes the variable away for one call: NCCL would let every communicator meet at that one address.
class NoMeetingPlace {
 public:
  NoMeetingPlace();
  ~NoMeetingPlace();
  NoMeetingPlace(const NoMeetingPlace&) = delete;
  NoMeetingPlace& operator=(const NoMeetingPlace&) = delete;

 private:
  std::string was_;
};

}  // namespace lc::distributed::nccl
