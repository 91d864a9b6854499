package slo_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/weirgate/weir/slo"
)

// TestConfigJSON: what is written is read back, zone and all.
func TestConfigJSON(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, period := range []slo.Period{{}, {Rolling: 7 * 24 * time.Hour}, {Zone: time.UTC}, {Zone: berlin}} {
		cfg := slo.Config{Period: period}
		for _, class := range slo.Presets() {
			cfg.Classes = append(cfg.Classes, class)
		}
		cfg, _, err := cfg.Complete()
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(cfg)
		if err != nil {
			t.Fatal(err)
		}
		var back slo.Config
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatalf("%v in %s", err, b)
		}
		if back.Period.Name() != cfg.Period.Name() {
			t.Errorf("period %s, want %s", back.Period.Name(), cfg.Period.Name())
		}
		back.Period, cfg.Period = slo.Period{}, slo.Period{}
		if !reflect.DeepEqual(back, cfg) {
			t.Errorf("%+v, want %+v", back, cfg)
		}
	}
	var p slo.Period
	if err := p.UnmarshalText([]byte("fortnight")); err == nil {
		t.Error("a period that is none was read")
	}
}
