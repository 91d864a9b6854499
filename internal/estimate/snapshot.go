package estimate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// ErrSnapshot is in the chain of every error of Restore.
var ErrSnapshot = errors.New("snapshot of estimates cannot be used; without it the estimator learns anew")

// A snapshot is, with numbers of variable length as encoding/binary has them,
// strings as length and bytes, and floats as IEEE 754, little endian:
//
//	"weirest" and the version, one byte
//	number of features
//	number of models, the least recently used first; of each
//	    name, reports, running error, weights, upper triangle of the covariance, histogram
//	number of pairs, likewise; of each
//	    model, key, sum and weight of the bias, histogram
//	CRC-32C of all before, 4 bytes
//
// and a histogram is
//
//	reports, number of buckets that are not empty; of each
//	    how many empty ones come before it, and its count as 4 bytes
//
// Whatever changes the meaning of a feature or of this form changes the version.
const (
	snapshotMagic   = "weirest"
	snapshotVersion = 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Snapshot returns all that was learnt, for Restore: at most about 4 kB for a
// model and 1 kB for a pair. It holds models' names and keys' aliases or ids,
// and nothing of what was asked or answered. Calls go on meanwhile: each entry
// is whole, and two entries may be some calls apart.
func (e *Estimator) Snapshot() []byte {
	e.mu.Lock()
	models, pairs := e.models.keys(), e.pairs.keys()
	e.mu.Unlock()

	b := append([]byte(snapshotMagic), snapshotVersion)
	b = binary.AppendUvarint(b, numFeatures)
	b = appendEntries(b, e, &e.models, models, func(b []byte, name string, m *modelState) []byte {
		b = appendString(b, name)
		b = binary.AppendUvarint(b, uint64(m.reports))
		b = appendFloats(b, m.error)
		b = appendFloats(b, m.weights[:]...)
		for i := range m.covariance {
			b = appendFloats(b, m.covariance[i][i:]...)
		}
		return m.output.append(b)
	})
	b = appendEntries(b, e, &e.pairs, pairs, func(b []byte, name pair, p *pairState) []byte {
		b = appendString(appendString(b, name.model), name.key)
		b = appendFloats(b, p.bias.sum, p.bias.weight)
		return p.output.append(b)
	})
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// appendEntries appends how many of the keys still have an entry, and these.
// The lock is held for one at a time.
func appendEntries[K comparable, V any](b []byte, e *Estimator, t *table[K, V], keys []K, write func([]byte, K, *V) []byte) []byte {
	var entries []byte
	var v V
	n := 0
	for _, key := range keys {
		e.mu.Lock()
		found := t.entries[key]
		if found != nil {
			v = found.value
		}
		e.mu.Unlock()
		if found != nil {
			entries = write(entries, key, &v)
			n++
		}
	}
	return append(binary.AppendUvarint(b, uint64(n)), entries...)
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendFloats(b []byte, f ...float64) []byte {
	for _, x := range f {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
	}
	return b
}

func (h *histogram) append(b []byte) []byte {
	h.settle()
	used := 0
	for _, n := range h.counts {
		if n > 0 {
			used++
		}
	}
	b = binary.AppendUvarint(b, uint64(h.reports))
	b = binary.AppendUvarint(b, uint64(used))
	last := -1
	for i, n := range h.counts {
		if n > 0 {
			b = binary.AppendUvarint(b, uint64(i-last-1))
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(n))
			last = i
		}
	}
	return b
}

// Restore puts what a snapshot holds in the place of all that was learnt. Of
// more models or pairs than there is room for, it keeps the most recently used.
// A snapshot that is damaged, of another version, or holds what no estimator
// would have written is refused whole, with an error that is ErrSnapshot: then e
// stays as it was, which at a start is empty.
func (e *Estimator) Restore(snapshot []byte) error {
	models, pairs, err := e.read(snapshot)
	if err != nil {
		return fmt.Errorf("restore estimates: %w: %w", err, ErrSnapshot)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.models.take(models)
	e.pairs.take(pairs)
	return nil
}

func (e *Estimator) read(snapshot []byte) (*table[string, modelState], *table[pair, pairState], error) {
	body := len(snapshot) - crc32.Size
	if body < len(snapshotMagic)+1 || string(snapshot[:len(snapshotMagic)]) != snapshotMagic {
		return nil, nil, errors.New("not a snapshot")
	}
	if v := snapshot[len(snapshotMagic)]; v != snapshotVersion {
		return nil, nil, fmt.Errorf("version %d, and this program reads version %d", v, snapshotVersion)
	}
	if crc32.Checksum(snapshot[:body], castagnoli) != binary.LittleEndian.Uint32(snapshot[body:]) {
		return nil, nil, errors.New("checksum does not match")
	}
	r := reader{b: snapshot[len(snapshotMagic)+1 : body]}
	if n := r.number(); n != numFeatures {
		r.fail("%d features, want %d", n, numFeatures)
	}
	var models table[string, modelState]
	models.init(e.models.most)
	for range r.number() {
		if r.err != nil {
			break
		}
		name := r.name()
		var m modelState
		m.read(&r)
		if r.err == nil && models.entries[name] != nil {
			r.fail("model %q comes twice", name)
		}
		if r.err == nil {
			*models.add(name) = m
		}
	}
	var pairs table[pair, pairState]
	pairs.init(e.pairs.most)
	for range r.number() {
		if r.err != nil {
			break
		}
		name := pair{r.name(), r.name()}
		var p pairState
		p.read(&r)
		if r.err == nil && pairs.entries[name] != nil {
			r.fail("pair %q comes twice", name)
		}
		if r.err == nil {
			*pairs.add(name) = p
		}
	}
	if r.err == nil && len(r.b) > 0 {
		r.fail("%d bytes too many", len(r.b))
	}
	return &models, &pairs, r.err
}

// read reads a model and refuses what no model would hold.
func (m *modelState) read(r *reader) {
	m.reports = int64(r.number() & math.MaxInt64)
	m.error = r.float(0, 1)
	for i := range m.weights {
		m.weights[i] = r.float(-mostWeight, mostWeight)
	}
	for i := range m.covariance {
		// The prior's variance, and what one report may add to it.
		most := 2 * prior.spread[i] * prior.spread[i]
		m.covariance[i][i] = r.float(0, most)
		for j := i + 1; j < numFeatures; j++ {
			bound := 2 * prior.spread[i] * prior.spread[j]
			m.covariance[i][j] = r.float(-bound, bound)
			m.covariance[j][i] = m.covariance[i][j]
		}
	}
	m.output.read(r)
}

func (p *pairState) read(r *reader) {
	p.bias.sum = r.float(-biasWindow*biasMost, biasWindow*biasMost)
	p.bias.weight = r.float(0, biasWindow)
	// Each report counts as the logarithm of biasMost at most.
	if r.err == nil && math.Abs(p.bias.sum) > (p.bias.weight+1e-6)*math.Log(biasMost)*(1+1e-6) {
		r.fail("a bias of %g in %g calls", p.bias.sum, p.bias.weight)
	}
	p.output.read(r)
}

func (h *histogram) read(r *reader) {
	h.reports = int64(r.number() & math.MaxInt64)
	used := r.number()
	bucket := uint64(0)
	for range min(used, numBuckets+1) {
		bucket += min(r.number(), numBuckets)
		if bucket >= numBuckets {
			r.fail("a bucket beyond the last")
		}
		n := r.small()
		if r.err != nil {
			return
		}
		h.counts[bucket] = n
		h.total += float64(n)
		bucket++
	}
	if r.err == nil && (h.reports > 0) != (used > 0) {
		r.fail("%d reports in %d buckets", h.reports, used)
	}
	if used > 0 {
		h.newest = 1
	}
}
