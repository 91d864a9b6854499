// Package estimate predicts the tokens of a call and learns from what was reported.
//
// Nothing is tokenized. A [Scanner] counts features of the prompt's text as the
// body passes: words and their length, digits, signs, letters by script. An
// [Estimator] keeps, for each model, what its tokenizer charges for each feature,
// and, for each key, by what factor its prompts differ; both follow the prompt
// tokens that upstreams report. Beside that it keeps how long answers get, for
// calls that do not say. On the 18 corpora of languages, code and data under
// testdata, with four tokenizers, the mean error is 3 to 5 %, where bytes/4 has 19
// to 32. Their text is composed; what people write is more varied, and costs more.
//
// Predictions steer admission and stand in for usage that was never reported.
// They are marked wherever they are shown.
package estimate
