// Package saturation finds the load at which a service stops keeping up.
//
// It knows nothing of how the figures were measured; all functions are pure.
//
// FindKnee reads a ladder of loads. Its measure is Kleinrock's power, throughput
// divided by response time: below its maximum more load brings mostly more
// throughput, above it mostly more waiting, so the load of greatest power is the last
// worth having (L. Kleinrock, Power and deterministic rules of thumb for
// probabilistic problems in computer communications, ICC 1979). In a closed loop
// the response time follows from Little's law, concurrency divided by
// throughput, and the maximum is where throughput gains half of what
// the load gains, in proportion. In an open loop the latency is the measured
// one, and the maximum is where it begins to rise faster than the load.
//
// Judge reads a staircase of rates around a target and says whether there is too
// little capacity for it, enough, or more than enough.
package saturation
