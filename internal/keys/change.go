package keys

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// DefaultGrace is how long the key before a rotation stays good: a day, so
	// that whoever has it can be told and can change it.
	DefaultGrace = 24 * time.Hour
	// forget is how long the hash of an expired key is kept after a rotation, so
	// that calls with it are still known to be of this caller.
	forget = 30 * 24 * time.Hour
)

// Find returns the entry of an alias. If there is none, the error names those
// that there are.
func (f *File) Find(alias string) (*Entry, error) {
	if i := f.index(alias); i >= 0 {
		return &f.Keys[i], nil
	}
	if err := checkAlias(alias); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("no key named %q; %s", alias, f.known())
}

// known lists the aliases for an error, at most 10 of them.
func (f *File) known() string {
	const most = 10
	if len(f.Keys) == 0 {
		return "there is none yet; make one with: weir keys add ALIAS"
	}
	var names []string
	for i := range f.Keys[:min(most, len(f.Keys))] {
		names = append(names, f.Keys[i].Alias)
	}
	text := "known are: " + strings.Join(names, ", ")
	if more := len(f.Keys) - most; more > 0 {
		text += fmt.Sprintf(" and %d more, which weir keys list shows", more)
	}
	return text
}

// Add takes an entry for a key into the file, created now. The entry's hashes
// are set to that of the key. Errors say what is wrong with the alias or the key;
// everything else is checked by Edit.
func (f *File) Add(e Entry, key string, now time.Time) error {
	if err := checkAlias(e.Alias); err != nil {
		return err
	}
	if i := f.index(e.Alias); i >= 0 && !f.Keys[i].Revoked.IsZero() {
		return fmt.Errorf("the key named %q was revoked and stays so; give the new one another alias", e.Alias)
	} else if i >= 0 {
		return fmt.Errorf("there is a key named %q already; give the new one another alias, or give %[1]s a new key with: weir keys rotate %[1]s", e.Alias)
	}
	hash, err := newHash(key, now)
	if err != nil {
		return err
	}
	for i := range f.Keys {
		for _, h := range f.Keys[i].Hashes {
			if strings.EqualFold(h.SHA256, hash.SHA256) {
				return fmt.Errorf("this key is that of %q already; one key cannot be two callers", f.Keys[i].Alias)
			}
		}
	}
	e.Hashes = []Hash{hash}
	f.Keys = append(f.Keys, e)
	return nil
}

// Rotate gives an alias a new key, created now. The keys before it end at now +
// grace, or earlier where that was said; those that ended 30 days ago are
// forgotten.
func (f *File) Rotate(alias, key string, now time.Time, grace time.Duration) error {
	e, err := f.Find(alias)
	if err != nil {
		return err
	}
	switch {
	case grace < 0:
		return fmt.Errorf("the grace %v is negative; write 0 to end the old key at once", grace)
	case !e.Revoked.IsZero():
		return fmt.Errorf("key %q was revoked on %s and stays so; make a key under another alias with: weir keys add", alias, e.Revoked.Format(time.DateOnly))
	case e.Expires.over(now):
		return fmt.Errorf("key %q expired on %s, and a new key would, too; change its expires in the file first", alias, e.Expires.Format(time.DateOnly))
	}
	hash, err := newHash(key, now)
	if err != nil {
		return err
	}
	e.Hashes = slices.DeleteFunc(e.Hashes, func(h Hash) bool { return h.Expires.over(now.Add(-forget)) })
	end := moment(now.Add(grace))
	for i := range e.Hashes {
		if h := &e.Hashes[i]; h.Expires.IsZero() || h.Expires.After(end.Time) {
			h.Expires = end
		}
	}
	e.Hashes = append(e.Hashes, hash)
	return nil
}

// Revoke ends an alias now and for good, with all of its keys; the entry stays,
// so that calls with them are known. One that was revoked before stays as it is.
func (f *File) Revoke(alias string, now time.Time) error {
	e, err := f.Find(alias)
	if err != nil {
		return err
	}
	if e.Revoked.IsZero() {
		e.Revoked = moment(now)
	}
	return nil
}

func (f *File) index(alias string) int {
	return slices.IndexFunc(f.Keys, func(e Entry) bool { return e.Alias == alias })
}

func newHash(key string, now time.Time) (Hash, error) {
	sum, err := Digest(key)
	if err != nil {
		return Hash{}, err
	}
	return Hash{SHA256: sum, Created: moment(now)}, nil
}

// moment is a time to the second, as people read it in the file.
func moment(t time.Time) Moment { return Moment{t.UTC().Truncate(time.Second)} }
