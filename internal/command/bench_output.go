package command

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/term"

	"github.com/weirgate/weir/internal/bench"
	"github.com/weirgate/weir/internal/report"
)

// form is one form of the result, and where it goes.
type form struct {
	flag, file string
	write      func(io.Writer, bench.Result) error
}

func (b *benchmark) forms() []form {
	return []form{
		{"--save", b.save, report.JSON}, {"--json", b.json, report.JSON}, {"--csv", b.csv, report.CSV},
		{"--markdown", b.markdown, report.Markdown}, {"--html", b.html, report.HTML},
	}
}

// checkFiles finds out whether files can be written, and the environment's read,
// before minutes of load are spent.
func (b *benchmark) checkFiles() error {
	onStdout := ""
	taken := []form{
		{flag: "--config", file: b.config}, {flag: "--matrix", file: b.matrix}, {flag: "--env", file: b.environment}, {flag: "--baseline", file: b.baseline},
		{flag: "--replay", file: b.replay}, {flag: "--replay-ledger", file: b.replayLedger},
	}
	for _, out := range append(b.forms(), form{flag: "--raw", file: b.raw}) {
		switch {
		case out.file == "":
			continue
		case out.file == stdout && out.flag == "--raw":
			return errors.New("--raw needs a file, like --raw calls.jsonl")
		case out.file == stdout && onStdout != "":
			return fmt.Errorf("%s and %s cannot both go to standard output: give one a file, as in %s=result", onStdout, out.flag, out.flag)
		case out.file == stdout:
			onStdout = out.flag
			continue
		}
		for _, other := range taken {
			if other.file != "" && sameFile(other.file, out.file) {
				return fmt.Errorf("%s would write over the file of %s: name another one", out.flag, other.flag)
			}
		}
		if err := writable(out.file); err != nil {
			return fmt.Errorf("%s: %w; name a file that can be written", out.flag, err)
		}
		taken = append(taken, out)
	}
	if b.environment == "" {
		return nil
	}
	if err := new(bench.Environment).MergeGiven(b.environment); err != nil {
		return fmt.Errorf("--env: %w", err)
	}
	return nil
}

// sameFile tells whether two names are those of one file, there or not.
func sameFile(a, b string) bool {
	one, err1 := os.Stat(a)
	two, err2 := os.Stat(b)
	if err1 == nil && err2 == nil {
		return os.SameFile(one, two)
	}
	x, err1 := filepath.Abs(a)
	y, err2 := filepath.Abs(b)
	return err1 == nil && err2 == nil && x == y
}

// writable tries whether a file can be written, and leaves all as it was.
func writable(name string) error {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if err != nil {
			return err
		}
		return errors.Join(f.Close(), os.Remove(name))
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a directory", name)
	case !info.Mode().IsRegular():
		return nil // a pipe waits for its reader
	}
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// show writes the result in every form that was asked for.
func (b *benchmark) show(result bench.Result) error {
	var errs []error
	for _, form := range b.forms() {
		switch form.file {
		case "":
		case stdout:
			errs = append(errs, form.write(b.out, result))
		default:
			if err := writeFile(form.file, func(w io.Writer) error { return form.write(w, result) }); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", form.flag, err))
			}
		}
	}
	if b.table() {
		errs = append(errs, report.Text(b.out, result, widthOf(b.out), b.colour(b.out)))
	}
	return errors.Join(errs...)
}

// table tells whether standard output is for people.
func (b *benchmark) table() bool {
	for _, form := range b.forms() {
		if form.file == stdout {
			return false
		}
	}
	return true
}

func (b *benchmark) colour(w io.Writer) bool {
	return !b.noColour && os.Getenv("NO_COLOR") == "" && isTerminal(w)
}

// writeFile writes a file whole or not at all: what was there stays until the new
// one is complete. What is no plain file, such as a pipe, and what stands in a
// directory that takes no new files, is written as it is.
func writeFile(name string, write func(io.Writer) error) error {
	var whole bytes.Buffer
	if err := write(&whole); err != nil {
		return err
	}
	if to, err := filepath.EvalSymlinks(name); err == nil {
		name = to
	}
	mode := fs.FileMode(0o666)
	if info, err := os.Stat(name); err == nil {
		if mode = info.Mode(); !mode.IsRegular() {
			return os.WriteFile(name, whole.Bytes(), 0)
		}
	}
	part := name + ".part"
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode.Perm())
	if err != nil {
		return os.WriteFile(name, whole.Bytes(), 0o666)
	}
	_, err = f.Write(whole.Bytes())
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(part, name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return nil
}

// rawFile takes a line for each call. Without a file it takes nothing.
type rawFile struct {
	f   *os.File
	w   *bufio.Writer
	enc *json.Encoder
	err error // the first one
}

func (b *benchmark) openRaw() (*rawFile, error) {
	if b.raw == "" {
		return new(rawFile), nil
	}
	f, err := os.Create(b.raw)
	if err != nil {
		return nil, fmt.Errorf("--raw: %w", err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	return &rawFile{f: f, w: w, enc: json.NewEncoder(w)}, nil
}

func (r *rawFile) write(s bench.Sample) {
	if r.enc != nil && r.err == nil {
		r.err = r.enc.Encode(s)
	}
}

func (r *rawFile) close() error {
	if r.f == nil {
		return nil
	}
	err := r.err
	if err == nil {
		err = r.w.Flush()
	}
	if err = errors.Join(err, r.f.Close()); err != nil {
		return fmt.Errorf("--raw: %w", err)
	}
	return nil
}

// isTerminal tells whether w is one, and widthOf how wide it is; 0 is unknown.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func widthOf(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}
