//go:build !cgo || !linux

package gpu

import "testing"

func TestNoNVML(t *testing.T) {
	source, err := OpenNVML()
	if source != nil || err == nil || err.Error() != "this build has no NVML (built without cgo): use gpu dcgm URL" {
		t.Errorf("%v, %v", source, err)
	}
}
