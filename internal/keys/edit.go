package keys

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Edit changes the file at path: it reads it, calls change, checks the result,
// and puts the new file in the place of the old one. If there is none, change gets
// an empty File, and the new file can be read by its owner alone (0600); else the
// mode stays as it is, and where there are owners, the owner. A symbolic link
// stays, and what it points to is changed.
//
// Either all of the change is in the file afterwards or nothing of it, also
// after a crash or a loss of power, and a reader sees one or the other. Edits of
// several goroutines and processes wait for each other, up to 10 s, so that none of them
// is lost. A file that is broken, or empty, is not edited, because the edit would
// throw away what is in it.
//
// An error of change is returned as it is, and then nothing is written.
// change must not keep the File.
func Edit(path string, now time.Time, change func(*File) error) error {
	return edit(path, now, change, acquire)
}

func edit(path string, now time.Time, change func(*File) error, lock locker) (err error) {
	target, err := resolve(path)
	if err != nil {
		return fmt.Errorf("edit keys: %w", err)
	}
	held, err := lock(target, now)
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("edit keys: %w; run this as a user that may write to %s", err, filepath.Dir(target))
	}
	if err != nil {
		return fmt.Errorf("edit keys: %w", err)
	}
	defer func() {
		if e := held.release(); e != nil && err == nil {
			err = fmt.Errorf("edit keys: the change is made, but: %w", e)
		}
	}()

	old, info, err := readFile(target)
	file := &File{Version: Version, Keys: []Entry{}}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		info = nil
	case err != nil:
		return err
	default:
		if file, err = Parse(old); err != nil {
			return fmt.Errorf("edit keys: %s is broken and stays as it is; mend it by hand first: %w", path, err)
		}
	}
	if err := change(file); err != nil {
		return err
	}
	var text bytes.Buffer
	if err := file.write(&text); err != nil {
		return fmt.Errorf("edit keys: write JSON: %w", err)
	}
	if _, err := Parse(text.Bytes()); err != nil {
		return fmt.Errorf("edit keys: nothing is changed, because the result would be wrong: %w", err)
	}
	if text.Len() > maxFile {
		return fmt.Errorf("edit keys: nothing is changed, because %s would be larger than %d MiB; remove keys that are over", path, maxFile>>20)
	}
	if info != nil && bytes.Equal(old, text.Bytes()) {
		return nil
	}
	if err := replace(target, text.Bytes(), info, held); err != nil {
		return fmt.Errorf("edit keys: nothing is changed: %w", err)
	}
	// Without this a loss of power could bring the old file back.
	if err := syncDirectory(filepath.Dir(target)); err != nil {
		return fmt.Errorf("edit keys: the change is made, but may not outlast a loss of power: %w", err)
	}
	return nil
}

// replace writes text to a new file beside target, with the mode and owner of the
// old one if there is one (old is not nil), and renames it to target.
func replace(target string, text []byte, old fs.FileInfo, held lock) (err error) {
	temp, err := os.CreateTemp(filepath.Dir(target), "."+filepath.Base(target)+".*.tmp") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			temp.Close()           // once more does no harm
			os.Remove(temp.Name()) // what is left of it has no secret
		}
	}()
	if old != nil {
		// The owner first, since the change of owner can take bits off the mode.
		if err := keepOwner(temp, old); err != nil {
			return err
		}
		if err := temp.Chmod(old.Mode().Perm()); err != nil {
			return err
		}
	}
	if _, err := temp.Write(text); err != nil {
		return err
	}
	if err := temp.Sync(); err != nil {
		return err
	}
	if err := temp.Close(); err != nil {
		return err
	}
	if err := held.check(); err != nil {
		return err
	}
	return os.Rename(temp.Name(), target)
}

// resolve follows symbolic links to the file that they mean, which need not be
// there yet.
func resolve(path string) (string, error) {
	for range 40 { // as many as Linux follows
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) || (err == nil && info.Mode()&fs.ModeSymlink == 0) {
			return resolveDirectory(path)
		}
		if err != nil {
			return "", err
		}
		to, err := os.Readlink(path)
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(to) {
			// The link is read from where it really is, not from where it was found.
			dir, err := filepath.EvalSymlinks(filepath.Dir(path))
			if err != nil {
				return "", err
			}
			to = filepath.Join(dir, to)
		}
		path = to
	}
	return "", fmt.Errorf("%s: too many symbolic links; does one point to itself?", path)
}

// resolveDirectory follows the links in the directories of path, so that all
// ways to one file have one lock.
func resolveDirectory(path string) (string, error) {
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return "", fmt.Errorf("%w; make the directory first", err)
	}
	return filepath.Join(dir, filepath.Base(path)), nil
}
