package rules

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirgate/weir/slo"
)

// Options change what is written. The zero value is what people want.
type Options struct {
	// Scale divides every time of the rules, so that a drill of days takes minutes: 1 to
	// 10,000; 0 is 1. Windows below a second become a second, in which a scraper can
	// still look a few times. Names of series keep the windows' true lengths.
	Scale float64
}

const maxScale = 10_000

func (o Options) complete() (Options, error) {
	if o.Scale == 0 {
		o.Scale = 1
	}
	if !(o.Scale >= 1 && o.Scale <= maxScale) {
		return o, fmt.Errorf("scale %v: write a factor from 1 to %d", o.Scale, maxScale)
	}
	return o, nil
}

// span is a time as the rules have it: scaled, in whole milliseconds.
func (o Options) span(d time.Duration) time.Duration {
	if o.Scale == 1 {
		return d
	}
	return max(time.Duration(math.Round(float64(d)/o.Scale/float64(time.Millisecond)))*time.Millisecond, time.Millisecond)
}

// window is the length of a window as the rules have it.
func (o Options) window(d time.Duration) time.Duration {
	if o.Scale == 1 {
		return d
	}
	return max(o.span(d), time.Second)
}

// promSpan writes a time as Prometheus reads it: 5m, 3d, 1h30m, 200ms.
func promSpan(d time.Duration) string {
	var b strings.Builder
	for _, u := range [...]struct {
		name string
		d    time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond}} {
		if n := d / u.d; n > 0 {
			b.WriteString(strconv.FormatInt(int64(n), 10) + u.name)
			d %= u.d
		}
	}
	return cmp.Or(b.String(), "1ms") // what is shorter, nobody can look at
}

// shownWindows are those that weir slo shows, whatever rules there are.
var shownWindows = []time.Duration{5 * time.Minute, 30 * time.Minute, time.Hour, 6 * time.Hour, 72 * time.Hour}

// windows are the lengths that have series: those shown and those of the burn rules, the
// shortest first. outageWindow and the budget's period have series of their own.
func windows(c *slo.Config) []time.Duration {
	all := slices.Clone(shownWindows)
	for _, r := range c.Burn {
		all = append(all, r.Long, r.Short)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// figure writes a number with as many digits as it has.
func figure(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// selector writes a series of one objective. The matchers hold its models and their
// sum, which has none.
func selector(name, class, objective string, more ...string) string {
	matchers := append([]string{"class=" + strconv.Quote(class), "objective=" + strconv.Quote(objective)}, more...)
	return name + "{" + strings.Join(matchers, ",") + "}"
}

// template writes text into an annotation, which Prometheus expands.
func template(text string) string { return strings.ReplaceAll(text, "{{", `{{"{{"}}`) }
