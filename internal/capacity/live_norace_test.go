//go:build !race

package capacity

const raceDetector = false
