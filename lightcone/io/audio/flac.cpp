#include <FLAC/stream_decoder.h>

#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "lightcone/io/audio/decoders.h"
#include "lightcone/io/printable.h"

namespace lc::io {
namespace {

// libFLAC calls these functions with bytes to read and samples that it decoded. Exceptions must not pass through its
// frames: they wait in thrown_.
class Flac {
 public:
  Flac(const MappedFile& file, Budget& budget) : file_(file), rest_(file.bytes()), budget_(budget) {}

  Audio decoded() {
    const std::unique_ptr<FLAC__StreamDecoder, void (*)(FLAC__StreamDecoder*)> decoder(FLAC__stream_decoder_new(),
                                                                                       FLAC__stream_decoder_delete);
    if (!decoder) throw wrong("the decoder cannot be started");
    FLAC__stream_decoder_set_md5_checking(decoder.get(), true);
    if (FLAC__stream_decoder_init_stream(decoder.get(), read, nullptr, nullptr, nullptr, nullptr, write, info, error,
                                         this) != FLAC__STREAM_DECODER_INIT_STATUS_OK)
      throw wrong("the decoder cannot be started");
    FLAC__stream_decoder_process_until_end_of_stream(decoder.get());
    const FLAC__StreamDecoderState state = FLAC__stream_decoder_get_state(decoder.get());
    const bool sums_agree = FLAC__stream_decoder_finish(decoder.get());
    if (thrown_) std::rethrow_exception(thrown_);
    if (!why_.empty()) throw wrong(why_);
    if (state != FLAC__STREAM_DECODER_END_OF_STREAM) throw wrong(FLAC__StreamDecoderStateString[state]);
    if (channels_ == 0) throw wrong("it ends before its samples");
    if (total_ && frames_ != total_) throw wrong("it says ", total_, " samples of each channel, and has ", frames_);
    if (!sums_agree) throw wrong("the MD5 of its samples is another");
    if (!total_) gather();
    return {std::move(samples_), rate_};
  }

 private:
  template <class... Ts>
  Error wrong(const Ts&... what) const {
    return file_error("load", file_.path(), "not a sound FLAC file: ", what...);
  }
  // Calls f unless the file was refused already; libFLAC may go on with bytes that it has.
  template <class F>
  bool guarded(const F& f) {
    if (thrown_ || !why_.empty()) return false;
    try {
      f();
    } catch (...) {
      thrown_ = std::current_exception();
    }
    return !thrown_;
  }
  static Flac& of(void* self) { return *static_cast<Flac*>(self); }

  static FLAC__StreamDecoderReadStatus read(const FLAC__StreamDecoder*, FLAC__byte* to, std::size_t* bytes,
                                            void* self) {
    Flac& f = of(self);
    if (f.thrown_ || !f.why_.empty()) return FLAC__STREAM_DECODER_READ_STATUS_ABORT;
    *bytes = std::min(*bytes, f.rest_.size());
    if (*bytes == 0) return FLAC__STREAM_DECODER_READ_STATUS_END_OF_STREAM;
    std::memcpy(to, f.rest_.data(), *bytes);
    f.rest_ = f.rest_.subspan(*bytes);
    return FLAC__STREAM_DECODER_READ_STATUS_CONTINUE;
  }
  static void info(const FLAC__StreamDecoder*, const FLAC__StreamMetadata* m, void* self) {
    Flac& f = of(self);
    if (m->type == FLAC__METADATA_TYPE_STREAMINFO) f.guarded([&] { f.begin(m->data.stream_info); });
  }
  static FLAC__StreamDecoderWriteStatus write(const FLAC__StreamDecoder*, const FLAC__Frame* frame,
                                              const FLAC__int32* const* samples, void* self) {
    Flac& f = of(self);
    const bool going_on = f.guarded([&] { f.add(frame->header, samples); });
    return going_on ? FLAC__STREAM_DECODER_WRITE_STATUS_CONTINUE : FLAC__STREAM_DECODER_WRITE_STATUS_ABORT;
  }
  static void error(const FLAC__StreamDecoder*, FLAC__StreamDecoderErrorStatus status, void* self) {
    Flac& f = of(self);
    if (!f.why_.empty()) return;
    switch (status) {
      case FLAC__STREAM_DECODER_ERROR_STATUS_BAD_HEADER: f.why_ = "a frame has a damaged header"; break;
      case FLAC__STREAM_DECODER_ERROR_STATUS_FRAME_CRC_MISMATCH: f.why_ = "the CRC of a frame is another"; break;
      case FLAC__STREAM_DECODER_ERROR_STATUS_UNPARSEABLE_STREAM: f.why_ = "a frame uses reserved features"; break;
      case FLAC__STREAM_DECODER_ERROR_STATUS_LOST_SYNC:
        f.why_ = "something that is no frame lies between frames";
        break;
      default: f.why_ = "its metadata is damaged"; break;
    }
  }

