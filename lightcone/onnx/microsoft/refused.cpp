// Operators of com.microsoft that are known and not read, with the reason.
#include "lightcone/onnx/microsoft/microsoft.h"

namespace lc::onnx {
namespace {

constexpr const char* kSearch = "it generates text inside one node; run the decoder's graph and choose tokens outside";
constexpr const char* kPaged = "its cache consists of pages that are written in place, and graphs cannot express that";
constexpr const char* kPackedBatch = "its sequences are concatenated in one tensor, at offsets that depend on data";
constexpr const char* kTexts = "texts are not supported";
constexpr const char* kTensorRt = "it is written for one kind of GPU, and its layouts are not described";
constexpr const char* kExperts = "experts are chosen for each token inside one node, which is not supported";
constexpr const char* kNotWritten = "it is known, and no rule reads it yet";
constexpr const char* kFloats4 = "floats of 4 bits and their scales are not supported";
constexpr const char* kTraining = "it is written for training";

}  // namespace

void add_microsoft_refused(Operators& t) {
  const auto refuse = [&](const char* why, std::initializer_list<const char*> names) {
    for (const char* name : names) t.push_back({kMicrosoft, name, 1, nullptr, why});
  };
  refuse(kSearch, {"BeamSearch", "GreedySearch", "Sampling", "WhisperBeamSearch", "NGramRepeatBlock",
                   "SpeculativePrefixCommit", "BifurcationDetector"});
  refuse(kPaged, {"PagedAttention", "SparsePagedAttention", "DecoderMaskedSelfAttention", "DecoderAttention"});
  refuse(kPackedBatch, {"PackedAttention", "PackedMultiHeadAttention", "PackedSparseAttentionIndexer",
                        "PackedSparseAttentionIndexerMerge", "GatherPacked", "MoEPacked", "RemovePadding",
                        "RestorePadding", "VarlenCausalConvWithState", "VarlenNGramHashMapping"});
  refuse(kTexts, {"Tokenizer", "WordConvEmbedding", "MurmurHash3", "NGramHashMapping"});
  refuse(kTensorRt, {"QOrderedAttention", "QOrderedGelu", "QOrderedLayerNormalization", "QOrderedLongformerAttention",
                     "QOrderedMatMul", "QuantizeWithOrder", "DequantizeWithOrder", "MatMulPacked", "GemmFloat8",
                     "EPContext", "Snpe", "QuantizeBFP", "DequantizeBFP"});
  refuse(kExperts, {"MoE", "QMoE", "MoEGroupRouter", "RouterGateUpProj"});
  refuse(kFloats4, {"MatMulBlockQuantizedFp4Weight", "MatMulBlockQuantizedFp8Weight", "MatMulBnb4", "MatMulFpQ4"});
  refuse(kTraining, {"BiasDropout", "BitmaskBiasDropout", "BitmaskDropout"});
  refuse("its result has as many elements as there are different ones", {"Unique"});
  refuse("its padding depends on data", {"ConvTransposeWithDynamicPads"});
  refuse("its table and its indices are described by a mask of blocks",
         {"SparseAttention", "DynamicSparseAttention", "SparseAttentionIndexer"});
  refuse("its matrix is sparse", {"SparseToDenseMatMul"});
  refuse(kNotWritten, {"AttnLSTM",
                       "BranchwiseRMSNorm",
                       "CausalConvWithState",
                       "ConvStateReplay",
                       "CropAndResize",
                       "DynamicTimeWarping",
                       "EngramGate",
                       "GatedAdd",
                       "GatedDeltaNet",
                       "GatedDeltaNetStateReplay",
                       "GatedRMSNorm",
                       "GatedRelativePositionBias",
                       "GemmaRotaryEmbedding",
                       "HyperConnectionLowRankMix",
                       "HyperConnectionPostMix",
                       "HyperConnectionPreMix",
                       "Irfft",
                       "LinearAttention",
                       "LinearAttentionGate",
                       "LongformerAttention",
                       "MRotaryEmbedding",
                       "Mamba2Verify",
                       "MatMulNBitsMlp",
                       "MatMulNBitsQLoRA",
                       "MatMulNBitsQkv",
                       "MaxpoolWithMask",
                       "NhwcFusedConv",
                       "QEmbedLayerNormalization",
                       "RMSNormRotary",
                       "Rfft",
                       "SampleOp",
                       "UnfoldTensor"});
}

}  // namespace lc::onnx
