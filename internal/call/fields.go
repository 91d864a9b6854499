package call

import (
	"reflect"
	"strings"
	"sync"
)

// A Field is one known figure of a Record, named as in its JSON form. Group is
// the name of the object it stands in, "" for the record itself. Value is a
// string, bool, int64, float64 (milliseconds), time.Time, []string or, for the
// finish reasons of several choices, map[string]string.
type Field struct {
	Group, Name string
	Value       any
}

// Fields yields what is known of the record, in the order of its JSON form and
// with the same names and values. It is the one walk behind the access log and
// the placeholders.
func (r *Record) Fields(yield func(Field) bool) {
	v := reflect.ValueOf(r).Elem()
	for _, p := range recordPlan() {
		f := v.FieldByIndex(p.index)
		if p.omit && f.IsZero() {
			continue
		}
		value, known := plain(f.Interface())
		if known && !yield(Field{Group: p.group, Name: p.name, Value: value}) {
			return
		}
	}
}

// FieldNames returns the names that Fields may yield, those in groups with the
// group's name and a dot before them.
func FieldNames() []string {
	var names []string
	for _, p := range recordPlan() {
		names = append(names, strings.TrimPrefix(p.group+"."+p.name, "."))
	}
	return names
}

// plan says where one field of the JSON form lies within the struct.
type plan struct {
	index       []int
	group, name string
	omit        bool
}

var recordPlan = sync.OnceValue(func() []plan {
	return planOf(reflect.TypeFor[Record](), nil, "")
})

func planOf(t reflect.Type, at []int, group string) []plan {
	var plans []plan
	for i := range t.NumField() {
		f := t.Field(i)
		index := append(append([]int(nil), at...), i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
		case f.Anonymous:
			plans = append(plans, planOf(f.Type, index, group)...)
		case grouped[f.Type]:
			plans = append(plans, planOf(f.Type, index, name)...)
		default:
			plans = append(plans, plan{index: index, group: group, name: name, omit: options != ""})
		}
	}
	return plans
}

// grouped are the types whose fields stand in an object of their own.
var grouped = map[reflect.Type]bool{
	reflect.TypeFor[Phases](): true, reflect.TypeFor[PhaseSources](): true, reflect.TypeFor[Engine](): true,
	reflect.TypeFor[EngineLoad](): true, reflect.TypeFor[GPUWindow](): true,
}

// plain turns a field's value into one that any encoder knows.
func plain(v any) (value any, known bool) {
	switch v := v.(type) {
	case Count:
		n, known := v.Get()
		return n, known
	case Duration:
		return v.MillisecondsFloat(), v.IsKnown()
	case Number:
		x, known := v.Get()
		return x, known
	case Finish:
		if v.Multiple() {
			return v.byChoice(), true
		}
		return v.first, v.first != ""
	case Outcome:
		return string(v), true
	case UsageSource:
		return string(v), true
	case Source:
		return string(v), true
	case []Degradation:
		reasons := make([]string, len(v))
		for i, r := range v {
			reasons[i] = string(r)
		}
		return reasons, true
	case int:
		return int64(v), true
	}
	return v, true
}