  void begin(const FLAC__StreamMetadata_StreamInfo& s) {
    if (channels_) throw wrong("it describes its samples twice");
    channels_ = s.channels, bits_ = s.bits_per_sample, rate_ = s.sample_rate, total_ = s.total_samples;
    if (channels_ == 0 || rate_ == 0) throw wrong(channels_, " channels and ", rate_, " samples a second");
    // A frame has at least ten bytes and at most 65535 samples of each channel.
    if (total_ / 65535 > file_.bytes().size() / 10)
      throw wrong("it says ", total_, " samples of each channel, which its ", file_.bytes().size(),
                  " bytes cannot hold");
    budget_.take(std::size_t{s.max_blocksize} * channels_, 8);  // the decoder's samples and residuals
    if (!total_) return;
    budget_.take(static_cast<std::size_t>(total_) * channels_, sizeof(float));
    samples_ = Array::zeros(DType::F32, {channels_, static_cast<std::int64_t>(total_)});
  }

  void add(const FLAC__FrameHeader& h, const FLAC__int32* const* in) {
    if (h.channels != channels_ || h.bits_per_sample != bits_ || h.sample_rate != rate_)
      throw wrong("a frame has ", h.channels, " channels of ", h.bits_per_sample, " bits at ", h.sample_rate,
                  " Hz, and the file ", channels_, " of ", bits_, " at ", rate_);
    const std::size_t count = h.blocksize;
    if (total_ && count > total_ - frames_) throw wrong("it says ", total_, " samples of each channel, and has more");
    const float scale = 1 / static_cast<float>(std::int64_t{1} << (bits_ - 1));
    float* to = nullptr;
    std::size_t stride = count;
    if (total_) {
      to = samples_.values<float>().data() + frames_, stride = static_cast<std::size_t>(total_);
    } else {
      budget_.take(count * channels_, 2 * sizeof(float));  // here, and in the result
      blocks_.emplace_back(count * channels_), to = blocks_.back().data();
    }
    for (std::size_t c = 0; c < channels_; ++c)
      for (std::size_t k = 0; k < count; ++k) to[c * stride + k] = static_cast<float>(in[c][k]) * scale;
    frames_ += count;
  }

  void gather() {
    samples_ = Array::zeros(DType::F32, {channels_, static_cast<std::int64_t>(frames_)});
    float* to = samples_.values<float>().data();
    for (const std::vector<float>& b : blocks_) {
      const std::size_t count = b.size() / channels_;
      for (std::size_t c = 0; c < channels_; ++c)
        std::memcpy(to + c * static_cast<std::size_t>(frames_), b.data() + c * count, count * sizeof(float));
      to += count;
    }
  }

  const MappedFile& file_;
  std::span<const std::byte> rest_;
  Budget& budget_;
  unsigned channels_ = 0, bits_ = 0, rate_ = 0;
  std::uint64_t total_ = 0, frames_ = 0;  // samples of each channel: as the file says (0: not known), and so far
  Array samples_;
  std::vector<std::vector<float>> blocks_;  // frames of a file of unknown length, by channel
  std::string why_;
  std::exception_ptr thrown_;
};

}  // namespace

Audio decode_flac(const MappedFile& file, Budget& budget) { return Flac(file, budget).decoded(); }

}  // namespace lc::io
