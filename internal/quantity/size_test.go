package quantity

import (
	"math"
	"strings"
	"testing"
)

func TestParseSize(t *testing.T) {
	for in, want := range map[string]int64{
		"0": 0, "512": 512, "512B": 512, "64MiB": 64 << 20, "64MB": 64e6, "64 MiB": 64 << 20, "1kB": 1000, "1KB": 1000, "1KiB": 1024,
		"1gib": 1 << 30, "1.5GiB": 3 << 29, "1GB": 1e9, "2TiB": 2 << 40, "2TB": 2e12, "1PiB": 1 << 50, "1PB": 1e15, "1EiB": 1 << 60, "1EB": 1e18,
		"0.5KiB": 512, "1_024": 1024, "1e3": 1000, "9223372036854775807B": math.MaxInt64,
	} {
		if got, err := ParseSize(in); got != want || err != nil {
			t.Errorf("ParseSize(%q) = %d, %v; want %d", in, got, err, want)
		}
	}
	for in, why := range map[string]string{
		"": "begin with a number", "-1MB": "begin with a number", "MiB": "begin with a number", "64M": "decimal or binary", "64k": "decimal or binary",
		"64mi": "decimal or binary", "64 G": "decimal or binary", "64Mbit": "unit is unknown", "64  MB": "unit is unknown", "1,5MB": "unit is unknown",
		"0.3KiB": "whole number", "1.5": "whole number", "8EiB": "whole number", "10EB": "whole number", strings.Repeat("0", 65): "too long",
	} {
		got, err := ParseSize(in)
		if err == nil || got != 0 {
			t.Errorf("ParseSize(%q) = %d, %v", in, got, err)
		} else if !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), "64MiB") {
			t.Errorf("ParseSize(%q) says %q: want %q and an example", in, err, why)
		}
	}
}

func TestFormatSize(t *testing.T) {
	for in, want := range map[int64]string{
		0: "0B", 1: "1B", 1000: "1kB", 1024: "1KiB", 64 << 20: "64MiB", 64e6: "64MB", 1536: "1536B", 1_500_000: "1500kB", 1_024_000: "1000KiB",
		3 << 29: "1536MiB", 1 << 60: "1EiB", 1e18: "1EB", math.MaxInt64: "9223372036854775807B", -1024: "-1024B",
	} {
		if got := FormatSize(in); got != want {
			t.Errorf("FormatSize(%d) = %q, want %q", in, got, want)
		}
	}
}

func TestSizeRoundTrip(t *testing.T) {
	magnitudes(func(n int64) {
		if got, err := ParseSize(FormatSize(n)); got != n || err != nil {
			t.Fatalf("%d is written %q and read as %d, %v", n, FormatSize(n), got, err)
		}
	})
}

func FuzzSize(f *testing.F) {
	for _, in := range []string{"64MiB", "64MB", "1.5GiB", "512", "64M", "1e3", "8EiB"} {
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in string) {
		n, err := ParseSize(in)
		if err != nil {
			return
		}
		if again, err := ParseSize(FormatSize(n)); n < 0 || again != n || err != nil {
			t.Fatalf("%q is %d, written %q, read as %d, %v", in, n, FormatSize(n), again, err)
		}
	})
}
