package call

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// maxChoices is the number of choices whose finish reasons are kept apart.
const maxChoices = 128

// Finish holds the finish reason of each choice. The zero value has none. In
// JSON it is the reason itself when choice 0 alone has finished, and an object
// from choice number to reason when others have.
type Finish struct {
	first  string
	others map[int]string
}

// Set keeps the reason of one choice; an empty reason changes nothing, and
// choices below 0 or past the first 128 are left out.
func (f *Finish) Set(choice int, reason string) {
	switch {
	case reason == "" || choice < 0 || choice >= maxChoices:
	case choice == 0:
		f.first = reason
	default:
		if f.others == nil {
			f.others = make(map[int]string, 1)
		}
		f.others[choice] = reason
	}
}

// First returns the reason of the lowest finished choice, "" when none has finished.
func (f Finish) First() string {
	if f.first != "" {
		return f.first
	}
	lowest, reason := maxChoices, ""
	for i, r := range f.others {
		if i < lowest {
			lowest, reason = i, r
		}
	}
	return reason
}

// Reasons returns all reasons, by the order of their choices; nil when none has
// finished.
func (f Finish) Reasons() []string {
	if f.IsZero() {
		return nil
	}
	reasons := make([]string, 0, f.Choices())
	if f.first != "" {
		reasons = append(reasons, f.first)
	}
	for _, choice := range slices.Sorted(maps.Keys(f.others)) {
		reasons = append(reasons, f.others[choice])
	}
	return reasons
}

// Choices returns how many choices have finished.
func (f Finish) Choices() int {
	n := len(f.others)
	if f.first != "" {
		n++
	}
	return n
}

// Multiple tells whether a choice other than 0 has finished.
func (f Finish) Multiple() bool { return len(f.others) > 0 }

// IsZero reports a Finish without any reason, so that omitzero leaves it out.
func (f Finish) IsZero() bool { return f.first == "" && len(f.others) == 0 }

// MarshalJSON writes a string, an object, or null.
func (f Finish) MarshalJSON() ([]byte, error) {
	switch {
	case f.IsZero():
		return []byte("null"), nil
	case !f.Multiple():
		return json.Marshal(f.first)
	}
	return json.Marshal(f.byChoice())
}

// byChoice returns the reasons by choice number, as the JSON form has them.
func (f Finish) byChoice() map[string]string {
	all := make(map[string]string, len(f.others)+1)
	if f.first != "" {
		all["0"] = f.first
	}
	for i, r := range f.others {
		all[strconv.Itoa(i)] = r
	}
	return all
}

// UnmarshalJSON reads what MarshalJSON writes.
func (f *Finish) UnmarshalJSON(b []byte) error {
	*f = Finish{}
	if len(b) > 0 && b[0] == '{' {
		var all map[string]string
		if err := json.Unmarshal(b, &all); err != nil {
			return err
		}
		for k, r := range all {
			i, err := strconv.Atoi(k)
			if err != nil {
				return err
			}
			f.Set(i, r)
		}
		return nil
	}
	return json.Unmarshal(b, &f.first)
}
