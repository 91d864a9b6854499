// Package stats describes samples and says how sure that is.
//
// Quantiles are those of numpy's default (type 7) or, for figures of tools that
// do not interpolate, a step of the empirical distribution. Where two samples are
// compared, an interval says by how much chance alone could move their ratio.
// Everything random follows from a seed. Values must be finite: a NaN among them
// makes what is computed meaningless.
package stats
