package keys

// glob tells whether a name matches a pattern in which each * stands for any
// number of any characters, none included; every other character stands for
// itself, case included. It needs no memory and at most len(pattern)·len(name) steps.
func glob(pattern, name string) bool {
	p, n := 0, 0
	star, retry := -1, 0 // the last * seen, and where the name goes on after it
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, retry = p, n
			p++
		case p < len(pattern) && pattern[p] == name[n]:
			p++
			n++
		case star >= 0: // let the last * stand for one character more
			retry++
			p, n = star+1, retry
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}
