package caddymodule

import (
	"encoding/json"
	"strings"
	"time"

	"go.uber.org/zap/zapcore"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/gateway"
)

// logged is the object `weir` of the access log. Caddy writes the log after the
// handler has returned, when the record is there.
type logged struct{ call *gateway.Call }

// MarshalLogObject implements zapcore.ObjectMarshaler.
func (l logged) MarshalLogObject(enc zapcore.ObjectEncoder) error {
	rec := l.call.Record()
	if rec == nil {
		enc.AddString("id", l.call.ID())
		return nil
	}
	return marshalGroup(enc, rec, "")
}

// marshalGroup writes the fields of one group of the record, and within the
// record itself the groups as objects.
func marshalGroup(enc zapcore.ObjectEncoder, rec *call.Record, group string) error {
	written := ""
	for f := range rec.Fields {
		if group == "" && f.Group != "" && f.Group != written {
			written = f.Group
			if err := enc.AddObject(f.Group, zapcore.ObjectMarshalerFunc(func(enc zapcore.ObjectEncoder) error {
				return marshalGroup(enc, rec, written)
			})); err != nil {
				return err
			}
		}
		if f.Group != group {
			continue
		}
		switch v := f.Value.(type) {
		case string:
			enc.AddString(f.Name, v)
		case bool:
			enc.AddBool(f.Name, v)
		case int64:
			enc.AddInt64(f.Name, v)
		case float64:
			enc.AddFloat64(f.Name, v)
		case time.Time:
			// As in the calls API, whatever time format the log's own lines have.
			enc.AddString(f.Name, v.Format(time.RFC3339Nano))
		default:
			if err := enc.AddReflected(f.Name, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// placeholders answers {http.weir.*}: every field of the record by its JSON
// name, with or without the _ms, those in groups as group.name. What is unknown
// is empty. Until the call has ended only id is there.
type placeholders struct{ call *gateway.Call }

const placeholderPrefix = "http.weir."

var placeholderNames = func() map[string]string {
	names := make(map[string]string)
	for _, name := range call.FieldNames() {
		names[name] = name
		names[strings.TrimSuffix(name, "_ms")] = name
	}
	return names
}()

func (p placeholders) value(key string) (any, bool) {
	name, ours := strings.CutPrefix(key, placeholderPrefix)
	if !ours {
		return nil, false
	}
	name, ours = placeholderNames[name]
	if !ours {
		return nil, false
	}
	rec := p.call.Record()
	if rec == nil {
		if name == "id" {
			return p.call.ID(), true
		}
		return "", true
	}
	for f := range rec.Fields {
		if f.Name == name && f.Group == "" || f.Group != "" && f.Group+"."+f.Name == name {
			return placeholder(f.Value), true
		}
	}
	return "", true
}

// placeholder gives values that are no single figure a form that is read back
// easily: times as in the calls API, lists with commas, objects as JSON.
func placeholder(v any) any {
	switch v := v.(type) {
	case time.Time:
		return v.Format(time.RFC3339Nano)
	case []string:
		return strings.Join(v, ",")
	case map[string]string:
		b, _ := json.Marshal(v) // strings always marshal
		return string(b)
	}
	return v
}
