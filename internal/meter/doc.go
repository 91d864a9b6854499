// Package meter turns bytes and times into a Record.
//
// It does no input or output and reads no clock: the gateway hands it each
// piece of the answer after the client has it, with the times at which the
// piece came and was delivered, and asks for the figures at the end. A fault
// in the meter takes the meter out of the call, never the call.
package meter
