// A link of a stated rate and delay between two network namespaces, for programs that know nothing of it.
//
//   link run RATE DELAY               bits a second, seconds one way. Prints the two namespaces as paths, then answers
//                                     every line on stdin with its counters, and ends with stdin
//   link enter NAMESPACE NAME COMMAND...
//                                     runs a command in a namespace, on a host of this name
//
// Each namespace has a TUN device link0 (10.77.0.1 and 10.77.0.2, packets of 1500 bytes) whose packets this program
// reads, holds back and writes to the other one. The namespaces have no names: whatever ends this program and those
// inside, a signal that nobody can catch included, the kernel removes both. Root only.
//
// Packets are large where the kernel lets them be (segmentation offload, as in a network card): a gigabit costs two
// thousand packets a second of this processor, and is counted in the frames that it would be on the wire.
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace {

constexpr const char* kDevice = "link0";
constexpr int kMtu = 1500;
// A sender's TCP buffer (tcp_wmem) has 2 MB at most: eight times what a gigabit link of 2 ms there and back holds. A
// queue of 8 MB is never full with the few connections of two ranks, and bounded for all others.
constexpr const char* kBuffers = "4096 262144 2097152";
constexpr double kQueue = 8e6;
constexpr std::size_t kFrame = 38;  // bytes of Ethernet around a packet: preamble, header, check sequence, gap

// What is before each packet: struct virtio_net_hdr, whose header is none of C++.
struct Offload {
  std::uint8_t flags, segmentation;  // 0: it is one packet
  std::uint16_t headers, segment, checksum_start, checksum_offset;
};
constexpr std::size_t kLongest = sizeof(Offload) + 65536;

int checked(int result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return result;
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void write_file(const char* path, const std::string& text) {
  const int file = checked(::open(path, O_WRONLY | O_CLOEXEC), path);
  const auto written = ::write(file, text.data(), text.size());
  ::close(file);
  checked(static_cast<int>(written), path);
}

ifreq request(const char* device) {
  ifreq r{};
  std::strncpy(r.ifr_name, device, IFNAMSIZ - 1);
  return r;
}

void set_up(int socket, const char* device) {
  ifreq r = request(device);
  checked(::ioctl(socket, SIOCGIFFLAGS, &r), "SIOCGIFFLAGS");
  r.ifr_flags = static_cast<short>(r.ifr_flags | IFF_UP | IFF_RUNNING);
  checked(::ioctl(socket, SIOCSIFFLAGS, &r), "SIOCSIFFLAGS");
}

struct End {
  int device = -1, space = -1;
};

// This process moves into a new namespace, and makes its device.
End make_end(const char* address) {
  checked(::unshare(CLONE_NEWNET), "a new network namespace (root only)");
  End e;
  e.space = checked(::open("/proc/self/ns/net", O_RDONLY), "/proc/self/ns/net");
  e.device = checked(::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC), "/dev/net/tun");
  ifreq r = request(kDevice);
  r.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
  checked(::ioctl(e.device, TUNSETIFF, &r), "TUNSETIFF");
  checked(::ioctl(e.device, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6), "TUNSETOFFLOAD");
  const int socket = checked(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket");
  const auto set = [&](unsigned long what, const char* text) {
    ifreq a = request(kDevice);
    auto* in = reinterpret_cast<sockaddr_in*>(&a.ifr_addr);
    in->sin_family = AF_INET;
    ::inet_pton(AF_INET, text, &in->sin_addr);
    checked(::ioctl(socket, what, &a), text);
  };
  set(SIOCSIFADDR, address), set(SIOCSIFNETMASK, "255.255.255.0");
  r = request(kDevice);
  r.ifr_mtu = kMtu;
  checked(::ioctl(socket, SIOCSIFMTU, &r), "SIOCSIFMTU");
  set_up(socket, kDevice), set_up(socket, "lo");
  ::close(socket);
  write_file("/proc/sys/net/ipv4/tcp_wmem", kBuffers);
  return e;
}

struct Packet {
  std::vector<char> bytes;  // the longest packet that was here; this one has `size` of them
  std::size_t size = 0;
  double due = 0;
};

// Bytes of the wire that a packet takes: it may be cut into segments, each with its headers and its frame.
double wire_bytes(const Packet& p) {
  Offload o{};
  std::memcpy(&o, p.bytes.data(), sizeof o);
  const std::size_t length = p.size - sizeof o;
  if (o.segmentation == 0 || o.segment == 0) return static_cast<double>(length + kFrame);
  const std::size_t segments = (length - o.headers + o.segment - 1) / o.segment;
  return static_cast<double>(length + (segments - 1) * o.headers + segments * kFrame);
}

class Direction {
 public:
  Direction(int from, int to, double rate, double delay) : from_(from), to_(to), rate_(rate), delay_(delay) {}

  int from() const { return from_; }
  double next() const { return queue_.empty() ? 1e300 : queue_.front().due; }

  void read_all() {
    for (;;) {
      if (spare_.empty()) spare_.push_back({std::vector<char>(kLongest)});
      Packet& p = spare_.back();
      const auto n = ::read(from_, p.bytes.data(), p.bytes.size());
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
      p.size = static_cast<std::size_t>(checked(static_cast<int>(n), "read a device"));
      if (!take(p)) continue;
      queue_.push_back(std::move(p));
      spare_.pop_back();
    }
  }
  void deliver(double until) {
    for (; next() <= until; queue_.pop_front()) {
      Packet& p = queue_.front();
      // A device that is full, or that is going down, drops packets, as all do.
      if (::write(to_, p.bytes.data(), p.size) < 0) ++dropped_;
      spare_.push_back(std::move(p));
    }
  }
  std::string counters() const {
    return "{\"packets\": " + std::to_string(packets_) + ", \"dropped\": " + std::to_string(dropped_) +
           ", \"wire_bytes\": " + std::to_string(static_cast<long>(wire_)) +
           ", \"longest_queue\": " + std::to_string(static_cast<long>(longest_)) + "}";
  }

 private:
  // Says when a packet is due, or drops it.
  bool take(Packet& p) {
    const double at = now(), wire = wire_bytes(p);
    const double waiting = std::max(0.0, free_ - at) * rate_ / 8;
    ++packets_;
    if (waiting + wire > kQueue) {
      ++dropped_;
      return false;
    }
    wire_ += wire, longest_ = std::max(longest_, waiting + wire);
    free_ = std::max(free_, at) + wire * 8 / rate_;
    p.due = free_ + delay_;
    return true;
  }

  int from_, to_;
  double rate_, delay_;
  double free_ = 0;  // when the wire is free
  std::deque<Packet> queue_;
  std::vector<Packet> spare_;
  long packets_ = 0, dropped_ = 0;
  double wire_ = 0, longest_ = 0;
};

long cpu_microseconds() {
  rusage u{};
  ::getrusage(RUSAGE_SELF, &u);
  return 1'000'000 * (u.ru_utime.tv_sec + u.ru_stime.tv_sec) + u.ru_utime.tv_usec + u.ru_stime.tv_usec;
}

// Packets are due while ranks compute on all processors: this program comes before them, where that is permitted.
void come_first() {
  ::prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  const sched_param priority{.sched_priority = 1};
  if (::sched_setscheduler(0, SCHED_FIFO, &priority) != 0) ::setpriority(PRIO_PROCESS, 0, -20);
}

int run(double rate, double delay) {
  const End a = make_end("10.77.0.1"), b = make_end("10.77.0.2");
  come_first();
  const std::string here = "/proc/" + std::to_string(::getpid()) + "/fd/";
  std::printf("%s%d %s%d\n", here.c_str(), a.space, here.c_str(), b.space);
  std::fflush(stdout);
  Direction there(a.device, b.device, rate, delay), back(b.device, a.device, rate, delay);
  for (;;) {
    const double wait = std::clamp(std::min(there.next(), back.next()) - now(), 0.0, 1.0);
    const timespec limit{.tv_sec = static_cast<time_t>(wait),
                         .tv_nsec = static_cast<long>((wait - static_cast<double>(static_cast<time_t>(wait))) * 1e9)};
    std::array<pollfd, 3> all{pollfd{a.device, POLLIN, 0}, pollfd{b.device, POLLIN, 0}, pollfd{0, POLLIN, 0}};
    if (::ppoll(all.data(), all.size(), &limit, nullptr) < 0 && errno != EINTR) checked(-1, "ppoll");
    if (all[0].revents & POLLIN) there.read_all();
    if (all[1].revents & POLLIN) back.read_all();
    there.deliver(now()), back.deliver(now());
    if (!all[2].revents) continue;
    std::array<char, 64> line{};
    if (::read(0, line.data(), line.size()) <= 0) return 0;
    std::printf("{\"cpu_s\": %lde-6, \"there\": %s, \"back\": %s}\n", cpu_microseconds(), there.counters().c_str(),
                back.counters().c_str());
    std::fflush(stdout);
  }
}

double number(std::string_view text) {
  double x = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), x);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size() || x < 0)
    throw std::invalid_argument("'" + std::string(text) + "' is no rate and no delay");
  return x;
}

int enter(char** argv) {
  const int space = checked(::open(argv[2], O_RDONLY | O_CLOEXEC), argv[2]);
  checked(::setns(space, CLONE_NEWNET), argv[2]);
  // Programs look for devices in /sys, which shows those of the namespace in which it was mounted.
  checked(::unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWPID), "a namespace of mounts (root only)");
  checked(::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), "mount");
  checked(::mount("link", "/sys", "sysfs", MS_RDONLY, nullptr), "mount /sys");
  checked(::sethostname(argv[3], std::strlen(argv[3])), "sethostname");
  // The command is the first process of its namespace: all that it starts ends with it, and it with whoever started it.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (const int child = checked(::fork(), "fork")) {
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::execvp(argv[4], argv + 4);
  throw std::system_error(errno, std::generic_category(), argv[4]);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string what = argc > 1 ? argv[1] : "";
    if (what == "run" && argc == 4) return run(number(argv[2]), number(argv[3]));
    if (what == "enter" && argc > 4) return enter(argv);
    std::fprintf(stderr, "link run RATE DELAY, or link enter NAMESPACE NAME COMMAND...\n");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "link: %s\n", e.what());
  }
  return 2;
}
