package caddymodule

import (
	"compress/gzip"
	"io"
	"testing"
)

func gunzipReader(t *testing.T, r io.Reader) io.Reader {
	t.Helper()
	z, err := gzip.NewReader(r)
	if err != nil {
		t.Fatal(err)
	}
	return z
}
