// Package inflate unpacks a copy of a compressed body, bounded.
//
// An [Inflater] is given the body in the pieces in which it passes by and
// hands on at once what each piece yields: whatever the sender flushed comes
// out within the Write that brought its last byte, so that the time of an
// event is the time at which it passed and not that of some later buffer.
//
// The decoders of the libraries pull from a reader, while a body that passes
// by pushes. The two meet in a coroutine (iter.Pull): Write resumes the decoder,
// which runs until it asks for bytes that are not there yet. Decoder and
// caller take turns and never run at the same time, so there is no goroutine
// left to itself, no channel and no lock.
//
// Nothing about a body is trusted. Windows take at most 8 MiB; output is bounded in
// total and in proportion to the input, so a bomb costs little time; a panic
// in a decoder is an error of the body. Every layer of a body with several
// encodings is bounded against the bytes that came in.
package inflate
