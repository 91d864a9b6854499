// Package estimate predicts the tokens of a call and learns from what was reported.
package estimate
