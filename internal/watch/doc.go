// Package watch notices that a file which people edit while it is used has changed.
//
// It looks again and again and does not ask the kernel to be told, because what
// is to be noticed is the path and not a file: editors put a new file in the
// place of the old one, a mounted config map swaps a symbolic link two directories
// up, and network file systems tell nothing at all. A stat call sees all of these.
package watch
