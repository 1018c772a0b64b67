// Links between ranks, and the machines that they connect, as numbers from which times are computed.
#pragma once

#include <string>
#include <string_view>

namespace lc {

// A link as one rank has it, in both directions at once: a message of n bytes takes latency + n * seconds_per_byte (the
// alpha-beta model). Of several messages that are sent one behind the other, each but the first takes
// seconds_per_message instead of the latency.
struct Link {
  double latency = 0;              // alpha, in seconds
  double seconds_per_byte = 0;     // beta
  double seconds_per_message = 0;  // what a sender needs for one message before it sends the next
  double seconds(double rounds, double messages, double bytes) const;
  friend bool operator==(const Link&, const Link&) = default;
};

// Reads "5us,46GB/s" or "5us,46GB/s,1us": the latency, the bandwidth, and the seconds per message, which are the
// latency unless they are given. Units: s, ms, us, ns; B/s, kB/s, MB/s, GB/s, TB/s, and bit/s, kbit/s, Mbit/s, Gbit/s,
// Tbit/s. Throws Error for anything else.
Link parse_link(std::string_view text);
std::string str(const Link& link);  // "5 us, 46 GB/s, 1 us a message"

// A quantity with a unit of powers of 1000: "80GB" in "B", "989TFLOP/s" in "FLOP/s". A number without a unit is one of
// the unit itself. Throws Error for anything else, and for numbers that are not positive.
double parse_quantity(std::string_view text, std::string_view unit);

// Machines that are all alike, each with so many ranks: rank r is on machine r / ranks_per_machine.
struct Cluster {
  int ranks_per_machine = 1 << 20;  // by default every rank is on one machine
  Link between;                     // connects ranks on different machines
  Link within;                      // connects ranks on one machine
  // The ranks that share one processor: their computing, and their messages within the machine, which processors copy,
  // take turns.
  double ranks_per_processor = 1;
  // The processors that a rank has besides those of its kernels, one at most: exchanges that run beside kernels copy
  // and add up there. Without one they take the kernels' time.
  double spare_processors = 1;
  // What messages to other machines cost a rank's processor. Zero: network cards copy.
  Link copied_between;
  // The rates of one rank's processor. A kernel takes as long as its arithmetic or its traffic with memory, whichever
  // takes longer. Zero: unknown.
  double flops_per_second = 0, bytes_per_second = 0;
  // Bytes of other ranks' numbers that a processor adds up in a second, as the sums of all_reduce and reduce_scatter
  // are made. Zero: at no cost.
  double reduced_bytes_per_second = 0;
  double memory_bytes = 0;  // what a rank may use; zero: unknown
};

}  // namespace lc
