package spend

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/ledger"
)

func TestAsk(t *testing.T) {
	now := instantOf(t, "2026-11-30T09:41:00Z")
	berlin := zone(t, "Europe/Berlin")
	for _, tt := range []struct {
		ask  Ask
		want ledger.Query
	}{
		{Ask{}, ledger.Query{Zone: time.UTC}},
		{Ask{By: []string{""}, Since: "all"}, ledger.Query{Zone: time.UTC}},
		{Ask{By: []string{"key", " model", "day"}, Zone: "Europe/Berlin", Since: "2026-07-01", Until: "2026-11-01T09:59:59+01:00", Keys: []string{"a"}, Models: []string{"m"}},
			ledger.Query{By: []ledger.Grouping{ledger.ByKey, ledger.ByModel, ledger.ByDay}, Zone: berlin, Keys: []string{"a"}, Models: []string{"m"},
				Since: instantOf(t, "2026-06-30T22:00:00Z"), Until: instantOf(t, "2026-11-01T08:00:00Z")}},
		{Ask{Since: "30d", Until: "90m"}, ledger.Query{Zone: time.UTC, Since: instantOf(t, "2026-10-31T09:00:00Z"), Until: instantOf(t, "2026-11-30T08:00:00Z")}},
	} {
		got, err := tt.ask.Query(now)
		if err != nil || got.Zone.String() != tt.want.Zone.String() {
			t.Errorf("%+v: zone %v (%v)", tt.ask, got.Zone, err)
		}
		got.Zone = tt.want.Zone
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%+v:\n got %+v\nwant %+v", tt.ask, got, tt.want)
		}
	}
	for _, tt := range []struct {
		ask  Ask
		want string
	}{
		{Ask{By: []string{"key", "colour"}}, `by "colour": choose from key, model, class, upstream, hour, day, month`},
		{Ask{By: []string{"key", ""}}, `by "": choose from`},
		{Ask{By: []string{"key", "key"}}, "by names key twice"},
		{Ask{By: []string{"day", "month"}}, "by names both day and month"},
		{Ask{Since: "yesterday"}, "since: \"yesterday\" is no time: write a span like 30d or 12h, a day like 2026-11-01"},
		{Ask{Until: "-3d"}, `until: "-3d" is no time`},
		{Ask{Since: "100000d"}, "too far away"},
		{Ask{Since: "2026-11-02", Until: "2026-11-01"}, "the period is empty"},
		{Ask{Since: "2026-11-01T09:10:00Z", Until: "2026-11-01T09:50:00Z"}, "the period is empty"},
		{Ask{Zone: "Europe/Atlantis"}, "write it like Europe/Berlin"},
	} {
		if _, err := tt.ask.Query(now); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: error %v does not say %q", tt.ask, err, tt.want)
		}
	}
}

// TestAnswer: what is unknown is absent from the JSON, and lists are never null.
func TestAnswer(t *testing.T) {
	b, err := json.Marshal(AnswerOf(ledger.Query{}, nil, nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"zone":"UTC"`, `"by":[]`, `"lines":[]`, `"total":{"calls":0`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("no %s in %s", want, b)
		}
	}
	for _, absent := range []string{"since", "until", "currency", "cost", "null"} {
		if strings.Contains(string(b), absent) {
			t.Errorf("%s in %s", absent, b)
		}
	}
}
