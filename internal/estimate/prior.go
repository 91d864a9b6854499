package estimate

// priors is what is known of a model before it has reported anything.
type priors struct {
	weights weights // tokens for one of each feature
	spread  weights // how far models differ in it: a standard deviation
}

// prior is the mean, and the spread, of what four tokenizers charge for the
// half of the test corpus that is not tested with: o200k and Llama 3's, which
// count twice because models of today are more like them, cl100k and the first of Mistral's.
// Each is fitted for the least mean square of the relative error with no weight
// below 0. Weights for scripts that the corpus lacks, for numbers and for media
// are guesses, with a spread to match. TestPriorIsFitted makes and compares the
// numbers.
var prior = priors{
	weights: weights{
		one:        2.36,
		words:      0.53,
		longer:     0.45,
		joins:      0.74,
		capitals:   0.21,
		digits:     0.12,
		figures:    1.1,
		spaces:     0,
		newlines:   1.03,
		signs:      0.77,
		accented:   1.1,
		cyrillic:   0.2,
		greek:      0.5,
		hebrew:     0.6,
		arabic:     0.4,
		devanagari: 0.5,
		indic:      0.8,
		thai:       0.6,
		hangul:     0.64,
		kana:       0.8,
		han:        0.93,
		apart:      1.08,
		others:     1.5,
		values:     0.99,
		keys:       1.37,
		numbers:    1,
		media:      500,
	},
	spread: weights{
		one:        30,
		words:      0.14,
		longer:     0.13,
		joins:      0.15,
		capitals:   0.1,
		digits:     0.26,
		figures:    0.26,
		spaces:     0.1,
		newlines:   0.33,
		signs:      0.15,
		accented:   0.61,
		cyrillic:   0.1,
		greek:      0.4,
		hebrew:     0.4,
		arabic:     0.21,
		devanagari: 0.29,
		indic:      0.4,
		thai:       0.4,
		hangul:     0.21,
		kana:       0.2,
		han:        0.19,
		apart:      0.33,
		others:     0.3,
		values:     2,
		keys:       2,
		numbers:    0.3,
		media:      500,
	},
}
