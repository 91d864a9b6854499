package slofile

import (
	"sync"
	"time"
)

// faultyDisk is the operating system's disk until a fault is put into it.
type faultyDisk struct {
	osDisk
	mu    sync.Mutex
	fault map[string]error // by operation; "" is any that changes the disk
	torn  bool             // half is written before the fault
	delay time.Duration    // before a write
	hang  chan struct{}    // every operation waits until it is closed
	wrote int64            // bytes
	calls map[string]int   // of operations
}

func newFaultyDisk() *faultyDisk {
	return &faultyDisk{fault: map[string]error{}, calls: map[string]int{}}
}

func (d *faultyDisk) set(change func(d *faultyDisk)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(d)
}

func (d *faultyDisk) count(op string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls[op]
}

// pass stands in the way of every operation.
func (d *faultyDisk) pass(op string) error {
	d.mu.Lock()
	hang, delay := d.hang, d.delay
	d.calls[op]++
	d.mu.Unlock()
	if hang != nil {
		<-hang
	}
	time.Sleep(delay)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.fault[op]; err != nil {
		return err
	}
	switch op {
	case "list", "read", "size":
		return nil
	}
	return d.fault[""]
}

func (d *faultyDisk) Prepare(dir string) error {
	if err := d.pass("prepare"); err != nil {
		return err
	}
	return d.osDisk.Prepare(dir)
}

func (d *faultyDisk) Lock(dir string) (lock, error) {
	if err := d.pass("lock"); err != nil {
		return nil, err
	}
	return d.osDisk.Lock(dir)
}

func (d *faultyDisk) List(dir string) ([]fileInfo, error) {
	if err := d.pass("list"); err != nil {
		return nil, err
	}
	return d.osDisk.List(dir)
}

func (d *faultyDisk) Create(name string) (file, error) {
	if err := d.pass("create"); err != nil {
		return nil, err
	}
	f, err := d.osDisk.Create(name)
	if err != nil {
		return nil, err
	}
	return &faultyFile{f, d}, nil
}

func (d *faultyDisk) Read(name string, max int64) ([]byte, error) {
	if err := d.pass("read"); err != nil {
		return nil, err
	}
	return d.osDisk.Read(name, max)
}

func (d *faultyDisk) Size(name string) (int64, error) {
	if err := d.pass("size"); err != nil {
		return 0, err
	}
	return d.osDisk.Size(name)
}

func (d *faultyDisk) Rename(from, to string) error {
	if err := d.pass("rename"); err != nil {
		return err
	}
	return d.osDisk.Rename(from, to)
}

func (d *faultyDisk) Remove(name string) error {
	if err := d.pass("remove"); err != nil {
		return err
	}
	return d.osDisk.Remove(name)
}

func (d *faultyDisk) Sync(dir string) error {
	if err := d.pass("syncdir"); err != nil {
		return err
	}
	return d.osDisk.Sync(dir)
}

type faultyFile struct {
	file
	disk *faultyDisk
}

func (f *faultyFile) Write(b []byte) (int, error) {
	if err := f.disk.pass("write"); err != nil {
		if !f.disk.torn {
			return 0, err
		}
		n, _ := f.file.Write(b[:len(b)/2])
		return n, err
	}
	f.disk.set(func(d *faultyDisk) { d.wrote += int64(len(b)) })
	return f.file.Write(b)
}

func (f *faultyFile) Sync() error {
	if err := f.disk.pass("sync"); err != nil {
		return err
	}
	return f.file.Sync()
}

func (f *faultyFile) Close() error {
	err := f.disk.pass("close")
	if later := f.file.Close(); err == nil {
		err = later
	}
	return err
}
