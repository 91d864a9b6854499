// Package workload plans what a load test sends, and when.
//
// All of it follows from a seed: the same plan sends the same prompts at the
// same times. A Plan says what is to come; a Source deals it out call by call; a
// Prompter writes the prompts, aimed at a number of tokens without a tokenizer, and
// learns from the counts that come back how far off it was.
package workload
