package alert

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weirgate/weir/internal/call"
)

// maxLabel bounds a label's value. Models are named by clients: what is longer is cut,
// and told apart by a hash.
const maxLabel = 200

// reserved are labels that only an alert itself sets.
var reserved = []string{"alertname", "class", "model", "objective", "severity"}

// checkLabels tells what no receiver would take. A name follows Prometheus's data model:
// a letter or _, then letters, digits and _; names that begin with __ are Prometheus's own.
func checkLabels(labels map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		switch {
		case !labelName(name):
			return fmt.Errorf("alert label %.40q: a name is letters, digits and _, and begins neither with a digit nor with __", name)
		case slices.Contains(reserved, name):
			return fmt.Errorf("alert label %s: every alert sets it itself; choose another name", name)
		case labels[name] == "":
			return fmt.Errorf("alert label %s: it has no value", name)
		case labels[name] != labelValue(labels[name]):
			return fmt.Errorf("alert label %s: a value is at most %d bytes of text without control characters", name, maxLabel)
		}
	}
	return nil
}

func labelName(name string) bool {
	for i, r := range name {
		if r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != "" && len(name) <= maxLabel && !strings.HasPrefix(name, "__")
}

// labelsOf returns the labels of an alert.
func labelsOf(k key, extra map[string]string) map[string]string {
	labels := make(map[string]string, len(extra)+6)
	labels["service"] = "weir" // which extra labels may say better
	maps.Copy(labels, extra)
	labels["alertname"] = k.severity.alertname()
	labels["class"] = labelValue(k.class)
	labels["objective"] = labelValue(k.objective)
	labels["severity"] = string(k.severity)
	if k.model != "" {
		labels["model"] = labelValue(k.model)
	}
	return labels
}

// tail is what a value that had to be changed ends with: a tilde and eight digits of its
// hash.
const tail = 1 + 8

// labelValue makes a value that every receiver takes and that a line of text can show. Two
// different ones stay different: what had to be changed ends with a hash, and so does
// what looks as if it had been.
func labelValue(v string) string {
	clean := call.OneLine(v)
	if clean == v && len(v) <= maxLabel && !tailed(v) {
		return v
	}
	sum := sha256.Sum256([]byte(v))
	return cut(clean, maxLabel-tail) + "~" + hex.EncodeToString(sum[:4])
}

func tailed(v string) bool {
	if len(v) < tail || v[len(v)-tail] != '~' {
		return false
	}
	_, err := hex.DecodeString(v[len(v)-tail+1:])
	return err == nil
}

// cut returns at most n bytes of text, whole characters.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// fingerprint is Alertmanager's: FNV-1a over the names in order, each name and value
// followed by a byte 255.
func fingerprint(labels map[string]string) string {
	sum := fnv.New64a()
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		for _, s := range []string{name, labels[name]} {
			sum.Write(append([]byte(s), 255)) // a hash's Write never fails
		}
	}
	return fmt.Sprintf("%016x", sum.Sum64())
}
