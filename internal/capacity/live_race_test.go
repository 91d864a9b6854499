//go:build race

package capacity

// raceDetector tells that all takes ten times as long.
const raceDetector = true
