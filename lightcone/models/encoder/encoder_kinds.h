// How the config.json of each kind of encoder sets an EncoderConfig. The functions read the sizes and switches of a
// kind; what all kinds share is in encoder_config.cpp.
#pragma once

#include <string_view>

#include "lightcone/models/encoder/encoder_config.h"

namespace lc {

// A probability of dropout. Throws Error for one that is not from 0 to below 1.
double share_of(const ConfigFile& c, std::string_view key, double otherwise);
// Makes so many layers. Throws Error for more than are supported.
void make_layers(const ConfigFile& c, EncoderConfig& e, std::int64_t count);

// Reads the keys of a kind.
void read_bert(const ConfigFile& c, EncoderConfig& e);  // and RoBERTa, MPNet, ELECTRA, ALBERT
void read_distilbert(const ConfigFile& c, EncoderConfig& e);
void read_deberta(const ConfigFile& c, EncoderConfig& e);
void read_modernbert(const ConfigFile& c, EncoderConfig& e);
void read_nomic_bert(const ConfigFile& c, EncoderConfig& e);

}  // namespace lc
