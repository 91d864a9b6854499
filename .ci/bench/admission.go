package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// limitsOf is every limit that a scope can have, none of which a load reaches.
const limitsOf = `{
			tokens_per_minute 900G
			input_tokens_per_minute 900G
			output_tokens_per_minute 900G
			requests_per_minute 900G
			concurrency 1G
			tokens_in_flight 900G
		}`

const admissionDirective = "weir {\n\t\tlimit key " + limitsOf + "\n\t\tlimit pool " + limitsOf + "\n\t}"

// admission starts weir alone, weir with all that calls can pass before they
// are sent, and weir alone again. On an error what has started is returned too.
func (b *bench) admission() (t trio, err error) {
	alone, full := site{directive: "weir"}, site{directive: admissionDirective, ledger: b.weir}
	if b.weir {
		dir, err := os.MkdirTemp(b.dir, "admission-")
		if err != nil {
			return t, fmt.Errorf("make a folder for the ledger: %w", err)
		}
		keys := filepath.Join(dir, "keys.json")
		add := exec.CommandContext(b.ctx, b.opts.binary, "keys", "add", "bench", "--key-env", "WEIR_BENCH_KEY", "--file", keys)
		add.Env = append(os.Environ(), "WEIR_BENCH_KEY="+callerKey)
		if said, err := add.CombinedOutput(); err != nil {
			return t, fmt.Errorf("make a file of keys: %w: %s", err, bytes.TrimSpace(said))
		}
		full.global = fmt.Sprintf("\tweir {\n\t\tkeys %s\n\t\tledger sqlite %s\n\t}\n", keys, filepath.Join(dir, "usage.db"))
	}
	for i, one := range []struct {
		name string
		site site
	}{{"weir-alone", alone}, {"weir-full", full}, {"weir-alone-again", alone}} {
		if t[i], err = b.startSite(one.name, one.site); err != nil {
			return t, err
		}
	}
	return t, nil
}

func measureAdmission(b *bench) ([]figure, error) {
	gateways, err := b.admission()
	defer gateways.stop()
	if err != nil {
		return nil, err
	}
	rounds, err := b.roundsOf(gateways, newCalls)
	if err != nil {
		return nil, err
	}
	if g := gateways[weirOne]; g.ledger {
		state, err := g.ledgerState()
		if err != nil {
			return nil, err
		}
		b.unrecorded += state.Uncovered + state.Dropped
	}
	return []figure{
		compare("JSON call with admission, CPU", "µs", each(rounds, cpuOf), differenceAtMost, 7),
		compare("JSON call with admission, allocations", "allocs", each(rounds, mallocsOf), differenceAtMost, 12),
	}, nil
}

// ledgerState is what this program reads of a gateway's ledger.
type ledgerState struct {
	Uncovered uint64 `json:"uncovered"` // starts and ends that were not recorded at once
	Dropped   uint64 `json:"dropped"`   // those that are lost
	Pending   int64  `json:"pending"`   // ends that the database lacks
}

func (g *gateway) ledgerState() (s ledgerState, err error) {
	body, err := g.get("/weir/ledger")
	if err == nil {
		err = json.Unmarshal(body, &s)
	}
	if err != nil {
		return s, fmt.Errorf("ask gateway %s for its ledger: %w", g.name, err)
	}
	return s, nil
}

// drain waits until the gateway's database has all calls.
func (b *bench) drain(g *gateway) error {
	const look = 15 * time.Millisecond // so that one look is mostly enough: it costs the gateway CPU too
	for began := time.Now(); time.Since(began) < ioLimit; {
		time.Sleep(look)
		if err := b.ctx.Err(); err != nil {
			return err
		}
		state, err := g.ledgerState()
		if err != nil || state.Pending == 0 {
			return err
		}
	}
	return errors.New("the ledger did not catch up; is the disk very slow?")
}
