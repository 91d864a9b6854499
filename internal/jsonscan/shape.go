package jsonscan

import "strings"

// maxPath is the number of steps (keys and array elements) a path may have.
const maxPath = 16

// Shape is a set of wanted paths. It never changes once compiled and may be
// used by any number of scanners at the same time.
type Shape struct {
	nodes []node
}

// none stands where a node has no field, or no such child.
const none = -1

// node is one step of the paths' tree.
type node struct {
	field   int16 // reported for this place, or none
	elem    int16 // node of this array's elements, or none
	lengths uint64
	keys    []edge
	fold    bool // the case of its keys does not matter
}

// edge leads from an object to the value of one of its keys.
type edge struct {
	key string
	to  int16
}

// Compile makes the Shape of paths; the Field of a Value is the index of its
// path. A path is a list of keys joined by dots, where [] stands for any
// element of an array: "choices[].delta.content". A path that begins with []
// is of a document that is an array, and "$" is the document itself. Places
// that mean the same field are joined by a bar: "usage.total|x_groq.usage.total".
// An empty path wants nothing; it only takes its number.
//
// It panics on a path it cannot read: paths are constants of a program, so
// that this shows when it starts.
func Compile(paths ...string) *Shape {
	s := &Shape{nodes: []node{{field: none, elem: none}}}
	for field, alternatives := range paths {
		if alternatives == "" {
			continue
		}
		for path := range strings.SplitSeq(alternatives, "|") {
			s.add(path, int16(field))
		}
	}
	return s
}

// CompileFold is Compile for readers that do not mind the case of ASCII letters in
// keys, as some servers' JSON decoders do not.
func CompileFold(paths ...string) *Shape {
	s := Compile(paths...)
	for i := range s.nodes {
		s.nodes[i].fold = true
	}
	return s
}

func (s *Shape) add(path string, field int16) {
	at, rest, steps := int16(0), path, 0
	if rest == "$" {
		rest = ""
	} else if rest == "" {
		panic("jsonscan: empty path")
	}
	for rest != "" {
		if steps++; steps > maxPath {
			panic("jsonscan: path is too long: " + path)
		}
		if after, ok := strings.CutPrefix(rest, "[]"); ok {
			at = s.elem(at)
			rest = after
			if rest != "" && rest[0] == '.' {
				rest = rest[1:]
				if rest == "" {
					panic("jsonscan: path ends in a dot: " + path)
				}
			} else if rest != "" && rest[0] != '[' {
				panic("jsonscan: a dot or [] must follow []: " + path)
			}
			continue
		}
		end := strings.IndexAny(rest, ".[")
		if end < 0 {
			end = len(rest)
		}
		if end == 0 {
			panic("jsonscan: empty key: " + path)
		}
		at = s.key(at, rest[:end])
		rest = rest[end:]
		if rest != "" && rest[0] == '.' {
			rest = rest[1:]
			if rest == "" || rest[0] == '[' {
				panic("jsonscan: a key must follow a dot: " + path)
			}
		}
	}
	if f := s.nodes[at].field; f != none && f != field {
		panic("jsonscan: path is there twice: " + path)
	}
	s.nodes[at].field = field
}

// elem returns the node of the elements of the array at node n, made if need be.
func (s *Shape) elem(n int16) int16 {
	if s.nodes[n].elem == none {
		s.nodes[n].elem = s.new()
	}
	return s.nodes[n].elem
}

// key returns the node of a key of the object at node n, made if need be.
func (s *Shape) key(n int16, key string) int16 {
	for _, e := range s.nodes[n].keys {
		if e.key == key {
			return e.to
		}
	}
	to := s.new()
	s.nodes[n].keys = append(s.nodes[n].keys, edge{key, to})
	s.nodes[n].lengths |= lengthBit(len(key))
	return to
}

func (s *Shape) new() int16 {
	s.nodes = append(s.nodes, node{field: none, elem: none})
	return int16(len(s.nodes) - 1)
}

// lengthBit is one bit for each key length, so that most keys that are not
// wanted are told by their length alone.
func lengthBit(n int) uint64 { return 1 << (uint(n) & 63) }

// find returns the node of a key, none when it is not wanted.
func (n *node) find(key []byte) int16 {
	if n.lengths&lengthBit(len(key)) == 0 {
		return none
	}
	for i := range n.keys {
		if string(key) == n.keys[i].key || n.fold && strings.EqualFold(string(key), n.keys[i].key) {
			return n.keys[i].to
		}
	}
	return none
}
