// Predictions of classifiers of texts in folders of Hugging Face's.
#pragma once

#include <string>

#include "../commands.h"

namespace lc::tool {

// The folder of the classifier of texts that MODEL names: itself, or the folder model/ of a run; "" if it names none.
std::string text_classifier_folder(const std::string& model);
void predict_texts(const std::string& folder, const PredictOptions& o);

}  // namespace lc::tool
