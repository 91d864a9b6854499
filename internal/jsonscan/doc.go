// Package jsonscan reads JSON piece by piece and reports only the values asked for.
//
// A Shape is compiled once from the paths of the wanted values. A Scanner
// follows a document in any number of pieces, cut anywhere, and calls a Handler
// for each wanted value as soon as its last byte has been seen. Nothing else is
// kept, so a document of any size is read in a few hundred bytes of memory, and
// a document that comes in one piece is read without allocating.
//
// Keys are compared exactly; case is never folded. The grammar is JSON's, read
// leniently where producers are known to be careless and nothing depends on it:
// invalid UTF-8, lone surrogates, unknown escapes and raw control characters in
// strings pass, numbers may be odd (01, 1.2.3), and NaN, Infinity and -Infinity
// are taken as numbers that Number does not accept.
package jsonscan
