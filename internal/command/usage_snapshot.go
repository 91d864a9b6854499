package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/weirgate/weir/internal/engine"
	"github.com/weirgate/weir/internal/ledger"
)

const (
	snapshotVersion = 1
	// maxSnapshot is the most of a file that is read as one; they have about 1 KiB.
	maxSnapshot = 1 << 20
)

// snapshot is both sides at one time. What they grow by until a later one can be
// compared exactly, whenever the engine started and whatever hour it is.
type snapshot struct {
	Version int             `json:"version"`
	Taken   time.Time       `json:"taken"`
	Engine  engine.Counters `json:"engine_counters"`
	Query   summed          `json:"summed"`
	Ledger  ledger.Usage    `json:"ledger"`
}

// summed says which of the ledger's calls are summed.
type summed struct {
	Since     time.Time `json:"since,omitzero"` // absent: all
	Models    []string  `json:"models,omitempty"`
	Upstreams []string  `json:"upstreams"` // "*" is all
}

func readSnapshot(path string) (*snapshot, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the snapshot: %w; make one with --save", err)
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, maxSnapshot))
	if err != nil {
		return nil, fmt.Errorf("read the snapshot: %w", err)
	}
	s := new(snapshot)
	if err = json.Unmarshal(b, s); err == nil && (s.Version != snapshotVersion || s.Taken.IsZero() || !s.Engine.Prompt.Known || !s.Engine.Generated.Known) {
		err = errors.New("it is not one of this version")
	}
	if err != nil {
		return nil, fmt.Errorf("read the snapshot %s: %w; make a new one with --save", path, err)
	}
	return s, nil
}

// write puts the snapshot into a file, whole or not at all.
func (s *snapshot) write(path string) error {
	err := func() error {
		b, err := json.MarshalIndent(s, "", "  ")
		if err != nil {
			return err
		}
		file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
		if err != nil {
			return err
		}
		defer os.Remove(file.Name()) // it is not there any more where all went well
		_, err = file.Write(append(b, '\n'))
		if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
			return err
		}
		return os.Rename(file.Name(), path)
	}()
	if err != nil {
		return fmt.Errorf("save the snapshot: %w; name a file that can be written with --save", err)
	}
	return nil
}
